//! Jobs: adding, claiming, finishing.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::changes::{JobHandle, JobPlace, NewJob, PutBack, Reschedule};
use messaging_core::domain::delivery::fair_turns::Places;
use messaging_core::domain::delivery::lane::{Flow, Lane};
use messaging_core::ids::{Id as _, JobId};
use messaging_core::ports::store::jobs::{Claim, ClaimedJob, Queued, Queues, StoredJob};
use messaging_core::ports::store::{Jobs, StoreError};
use messaging_core::time::{Monotonic, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, ToSql, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::lanes::{HeldLanes, LaneIndex, PARKED};
use super::query::many;
use super::redating;
use super::row;
use super::write_connection::WriteConnection;
use crate::tables::operator_queue::stored_job;

/// Number of lanes in one read.
const LANES_AT_A_TIME: usize = 256;

/// Maximum number of lanes that one claim puts aside before it lets other work have the writer; the next claim
/// continues.
const MAX_PASSED: usize = 4096;

pub(super) fn enqueue(connection: &Connection, index: &mut LaneIndex, job: &NewJob) -> Result<(), Fault> {
    connection
        .prepare_cached("INSERT INTO jobs (lane, due_at, id, kind, payload, dated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(params![
            job.lane.as_str(),
            job.due_at.as_millis(),
            job.id.to_bytes(),
            job.kind,
            &job.payload[..],
            job.id.millis()
        ])?;
    index.redating().note(connection, Timestamp::from_millis(job.id.millis()))?;
    index.note_added(job.lane.as_str(), job.due_at);
    Ok(())
}

pub(super) fn enqueue_once(connection: &Connection, index: &mut LaneIndex, job: &NewJob) -> Result<(), Fault> {
    let waits = connection.prepare_cached("SELECT 1 FROM jobs WHERE lane = ?1")?.exists([job.lane.as_str()])?;
    if waits { Ok(()) } else { enqueue(connection, index, job) }
}

pub(super) fn finish(connection: &Connection, index: &mut LaneIndex, handle: &JobHandle) -> Result<(), Fault> {
    index.give_up(handle)?;
    let rows = connection
        .prepare_cached("DELETE FROM jobs WHERE lane = ?1 AND due_at = ?2 AND id = ?3")?
        .execute(params![handle.lane.as_str(), handle.due_at.as_millis(), handle.id.to_bytes()])?;
    expect_one(rows)
}

/// Removes a job that is not claimed. Its lane is found to be empty when it is next looked at.
pub(super) fn remove(connection: &Connection, index: &LaneIndex, place: &JobPlace) -> Result<(), Fault> {
    if index.is_leased(place.id) {
        return Err(Fault::Conflict);
    }
    connection.prepare_cached("DELETE FROM jobs WHERE lane = ?1 AND due_at = ?2 AND id = ?3")?.execute(params![
        place.lane.as_str(),
        place.due_at.as_millis(),
        place.id.to_bytes()
    ])?;
    Ok(())
}

/// Gives a claimed job a new date and a new payload: it did not fail.
pub(super) fn reschedule(
    connection: &Connection,
    index: &mut LaneIndex,
    handle: &JobHandle,
    to: &Reschedule,
) -> Result<(), Fault> {
    const SQL: &str = "UPDATE jobs SET due_at = ?4, dated_at = ?5, payload = ?6, failures = 0
                       WHERE lane = ?1 AND due_at = ?2 AND id = ?3";
    move_to(connection, index, handle, (to.due_at, to.at), SQL, &&to.payload[..])
}

/// Gives a claimed job a new date after a run that did not end it.
pub(super) fn put_back(
    connection: &Connection,
    index: &mut LaneIndex,
    handle: &JobHandle,
    to: PutBack,
) -> Result<(), Fault> {
    const SQL: &str = "UPDATE jobs SET due_at = ?4, dated_at = ?5, failures = failures + ?6
                       WHERE lane = ?1 AND due_at = ?2 AND id = ?3";
    move_to(connection, index, handle, (to.due_at, to.at), SQL, &to.is_failure)
}

/// Ends the claim of a job and gives it a new date; `sql` also sets a further column to `value`.
fn move_to(
    connection: &Connection,
    index: &mut LaneIndex,
    handle: &JobHandle,
    (due_at, at): (Timestamp, Timestamp),
    sql: &str,
    value: &dyn ToSql,
) -> Result<(), Fault> {
    let is_woken = index.give_up(handle)?;
    let due_at = if is_woken { due_at.min(at) } else { due_at };
    let rows = connection.prepare_cached(sql)?.execute(params![
        handle.lane.as_str(),
        handle.due_at.as_millis(),
        handle.id.to_bytes(),
        due_at.as_millis(),
        at.as_millis(),
        value
    ])?;
    index.redating().note(connection, at)?;
    index.note_added(handle.lane.as_str(), due_at);
    expect_one(rows)
}

