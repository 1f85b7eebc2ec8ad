//! Bytes in files: attachments, and captured sources too large for a row.
//!
//! A file is named after its blob and its workspace, in a directory named after the first characters of
//! the blob's id. Ids begin with their time, so a directory holds a quarter of an hour, and the oldest
//! blobs are found without looking at the others.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::message::Capture;
use messaging_core::ids::{BlobId, Id, MessageId, WorkspaceId};
use messaging_core::ports::store::{Blobs, StoreError};
use messaging_core::time::Timestamp;

use super::SqliteStore;
use super::fault::Fault;
use super::open::{make_directory, private};

/// Sources up to this size are kept in their row.
const INLINE: usize = 64 << 10;
/// How many characters of an id name its directory: twenty bits of milliseconds are left out.
const DIRECTORY: usize = 6;
/// Where captured sources are, beside the directories of blobs.
const CAPTURES: &str = "captures";
/// Ends the name of a file that is still being written, or was when the power failed.
pub(super) const UNFINISHED: &str = ".part";

/// Whether a captured source goes to a file.
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
                off_thread(move || write_durably(&path, &source)).await?;
            }
        }
        Ok(())
    }

    /// The source of a capture.
    pub(super) fn read_capture(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<Bytes>, Fault> {
        Ok(read(&self.capture_path(workspace, message))?)
    }

    /// Removes the sources of captures, those that have a file.
    pub(super) async fn delete_captures(&self, captures: Vec<(WorkspaceId, MessageId)>) -> Result<(), Fault> {
        let files = self.clone();
        off_thread(move || {
            captures.iter().try_for_each(|(workspace, message)| remove(&files.capture_path(*workspace, *message)))
        })
        .await
    }

    /// Removes blobs.
    pub(super) async fn delete(&self, blobs: Vec<(WorkspaceId, BlobId)>) -> Result<(), Fault> {
        let files = self.clone();
        off_thread(move || blobs.iter().try_for_each(|(workspace, id)| remove(&files.blob_path(*workspace, *id)))).await
    }

    fn blob_path(&self, workspace: WorkspaceId, id: BlobId) -> PathBuf {
        self.root.join(directory_of(id)).join(format!("{id}.{workspace}"))
    }

    fn capture_path(&self, workspace: WorkspaceId, message: MessageId) -> PathBuf {
        self.root.join(CAPTURES).join(directory_of(message)).join(format!("{message}.{workspace}"))
    }

    /// Blobs with a time before `before`, oldest first.
    fn list_before(&self, before: Timestamp, limit: usize) -> io::Result<Vec<(WorkspaceId, BlobId)>> {
        let bound = BlobId::from_bytes((u128::try_from(before.as_millis()).unwrap_or(0) << 80).to_be_bytes());
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

#[async_trait]
impl Blobs for SqliteStore {
    async fn put_blob(&self, workspace: WorkspaceId, id: BlobId, bytes: Bytes) -> Result<(), StoreError> {
        self.health.admits_files()?;
        let path = self.blobs.blob_path(workspace, id);
        Ok(off_thread(move || write_durably(&path, &bytes)).await?)
    }

    async fn discard_blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<(), StoreError> {
        Ok(self.blobs.delete(vec![(workspace, id)]).await?)
    }

    async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        let path = self.blobs.blob_path(workspace, id);
        Ok(off_thread(move || read(&path)).await?)
    }

    async fn blobs_before(&self, before: Timestamp, limit: usize) -> Result<Vec<(WorkspaceId, BlobId)>, StoreError> {
        let files = self.blobs.clone();
        Ok(off_thread(move || files.list_before(before, limit)).await?)
    }
}

/// Runs file work where it may block.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Fault> {
    Ok(tokio::task::spawn_blocking(work).await.map_err(|_| Fault::Panicked)??)
}

fn directory_of(id: impl Id) -> String {
    let text = id.to_string();
    text.chars().skip(text.len() - 26).take(DIRECTORY).collect()
}

fn parse_name(name: &str) -> Option<(BlobId, WorkspaceId)> {
    let (id, workspace) = name.strip_suffix(UNFINISHED).unwrap_or(name).split_once('.')?;
    Some((id.parse().ok()?, workspace.parse().ok()?))
}

/// The names in a directory; none when it is not there.
pub(super) fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

fn read(path: &Path) -> io::Result<Option<Bytes>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes.into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file that is there completely or not at all, also after a power cut.
fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    // A removal beside us may take the directory away while it is still empty.
    let mut attempts = 3;
    let mut file = loop {
        attempts -= 1;
        make_directory_durably(directory)?;
        match private(OpenOptions::new().write(true).create(true).truncate(true)).open(&unfinished) {
            Err(error) if error.kind() == ErrorKind::NotFound && attempts > 0 => {}
            opened => break opened?,
        }
    };
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    sync_directory(directory)
}

pub(super) fn make_directory_durably(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    make_directory(directory)?;
    // The names of new directories are in their parents; two levels at most are ours.
    for parent in directory.ancestors().skip(1).take(3) {
        sync_directory(parent)?;
    }
    Ok(())
}

pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) && !directory.as_os_str().is_empty() {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// Removes a file, and its directory when that was the last one.
fn remove(path: &Path) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    for name in [path, Path::new(&unfinished)] {
        match fs::remove_file(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    if let Some(directory) = path.parent() {
        // Fails when it is not empty, as it should.
        let _ = fs::remove_dir(directory);
    }
    Ok(())
}
