//! Leases of claimed jobs, in the memory of the writer, and the table `lanes`, which is kept in step with them.
//!
//! The row of a lane holds the time at which to look at the lane next. Leases are in memory only: exactly one process
//! works on a SQLite database, so when it is gone, so are its claims, and the next one finds every unfinished job at
//! once. A lane with nothing to claim because everything due in it is leased, or because the claimer holds it back, is
//! *parked*: its row says [`PARKED`], and the time to look at it again is in memory.
//!
//! Leases and holds are measured by the monotonic clock: setting the date neither ends nor lengthens one. Due times are
//! dates; [`super::redating`] corrects those that a wrong clock gave.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use messaging_core::changes::JobHandle;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::delivery::queue::Suspensions;
use messaging_core::ids::JobId;
use messaging_core::ports::store::{Claim, WithheldOf};
use messaging_core::time::{Monotonic, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::dating::Redating;
use super::fault::Fault;
use super::flows::Flows;

/// Value of `next_at` in the row of a parked lane.
pub(super) const PARKED: i64 = i64::MAX;

/// Maximum number of lanes whose times are remembered to save look-ups.
const MAX_KNOWN: usize = 10_000;

/// Leases, parked lanes, and a log of the open transaction by which both can be undone.
#[derive(Debug)]
pub(super) struct LaneIndex {
    leases: HashMap<JobId, Lease>,
    /// Lanes with a lease, and held ones.
    lanes: HashMap<String, LaneState>,
    /// Parked lanes by the time at which to look at them again.
    wakes: BTreeSet<(Monotonic, String)>,
    /// Parked lanes that are not held, by the due time of the first of their jobs that is not leased.
    laters: BTreeSet<(Timestamp, String)>,
    /// Parked lanes that the claimer holds, without those of `withheld`.
    held: HashSet<String>,
    /// Parked lanes whose jobs are not claimed at all while `withholding` is unchanged: there may be many, and claims
    /// do not look at them one by one.
    withheld: HashSet<String>,
    withholding: Withholding,
    /// For lanes that are not parked: their row exists and its time is this or earlier. Saves the
    /// upsert when a job is added to a lane that will be looked at before it is due anyway.
    known: HashMap<String, Timestamp>,
    /// Actions of the open transaction that memory or the rows of lanes have to follow, in order.
    log: Vec<Entry>,
    /// True if the open transaction has changed rows of `lanes`.
    rows_changed: bool,
    last_token: u64,
    last_turn: i64,
    /// State of the search for jobs that a wrong clock dated.
    redating: Redating,
    /// Flows whose jobs are claimed in turn, with the next one to be served.
    flows: Flows,
    /// True if rows may say `PARKED` while memory has no time for them: after a start or a failed commit.
    lost: bool,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    token: u64,
    until: Monotonic,
    /// True if the job is due again as soon as it is put back. Stays true if the transaction that wanted the job is
    /// rolled back: the lane is then looked at in vain.
    is_woken: bool,
}

#[derive(Debug, Default)]
struct LaneState {
    /// The number of leases that end at each moment.
    ends: BTreeMap<Monotonic, u32>,
    parked: Option<Parked>,
}

#[derive(Debug, Clone, Copy)]
struct Parked {
    /// End of the first lease, or of the hold.
    until: Monotonic,
    /// Earliest due time of a job that is not leased.
    later: Option<Timestamp>,
    /// Time since when the lane waits while the claimer holds it back.
    held_since: Option<Timestamp>,
}

#[derive(Debug)]
enum Entry {
    Added { lane: String, due_at: Timestamp },
    GivenUp { lane: String, id: JobId, lease: Lease },
}

/// Effects of a transaction on one lane.
#[derive(Debug, Default, Clone, Copy)]
struct Touch {
    earliest: Option<Timestamp>,
    gave_up: bool,
}

/// Conditions for lanes of which nothing is claimed at all: by resource, by workspace, or because they are suspended.
#[derive(Debug, Default, PartialEq)]
struct Withholding {
    resources: &'static [&'static str],
    of: WithheldOf,
    suspended: Arc<Suspensions>,
}

impl Withholding {
    fn of(claim: &Claim) -> Self {
        let Claim { withheld, withheld_of, suspended, .. } = claim;
        Self { resources: withheld, of: withheld_of.clone(), suspended: Arc::clone(suspended) }
    }
}