pub(super) fn save(
    connection: &Connection,
    index: &LaneIndex,
    handle: &JobHandle,
    payload: &[u8],
) -> Result<(), Fault> {
    index.require_lease(handle)?;
    let rows = connection
        .prepare_cached("UPDATE jobs SET payload = ?4 WHERE lane = ?1 AND due_at = ?2 AND id = ?3")?
        .execute(params![handle.lane.as_str(), handle.due_at.as_millis(), handle.id.to_bytes(), payload])?;
    expect_one(rows)
}

#[async_trait]
impl Jobs for SqliteStore {
    async fn claim(&self, claim: Claim) -> Result<Vec<ClaimedJob>, StoreError> {
        self.writer.task(move |writing| claim_jobs(writing, &claim)).await
    }

    async fn next_due(&self, now: Timestamp, monotonic: Monotonic) -> Result<Option<Duration>, StoreError> {
        self.writer
            .task(move |writing| {
                find_lost(writing)?;
                if writing.index().redating().is_under_way() {
                    return Ok(Some(Duration::ZERO));
                }
                writing.look(|connection, index| {
                    let row = next_time(connection)?.filter(|next| *next < Timestamp::from_millis(PARKED));
                    let row = row.map(|next| next.since(now));
                    Ok(row.into_iter().chain(index.first_wake(now, monotonic)).min())
                })
            })
            .await
    }

    async fn job_count(&self) -> Result<u64, StoreError> {
        self.readers
            .read(|connection| {
                let count: i64 =
                    connection.prepare_cached("SELECT count(*) FROM jobs")?.query_row([], |row| row.get(0))?;
                Ok(count.unsigned_abs())
            })
            .await
    }

