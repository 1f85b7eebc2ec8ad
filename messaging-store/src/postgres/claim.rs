//! Claiming jobs.
//!
//! A claim reads the due jobs in the places of this process, by class and time, until it has seen enough of them, and
//! gives them to flows and lanes in turn. It writes nothing, except for jobs whose lane was woken: their mark is
//! removed, so that a later mark means another run.
//!
//! Each claim reads anew, from the cursors on (`cursors.rs`), so that nothing is cached that others may change; jobs
//! far behind a long queue of their place are seen when the queue is shorter, or when the lanes before them are full.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use messaging_core::changes::JobHandle;
use messaging_core::domain::delivery::fair_turns::Places;
use messaging_core::domain::delivery::lane::{Flow, JobClass, Lane};
use messaging_core::ids::{Id as _, JobId};
use messaging_core::ports::store::jobs::{Claim, ClaimedJob};
use messaging_core::time::{Monotonic, Timestamp};
use tokio_postgres::Row;

use super::cursors::{Cell, cells};
use super::due_jobs::{DueJob, DueJobs, ReadCursor, due_rows, read_due, woken_jobs};
use super::fault::Fault;
use super::lease_table::{Lease, LeaseState, LeaseTable};
use super::places::lock_of;
use super::query::{Queries as _, many};
use super::{PostgresStore, redating};
use crate::row::{get, id, maybe_time, time};
use crate::sql::params;

/// Maximum number of jobs that one claim examines.
const MAX_SEEN: usize = 10_000;

/// Number of jobs examined for each job wanted, so that the turns are fair.
const SEEN_FOR_ONE: usize = 4;

/// Least number of jobs to examine, if there are so many.
const MIN_SEEN: usize = 2_000;

/// Number of jobs of a place and class in the first read, and the maximum in later ones.
const FIRST: usize = 16;
const NEXT: usize = 512;

/// Maximum number of reads in one claim.
const MAX_READS: usize = 24;

/// Time after which claims that ended are forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_hours(1);

/// Results of the queries that every claim makes.
struct FirstLook {
    /// Latest time given to a job, as far as it is stored.
    latest: i64,
    woken: Vec<Row>,
    due: Vec<Row>,
    /// Cursors from which due jobs are read, by place and class.
    unread: Vec<ReadCursor>,
}

/// Ends the time in which changes of jobs are noted because a claim reads them.
struct ReadingGuard<'a>(&'a LeaseTable);

impl Drop for ReadingGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().end_reading();
    }
}

impl PostgresStore {
    pub(super) async fn claim_jobs(&self, claim: &Claim) -> Result<Vec<ClaimedJob>, Fault> {
        if !self.membership.works() {
            return Err(Fault::NotTheWorker);
        }
        self.membership.require_voice()?;
        let _turn = self.lease_table.claiming.lock().await;
        if !self.membership.has_right_clock() {
            return Ok(Vec::new());
        }
        let term = self.writes.term();
        self.lease_table.lock().begin_reading();
        let _reading = ReadingGuard(&self.lease_table);
        let mut first = self.first_look(term, claim).await?;
        if self.redate(claim, first.latest).await? {
            self.lease_table.lock().begin_reading();
            first = self.first_look(term, claim).await?;
        }
        if claim.max == 0 || claim.per_lane == 0 {
            return Ok(Vec::new());
        }
        let found = self.due_jobs(term, claim, first).await?;
        // A process that was suspended while it read may have been declared dead.
        self.membership.require_voice()?;
        let (mut claimed, woken) = {
            let mut memory = self.lease_table.lock();
            if memory.term != term {
                return Ok(Vec::new());
            }
            give(&mut memory, claim, found)?
        };
        if !woken.is_empty() {
            self.take_marks(&mut claimed, &woken).await;
        }
        Ok(claimed)
    }

