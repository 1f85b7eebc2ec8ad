//! The connection that writes, and the data that the writer keeps in memory beside it.
//!
//! It begins transactions and ends them, keeps the log short, and finds out whether an unhealthy store is healthy
//! again. The writes of a transaction come from the caller: a batch of commits ([`super::batch`]), or a task.

use std::sync::Arc;
use std::time::{Duration, Instant};

use messaging_core::changes::JobHandle;
use messaging_core::error::Chain;
use messaging_core::ports::store::StoreHealth;
use rusqlite::Connection;

use super::change_subscribers::ChangeSubscribers;
use super::checkpoint::{self, Checkpoints};
use super::connection::{self, Overwriting, Reopen};
use super::fault::Fault;
use super::health::Health;
use super::installation_values;
use super::lanes::LaneIndex;
use super::log_repair::{self, Unrepaired};
use super::news::ForeignCommits;
use crate::counter_deltas::CounterDeltas;

/// Interval at which an unhealthy store probes whether it is healthy again.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Time that a probe waits for a transaction of another program. Requests are refused meanwhile, so it need not be
/// quick, but tasks wait for it.
const PROBE_BUSY: Duration = Duration::from_millis(50);

/// Bytes that a probe writes after the disk was full: about as many as a batch.
const PROBE_BYTES: i64 = 64 << 10;

/// Connection and state of the writer thread.
pub(super) struct WriteConnection {
    pub(super) connection: Connection,
    pub(super) index: LaneIndex,
    pub(super) deltas: CounterDeltas,
    pub(super) subscribers: ChangeSubscribers,
    /// Token of this process if it does the jobs.
    owner: Option<String>,
    /// `PRAGMA data_version` as last read: it changes when another program has written.
    data_version: i64,
    /// `PRAGMA data_version` at the last look for news.
    news_version: i64,
    /// Extent to which deleted data is overwritten at the moment.
    overwriting: Overwriting,
    pub(super) checkpoints: Arc<Checkpoints>,
    pub(super) health: Arc<Health>,
    others: ForeignCommits,
    reopen: Reopen,
    /// Time of the last probe.
    last_probe: Option<Instant>,
}

impl WriteConnection {
    pub(super) fn new(
        connection: Connection,
        owner: Option<String>,
        checkpoints: Arc<Checkpoints>,
        health: Arc<Health>,
        others: ForeignCommits,
        reopen: Reopen,
    ) -> Self {
        Self {
            connection,
            index: LaneIndex::default(),
            deltas: CounterDeltas::default(),
            subscribers: ChangeSubscribers::default(),
            owner,
            data_version: 0,
            news_version: 0,
            overwriting: Overwriting::Rows,
            checkpoints,
            health,
            others,
            reopen,
            last_probe: None,
        }
    }

    /// Prepares to erase data in the running transaction: no file shall contain it afterwards.
    pub(super) fn erase(&mut self) -> Result<(), Fault> {
        self.checkpoints.note_erasure();
        self.overwrite(Overwriting::Pages)
    }

    /// Sets the extent to which data deleted from now on is overwritten.
    pub(super) fn overwrite(&mut self, wanted: Overwriting) -> Result<(), Fault> {
        if wanted != self.overwriting {
            connection::overwrite(&self.connection, wanted)?;
            self.overwriting = wanted;
        }
        Ok(())
    }

    /// Runs `work` in a transaction of its own that a power cut may undo: for work that is then simply done again.
    pub(super) fn undurably<T>(
        &mut self,
        work: impl FnOnce(&Connection, &mut LaneIndex, &mut ChangeSubscribers) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if self.health.fault().is_some() {
            return Err(Fault::Unhealthy);
        }
        // The pragma acts when it is compiled, so it cannot be kept prepared.
        self.connection.execute_batch(self.reopen.undurable())?;
        let outcome = self.begin().and_then(|()| {
            let answer = work(&self.connection, &mut self.index, &mut self.subscribers)?;
            let has_woken = self.subscribers.settle(&self.connection, &mut self.index)?;
            self.index.settle(&self.connection)?;
            self.statement("COMMIT")?;
            Ok((answer, has_woken))
        });
        match &outcome {
            Ok((_, has_woken)) => {
                self.index.forget_undo();
                self.checkpoints.note_growth();
                if *has_woken {
                    self.others.tell_work();
                }
            }
            Err(fault) => {
                self.roll_back();
                self.health.report(fault);
            }
        }
        self.connection.execute_batch(self.reopen.durable())?;
        Ok(outcome?.0)
    }

