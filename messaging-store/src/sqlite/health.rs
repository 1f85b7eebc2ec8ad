//! Health of the store: whether it takes writes, and the space left on its disk.
//!
//! Each part reports the faults it meets: the writer a failed commit, the checkpoint thread a failed sync. All others
//! read one atomic. Only the writer declares the store healthy again, after a successful write.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use messaging_core::changes::Changes;
use messaging_core::domain::installation::checkup::DiskFacts;
use messaging_core::ports::store::{StoreGauges, StoreHealth};
use tokio::sync::watch;

use super::connection::{PAGE_SIZE, WAL_LIMIT, log_path};
use super::fault::Fault;

/// Smallest number of bytes kept free unless the installation has a setting (contract section 22).
const MIN_RESERVE: u64 = 32 << 20;
/// On a small disk the log is moved into the database when it is longer than this part of what is free.
const LOG_SHARE: u64 = 8;
/// A log shorter than this is never called long.
const MIN_LOG: u64 = 4 << 20;
/// Bytes that may be added between two checks of the disk space; see `LOOK_PAGES` of the checkpoints.
const BETWEEN_LOOKS: u64 = 8 << 20;
/// Stands for a free space that the system does not tell.
const UNKNOWN: u64 = u64::MAX;

/// The state of the store, shared by its threads.
#[derive(Debug)]
pub(super) struct Health {
    database: PathBuf,
    log: PathBuf,
    /// Return value of [`Health::state`], as an index into [`StoreHealth::ALL`].
    published: AtomicU8,
    parts: Mutex<Parts>,
    changes: watch::Sender<StoreHealth>,
    /// Bytes to be kept free; `None` for the default.
    reserve: Option<u64>,
    free: AtomicU64,
    log_bytes: AtomicU64,
    database_bytes: AtomicU64,
}

/// The two parts of the state: a fault outweighs the lack of space.
#[derive(Debug, Clone, Copy)]
struct Parts {
    fault: StoreHealth,
    space: StoreHealth,
}

impl Health {
    /// A healthy state, which is then corrected by a first check of the disk space.
    pub(super) fn new(database: &Path, reserve: Option<u64>) -> Self {
        let parts = Parts { fault: StoreHealth::Healthy, space: StoreHealth::Healthy };
        let health = Self {
            database: database.to_owned(),
            log: log_path(database),
            published: AtomicU8::new(0),
            parts: Mutex::new(parts),
            changes: watch::Sender::new(StoreHealth::Healthy),
            reserve,
            free: AtomicU64::new(UNKNOWN),
            log_bytes: AtomicU64::new(0),
            database_bytes: AtomicU64::new(0),
        };
        health.look_at_space();
        health
    }

    /// Current state.
    pub(super) fn state(&self) -> StoreHealth {
        StoreHealth::ALL[usize::from(self.published.load(Ordering::Acquire))]
    }

    /// Returns the fault of the store, if there is one other than lack of space; only a successful write ends it.
    pub(super) fn fault(&self) -> Option<StoreHealth> {
        let state = self.state();
        let is_space = matches!(state, StoreHealth::BelowReserve | StoreHealth::ReserveUsed);
        (!state.is_healthy() && !is_space).then_some(state)
    }

    /// Returns true if the log must not be moved into the database because it may have a hole.
    pub(super) fn distrusts_log(&self) -> bool {
        matches!(self.state(), StoreHealth::IoError | StoreHealth::SyncFailed | StoreHealth::Broken)
    }

    /// Returns true if the changes may be committed now: if space is short, only those that add nothing.
    pub(super) fn admits(&self, changes: &Changes) -> bool {
        match self.state() {
            StoreHealth::Healthy => true,
            StoreHealth::BelowReserve | StoreHealth::ReserveUsed => !changes.adds(),
            _ => false,
        }
    }

    /// Fails if no files may be written now.
    pub(super) fn admits_files(&self) -> Result<(), Fault> {
        if self.state().is_healthy() { Ok(()) } else { Err(Fault::Unhealthy) }
    }

    pub(super) fn watch(&self) -> watch::Receiver<StoreHealth> {
        self.changes.subscribe()
    }