/// Lanes from which a claim takes no jobs.
pub(super) struct HeldLanes<'a> {
    /// Lanes that the claim names, each with the end of its hold.
    pub(super) lanes: HashMap<&'a str, Monotonic>,
    pub(super) claim: &'a Claim,
}

impl HeldLanes<'_> {
    /// Returns the time until which no job of a lane is claimed, if the lane is held back.
    pub(super) fn until(&self, lane: &str) -> Option<Monotonic> {
        let named = || self.lanes.get(Lane::shared_part(lane)).copied();
        if self.withholds(lane) { Some(Monotonic::NEVER) } else { named() }
    }

    /// Returns true if a lane is held back with no end.
    fn withholds(&self, lane: &str) -> bool {
        self.claim.withholds_some() && self.claim.withholds(&Lane::parse(lane))
    }
}

impl Default for LaneIndex {
    fn default() -> Self {
        Self {
            leases: HashMap::new(),
            lanes: HashMap::new(),
            wakes: BTreeSet::new(),
            laters: BTreeSet::new(),
            held: HashSet::new(),
            withheld: HashSet::new(),
            withholding: Withholding::default(),
            known: HashMap::new(),
            log: Vec::new(),
            rows_changed: false,
            // Anywhere, so that handles of an earlier process mean nothing here.
            last_token: RandomState::new().build_hasher().finish(),
            last_turn: 0,
            redating: Redating::default(),
            flows: Flows::default(),
            lost: true,
        }
    }
}

// While changes are applied.
impl LaneIndex {
    /// Notes that a job was added to a lane.
    pub(super) fn note_added(&mut self, lane: &str, due_at: Timestamp) {
        if self.known.get(lane).is_none_or(|next| *next > due_at) {
            self.log.push(Entry::Added { lane: lane.to_owned(), due_at });
        }
    }

    /// Ends a claim, if it is still the current one. Returns true if the job is due again at once.
    pub(super) fn give_up(&mut self, handle: &JobHandle) -> Result<bool, Fault> {
        let lease = self.leases.get(&handle.id).copied().filter(|lease| lease.token == handle.token);
        let lease = lease.ok_or(Fault::LeaseLost)?;
        self.leases.remove(&handle.id);
        self.drop_end(handle.lane.as_str(), lease.until);
        self.log.push(Entry::GivenUp { lane: handle.lane.to_string(), id: handle.id, lease });
        Ok(lease.is_woken)
    }

    /// Makes a claimed job due as soon as it is put back. Returns true if the job is claimed.
    pub(super) fn wake_when_put_back(&mut self, id: JobId) -> bool {
        let lease = self.leases.get_mut(&id);
        lease.map(|lease| lease.is_woken = true).is_some()
    }

    /// Fails unless the claim is still the current one.
    pub(super) fn require_lease(&self, handle: &JobHandle) -> Result<(), Fault> {
        let held = self.leases.get(&handle.id).is_some_and(|lease| lease.token == handle.token);
        if held { Ok(()) } else { Err(Fault::LeaseLost) }
    }

    /// Current length of the log, for [`LaneIndex::undo_to`].
    pub(super) fn mark(&self) -> usize {
        self.log.len()
    }

    /// Undoes all that was logged after the mark.
    pub(super) fn undo_to(&mut self, mark: usize) {
        self.redating.forget();
        while self.log.len() > mark {
            if let Some(Entry::GivenUp { lane, id, lease }) = self.log.pop() {
                self.leases.insert(id, lease);
                *self.lanes.entry(lane).or_default().ends.entry(lease.until).or_default() += 1;
            }
        }
    }

    /// Undoes the whole transaction after its rollback. Where rows and memory may differ now, memory is dropped.
    pub(super) fn undo_all(&mut self) {
        self.undo_to(0);
        if std::mem::take(&mut self.rows_changed) {
            self.unpark_all();
            self.lost = true;
        }
    }

    /// Empties the log after the commit of the transaction.
    pub(super) fn forget_undo(&mut self) {
        self.log.clear();
        self.rows_changed = false;
    }

    /// Drops all that is remembered of rows after a commit by another program. Leases stay: only this process has any.
    pub(super) fn distrust_rows(&mut self) {
        self.known.clear();
        self.redating.forget();
    }