    /// Makes the queries that every claim makes, in one round trip.
    async fn first_look(&self, term: i64, claim: &Claim) -> Result<FirstLook, Fault> {
        let unread = self.beginnings(claim);
        let questions =
            vec![redating::latest_of(term), woken_jobs(term, claim), due_rows(term, claim, &unread, &HashSet::new())];
        let mut answers = self.keyed_reads.rows_of_each(questions).await?.into_iter();
        let mut next = || answers.next().unwrap_or_default();
        let latest = next().first().map(|row| get(row, 0)).transpose()?.unwrap_or(0);
        Ok(FirstLook { latest, woken: next(), due: next(), unread })
    }

    /// Returns due jobs in the places of this process.
    async fn due_jobs(&self, term: i64, claim: &Claim, first: FirstLook) -> Result<DueJobs, Fault> {
        let mut found = DueJobs::default();
        let FirstLook { woken, due, mut unread, .. } = first;
        let (mut firsts, mut due) = (HashMap::new(), Some(due));
        let enough = claim.max.saturating_mul(SEEN_FOR_ONE).clamp(MIN_SEEN, MAX_SEEN);
        found.add_woken(&self.lease_table.lock(), claim, &woken)?;
        for reads in 0..MAX_READS {
            let rows = match due.take() {
                Some(rows) => rows,
                None => match self.more_rows(term, claim, &mut unread, (&found, enough)).await? {
                    Some(rows) => rows,
                    None => break,
                },
            };
            let memory = self.lease_table.lock();
            let mut ends: HashMap<Cell, (usize, i64, [u8; 16], Lane)> = HashMap::new();
            for row in &rows {
                let cell = (get(row, 9)?, get(row, 10)?);
                if reads == 0 {
                    let first = get::<Option<i64>>(row, 11)?.unwrap_or_else(|| claim.now.as_millis());
                    firsts.entry(cell).and_modify(|known: &mut i64| *known = first.min(*known)).or_insert(first);
                }
                // A place of this process without due jobs.
                if get::<Option<[u8; 16]>>(row, 2)?.is_none() {
                    continue;
                }
                let (lane, due) = read_due(row)?;
                let count = ends.get(&cell).map_or(0, |end| end.0) + 1;
                ends.insert(cell, (count, due.due_at.as_millis(), due.id.to_bytes(), lane.clone()));
                found.add(&memory, claim, lane, due);
            }
            drop(memory);
            unread.retain_mut(|read| match ends.remove(&read.cell) {
                Some((count, due_at, id, lane)) if count >= read.limit => {
                    (read.due_at, read.id, read.lane) = (due_at, id, Some(lane));
                    true
                }
                _ => false,
            });
            if reads == 0 {
                self.lease_table.lock().cursors.were_long(unread.iter().map(|read| read.cell).collect());
            }
            if unread.is_empty() || found.seen.len() >= enough {
                break;
            }
        }
        self.lease_table.lock().cursors.end(firsts);
        for jobs in found.lanes.values_mut() {
            jobs.sort_by_key(|job| (job.wanted_at, job.id));
        }
        Ok(found)
    }

    /// Cursors of each place and class, at which the claim begins to read.
    fn beginnings(&self, claim: &Claim) -> Vec<ReadCursor> {
        let mut memory = self.lease_table.lock();
        memory.cursors.begin(claim);
        let stays = cells().filter(|(place, _)| !memory.leaving.contains(place));
        let read = |cell: Cell| {
            let limit = if memory.cursors.is_long(cell) { NEXT } else { FIRST };
            ReadCursor { cell, due_at: memory.cursors.start(cell), id: [0; 16], limit, lane: None }
        };
        stays.map(read).collect()
    }

