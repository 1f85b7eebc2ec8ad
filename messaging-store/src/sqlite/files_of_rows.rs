//! Paths of the files that rows name, below the directory of the database.

use std::path::PathBuf;

use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::ids::{BlobId, ImportId, MessageId, WorkspaceId};
use messaging_core::ports::uploads::UploadFile;

use super::blob_files::BlobFiles;
use super::upload_files::UploadFiles;

/// Paths at which a blob of a message may be.
pub(crate) fn of_blob(workspace_id: WorkspaceId, message_id: MessageId, id: BlobId) -> Vec<PathBuf> {
    let files = BlobFiles::new("attachments".into());
    vec![files.blob_path(workspace_id, id), files.pending_path(MessageBlob { workspace_id, message_id, id })]
}

/// Path of an uploaded file.
pub(crate) fn of_upload(workspace_id: WorkspaceId, import_id: ImportId, upload_id: BlobId) -> PathBuf {
    UploadFiles::new("uploads".into()).path(UploadFile { workspace_id, import_id, upload_id })
}