    /// Reads the database and the state of lanes, outside of any transaction.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Connection, &LaneIndex) -> Result<T, Fault>) -> Result<T, Fault> {
        look(&self.connection, &self.index)
    }

    /// Like `look`, and may add to the state of lanes.
    pub(super) fn look_and_note<T>(
        &mut self,
        look: impl FnOnce(&Connection, &mut LaneIndex) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        look(&self.connection, &mut self.index)
    }

    /// State of lanes and leases.
    pub(super) fn index(&mut self) -> &mut LaneIndex {
        &mut self.index
    }

    /// Returns true if this process claims the jobs of the database.
    pub(super) fn is_worker(&self) -> bool {
        self.owner.is_some()
    }

    /// Starts the log over if it has become too long.
    pub(super) fn keep_log_short(&self) {
        if !self.checkpoints.restart_wanted() || self.health.fault().is_some() {
            return;
        }
        let erased = self.checkpoints.take_erasure();
        let empties = erased || !self.health.state().is_healthy();
        let outcome = checkpoint::restart(&self.connection, empties, self.reopen.busy());
        if erased && !matches!(outcome, Ok(true)) {
            self.checkpoints.note_erasure();
        }
        match outcome {
            Ok(true) => self.checkpoints.note_restart(),
            Ok(false) => {}
            Err(error) => {
                let fault = Fault::from(error);
                tracing::debug!(error = %Chain(&fault), "the log could not be started over yet");
                self.health.report_of_checkpoint(&fault);
            }
        }
    }

    /// Announces that jobs are due which no commit has announced.
    pub(super) fn tell_work(&self) {
        self.others.tell_work();
    }

    /// Announces commits of other programs. `is_idle`: there is time to look; a transaction looks anyway.
    pub(super) fn look_for_news(&mut self, is_idle: bool) {
        if is_idle && let Ok(version) = self.read_data_version() {
            self.note_others(version);
        }
        self.others.tell();
    }

    fn note_others(&mut self, version: i64) {
        if self.news_version != version {
            self.news_version = version;
            self.others.note();
        }
    }

    /// While the store is unhealthy, probes at intervals whether it is healthy again.
    pub(super) fn look_after_health(&mut self) {
        let Some(fault) = self.health.fault().filter(|fault| !fault.is_final()) else { return };
        if self.last_probe.is_some_and(|last| last.elapsed() < PROBE_EVERY) {
            return;
        }
        let outcome = if self.health.distrusts_log() { self.make_log_whole() } else { Ok(()) };
        match outcome.and_then(|()| Ok(self.probe(fault)?)) {
            Ok(()) => {
                self.last_probe = None;
                self.health.look_at_space();
                self.health.recovered();
            }
            Err(Unrepaired::Lost(frames)) => self.give_up(frames),
            Err(Unrepaired::Failed(fault)) => {
                self.last_probe = Some(Instant::now());
                self.health.report(&fault);
                tracing::debug!(error = %Chain(&fault), "the store is still not healthy");
            }
        }
    }

    /// Brings everything that was committed to the disk, by another way than the one that failed: the log is written
    /// and synced again, moved into the database, and emptied.
    fn make_log_whole(&mut self) -> Result<(), Unrepaired> {
        // Data that a connection with a failed commit still has in memory is of no use.
        self.connection = self.reopen.writer()?;
        self.data_version = 0;
        self.overwriting = Overwriting::Rows;
        self.checkpoints.install_wal_hook(&mut self.connection, &self.reopen)?;
        self.index.undo_all();
        self.deltas.clear();
        self.subscribers.forget_all();
        log_repair::rewrite(&self.connection, self.reopen.log())?;
        checkpoint::truncate_log(&self.connection)?;
        Ok(())
    }

    /// Writes a little data durably, like a commit.
    fn probe(&mut self, fault: StoreHealth) -> Result<(), Fault> {
        self.connection.busy_timeout(PROBE_BUSY)?;
        let outcome = self.write_probe(if fault == StoreHealth::Full { PROBE_BYTES } else { 1 });
        if outcome.is_err() {
            self.roll_back();
        }
        self.connection.busy_timeout(self.reopen.busy())?;
        outcome
    }

    fn write_probe(&self, bytes: i64) -> Result<(), Fault> {
        let put = |bytes: i64| {
            let sql = "INSERT INTO health_probe (n, filler) VALUES (1, zeroblob(?1))
                ON CONFLICT (n) DO UPDATE SET filler = excluded.filler";
            self.statement("BEGIN IMMEDIATE")?;
            self.connection.prepare_cached(sql)?.execute([bytes])?;
            self.statement("COMMIT").map_err(Fault::of_commit)
        };
        put(bytes)?;
        if bytes > 1 { put(1) } else { Ok(()) }
    }

    /// Ends the store: nothing that is written after a hole in the log would last.
    fn give_up(&mut self, frames: u64) {
        tracing::error!(frames, "the write-ahead log lost frames that were not on the disk; restart the server");
        // The last connection that is closed moves the log into the database. The next process shall do that,
        // which reads the log from the disk and stops at the hole; so one connection is never closed.
        match self.reopen.writer() {
            Ok(kept) => std::mem::forget(kept),
            Err(error) => tracing::error!(%error, "the log cannot be kept from being moved"),
        }
        self.health.end(StoreHealth::Broken);
    }

    /// Cleans up after a panic: nobody gets an answer, nothing was changed.
    pub(super) fn abandon(&mut self) {
        self.roll_back();
        let _ = self.connection.execute_batch(self.reopen.durable());
    }

    /// Begins a transaction; fails when another process has become the owner.
    pub(super) fn begin(&mut self) -> Result<(), Fault> {
        self.statement("BEGIN IMMEDIATE")?;
        let version = self.read_data_version()?;
        self.note_others(version);
        if self.data_version != version {
            self.check_owner()?;
            self.data_version = version;
            self.index.distrust_rows();
            self.subscribers.forget_all();
        }
        Ok(())
    }

    /// Fails if another process has made itself the owner: this one may claim and write nothing more. Looks only if
    /// another process has written.
    pub(super) fn ensure_owner(&self) -> Result<(), Fault> {
        if self.read_data_version()? == self.data_version { Ok(()) } else { self.check_owner() }
    }

    /// Fails unless all claims are held and this process may still write.
    pub(super) fn require_leases(&self, jobs: &[JobHandle]) -> Result<(), Fault> {
        if self.health.fault().is_some() {
            return Err(Fault::Unhealthy);
        }
        self.ensure_owner()?;
        jobs.iter().try_for_each(|job| self.index.require_lease(job))
    }

    fn check_owner(&self) -> Result<(), Fault> {
        let Some(owner) = &self.owner else { return Ok(()) };
        if installation_values::get(&self.connection, installation_values::OWNER)?.as_ref() == Some(owner) {
            return Ok(());
        }
        self.health.end(StoreHealth::Displaced);
        Err(Fault::Unhealthy)
    }

    fn read_data_version(&self) -> Result<i64, Fault> {
        Ok(self.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
    }

    /// Undoes the open transaction, also in memory.
    pub(super) fn roll_back(&mut self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
        self.index.undo_all();
        self.deltas.clear();
        self.subscribers.forget_all();
    }

    /// Runs a statement and keeps it prepared.
    pub(super) fn statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }
}
