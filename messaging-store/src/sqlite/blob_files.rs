//! Bytes in files: attachments, and captured sources too large for a row.
//!
//! A file is named after its blob and its workspace, in a directory named after the first characters of
//! the blob's id. Ids begin with their time, so a directory holds a quarter of an hour, and the oldest
//! blobs are found without looking at the others.
//!
//! Until the commit that names it is done, a blob has another name in a directory of its own, so that the few that a
//! crash left there are found without checking all others against the database. Its move is not synced: a blob whose
//! move a power cut undid is found in that directory, by readers as well.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::message::Capture;
use messaging_core::domain::message::attachment::MessageBlob;
use messaging_core::ids::{BlobId, Id, MessageId, WorkspaceId};
use messaging_core::time::Timestamp;

use super::fault::Fault;
use super::off_thread::off_thread;
use crate::files::{UNFINISHED, directory_above, in_directory, names, naming, read, remove_file, write_durably};

/// Largest source that is kept in its row.
const INLINE: usize = 64 << 10;
/// Number of characters of an id that name its directory: twenty bits of milliseconds are left out.
const DIRECTORY: usize = 6;
/// Directory of captured sources, beside the directories of blobs.
const CAPTURES: &str = "captures";
/// Directory of blobs that no commit has kept yet, beside those directories; their names include the id of the message.
const PENDING: &str = "pending";
/// Returns true if a captured source is stored in a file.
pub(super) fn is_large(source: &[u8]) -> bool {
    source.len() > INLINE
}

/// The capture that a write stores.
pub(super) fn capture_in(write: &Write) -> Option<&Capture> {
    match write {
        Write::PutCapture(capture) => Some(capture),
        Write::EraseCopy(erasure) => erasure.capture.as_ref(),
        _ => None,
    }
}

/// The directory of the files.
#[derive(Debug, Clone)]
pub(super) struct BlobFiles {
    root: Arc<Path>,
}

