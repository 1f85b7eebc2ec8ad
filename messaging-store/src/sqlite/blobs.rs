//! Bytes in files: attachments, and captured sources too large for a row.
//!
//! A file is named after its blob and its workspace, in a directory named after the first characters of
//! the blob's id. Ids begin with their time, so a directory holds a quarter of an hour, and the oldest
//! blobs are found without looking at the others.
//!
//! Until the commit that names it is done, a blob has another name in a directory of its own, so that the few that
//! a crash left there are found without looking at the database for all others. Moving it is not synced: what a power
//! cut undoes is found in that directory, by readers as well.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::attachment::MessageBlob;
use messaging_core::domain::message::Capture;
use messaging_core::ids::{BlobId, Id, MessageId, WorkspaceId};
use messaging_core::ports::store::{Blobs, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::Connection;

use super::SqliteStore;
use super::fault::Fault;
use super::lanes::LaneIndex;
use super::open::{make_directory, private};
use super::query::one;

/// Sources up to this size are kept in their row.
const INLINE: usize = 64 << 10;
/// How many characters of an id name its directory: twenty bits of milliseconds are left out.
const DIRECTORY: usize = 6;
/// Where captured sources are, beside the directories of blobs.
const CAPTURES: &str = "captures";
/// Where blobs are until a commit has kept them, beside those directories; with the id of their message in the name.
const PENDING: &str = "pending";
/// How many of them one transaction decides about: requests wait for the files to be moved or removed.
const SETTLED: usize = 20;
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

    /// Moves blobs to their places, those that are not there yet.
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

    /// Whether a blob is there, kept or not.
    pub(super) fn holds(&self, blob: MessageBlob) -> io::Result<bool> {
        Ok(self.pending_path(blob).try_exists()? || self.blob_path(blob.workspace_id, blob.id).try_exists()?)
    }

    fn pending_path(&self, blob: MessageBlob) -> PathBuf {
        let MessageBlob { workspace_id, message_id, id } = blob;
        self.root.join(PENDING).join(format!("{id}.{workspace_id}.{message_id}"))
    }

    /// Blobs that no commit has kept.
    fn pending(&self) -> io::Result<impl Iterator<Item = MessageBlob>> {
        Ok(names(&self.root.join(PENDING))?.into_iter().filter_map(|name| parse_pending(&name)))
    }

    fn find_pending(&self, workspace: WorkspaceId, id: BlobId) -> io::Result<Option<MessageBlob>> {
        Ok(self.pending()?.find(|blob| blob.workspace_id == workspace && blob.id == id))
    }

    /// Reads a blob wherever it is.
    fn read_blob(&self, workspace: WorkspaceId, id: BlobId) -> io::Result<Option<Bytes>> {
        let place = self.blob_path(workspace, id);
        if let Some(bytes) = read(&place)? {
            return Ok(Some(bytes));
        }
        let Some(pending) = self.find_pending(workspace, id)? else {
            // Moved between the two looks.
            return read(&place);
        };
        match read(&self.pending_path(pending))? {
            Some(bytes) => Ok(Some(bytes)),
            None => read(&place),
        }
    }

    /// Keeps blobs whose messages are there, and removes the others. Within a transaction: no commit that keeps one
    /// of them is then under way.
    fn settle(&self, connection: &Connection, blobs: &[MessageBlob]) -> Result<u64, Fault> {
        for blob in blobs {
            let sql = "SELECT 1 FROM messages WHERE workspace = ?1 AND id = ?2";
            let key = [blob.workspace_id.to_bytes(), blob.message_id.to_bytes()];
            match one(connection, sql, key, |_| Ok(()))? {
                Some(()) => self.keep_one(*blob)?,
                None => remove_file(&self.pending_path(*blob))?,
            }
        }
        Ok(blobs.len() as u64)
    }

    fn blob_path(&self, workspace: WorkspaceId, id: BlobId) -> PathBuf {
        self.root.join(directory_of(id)).join(format!("{id}.{workspace}"))
    }

    fn capture_path(&self, workspace: WorkspaceId, message: MessageId) -> PathBuf {
        self.root.join(CAPTURES).join(directory_of(message)).join(format!("{message}.{workspace}"))
    }

    /// Blobs with a time before `before`, oldest first.
    fn list_before(&self, before: Timestamp, limit: usize) -> io::Result<Vec<(WorkspaceId, BlobId)>> {
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

#[async_trait]
impl Blobs for SqliteStore {
    async fn put_blob(&self, blob: MessageBlob, bytes: Bytes) -> Result<(), StoreError> {
        self.health.admits_files()?;
        let path = self.blobs.pending_path(blob);
        Ok(off_thread(move || write_synced(&path, &bytes)).await?)
    }

    async fn discard_blob(&self, blob: MessageBlob) -> Result<(), StoreError> {
        let path = self.blobs.pending_path(blob);
        Ok(off_thread(move || remove_file(&path)).await?)
    }

    async fn settle_blobs(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let bound = first_id(before);
        let files = self.blobs.clone();
        let pending = off_thread(move || {
            let mut old: Vec<_> = files.pending()?.filter(|blob| blob.id < bound).collect();
            old.truncate(limit);
            Ok(old)
        });
        let mut settled = 0;
        for slice in pending.await?.chunks(SETTLED) {
            let (files, slice) = (self.blobs.clone(), slice.to_vec());
            let settle = move |connection: &Connection, _: &mut LaneIndex| files.settle(connection, &slice);
            settled += self.writer.task(move |batch| batch.undurably(settle)).await?;
        }
        Ok(settled)
    }

    async fn blob(&self, workspace: WorkspaceId, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        let files = self.blobs.clone();
        Ok(off_thread(move || files.read_blob(workspace, id)).await?)
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

/// The least id with a time.
fn first_id(time: Timestamp) -> BlobId {
    BlobId::from_bytes((u128::try_from(time.as_millis()).unwrap_or(0) << 80).to_be_bytes())
}

fn parse_pending(name: &str) -> Option<MessageBlob> {
    let mut parts = name.split('.');
    let (id, workspace, message) = (parts.next()?, parts.next()?, parts.next()?);
    Some(MessageBlob { workspace_id: workspace.parse().ok()?, message_id: message.parse().ok()?, id: id.parse().ok()? })
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
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = Path::new(&unfinished);
    write_synced(unfinished, bytes)?;
    fs::rename(unfinished, path)?;
    sync_directory(directory_above(path))
}

/// Writes a file that a power cut leaves as it is once this has returned. What is there when that failed is removed:
/// on a full disk it would take the last of the space.
fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file =
        in_directory(path, || private(OpenOptions::new().write(true).create(true).truncate(true)).open(path))?;
    let written =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| sync_directory(directory_above(path)));
    if written.is_err() {
        // The error that matters is the first.
        let _ = fs::remove_file(path);
    }
    written
}

/// Does something that needs the directory of a file, which is made if need be: a removal beside us may take it away
/// while it is still empty.
fn in_directory<T>(path: &Path, mut work: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut attempts = 3;
    loop {
        attempts -= 1;
        make_directory_durably(directory_above(path))?;
        match work() {
            Err(error) if error.kind() == ErrorKind::NotFound && attempts > 0 => {}
            outcome => return outcome,
        }
    }
}

fn directory_above(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
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
    remove_file(path)?;
    remove_file(Path::new(&unfinished))?;
    // Fails when it is not empty, as it should.
    let _ = fs::remove_dir(directory_above(path));
    Ok(())
}

/// Removes a file; no error when it is gone already.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