    async fn jobs_of(&self, kinds: &[&'static str], limit: usize) -> Result<Vec<StoredJob>, StoreError> {
        let kinds = serde_json::to_string(kinds).map_err(Fault::from)?;
        self.scans.read(move |connection| stored_jobs(connection, &kinds, limit)).await
    }

    async fn queues(&self, limit: usize) -> Result<Queues, StoreError> {
        self.scans.read(move |connection| queues(connection, limit)).await
    }

    async fn lane_lengths(&self, lanes: &[Lane], due_by: Timestamp, most: usize) -> Result<Vec<u64>, StoreError> {
        const SQL: &str = "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE lane = ?1 AND due_at <= ?2 LIMIT ?3)";
        let lanes = lanes.to_vec();
        self.readers
            .read(move |connection| {
                // One transaction: for one moment, and one lock.
                let connection = connection.unchecked_transaction()?;
                let mut count = connection.prepare_cached(SQL)?;
                let most = row::sql_limit(most);
                let mut length = |lane: &Lane| -> Result<u64, Fault> {
                    Ok(count
                        .query_row(params![lane.as_str(), due_by.as_millis(), most], |row| row.get::<_, i64>(0))?
                        .unsigned_abs())
                };
                lanes.iter().map(&mut length).collect()
            })
            .await
    }
}

/// `kinds` is a JSON list.
fn stored_jobs(connection: &Connection, kinds: &str, limit: usize) -> Result<Vec<StoredJob>, Fault> {
    const SQL: &str = "SELECT lane, due_at, id, kind, payload FROM jobs
                       WHERE kind IN (SELECT value FROM json_each(?1)) ORDER BY lane, due_at, id LIMIT ?2";
    many(connection, SQL, params![kinds, row::sql_limit(limit)], |row| stored_job(row))
}

/// Reads lane by lane, in the order of the key, so that only the sums and the longest lanes are in memory.
fn queues(connection: &Connection, limit: usize) -> Result<Queues, Fault> {
    let mut statement = connection.prepare("SELECT lane, count(*), min(id), min(due_at) FROM jobs GROUP BY lane")?;
    let mut rows = statement.query([])?;
    let mut queues = Queues::default();
    while let Some(row) = rows.next()? {
        let lane = Lane::parse(&row.get::<_, String>(0)?);
        let oldest = row::id::<JobId>(row, 2)?.millis();
        let due = Timestamp::from_millis(row.get(3)?);
        let queued = Queued { jobs: row::count(row, 1)?, oldest: Timestamp::from_millis(oldest), due };
        let kind = lane.resource().split(':').next().unwrap_or_default();
        let sum = queues.sums.entry(kind.to_owned()).or_insert(Queued { jobs: 0, ..queued });
        sum.jobs += queued.jobs;
        sum.oldest = sum.oldest.min(queued.oldest);
        sum.due = sum.due.min(queued.due);
        queues.lanes.push((lane, queued));
        if queues.lanes.len() > 2 * limit.max(1) {
            keep_longest(&mut queues.lanes, limit);
        }
    }
    keep_longest(&mut queues.lanes, limit);
    Ok(queues)
}

fn keep_longest(lanes: &mut Vec<(Lane, Queued)>, limit: usize) {
    lanes.sort_by_key(|(_, queued)| Reverse(queued.jobs));
    lanes.truncate(limit);
}

/// Claims in a transaction that a power cut may undo: the leases are gone then as well.
fn claim_jobs(writing: &mut WriteConnection, claim: &Claim) -> Result<Vec<ClaimedJob>, Fault> {
    if !writing.is_worker() {
        return Err(Fault::NotTheWorker);
    }
    writing.ensure_owner()?;
    find_lost(writing)?;
    redating::redate(writing, claim.now, claim.monotonic)?;
    let held: HashMap<&str, Monotonic> = claim
        .hold
        .iter()
        .filter(|(_, until)| *until > claim.monotonic)
        .map(|(lane, until)| (lane.as_str(), *until))
        .collect();
    let held = HeldLanes { lanes: held, claim };
    writing.index().follow_holds(&held);
    let anything = writing.look(|connection, index| {
        let row = next_time(connection)?.map(|next| next.as_millis() <= claim.now.as_millis());
        let wake = index.first_wake(claim.now, claim.monotonic).map(|wait| wait.is_zero());
        Ok(row == Some(true) || wake == Some(true) || index.has_released(&held))
    })?;
    if !anything || claim.max == 0 || claim.per_lane == 0 {
        return Ok(Vec::new());
    }
    let mut round = Round { claim, held, claimed: Vec::new(), given: HashMap::new(), passed: 0 };
    let outcome = writing.undurably(|connection, index, _| {
        index.redating().note(connection, claim.now)?;
        index.wake(connection, claim.now, claim.monotonic, &round.held)?;
        round.visit_flows(connection, index)
    });
    if let Err(fault) = outcome {
        writing.index().take_back(round.claimed.iter().map(|job| &job.handle));
        return Err(fault);
    }
    Ok(round.claimed)
}

fn find_lost(writing: &mut WriteConnection) -> Result<(), Fault> {
    if writing.is_worker() && writing.look(|_, index| Ok(index.has_lost()))? {
        writing.undurably(|connection, index, _| index.find_lost(connection))?;
    }
    Ok(())
}

/// Earliest time in the row of a lane; `PARKED` if all lanes are parked.
fn next_time(connection: &Connection) -> Result<Option<Timestamp>, Fault> {
    let next = connection
        .prepare_cached("SELECT next_at FROM lanes INDEXED BY lanes_by_time ORDER BY next_at LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(next.map(Timestamp::from_millis))
}

/// A lane that waits for its turn.
struct WaitingLane {
    next_at: Timestamp,
    turn: i64,
    lane: String,
}

/// State of one claim while it shares out jobs.
struct Round<'a> {
    claim: &'a Claim,
    held: HeldLanes<'a>,
    claimed: Vec<ClaimedJob>,
    /// Number of jobs given to each lane, for all its senders together.
    given: HashMap<String, usize>,
    /// Number of lanes that were put aside.
    passed: usize,
}

impl Round<'_> {
    /// Lets the flows with due jobs take turns until enough is claimed.
    fn visit_flows(&mut self, connection: &Connection, index: &mut LaneIndex) -> Result<(), Fault> {
        let mut flows = std::mem::take(index.flows());
        let outcome = flows.due(connection, self.claim.now).and_then(|due| {
            let claim = self.claim;
            let places = Places {
                all: claim.max,
                bulk: claim.bulk,
                per_flow: claim.per_flow,
                flows: &claim.flows,
                weights: &claim.weights,
            };
            flows.turns.share(places, &due, |flow, most| self.visit_lanes(connection, index, flow, most))
        });
        *index.flows() = flows;
        outcome
    }

