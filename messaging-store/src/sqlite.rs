//! The store on SQLite.
//!
//! Threads and the objects they own: one writer with the writing connection ([`writer`], [`write_connection`],
//! [`batch`]), a few readers with a connection each ([`readers`]), one more reader for scans ([`segments`]), and one
//! that moves the write-ahead log into the database ([`checkpoint`]). Callers hand work over and wait without a thread
//! of their own.
//!
//! The tables are described in [`tables`](crate::tables); the files per aggregate here hold the parts that are special
//! to SQLite.

mod address_digest;
mod apply;
mod audiences;
mod automations;
mod batch;
mod blob_files;
mod campaigns;
mod change_subscribers;
mod checkpoint;
mod connection;
mod contacts;
mod database;
mod dating;
mod due_rows;
mod epoch;
mod events;
pub(crate) mod fault;
mod file_blobs;
pub(crate) mod files_of_rows;
mod flows;
pub(crate) mod health;
mod installation;
mod installation_values;
mod jobs;
mod lanes;
mod listeners;
mod lists;
mod log_repair;
mod messages;
#[cfg(feature = "postgres")]
pub(crate) mod moved;
mod news;
mod numbers;
mod off_thread;
pub(crate) mod open;
mod open_commit;
mod product_events;
mod query;
mod readers;
mod redating;
mod row;
mod sandbox;
pub(crate) mod schema;
mod segments;
mod upload_files;
mod uploads;
mod value;
mod verification;
mod waking;
mod workspace_end;
mod write_connection;
mod writer;

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use messaging_core::changes::{Changes, JobWrite, Write};
use messaging_core::error::Chain;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::{
    CommitError, CommitObserver, News, Priority, Store, StoreError, StoreGauges, StoreHealth, Topics,
};
use messaging_core::ports::{BlobStore, Uploads};
use rusqlite::Connection;
use tokio::sync::watch;

use self::blob_files::{BlobFiles, is_large};
use self::campaigns::SendsLook;
use self::checkpoint::Checkpoints;
use self::connection::Reopen;
use self::due_rows::DueRows;
use self::fault::Fault;
use self::file_blobs::FileBlobs;
use self::health::Health;
use self::readers::Readers;
use self::upload_files::UploadFiles;
use self::uploads::FileUploads;
use self::writer::Writer;
use crate::database::SqlStore;
use crate::observed::Observed;

/// A database in one SQLite file, with a directory of attachments beside it.
///
/// Dropping it finishes what was handed over, as [`Store::close`] does, but blocks the thread.
pub type SqliteStore = SqlStore<Sqlite>;

/// The SQLite backend of a [`SqliteStore`]: its writer thread and its reader threads.
#[derive(Debug)]
pub struct Sqlite {
    writer: Arc<Writer>,
    readers: Arc<Readers>,
    /// Reads that look at many rows, one at a time.
    scans: Arc<Readers>,
    checkpoints: Arc<Checkpoints>,
    health: Arc<Health>,
    observed: Arc<Observed>,
    news: watch::Sender<News>,
    due: DueTables,
    blobs: BlobFiles,
    uploads: UploadFiles,
    ownership: Arc<Mutex<Option<Ownership>>>,
    stop: Arc<Mutex<Option<Stop>>>,
}

/// State with which an orderly stop raises the number of the latest start, once.
#[derive(Debug)]
struct Stop {
    /// The file with the number.
    epoch: PathBuf,
    /// Token of this process; another process counts starts itself.
    owner: String,
    reopen: Reopen,
}

/// Positions of sweeps in tables without an index by time.
#[derive(Debug, Default)]
struct DueTables {
    aged: Mutex<HashMap<&'static str, Arc<DueRows>>>,
    sends: SendsLook,
}

impl DueTables {
    fn of(&self, table: &'static str) -> Arc<DueRows> {
        Arc::clone(self.aged.lock().unwrap_or_else(PoisonError::into_inner).entry(table).or_default())
    }
}