    pub(super) fn gauges(&self) -> StoreGauges {
        let free = self.free.load(Ordering::Relaxed);
        StoreGauges {
            database_bytes: self.database_bytes.load(Ordering::Relaxed),
            wal_bytes: self.log_bytes.load(Ordering::Relaxed),
            disk_free_bytes: (free != UNKNOWN).then_some(free),
        }
    }

    /// Records a fault if its cause is the disk or the lock.
    pub(super) fn report(&self, fault: &Fault) {
        if let Some(trouble) = fault.trouble() {
            if trouble == StoreHealth::Full {
                // The last look was before what filled the disk; what is told now is how much is left of it.
                self.look_at_space();
            }
            self.set(|parts| {
                // A worse fault is not hidden by a later, lesser one: the log stays distrusted.
                let is_worse = |one: StoreHealth| StoreHealth::ALL.iter().position(|known| *known == one);
                if is_worse(trouble) > is_worse(parts.fault) {
                    parts.fault = trouble;
                }
            });
        }
    }

    /// Records a fault of a checkpoint. Lack of space and a lock held by another program say nothing about commits and
    /// are left out; the checkpoint is tried again.
    pub(super) fn report_of_checkpoint(&self, fault: &Fault) {
        if matches!(fault.trouble(), Some(StoreHealth::IoError | StoreHealth::SyncFailed)) {
            self.report(fault);
        }
    }

    /// Ends a fault after a successful write.
    pub(super) fn recovered(&self) {
        self.set(|parts| {
            if !parts.fault.is_final() {
                parts.fault = StoreHealth::Healthy;
            }
        });
    }

    /// Ends the store for good: nothing will be written any more.
    pub(super) fn end(&self, how: StoreHealth) {
        self.set(|parts| {
            if !parts.fault.is_final() {
                parts.fault = how;
            }
        });
    }

    /// Measures the free space and the lengths of the files.
    pub(super) fn look_at_space(&self) {
        let log = fs::metadata(&self.log).map_or(0, |metadata| metadata.len());
        self.log_bytes.store(log, Ordering::Relaxed);
        let database = fs::metadata(&self.database).map_or(0, |metadata| metadata.len());
        self.database_bytes.store(database, Ordering::Relaxed);
        let Some(free) = free_bytes(&self.database) else { return };
        self.free.store(free, Ordering::Relaxed);
        let reserve = self.reserve.unwrap_or_else(|| default_reserve(log));
        // Whatever reserve is wanted: a log that cannot be moved into the database for want of space can never start
        // over, and so not even outcomes could be stored.
        let least = log.saturating_add(BETWEEN_LOOKS);
        let space = if free < reserve / 2 {
            StoreHealth::ReserveUsed
        } else if free < reserve.max(least) {
            StoreHealth::BelowReserve
        } else {
            StoreHealth::Healthy
        };
        self.set(|parts| parts.space = space);
    }

    /// Returns true if the disk has room for a database of `pages` pages, the length after the log was moved. A move
    /// without that room would move nothing and take the space in which outcomes can still be stored.
    pub(super) fn has_room_for(&self, pages: u64) -> bool {
        let length = fs::metadata(&self.database).map_or(0, |metadata| metadata.len());
        let growth = pages.saturating_mul(PAGE_SIZE.unsigned_abs()).saturating_sub(length);
        growth == 0 || free_bytes(&self.database).is_none_or(|free| free >= growth)
    }

    /// Length in bytes above which the log is too long; shorter where little space is free.
    pub(super) fn log_limit(&self) -> u64 {
        let most = WAL_LIMIT.unsigned_abs();
        (self.free.load(Ordering::Relaxed) / LOG_SHARE).clamp(MIN_LOG, most)
    }

