//! What this process remembers about jobs: its claims, and whose turn it is.
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
    /// Per place, nearly the latest time at which a job was dated, as far as this process wrote it down.
    latest: Vec<AtomicI64>,
    /// One claim at a time.
    pub(super) claiming: tokio::sync::Mutex<()>,
}

/// A claim of a job.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    pub(super) token: u64,
    pub(super) until: Monotonic,
    /// The same moment on the clock of this module.
    pub(super) ends: Instant,
    pub(super) due_at: Timestamp,
    pub(super) place: i16,
    /// Whether the job is one that its lane needs once.
    pub(super) once: bool,
}

#[derive(Debug)]
pub(super) struct LeaseState {
    /// The term under which jobs are claimed.
    pub(super) term: i64,
    pub(super) leases: HashMap<JobId, Lease>,
    /// Jobs that commits on their way name, and how many do.
    in_commits: HashMap<JobId, u32>,
    /// Whether a claim is reading due jobs at the moment.
    is_reading: bool,
    /// Jobs that changed since it began to: what it finds of them is old.
    changed: HashSet<JobId>,
    last_token: u64,
    pub(super) turns: FairTurns,
    /// Lanes of which more was due than was claimed: since when they wait again.
    pub(super) waiting: HashMap<Lane, (Timestamp, u64)>,
    pub(super) last_turn: u64,
    /// Lanes with something due that the last claim left alone, until when.
    pub(super) held: HashMap<Lane, Monotonic>,
    /// Places of which nothing more is claimed, because another process is to have them.
    pub(super) leaving: HashSet<i16>,
    /// The clock stands before the date of a claim that ran out.
    pub(super) has_misdated: bool,
    /// The dates from which on claims read, by place and class.
    pub(super) cursors: Cursors,
}

/// What a commit does to a claim or a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// The claim is held before and after.
    Keeps,
    /// The job changes; the claim is held before and after.
    Saves,
    /// The claim ends.
    Ends,
}

/// The jobs that a transaction names. Dropped before the transaction is committed, it has changed nothing.
#[derive(Debug)]
pub(super) struct JobUses {
    lease_table: Arc<LeaseTable>,
    named: Vec<(JobId, u64, Effect)>,
    /// Whether times of jobs are written down by it.
    has_dated: bool,
    /// The first of the dates that it gives jobs, by place and class.
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

    /// Drops all claims: from now on they are made under another term.
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

    /// Whether no job of a place is in work. Claims that have run out end then.
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

    /// Whether the time at which a job of a place is dated has to be written down; by so many milliseconds it may be later
    /// than what was.
    pub(super) fn is_later(&self, place: i16, time: i64, tolerance: i64) -> bool {
        let Some(latest) = usize::try_from(place).ok().and_then(|place| self.latest.get(place)) else { return false };
        let known = latest.load(Ordering::Relaxed);
        time > known.saturating_add(tolerance) && {
            latest.store(time, Ordering::Relaxed);
            true
        }
    }

    /// What is written down may be something else.
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

    /// Whether a job that was read may be claimed: nobody has it, and no commit on its way names it.
    pub(super) fn is_free(&self, id: JobId, now: Monotonic) -> bool {
        !self.in_commits.contains_key(&id)
            && !self.changed.contains(&id)
            && self.leases.get(&id).is_none_or(|lease| lease.until <= now)
    }

    /// Claims a job; answers the token of the claim.
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

    /// The transaction gives a job of a place and class this date.
    pub(super) fn date(&mut self, cell: cursors::Cell, due_at: i64) {
        self.dates.entry(cell).and_modify(|first| *first = due_at.min(*first)).or_insert(due_at);
    }

    /// Names a claim in the transaction; fails unless it is the current one. Answers it.
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

    /// Whether a claimed job is one that its lane needs once.
    pub(super) fn is_once(&self, handle: &JobHandle) -> bool {
        self.lease_table.lock().leases.get(&handle.id).is_some_and(|lease| lease.once)
    }

    /// Names a job that nobody has claimed; a conflict when it is claimed.
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

    /// Whether the time at which a job of a place is dated has to be written down.
    pub(super) fn is_later(&mut self, place: i16, time: i64, tolerance: i64) -> bool {
        let is_later = self.lease_table.is_later(place, time, tolerance);
        self.has_dated |= is_later;
        is_later
    }

    /// The transaction is committed.
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
        // Also where nobody knows whether it was committed.
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
