//! Claims of jobs by this process, and the turns in which lanes are served.
//!
//! All jobs of a lane are claimed by one process at a time, so claims are in memory only: they end with the term of their
//! process. Leases and holds are measured by the monotonic clock.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use messaging_core::changes::JobHandle;
use messaging_core::domain::delivery::fair_turns::FairTurns;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ids::JobId;
use messaging_core::time::{Monotonic, Timestamp};

use super::cursors::{self, Cursors};
use super::fault::Fault;
use super::places::PLACES;

/// Claims and turns.
#[derive(Debug)]
pub(super) struct LeaseTable {
    memory: Mutex<LeaseState>,
    /// Latest time given to a job of each place, as far as this process has stored it; may be a little too early.
    latest: Vec<AtomicI64>,
    /// Held while jobs are claimed: one claim runs at a time.
    pub(super) claiming: tokio::sync::Mutex<()>,
}

/// A claim of a job.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    pub(super) token: u64,
    pub(super) until: Monotonic,
    /// The same moment as `until`, on the clock of this module.
    pub(super) ends: Instant,
    pub(super) due_at: Timestamp,
    pub(super) place: i16,
    /// True if the job was added with `EnqueueOnce`: its lane has at most one such job.
    pub(super) once: bool,
}

#[derive(Debug)]
pub(super) struct LeaseState {
    /// The term under which jobs are claimed.
    pub(super) term: i64,
    pub(super) leases: HashMap<JobId, Lease>,
    /// Jobs named by commits that have not ended yet, each with the number of those commits.
    in_commits: HashMap<JobId, u32>,
    /// True while a claim reads due jobs.
    is_reading: bool,
    /// Jobs that changed since that reading began: the rows it finds for them are old.
    changed: HashSet<JobId>,
    last_token: u64,
    pub(super) turns: FairTurns,
    /// Lanes that had more jobs due than were claimed, with the time since when each waits again.
    pub(super) waiting: HashMap<Lane, (Timestamp, u64)>,
    pub(super) last_turn: u64,
    /// Lanes with due jobs that the last claim held back, each with the end of the hold.
    pub(super) held: HashMap<Lane, Monotonic>,
    /// Places from which nothing more is claimed, because they move to another process.
    pub(super) leaving: HashSet<i16>,
    /// True if the clock is behind the date of a claim that ran out.
    pub(super) has_misdated: bool,
    /// Dates from which claims begin to read, by place and class.
    pub(super) cursors: Cursors,
}

/// Effect of a commit on a claim or a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The claim is held before and after.
    Keeps,
    /// The job changes; the claim is held before and after.
    Saves,
    /// The claim ends.
    Ends,
}

/// The jobs that a transaction names. If dropped before the commit, nothing changes for them.
#[derive(Debug)]
pub(super) struct JobUses {
    lease_table: Arc<LeaseTable>,
    named: Vec<(JobId, u64, Effect)>,
    /// True if the transaction stores the latest times of places.
    has_dated: bool,
    /// The earliest of the dates that it gives to jobs, by place and class.
    dates: HashMap<cursors::Cell, i64>,
}

impl Default for LeaseTable {
    fn default() -> Self {
        let memory = LeaseState {
            term: 0,
            leases: HashMap::new(),
            in_commits: HashMap::new(),
            is_reading: false,
            changed: HashSet::new(),
            // Anywhere, so that handles of an earlier process mean nothing here.
            last_token: RandomState::new().build_hasher().finish(),
            turns: FairTurns::default(),
            waiting: HashMap::new(),
            last_turn: 0,
            held: HashMap::new(),
            leaving: HashSet::new(),
            has_misdated: false,
            cursors: Cursors::default(),
        };
        let latest = (0..PLACES).map(|_| AtomicI64::new(0)).collect();
        Self { memory: Mutex::new(memory), latest, claiming: tokio::sync::Mutex::default() }
    }
}

impl LeaseTable {
    pub(super) fn lock(&self) -> MutexGuard<'_, LeaseState> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops all claims and begins another term.
    pub(super) fn begin_term(&self, term: i64) {
        let mut memory = self.lock();
        memory.term = term;
        memory.leases.clear();
        memory.held.clear();
        memory.leaving.clear();
        memory.cursors.forget();
        drop(memory);
        self.forget_latest();
    }

    /// Returns true if no job of a place is being worked on. If so, claims of the place that ran out are removed.
    pub(super) fn is_quiet(&self, place: i16) -> bool {
        let mut memory = self.lock();
        let now = Instant::now();
        let LeaseState { leases, in_commits, .. } = &mut *memory;
        let in_work = |id: &JobId, lease: &Lease| lease.ends > now || in_commits.contains_key(id);
        if leases.iter().any(|(id, lease)| lease.place == place && in_work(id, lease)) {
            return false;
        }
        leases.retain(|_, lease| lease.place != place);
        true
    }

