//! Uploaded files.

use bytes::Bytes;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Uploads;
use messaging_core::ports::uploads::UploadFile;

use super::sample::id;

fn file(workspace_id: WorkspaceId) -> UploadFile {
    UploadFile { workspace_id, import_id: id(), upload_id: id() }
}

/// A file that was added piece by piece is read at any position, but not before it is kept.
pub async fn a_file_is_read_once_it_is_kept(uploads: &dyn Uploads) {
    let file = file(id());
    let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    for (index, piece) in bytes.chunks(150_000).enumerate() {
        let at = (index * 150_000) as u64;
        uploads.append_upload(file, at, Bytes::copy_from_slice(piece)).await.unwrap();
        assert_eq!(uploads.read_upload(file, 0, 1).await.unwrap(), None);
    }
    uploads.keep_upload(file).await.unwrap();
    let read = async |at: usize, length| uploads.read_upload(file, at as u64, length).await.unwrap().unwrap();
    assert_eq!(read(0, 1 << 20).await, bytes);
    assert_eq!(read(149_990, 20).await, bytes[149_990..150_010]);
    assert_eq!(read(399_990, 20).await, bytes[399_990..]);
    assert!(read(400_000, 20).await.is_empty());
}

/// Two files for the same import are separate; both are found.
pub async fn files_of_an_import_do_not_meet(uploads: &dyn Uploads) {
    let one = file(id());
    let (other, elsewhere) = (UploadFile { upload_id: id(), ..one }, file(one.workspace_id));
    for (file, text) in [(one, "one"), (other, "other"), (elsewhere, "elsewhere")] {
        uploads.append_upload(file, 0, Bytes::from(text)).await.unwrap();
    }
    uploads.keep_upload(one).await.unwrap();
    assert_eq!(uploads.uploads(one.workspace_id, one.import_id).await.unwrap(), [one.upload_id, other.upload_id]);
    uploads.keep_upload(other).await.unwrap();
    for (file, text) in [(one, "one"), (other, "other")] {
        assert_eq!(uploads.read_upload(file, 0, 10).await.unwrap().unwrap(), text);
    }
}

/// Files of a workspace are found, kept or not, for any import, and none of another workspace.
pub async fn files_of_a_workspace_are_found(uploads: &dyn Uploads) {
    let home = id();
    let (kept, begun) = (file(home), file(home));
    for file in [kept, begun, file(id())] {
        uploads.append_upload(file, 0, Bytes::from("text")).await.unwrap();
    }
    uploads.keep_upload(kept).await.unwrap();
    let found = uploads.uploads_of(home, 10).await.unwrap();
    assert!(found.len() == 2 && found.contains(&kept) && found.contains(&begun), "{found:?}");
    assert_eq!(uploads.uploads_of(home, 1).await.unwrap().len(), 1);
    for file in found {
        uploads.remove_upload(file).await.unwrap();
    }
    assert_eq!(uploads.uploads_of(home, 10).await.unwrap(), []);
}

/// A removed file is gone, kept or not, and nothing can be added to it; a second removal is no error.
pub async fn removed_files_are_gone(uploads: &dyn Uploads) {
    for keep in [false, true] {
        let file = file(id());
        uploads.append_upload(file, 0, Bytes::from("text")).await.unwrap();
        if keep {
            uploads.keep_upload(file).await.unwrap();
        }
        for _ in 0..2 {
            uploads.remove_upload(file).await.unwrap();
            assert_eq!(uploads.read_upload(file, 0, 10).await.unwrap(), None);
            assert_eq!(uploads.uploads(file.workspace_id, file.import_id).await.unwrap(), []);
        }
        assert!(uploads.append_upload(file, 4, Bytes::from("more")).await.is_err());
        assert!(uploads.keep_upload(file).await.is_err());
    }
}

/// A file belongs to its workspace.
pub async fn other_workspaces_are_not_there(uploads: &dyn Uploads) {
    let mine = file(id());
    let other = UploadFile { workspace_id: id(), ..mine };
    uploads.append_upload(mine, 0, Bytes::from("text")).await.unwrap();
    uploads.keep_upload(mine).await.unwrap();
    assert_eq!(uploads.read_upload(other, 0, 10).await.unwrap(), None);
    assert_eq!(uploads.uploads(other.workspace_id, other.import_id).await.unwrap(), []);
    uploads.remove_upload(other).await.unwrap();
    assert!(uploads.read_upload(mine, 0, 10).await.unwrap().is_some());
}