    /// Brings the rows of the lanes that the transaction touched up to date; the last thing before
    /// its commit.
    pub(super) fn settle(&mut self, connection: &Connection) -> Result<(), Fault> {
        if self.log.is_empty() {
            return Ok(());
        }
        self.rows_changed = true;
        let mut touched: HashMap<String, Touch> = HashMap::new();
        for entry in &self.log {
            let (Entry::Added { lane, .. } | Entry::GivenUp { lane, .. }) = entry;
            let touch = match touched.get_mut(lane.as_str()) {
                Some(touch) => touch,
                None => touched.entry(lane.clone()).or_default(),
            };
            match entry {
                Entry::Added { due_at, .. } => touch.earliest = earlier(touch.earliest, Some(*due_at)),
                Entry::GivenUp { .. } => touch.gave_up = true,
            }
        }
        for (lane, touch) in touched {
            self.settle_lane(connection, lane, touch)?;
        }
        Ok(())
    }

    fn settle_lane(&mut self, connection: &Connection, lane: String, touch: Touch) -> Result<(), Fault> {
        let known = self.lanes.get(&lane);
        let parked = known.and_then(|known| known.parked);
        let leased = known.is_some_and(|known| !known.ends.is_empty());
        if touch.gave_up && !leased {
            // Nobody holds a job of the lane any more: look at what is left.
            match first_due(connection, &lane)? {
                None => self.remove(connection, &lane)?,
                // Held, or at its place in the queue: there it stays.
                Some(_) if parked.is_none_or(|parked| parked.held_since.is_some()) => {}
                Some(due) => {
                    set_time(connection, &lane, due, 0)?;
                    self.unpark(&lane);
                    self.know(lane, due);
                }
            }
        } else if let Some(mut parked) = parked {
            parked.later = earlier(parked.later, touch.earliest);
            self.park_until(lane, parked);
        } else if let Some(due) = touch.earliest {
            connection
                .prepare_cached(
                    "INSERT INTO lanes (lane, next_at, turn, flow) VALUES (?1, ?2, 0, ?3)
                     ON CONFLICT (lane) DO UPDATE SET next_at = excluded.next_at, turn = 0
                     WHERE excluded.next_at < next_at",
                )?
                .execute(params![lane, due.as_millis(), Lane::parse(&lane).flow().to_string()])?;
            self.know(lane, due);
        }
        Ok(())
    }
}

// While jobs are claimed; see `jobs`.
impl LaneIndex {
    /// Makes the next claim look at the lanes whose rows say `PARKED`, if memory has no time for them.
    pub(super) fn find_lost(&mut self, connection: &Connection) -> Result<(), Fault> {
        if self.lost {
            connection
                .prepare_cached(
                    // To be looked at by the next claim, whatever date its first job has: it may be a wrong one.
                    "UPDATE lanes SET turn = 0, next_at = 0 WHERE next_at = ?1",
                )?
                .execute([PARKED])?;
            self.lost = false;
        }
        Ok(())
    }

    /// Returns true if this process has claimed a job.
    pub(super) fn is_leased(&self, id: JobId) -> bool {
        self.leases.contains_key(&id)
    }

    /// Removes a lane that has no jobs any more.
    pub(super) fn remove_emptied(&mut self, connection: &Connection, lane: &str) -> Result<(), Fault> {
        self.rows_changed = true;
        self.remove(connection, lane)
    }

    /// Returns true if rows may be parked whose time is not in memory, so that [`LaneIndex::find_lost`] has work.
    pub(super) fn has_lost(&self) -> bool {
        self.lost
    }

    /// Returns true if a lane that was held back no longer is.
    pub(super) fn has_released(&self, held: &HeldLanes<'_>) -> bool {
        self.held.iter().any(|lane| held.until(lane).is_none())
    }

    /// Follows changed holds: their ends, and the lanes of which nothing is claimed at all.
    pub(super) fn follow_holds(&mut self, held: &HeldLanes<'_>) {
        let withholding = Withholding::of(held.claim);
        if withholding != self.withholding {
            self.withholding = withholding;
            self.held.extend(std::mem::take(&mut self.withheld));
            self.withheld = self.held.extract_if(|lane| held.withholds(lane)).collect();
        }
        let changed: Vec<(String, Parked)> = self
            .held
            .iter()
            .filter_map(|lane| {
                let until = held.until(lane)?;
                let parked = self.lanes.get(lane)?.parked?;
                (parked.until != until).then(|| (lane.clone(), Parked { until, ..parked }))
            })
            .collect();
        for (lane, parked) in changed {
            self.park_until(lane, parked);
        }
    }