/// Lock and database file, which the program that does the jobs holds until its last connection is closed.
#[derive(Debug)]
struct Ownership {
    /// The lock file.
    _lock: File,
    /// The database file, with which the checkpoint thread syncs. POSIX drops a process's locks on a file, those of SQLite
    /// included, as soon as it closes any descriptor of the file, so this one stays open.
    database: Arc<File>,
}

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, changes: Changes, priority: Priority) -> Result<(), CommitError> {
        if changes.is_empty() {
            return Ok(());
        }
        if !self.health.admits(&changes) {
            return Err(StoreError::Unavailable.into());
        }
        if changes.writes().iter().all(|write| matches!(write, Write::Job(JobWrite::Hold(_)))) {
            let jobs = changes.writes().iter().filter_map(Write::claim).cloned().collect();
            return self.writer.hold(jobs).await;
        }
        let topics = Topics::of(&changes);
        self.commit_with_files(changes, priority).await?;
        news::tell(&self.news, topics);
        Ok(())
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        Arc::new(FileBlobs::new(self.blobs.clone(), Arc::clone(&self.health)))
    }

    fn uploads(&self) -> Arc<dyn Uploads> {
        Arc::new(FileUploads::new(self.uploads.clone(), Arc::clone(&self.health)))
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.readers.read(|connection| Ok(connection.prepare_cached("SELECT 1")?.query_row([], |_| Ok(()))?)).await
    }

    fn health(&self) -> StoreHealth {
        self.health.state()
    }

    fn watch_health(&self) -> watch::Receiver<StoreHealth> {
        self.health.watch()
    }

    fn news(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    fn clock_offset_ms(&self) -> i64 {
        0
    }

    fn observe(&self, observer: Arc<dyn CommitObserver>) {
        self.observed.set(observer);
    }

    fn gauges(&self) -> StoreGauges {
        self.health.gauges()
    }

    async fn close(&self) {
        let health = Arc::clone(&self.health);
        let (writer, readers) = (Arc::clone(&self.writer), Arc::clone(&self.readers));
        let (scans, checkpoints) = (Arc::clone(&self.scans), Arc::clone(&self.checkpoints));
        let (ownership, stop) = (Arc::clone(&self.ownership), Arc::clone(&self.stop));
        let closing = tokio::task::spawn_blocking(move || {
            let raise = || raise_epoch(&stop, &health);
            close(&writer, &[&readers, &scans], raise, &checkpoints, &ownership);
            health.end(StoreHealth::Closed);
        });
        if closing.await.is_err() {
            tracing::error!("closing the store panicked");
        }
    }
}

impl Sqlite {
    /// Returns true if this is the program that does the jobs of the database.
    fn does_the_work(&self) -> bool {
        self.ownership.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Commits changes and makes the changes to files that follow from them.
    async fn commit_with_files(&self, changes: Changes, priority: Priority) -> Result<(), CommitError> {
        self.blobs.put_captures(&changes).await?;
        let redacted: Vec<_> = changes.writes().iter().filter_map(redacted_message).collect();
        if redacted.is_empty() {
            return self.writer.commit(changes, priority).await;
        }
        let (writer, files) = (Arc::clone(&self.writer), self.blobs.clone());
        // A task of its own, so that a caller that goes away leaves no file without a row.
        let task = tokio::spawn(async move {
            writer.commit(changes, priority).await?;
            // The commit stands whatever happens to the files.
            if let Err(error) = files.delete_captures(redacted).await {
                tracing::warn!(%error, "a captured source could not be removed");
            }
            Ok(())
        });
        task.await.map_err(|_| Fault::Panicked)?
    }

    /// Removes rows in transactions of at most `slice` each, until none is left or `limit` are gone; returns the number
    /// removed. A power cut may bring the last ones back.
    async fn forget_in_slices<F>(&self, limit: usize, slice: usize, forget: F) -> Result<u64, StoreError>
    where
        F: Fn(&Connection, usize) -> Result<u64, Fault> + Copy + Send + 'static,
    {
        let mut forgotten = 0;
        loop {
            let slice = slice.min(limit.saturating_sub(usize::try_from(forgotten).unwrap_or(limit)));
            if slice == 0 {
                return Ok(forgotten);
            }
            let gone = self.writer.undurably(move |connection| forget(connection, slice)).await?;
            if gone == 0 {
                return Ok(forgotten);
            }
            forgotten += gone;
        }
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        let raise = || raise_epoch(&self.stop, &self.health);
        close(&self.writer, &[&self.readers, &self.scans], raise, &self.checkpoints, &self.ownership);
        self.health.end(StoreHealth::Closed);
    }
}

/// Ends the threads in the order in which they depend on each other; a second call does nothing.
fn close(
    writer: &Writer,
    readers: &[&Readers],
    raise: impl FnOnce(),
    checkpoints: &Checkpoints,
    ownership: &Mutex<Option<Ownership>>,
) {
    writer.close();
    for readers in readers {
        readers.close();
    }
    raise();
    checkpoints.close();
    drop(ownership.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Raises the number of the latest start, so that a copy made while a server ran, and restored after it stopped, can be
/// told from the original. If this fails, the next start raises the number.
fn raise_epoch(stop: &Mutex<Option<Stop>>, health: &Health) {
    let Some(stop) = stop.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    if !health.state().is_healthy() {
        return;
    }
    let raise = || {
        let connection = stop.reopen.writer()?;
        let owner = installation_values::get(&connection, installation_values::OWNER)?;
        if owner.as_deref() != Some(stop.owner.as_str()) {
            return Ok(());
        }
        installation_values::remove(&connection, installation_values::OWN_SOURCES)?;
        epoch::end(&connection, &stop.epoch)
    };
    if let Err(error) = raise() {
        let error: Fault = error;
        tracing::warn!(error = %Chain(&error), "the number of the latest start was not raised");
    }
}

fn redacted_message(write: &Write) -> Option<(WorkspaceId, MessageId)> {
    match write {
        Write::RedactMessage(redaction) => Some((redaction.workspace_id, redaction.message_id)),
        // A body that was in a file and is short now is stored in its row.
        Write::EraseCopy(erasure) => {
            let capture = erasure.capture.as_ref().filter(|capture| !is_large(&capture.source))?;
            Some((capture.workspace_id, capture.message_id))
        }
        _ => None,
    }
}