    /// Visits the lanes of a flow, those that waited longest first, until enough is claimed. Returns the number
    /// claimed.
    fn visit_lanes(
        &mut self,
        connection: &Connection,
        index: &mut LaneIndex,
        flow: Flow,
        most: usize,
    ) -> Result<usize, Fault> {
        let flow = flow.to_string();
        let before = self.claimed.len();
        let enough = before.saturating_add(most);
        // Lanes that went to the back of the queue come by a second time.
        let mut last = WaitingLane { next_at: Timestamp::from_millis(i64::MIN), turn: 0, lane: String::new() };
        while self.claimed.len() < enough && self.passed < MAX_PASSED {
            let lanes = self.waiting_lanes(connection, &flow, &last, enough - self.claimed.len())?;
            if lanes.is_empty() {
                break;
            }
            for waiting in lanes {
                if self.claimed.len() >= enough {
                    break;
                }
                self.visit(connection, index, &waiting, enough)?;
                last = waiting;
            }
        }
        Ok(self.claimed.len() - before)
    }

    fn waiting_lanes(
        &self,
        connection: &Connection,
        flow: &str,
        last: &WaitingLane,
        room: usize,
    ) -> Result<Vec<WaitingLane>, Fault> {
        let mut statement = connection.prepare_cached(
            "SELECT next_at, turn, lane FROM lanes INDEXED BY lanes_by_flow
             WHERE flow = ?1 AND next_at <= ?2 AND (next_at, turn, lane) > (?3, ?4, ?5)
             ORDER BY next_at, turn, lane LIMIT ?6",
        )?;
        let room = row::sql_limit(room.clamp(16, LANES_AT_A_TIME));
        let key = params![flow, self.claim.now.as_millis(), last.next_at.as_millis(), last.turn, last.lane, room];
        let lanes = statement.query_map(key, |row| {
            Ok(WaitingLane { next_at: Timestamp::from_millis(row.get(0)?), turn: row.get(1)?, lane: row.get(2)? })
        })?;
        Ok(lanes.collect::<Result<_, _>>()?)
    }

    /// Claims jobs of a lane, within its share, until `enough` are claimed in all, and sets the time of its next look.
    fn visit(
        &mut self,
        connection: &Connection,
        index: &mut LaneIndex,
        waiting: &WaitingLane,
        enough: usize,
    ) -> Result<(), Fault> {
        let name = waiting.lane.as_str();
        if let Some(until) = self.held.until(name) {
            self.passed += 1;
            return index.hold(connection, name.to_owned(), waiting.next_at, until, &self.held);
        }
        let shared = Lane::shared_part(name);
        let share = self.claim.shares.get(shared).copied().unwrap_or(self.claim.per_lane);
        let given = self.given.get(shared).copied().unwrap_or(0);
        if given >= share {
            // The lane keeps its place before lanes that had a turn.
            self.passed += 1;
            return Ok(());
        }
        let most = (share - given).min(enough - self.claimed.len());
        let before = self.claimed.len();
        let outcome = self.claim_of(connection, index, name, before.saturating_add(most));
        self.given.insert(shared.to_owned(), given + self.claimed.len() - before);
        outcome
    }

    /// Claims due jobs of a lane until enough are claimed in all.
    fn claim_of(
        &mut self,
        connection: &Connection,
        index: &mut LaneIndex,
        name: &str,
        enough: usize,
    ) -> Result<(), Fault> {
        let now = self.claim.now;
        let lane = Lane::parse(name);
        let mut statement = connection.prepare_cached(
            "SELECT due_at, id, kind, payload, failures, dated_at FROM jobs WHERE lane = ?1 ORDER BY due_at, id",
        )?;
        let mut rows = statement.query([name])?;
        while let Some(row) = rows.next()? {
            let due_at = row::time(row, 0)?;
            let id: JobId = row::id(row, 1)?;
            if index.lease_end(id, self.claim.monotonic).is_some() {
                continue;
            }
            if due_at > now {
                // Skipped while it was in work; now nobody holds it any more.
                index.redating().found(row::time(row, 5)?, now);
                return index.rest(connection, name.to_owned(), Some(due_at));
            }
            if self.claimed.len() >= enough {
                return index.rotate(connection, name.to_owned(), now);
            }
            let token = index.lease(name, id, self.claim.monotonic + self.claim.lease);
            self.claimed.push(ClaimedJob {
                handle: JobHandle { id, lane: lane.clone(), due_at, token },
                kind: row.get(2)?,
                payload: Bytes::from(row.get::<_, Vec<u8>>(3)?),
                failures: row.get(4)?,
            });
        }
        index.rest(connection, name.to_owned(), None)
    }
}