    /// Continues where more was due than was read; `None` if nothing else is to be read for now.
    async fn more_rows(
        &self,
        term: i64,
        claim: &Claim,
        unread: &mut Vec<ReadCursor>,
        (found, enough): (&DueJobs, usize),
    ) -> Result<Option<Vec<Row>>, Fault> {
        let full = found.full(claim);
        let ends_in_full = |read: &ReadCursor| read.lane.as_ref().is_some_and(|lane| full.contains(lane.as_str()));
        if found.has_some_for(claim) && !self.lease_table.lock().cursors.may_look_past() {
            unread.retain(|read| !ends_in_full(read));
        }
        if unread.is_empty() {
            return Ok(None);
        }
        let limit = (enough / unread.len()).clamp(FIRST, NEXT);
        for read in unread.iter_mut() {
            read.limit = limit;
        }
        let past: HashSet<Cell> = unread.iter().filter(|read| ends_in_full(read)).map(|read| read.cell).collect();
        let began = Instant::now();
        let (sql, params) = due_rows(term, claim, unread, &full);
        let rows = self.keyed_reads.clone().rows(sql, params).await?;
        if !past.is_empty() {
            let mut has_found = false;
            for row in &rows {
                has_found |=
                    get::<Option<[u8; 16]>>(row, 2)?.is_some() && past.contains(&(get(row, 9)?, get(row, 10)?));
            }
            self.lease_table.lock().cursors.has_looked_past(began.elapsed(), has_found);
        }
        Ok(Some(rows))
    }

    /// Removes the marks of claimed jobs whose lane was woken, and gives the jobs their new dates. Jobs whose marks
    /// cannot be removed are left for a later claim.
    async fn take_marks(&self, claimed: &mut Vec<ClaimedJob>, woken: &HashSet<JobId>) {
        let dated = match self.unmark(claimed, woken).await {
            Ok(dated) => dated,
            Err(error) => {
                tracing::debug!(%error, "jobs that were woken are claimed later");
                HashMap::new()
            }
        };
        let mut memory = self.lease_table.lock();
        let memory = &mut *memory;
        claimed.retain_mut(|job| {
            let id = job.handle.id;
            if !woken.contains(&id) {
                return true;
            }
            let is_mine = memory.leases.get(&id).is_some_and(|lease| lease.token == job.handle.token);
            match (dated.get(&id), memory.leases.get_mut(&id).filter(|_| is_mine)) {
                (Some(due_at), Some(lease)) => {
                    (lease.due_at, job.handle.due_at) = (*due_at, *due_at);
                    let is_bulk = job.handle.lane.class() == JobClass::Bulk;
                    memory.cursors.date((lease.place, is_bulk), due_at.as_millis());
                    true
                }
                (None, Some(_)) => {
                    memory.leases.remove(&id);
                    false
                }
                (_, None) => false,
            }
        });
    }

    async fn unmark(&self, claimed: &[ClaimedJob], woken: &HashSet<JobId>) -> Result<HashMap<JobId, Timestamp>, Fault> {
        const SQL: &str = "UPDATE jobs SET due_at = least(jobs.due_at, woken_at), woken_at = NULL,
                dated_at = CASE WHEN woken_at < jobs.due_at THEN woken_at ELSE dated_at END
            FROM unnest($1::text[], $2::bigint[], $3::uuid[]) AS key (lane, due_at, id)
            WHERE jobs.lane = key.lane AND jobs.due_at = key.due_at AND jobs.id = key.id
            RETURNING jobs.id, jobs.due_at";
        let handles: Vec<_> = claimed.iter().map(|job| &job.handle).filter(|job| woken.contains(&job.id)).collect();
        let locks: BTreeSet<i64> = handles.iter().map(|handle| lock_of(&handle.lane)).collect();
        let mut transaction = self.writes.begin().await?;
        transaction.run("SET LOCAL synchronous_commit = off", params![]);
        for lock in locks {
            transaction.run("SELECT pg_advisory_xact_lock($1)", params![lock]);
        }
        let keys = params![
            handles.iter().map(|handle| handle.lane.as_str().to_owned()).collect::<Vec<_>>(),
            handles.iter().map(|handle| handle.due_at.as_millis()).collect::<Vec<_>>(),
            handles.iter().map(|handle| handle.id.to_bytes()).collect::<Vec<_>>(),
        ];
        let dated = many(&mut transaction, SQL, keys, |row| Ok((id(row, 0)?, time(row, 1)?))).await?;
        transaction.commit().await?;
        Ok(dated.into_iter().collect())
    }
}