    /// Puts parked lanes back into the queue if their time has come or the claimer no longer holds them back.
    pub(super) fn wake(
        &mut self,
        connection: &Connection,
        now: Timestamp,
        monotonic: Monotonic,
        held: &HeldLanes<'_>,
    ) -> Result<(), Fault> {
        self.rows_changed = true;
        let mut awake: Vec<String> =
            self.wakes.iter().take_while(|(until, _)| *until <= monotonic).map(|(_, lane)| lane.clone()).collect();
        awake.extend(self.laters.iter().take_while(|(due, _)| *due <= now).map(|(_, lane)| lane.clone()));
        awake.extend(self.held.iter().filter(|lane| held.until(lane).is_none()).cloned());
        for lane in awake {
            let Some(parked) = self.unpark(&lane) else { continue };
            let since = parked.held_since.or(parked.later).map_or(now, |since| since.min(now));
            connection
                .prepare_cached("UPDATE lanes SET next_at = ?2, turn = 0 WHERE lane = ?1 AND next_at > ?2")?
                .execute(params![lane, since.as_millis()])?;
        }
        Ok(())
    }

    /// Returns the end of the lease of a job, if it has one.
    pub(super) fn lease_end(&self, id: JobId, now: Monotonic) -> Option<Monotonic> {
        self.leases.get(&id).map(|lease| lease.until).filter(|until| *until > now)
    }

    /// Claims a job; returns the token of the claim.
    pub(super) fn lease(&mut self, lane: &str, id: JobId, until: Monotonic) -> u64 {
        self.last_token = self.last_token.wrapping_add(1);
        let token = self.last_token;
        if let Some(expired) = self.leases.insert(id, Lease { token, until, is_woken: false }) {
            self.drop_end(lane, expired.until);
        }
        let known = match self.lanes.get_mut(lane) {
            Some(known) => known,
            None => self.lanes.entry(lane.to_owned()).or_default(),
        };
        *known.ends.entry(until).or_default() += 1;
        token
    }

    /// Ends claims whose transaction failed.
    pub(super) fn take_back<'a>(&mut self, handles: impl Iterator<Item = &'a JobHandle>) {
        for handle in handles {
            self.end_claim(handle.lane.as_str(), handle.id);
        }
    }

    /// Puts a lane at the back of the queue: more of its jobs are due than were claimed.
    pub(super) fn rotate(&mut self, connection: &Connection, lane: String, now: Timestamp) -> Result<(), Fault> {
        self.last_turn += 1;
        set_time(connection, &lane, now, self.last_turn)?;
        self.know(lane, now);
        Ok(())
    }

    /// Sets the time of a lane of which nothing can be claimed now; the lane is parked while it has leases, and removed
    /// if it has no jobs.
    pub(super) fn rest(
        &mut self,
        connection: &Connection,
        lane: String,
        later: Option<Timestamp>,
    ) -> Result<(), Fault> {
        match (self.lanes.get(&lane).is_some_and(|known| !known.ends.is_empty()), later) {
            (true, later) => {
                set_time(connection, &lane, Timestamp::from_millis(PARKED), 0)?;
                self.park_until(lane, Parked { until: Monotonic::NEVER, later, held_since: None });
            }
            (false, Some(later)) => {
                set_time(connection, &lane, later, 0)?;
                self.know(lane, later);
            }
            (false, None) => self.remove(connection, &lane)?,
        }
        Ok(())
    }

    /// Parks a lane that the claimer holds back.
    pub(super) fn hold(
        &mut self,
        connection: &Connection,
        lane: String,
        since: Timestamp,
        until: Monotonic,
        held: &HeldLanes<'_>,
    ) -> Result<(), Fault> {
        set_time(connection, &lane, Timestamp::from_millis(PARKED), 0)?;
        if held.withholds(&lane) {
            self.withheld.insert(lane.clone());
        }
        self.park_until(lane, Parked { until, later: None, held_since: Some(since) });
        Ok(())
    }

    /// Returns the time left until the first parked lane is to be looked at.
    pub(super) fn first_wake(&self, now: Timestamp, monotonic: Monotonic) -> Option<Duration> {
        let end = self.wakes.first().map(|(until, _)| until.since(monotonic));
        let due = self.laters.first().map(|(due, _)| due.since(now));
        end.into_iter().chain(due).min()
    }

    /// State of the search for jobs that a wrong clock dated.
    pub(super) fn redating(&mut self) -> &mut Redating {
        &mut self.redating
    }

    /// Flows whose jobs are claimed in turn, with the next one to be served.
    pub(super) fn flows(&mut self) -> &mut Flows {
        &mut self.flows
    }

    /// Ends the claim of a job, if there is one.
    pub(super) fn end_claim(&mut self, lane: &str, id: JobId) {
        if let Some(lease) = self.leases.remove(&id) {
            self.drop_end(lane, lease.until);
        }
    }

    /// Has the next claim look at every lane after due times were changed; the claim finds out when to look again.
    pub(super) fn look_at_all(&mut self, connection: &Connection) -> Result<(), Fault> {
        self.rows_changed = true;
        connection.prepare_cached("UPDATE lanes SET turn = 0, next_at = 0")?.execute([])?;
        self.unpark_all();
        self.lost = false;
        Ok(())
    }
}