    /// Returns true if the time given to a job of a place must be stored: it is later than the stored one by more than
    /// `tolerance` milliseconds.
    pub(super) fn is_later(&self, place: i16, time: i64, tolerance: i64) -> bool {
        let Some(latest) = usize::try_from(place).ok().and_then(|place| self.latest.get(place)) else { return false };
        let known = latest.load(Ordering::Relaxed);
        time > known.saturating_add(tolerance) && {
            latest.store(time, Ordering::Relaxed);
            true
        }
    }

    /// Forgets the stored times, which may have changed.
    pub(super) fn forget_latest(&self) {
        for latest in &self.latest {
            latest.store(0, Ordering::Relaxed);
        }
    }
}

impl LeaseState {
    /// Begins to read jobs.
    pub(super) fn begin_reading(&mut self) {
        self.is_reading = true;
        self.changed.clear();
    }

    pub(super) fn end_reading(&mut self) {
        self.is_reading = false;
        self.changed.clear();
    }

    /// Returns true if a job that was read may be claimed: it is not leased, did not change since, and no open commit
    /// names it.
    pub(super) fn is_free(&self, id: JobId, now: Monotonic) -> bool {
        !self.in_commits.contains_key(&id)
            && !self.changed.contains(&id)
            && self.leases.get(&id).is_none_or(|lease| lease.until <= now)
    }

    /// Claims a job; returns the token of the claim.
    pub(super) fn lease(&mut self, id: JobId, lease: Lease) -> u64 {
        self.last_token = self.last_token.wrapping_add(1);
        let token = self.last_token;
        self.leases.insert(id, Lease { token, ..lease });
        token
    }
}

impl JobUses {
    pub(super) fn new(lease_table: Arc<LeaseTable>) -> Self {
        Self { lease_table, named: Vec::new(), has_dated: false, dates: HashMap::new() }
    }

    /// Notes the date that the transaction gives to a job of a place and class.
    pub(super) fn date(&mut self, cell: cursors::Cell, due_at: i64) {
        self.dates.entry(cell).and_modify(|first| *first = due_at.min(*first)).or_insert(due_at);
    }

    /// Names a claim in the transaction and returns it; fails unless it is the current one.
    pub(super) fn claim(&mut self, term: i64, handle: &JobHandle, effect: Effect) -> Result<Lease, Fault> {
        let mut memory = self.lease_table.lock();
        let ended = self.named.iter().any(|(id, _, effect)| *id == handle.id && *effect == Effect::Ends);
        let found = memory.leases.get(&handle.id).filter(|lease| lease.token == handle.token && !ended);
        let Some(lease) = found.filter(|_| memory.term == term).cloned() else { return Err(Fault::LeaseLost) };
        *memory.in_commits.entry(handle.id).or_default() += 1;
        drop(memory);
        self.named.push((handle.id, handle.token, effect));
        Ok(lease)
    }

    /// Returns true if a claimed job was added with `EnqueueOnce`.
    pub(super) fn is_once(&self, handle: &JobHandle) -> bool {
        self.lease_table.lock().leases.get(&handle.id).is_some_and(|lease| lease.once)
    }

    /// Names a job that is not claimed; fails with a conflict if it is.
    pub(super) fn free(&mut self, id: JobId) -> Result<(), Fault> {
        let mut memory = self.lease_table.lock();
        if memory.leases.contains_key(&id) {
            return Err(Fault::Conflict);
        }
        *memory.in_commits.entry(id).or_default() += 1;
        drop(memory);
        self.named.push((id, 0, Effect::Ends));
        Ok(())
    }

    /// Returns true if the time given to a job of a place must be stored.
    pub(super) fn is_later(&mut self, place: i16, time: i64, tolerance: i64) -> bool {
        let is_later = self.lease_table.is_later(place, time, tolerance);
        self.has_dated |= is_later;
        is_later
    }

    /// Applies the effects of the transaction after its commit.
    pub(super) fn committed(mut self) {
        self.has_dated = false;
        let mut memory = self.lease_table.lock();
        for (id, token, effect) in &self.named {
            if *effect != Effect::Keeps && memory.is_reading {
                memory.changed.insert(*id);
            }
            if *effect == Effect::Ends && memory.leases.get(id).is_some_and(|lease| lease.token == *token) {
                memory.leases.remove(id);
            }
        }
    }
}

impl Drop for JobUses {
    fn drop(&mut self) {
        if self.has_dated {
            self.lease_table.forget_latest();
        }
        if self.named.is_empty() && self.dates.is_empty() {
            return;
        }
        let mut memory = self.lease_table.lock();
        // Done even if it is unknown whether the transaction was committed.
        for (cell, due_at) in self.dates.drain() {
            memory.cursors.date(cell, due_at);
        }
        for (id, ..) in self.named.drain(..) {
            if let Some(count) = memory.in_commits.get_mut(&id) {
                *count -= 1;
                if *count == 0 {
                    memory.in_commits.remove(&id);
                }
            }
        }
    }
}