/// State of one claim while it shares out jobs.
struct Round<'a> {
    claim: &'a Claim,
    memory: &'a mut LeaseState,
    lanes: HashMap<Lane, Vec<DueJob>>,
    /// Lanes of each flow in their order.
    flows: HashMap<Flow, BTreeSet<(Timestamp, u64, String)>>,
    /// Number of jobs given to each lane, for all its senders together.
    given: HashMap<String, usize>,
    claimed: Vec<ClaimedJob>,
    woken: HashSet<JobId>,
}

/// Gives the jobs found to flows and lanes in turn; returns them, and the ids of those whose lane was woken.
fn give(memory: &mut LeaseState, claim: &Claim, found: DueJobs) -> Result<(Vec<ClaimedJob>, HashSet<JobId>), Fault> {
    memory.leases.retain(|_, lease| lease.until + FORGOTTEN_AFTER > claim.monotonic);
    memory.waiting.retain(|lane, _| found.lanes.contains_key(lane));
    memory.held.clear();
    let mut flows: HashMap<Flow, BTreeSet<_>> = HashMap::new();
    let held: HashMap<&str, Monotonic> = claim.hold.iter().map(|(lane, until)| (lane.as_str(), *until)).collect();
    for (lane, jobs) in &found.lanes {
        let until = held.get(lane.shared()).copied().filter(|until| *until > claim.monotonic);
        let until = if claim.withholds(lane) { Some(Monotonic::NEVER) } else { until };
        if let Some(until) = until {
            memory.held.insert(lane.clone(), until);
            continue;
        }
        let first = jobs.first().map_or(claim.now, |job| job.wanted_at);
        let (since, turn) = memory.waiting.get(lane).copied().unwrap_or((first, 0));
        flows.entry(lane.flow()).or_default().insert((since, turn, lane.as_str().to_owned()));
    }
    let mut due: Vec<Flow> = flows.keys().copied().collect();
    due.sort_unstable();
    let places = Places {
        all: claim.max,
        bulk: claim.bulk,
        per_flow: claim.per_flow,
        flows: &claim.flows,
        weights: &claim.weights,
    };
    let mut turns = std::mem::take(&mut memory.turns);
    let (given, claimed, woken) = (HashMap::new(), Vec::new(), HashSet::new());
    let mut round = Round { claim, memory, lanes: found.lanes, flows, given, claimed, woken };
    let outcome = turns.share(places, &due, |flow, most| Ok::<_, Fault>(round.visit_lanes(flow, most)));
    let (claimed, woken) = (round.claimed, round.woken);
    memory.turns = turns;
    outcome.map(|()| (claimed, woken))
}