impl BlobFiles {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root: root.into() }
    }

    /// Writes the large sources among the changes, before the commit that refers to them.
    pub(super) async fn put_captures(&self, changes: &Changes) -> Result<(), Fault> {
        for write in changes.writes() {
            if let Some(capture) = capture_in(write)
                && is_large(&capture.source)
            {
                let (path, source) =
                    (self.capture_path(capture.workspace_id, capture.message_id), capture.source.clone());
                off_thread(move || naming(&path, write_durably(&path, &source))).await?;
            }
        }
        Ok(())
    }

    /// The source of a capture.
    pub(super) fn read_capture(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<Bytes>, Fault> {
        let path = self.capture_path(workspace, message);
        Ok(naming(&path, read(&path))?)
    }

    /// Removes the sources of those captures that have a file.
    pub(super) async fn delete_captures(&self, captures: Vec<(WorkspaceId, MessageId)>) -> Result<(), Fault> {
        let files = self.clone();
        off_thread(move || {
            captures.iter().try_for_each(|(workspace, message)| remove(&files.capture_path(*workspace, *message)))
        })
        .await
    }

    /// Removes the sources of all captures of a workspace.
    pub(super) async fn delete_captures_of(&self, workspace: WorkspaceId) -> Result<(), Fault> {
        let files = self.clone();
        off_thread(move || {
            let root = files.root.join(CAPTURES);
            for directory in names(&root)? {
                for name in names(&root.join(&directory))?.iter().filter(|name| is_of(name, workspace)) {
                    remove(&root.join(&directory).join(name))?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Lists blobs of a workspace, kept or not.
    pub(super) fn list_of(&self, workspace: WorkspaceId, limit: usize) -> io::Result<Vec<BlobId>> {
        let mut found: Vec<BlobId> =
            self.pending()?.filter(|blob| blob.workspace_id == workspace).map(|blob| blob.id).collect();
        for directory in names(&self.root)?.iter().filter(|name| name.len() == DIRECTORY) {
            if found.len() >= limit {
                break;
            }
            let blobs = names(&self.root.join(directory))?;
            let of_workspace = blobs.iter().filter_map(|name| parse_name(name)).filter(|(_, of)| *of == workspace);
            found.extend(of_workspace.map(|(id, _)| id));
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Removes blobs, kept or not.
    pub(super) async fn delete(&self, blobs: Vec<(WorkspaceId, BlobId)>) -> Result<(), Fault> {
        let files = self.clone();
        off_thread(move || {
            blobs.iter().try_for_each(|(workspace, id)| {
                if let Some(pending) = files.find_pending(*workspace, *id)? {
                    remove_file(&files.pending_path(pending))?;
                }
                remove(&files.blob_path(*workspace, *id))
            })
        })
        .await
    }

    /// Moves blobs to their places, if they are not there yet.
    pub(super) async fn keep(&self, blobs: Vec<MessageBlob>) -> Result<(), Fault> {
        let files = self.clone();
        off_thread(move || blobs.iter().try_for_each(|blob| files.keep_one(*blob))).await
    }

    fn keep_one(&self, blob: MessageBlob) -> io::Result<()> {
        let place = self.blob_path(blob.workspace_id, blob.id);
        in_directory(&place, || match fs::rename(self.pending_path(blob), &place) {
            // It was moved before.
            Err(error) if error.kind() == ErrorKind::NotFound && place.exists() => Ok(()),
            outcome => outcome,
        })
    }

    /// Path of a blob until a commit has kept it.
    pub(super) fn pending_path(&self, blob: MessageBlob) -> PathBuf {
        let MessageBlob { workspace_id, message_id, id } = blob;
        self.root.join(PENDING).join(format!("{id}.{workspace_id}.{message_id}"))
    }

    /// Blobs that no commit has kept.
    pub(super) fn pending(&self) -> io::Result<impl Iterator<Item = MessageBlob>> {
        Ok(names(&self.root.join(PENDING))?.into_iter().filter_map(|name| parse_pending(&name)))
    }

    fn find_pending(&self, workspace: WorkspaceId, id: BlobId) -> io::Result<Option<MessageBlob>> {
        Ok(self.pending()?.find(|blob| blob.workspace_id == workspace && blob.id == id))
    }

    /// Reads a blob from either place.
    pub(super) fn read_blob(&self, workspace: WorkspaceId, id: BlobId) -> io::Result<Option<Bytes>> {
        let place = self.blob_path(workspace, id);
        if let Some(bytes) = read(&place)? {
            return Ok(Some(bytes));
        }
        let Some(pending) = self.find_pending(workspace, id)? else {
            // It was moved between the two reads.
            return read(&place);
        };
        match read(&self.pending_path(pending))? {
            Some(bytes) => Ok(Some(bytes)),
            None => read(&place),
        }
    }

    pub(super) fn blob_path(&self, workspace: WorkspaceId, id: BlobId) -> PathBuf {
        self.root.join(directory_of(id)).join(format!("{id}.{workspace}"))
    }

    fn capture_path(&self, workspace: WorkspaceId, message: MessageId) -> PathBuf {
        self.root.join(CAPTURES).join(directory_of(message)).join(format!("{message}.{workspace}"))
    }

    /// Lists blobs whose ids have a time before `before`, oldest first.
    pub(super) fn list_before(&self, before: Timestamp, limit: usize) -> io::Result<Vec<(WorkspaceId, BlobId)>> {
        let bound = first_id(before);
        let mut directories = names(&self.root)?;
        directories.retain(|name| name.len() == DIRECTORY && *name <= directory_of(bound));
        directories.sort_unstable();
        let mut found = Vec::new();
        for directory in directories {
            let mut blobs: Vec<(BlobId, WorkspaceId)> =
                names(&self.root.join(directory))?.iter().filter_map(|name| parse_name(name)).collect();
            blobs.retain(|(id, _)| *id < bound);
            blobs.sort_unstable();
            found.extend(blobs.into_iter().map(|(id, workspace)| (workspace, id)));
            if found.len() >= limit {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }
}

fn directory_of(id: impl Id) -> String {
    let text = id.to_string();
    text.chars().skip(text.len() - 26).take(DIRECTORY).collect()
}

/// Smallest id with a given time.
pub(super) fn first_id(time: Timestamp) -> BlobId {
    BlobId::from_bytes((u128::try_from(time.as_millis()).unwrap_or(0) << 80).to_be_bytes())
}

fn parse_pending(name: &str) -> Option<MessageBlob> {
    let mut parts = name.split('.');
    let (id, workspace, message) = (parts.next()?, parts.next()?, parts.next()?);
    Some(MessageBlob { workspace_id: workspace.parse().ok()?, message_id: message.parse().ok()?, id: id.parse().ok()? })
}

/// Returns true if a file is named after a workspace, whether it was written to its end or not.
fn is_of(name: &str, workspace: WorkspaceId) -> bool {
    let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
    name.split_once('.').is_some_and(|(_, of)| of == workspace.to_string())
}

fn parse_name(name: &str) -> Option<(BlobId, WorkspaceId)> {
    let (id, workspace) = name.strip_suffix(UNFINISHED).unwrap_or(name).split_once('.')?;
    Some((id.parse().ok()?, workspace.parse().ok()?))
}

/// Removes a file, and its directory if it is then empty.
fn remove(path: &Path) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    remove_file(path)?;
    remove_file(Path::new(&unfinished))?;
    // Fails if the directory is not empty, as it should.
    let _ = fs::remove_dir(directory_above(path));
    Ok(())
}