    fn set(&self, change: impl FnOnce(&mut Parts)) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut parts);
        let state = if parts.fault.is_healthy() { parts.space } else { parts.fault };
        let before = self.state();
        if state == before {
            return;
        }
        let index = StoreHealth::ALL.iter().position(|known| *known == state).unwrap_or_default();
        self.published.store(u8::try_from(index).unwrap_or_default(), Ordering::Release);
        self.changes.send_replace(state);
        let (from, to) = (before.as_str(), state.as_str());
        match state {
            StoreHealth::Closed => {}
            StoreHealth::Healthy => tracing::info!(from, "the store is healthy again"),
            _ => tracing::error!(from, to, free = self.free.load(Ordering::Relaxed), "the store is not healthy"),
        }
    }
}

/// Space on the disk of a database, and how much of it is to be kept free: `reserve`, or else the default.
pub fn disk_space(database: &Path, reserve: Option<u64>) -> DiskFacts {
    let log = fs::metadata(log_path(database)).map_or(0, |metadata| metadata.len());
    // Before the first start only the directory is there, or the one above.
    let place = database.ancestors().find(|place| place.exists()).unwrap_or(Path::new("."));
    DiskFacts { free: free_bytes(place), reserve: reserve.unwrap_or_else(|| default_reserve(log)) }
}

fn default_reserve(log: u64) -> u64 {
    MIN_RESERVE.max(log.saturating_mul(2))
}

/// Bytes that an unprivileged user may still write on the disk of a file; `None` if the system does not say.
pub(super) fn free_bytes(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_with(reserve: impl Fn(u64) -> u64) -> StoreHealth {
        let place = tempfile::tempdir().unwrap();
        let free = free_bytes(place.path()).unwrap();
        Health::new(place.path(), Some(reserve(free))).state()
    }

    #[test]
    fn the_reserve_is_compared_with_what_is_free() {
        assert_eq!(state_with(|_| 0), StoreHealth::Healthy);
        assert_eq!(state_with(|free| free / 2 * 3), StoreHealth::BelowReserve);
        assert_eq!(state_with(|free| free * 3), StoreHealth::ReserveUsed);
    }

    #[test]
    fn the_log_can_be_moved_whatever_the_reserve() {
        let place = tempfile::tempdir().unwrap();
        let database = place.path().join("messaging.db");
        fs::File::create(&database).unwrap();
        // Sparse: as long as all that is free, without taking it.
        let log = fs::File::create(log_path(&database)).unwrap();
        log.set_len(free_bytes(place.path()).unwrap()).unwrap();
        assert_eq!(Health::new(&database, Some(0)).state(), StoreHealth::BelowReserve);
        log.set_len(0).unwrap();
        assert_eq!(Health::new(&database, Some(0)).state(), StoreHealth::Healthy);
    }

    #[test]
    fn a_log_that_does_not_fit_is_not_moved() {
        let place = tempfile::tempdir().unwrap();
        let database = place.path().join("messaging.db");
        let file = fs::File::create(&database).unwrap();
        let health = Health::new(&database, Some(0));
        let pages = free_bytes(place.path()).unwrap() / PAGE_SIZE.unsigned_abs();
        assert!(health.has_room_for(pages / 2));
        assert!(!health.has_room_for(pages * 2));
        // What the database has already is not needed again.
        file.set_len(pages * 2 * PAGE_SIZE.unsigned_abs()).unwrap();
        assert!(health.has_room_for(pages * 2));
    }

    #[test]
    fn a_lesser_fault_hides_no_worse_one() {
        let place = tempfile::tempdir().unwrap();
        let health = Health::new(place.path(), Some(0));
        let failed = |code| Fault::Sqlite(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None));
        health.report(&failed(rusqlite::ffi::SQLITE_IOERR_FSYNC));
        assert_eq!(health.state(), StoreHealth::SyncFailed);
        health.report(&failed(rusqlite::ffi::SQLITE_BUSY));
        assert_eq!(health.state(), StoreHealth::SyncFailed);
        health.recovered();
        assert_eq!(health.state(), StoreHealth::Healthy);
        health.report(&failed(rusqlite::ffi::SQLITE_FULL));
        assert_eq!(health.state(), StoreHealth::Full);
        health.report(&Fault::Conflict);
        assert_eq!(health.state(), StoreHealth::Full);
        health.end(StoreHealth::Broken);
        health.recovered();
        assert_eq!(health.state(), StoreHealth::Broken);
    }
}