impl LaneIndex {
    /// Parks a lane, or changes the time until which it is parked.
    fn park_until(&mut self, lane: String, mut parked: Parked) {
        let is_withheld = self.withheld.contains(&lane);
        self.unpark(&lane);
        self.known.remove(&lane);
        if parked.held_since.is_some() {
            let parked_with = if is_withheld { &mut self.withheld } else { &mut self.held };
            parked_with.insert(lane.clone());
        }
        let known = self.lanes.entry(lane.clone()).or_default();
        if parked.held_since.is_none() {
            parked.until = known.ends.first_key_value().map_or(parked.until, |(until, _)| *until);
            self.laters.extend(parked.later.map(|due| (due, lane.clone())));
        }
        known.parked = Some(parked);
        self.wakes.insert((parked.until, lane));
    }

    fn unpark(&mut self, lane: &str) -> Option<Parked> {
        let parked = self.lanes.get_mut(lane)?.parked.take()?;
        self.wakes.remove(&(parked.until, lane.to_owned()));
        if let Some(later) = parked.later {
            self.laters.remove(&(later, lane.to_owned()));
        }
        self.held.remove(lane);
        self.withheld.remove(lane);
        self.forget_if_idle(lane);
        Some(parked)
    }

    fn unpark_all(&mut self) {
        self.wakes.clear();
        self.laters.clear();
        self.held.clear();
        self.withheld.clear();
        self.known.clear();
        self.lanes.retain(|_, lane| {
            lane.parked = None;
            !lane.ends.is_empty()
        });
    }

    fn drop_end(&mut self, lane: &str, until: Monotonic) {
        let Some(known) = self.lanes.get_mut(lane) else { return };
        if let Some(count) = known.ends.get_mut(&until) {
            *count -= 1;
            if *count == 0 {
                known.ends.remove(&until);
            }
        }
        self.forget_if_idle(lane);
    }

    fn forget_if_idle(&mut self, lane: &str) {
        if self.lanes.get(lane).is_some_and(|known| known.ends.is_empty() && known.parked.is_none()) {
            self.lanes.remove(lane);
        }
    }

    fn remove(&mut self, connection: &Connection, lane: &str) -> Result<(), Fault> {
        connection.prepare_cached("DELETE FROM lanes WHERE lane = ?1")?.execute([lane])?;
        self.unpark(lane);
        self.known.remove(lane);
        Ok(())
    }

    fn know(&mut self, lane: String, next: Timestamp) {
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(lane, next);
    }
}

fn set_time(connection: &Connection, lane: &str, next: Timestamp, turn: i64) -> Result<(), Fault> {
    connection.prepare_cached("UPDATE lanes SET next_at = ?2, turn = ?3 WHERE lane = ?1")?.execute(params![
        lane,
        next.as_millis(),
        turn
    ])?;
    Ok(())
}

fn first_due(connection: &Connection, lane: &str) -> Result<Option<Timestamp>, Fault> {
    let due = connection
        .prepare_cached("SELECT due_at FROM jobs WHERE lane = ?1 ORDER BY due_at LIMIT 1")?
        .query_row([lane], |row| row.get(0))
        .optional()?;
    Ok(due.map(Timestamp::from_millis))
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