impl Round<'_> {
    /// Visits the lanes of a flow, those that waited longest first, until enough is claimed. Returns the number
    /// claimed.
    fn visit_lanes(&mut self, flow: Flow, most: usize) -> usize {
        let before = self.claimed.len();
        let enough = before.saturating_add(most);
        while self.claimed.len() < enough {
            let Some((.., lane)) = self.flows.get_mut(&flow).and_then(BTreeSet::pop_first) else { break };
            self.visit(flow, &Lane::parse(&lane), enough);
        }
        self.claimed.len() - before
    }

    /// Claims jobs of a lane, within its share, until `enough` are claimed in all.
    fn visit(&mut self, flow: Flow, lane: &Lane, enough: usize) {
        let share = self.claim.shares.get(lane.shared()).copied().unwrap_or(self.claim.per_lane);
        let given = self.given.get(lane.shared()).copied().unwrap_or(0);
        if given >= share {
            // The lane keeps its place before lanes that had a turn.
            return;
        }
        let Some(jobs) = self.lanes.get_mut(lane) else { return };
        let count = jobs.len().min(share.saturating_sub(given)).min(enough - self.claimed.len());
        let taken: Vec<DueJob> = jobs.drain(..count).collect();
        let has_more = !jobs.is_empty();
        self.given.insert(lane.shared().to_owned(), given + count);
        for job in taken {
            self.claim_job(lane, job);
        }
        if has_more {
            // The lane goes to the back of the queue.
            self.memory.last_turn += 1;
            let turn = (self.claim.now, self.memory.last_turn);
            self.memory.waiting.insert(lane.clone(), turn);
            if given + count < share {
                self.flows.entry(flow).or_default().insert((turn.0, turn.1, lane.as_str().to_owned()));
            }
        } else {
            self.memory.waiting.remove(lane);
        }
    }

    fn claim_job(&mut self, lane: &Lane, job: DueJob) {
        let lease = Lease {
            token: 0,
            until: self.claim.monotonic + self.claim.lease,
            ends: Instant::now() + self.claim.lease,
            due_at: job.due_at,
            place: job.place,
            once: job.once,
        };
        let token = self.memory.lease(job.id, lease);
        if job.is_woken {
            self.woken.insert(job.id);
        }
        self.claimed.push(ClaimedJob {
            handle: JobHandle { id: job.id, lane: lane.clone(), due_at: job.due_at, token },
            kind: job.kind,
            payload: Bytes::from(job.payload),
            failures: job.failures,
        });
    }
}

impl PostgresStore {
    /// Returns the time until a claim may find a job.
    pub(super) async fn next_job(&self, now: Timestamp, monotonic: Monotonic) -> Result<Option<Duration>, Fault> {
        const SQL: &str = "SELECT min(due.at) FROM unnest($4::smallint[], $5::boolean[], $6::bigint[]) AS cell (place, bulk, start)
            CROSS JOIN LATERAL (SELECT 1 FROM places WHERE places.place = cell.place AND places.term = $1 OFFSET 0) AS ours
            CROSS JOIN LATERAL (
                SELECT due_at AS at FROM jobs WHERE jobs.place = cell.place AND jobs.bulk = cell.bulk
                    AND jobs.due_at >= cell.start AND lane <> ALL ($2) AND id <> ALL ($3) ORDER BY due_at LIMIT 1) AS due
            UNION ALL
            SELECT min(woken_at) FROM places JOIN jobs ON jobs.place = places.place
            WHERE places.term = $1 AND woken_at IS NOT NULL AND lane <> ALL ($2) AND id <> ALL ($3)";
        let (held, leased, ends, starts) = {
            let memory = self.lease_table.lock();
            let starts: Vec<_> = cells().map(|cell| (cell, memory.cursors.start(cell))).collect();
            let held: Vec<_> = memory.held.iter().filter(|(_, until)| **until > monotonic).collect();
            let leased: Vec<_> = memory.leases.iter().filter(|(_, lease)| lease.until > monotonic).collect();
            let ends = held.iter().map(|(_, until)| **until).chain(leased.iter().map(|(_, lease)| lease.until)).min();
            let held: Vec<String> = held.iter().map(|(lane, _)| lane.as_str().to_owned()).collect();
            let leased: Vec<[u8; 16]> = leased.iter().map(|(id, _)| id.to_bytes()).collect();
            (held, leased, ends, starts)
        };
        let params = params![
            self.writes.term(),
            held,
            leased,
            starts.iter().map(|((place, _), _)| *place).collect::<Vec<_>>(),
            starts.iter().map(|((_, bulk), _)| *bulk).collect::<Vec<_>>(),
            starts.iter().map(|(_, start)| *start).collect::<Vec<_>>(),
        ];
        let due = many(&mut self.keyed_reads.clone(), SQL, params, |row| maybe_time(row, 0)).await?;
        let wait = due.into_iter().flatten().min().map(|due| due.since(now));
        Ok(wait.into_iter().chain(ends.map(|end| end.since(monotonic))).min())
    }
}
