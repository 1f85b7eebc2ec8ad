//! Due jobs as a claim sees them: the queries for them, and the lanes that have enough of them.

use std::collections::{HashMap, HashSet};

use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ids::JobId;
use messaging_core::ports::store::jobs::Claim;
use messaging_core::time::{Monotonic, Timestamp};
use tokio_postgres::Row;

use super::cursors::Cell;
use super::fault::Fault;
use super::lease_table::LeaseState;
use crate::pages::sql_limit;
use crate::row::{get, id, maybe_time, time};
use crate::sql::{Params, params};

/// Maximum number of jobs of a lane in one claim.
const MAX_OF_LANE: usize = 256;

/// Maximum number of jobs of a place and class that one read passes over because their lanes have enough.
const MAX_PASSED: i64 = 50_000;

/// Maximum number of woken jobs in one read.
const MOST_WOKEN: usize = 2_000;

/// A job that is due.
#[derive(Debug)]
pub(super) struct DueJob {
    /// The date in the job's key, by which jobs are read in order.
    pub(super) due_at: Timestamp,
    /// Time at which the job is due: it may have been woken.
    pub(super) wanted_at: Timestamp,
    pub(super) is_woken: bool,
    pub(super) id: JobId,
    pub(super) place: i16,
    pub(super) once: bool,
    pub(super) kind: String,
    pub(super) payload: Vec<u8>,
    pub(super) failures: u32,
}

/// Due jobs by lane, the longest waiting first.
#[derive(Debug, Default)]
pub(super) struct DueJobs {
    pub(super) lanes: HashMap<Lane, Vec<DueJob>>,
    pub(super) seen: HashSet<JobId>,
}

/// Position up to which a place and class was read.
#[derive(Debug, Clone)]
pub(super) struct ReadCursor {
    pub(super) cell: Cell,
    pub(super) due_at: i64,
    pub(super) id: [u8; 16],
    /// Maximum number of jobs to read.
    pub(super) limit: usize,
    /// Lane of the last job that was read.
    pub(super) lane: Option<Lane>,
}

/// Query of the due jobs of each place and class from its cursor on, without the lanes that have enough.
pub(super) fn due_rows(
    term: i64,
    claim: &Claim,
    unread: &[ReadCursor],
    full: &HashSet<String>,
) -> (&'static str, Params) {
    const SQL: &str =
        "SELECT due.lane, due.due_at, due.id, due.place, due.once, due.failures, due.woken_at, due.kind, due.payload,
            cell.place, cell.bulk, coalesce(first.due_at, due.due_at)
        FROM unnest($2::smallint[], $3::boolean[], $4::bigint[], $5::uuid[], $8::bigint[])
            AS cell (place, bulk, due_at, id, most)
        CROSS JOIN LATERAL (SELECT 1 FROM places WHERE places.place = cell.place AND places.term = $1 OFFSET 0) AS ours
        LEFT JOIN LATERAL (
            -- Where lanes are passed over, the first one to be seen is not the first.
            SELECT jobs.due_at FROM jobs WHERE cardinality($7::text[]) > 0 AND jobs.place = cell.place
                AND jobs.bulk = cell.bulk AND jobs.due_at <= $6 AND (jobs.due_at, jobs.id) > (cell.due_at, cell.id)
            ORDER BY jobs.due_at, jobs.id LIMIT 1) AS first ON true
        LEFT JOIN LATERAL (
            SELECT near.* FROM (
                SELECT * FROM jobs WHERE jobs.place = cell.place AND jobs.bulk = cell.bulk AND jobs.due_at <= $6
                    AND (jobs.due_at, jobs.id) > (cell.due_at, cell.id)
                ORDER BY jobs.due_at, jobs.id LIMIT $9) AS near
            WHERE near.lane <> ALL ($7) ORDER BY near.due_at, near.id LIMIT cell.most) AS due ON true";
    let params = params![
        term,
        unread.iter().map(|read| read.cell.0).collect::<Vec<_>>(),
        unread.iter().map(|read| read.cell.1).collect::<Vec<_>>(),
        unread.iter().map(|read| read.due_at).collect::<Vec<_>>(),
        unread.iter().map(|read| read.id).collect::<Vec<_>>(),
        claim.now.as_millis(),
        full.iter().cloned().collect::<Vec<_>>(),
        unread.iter().map(|read| sql_limit(read.limit)).collect::<Vec<_>>(),
        MAX_PASSED,
    ];
    (SQL, params)
}

/// Query of jobs whose lane was woken, of any date.
pub(super) fn woken_jobs(term: i64, claim: &Claim) -> (&'static str, Params) {
    const SQL: &str = "SELECT lane, due_at, id, jobs.place, once, failures, woken_at, kind, payload
        FROM places JOIN jobs ON jobs.place = places.place
        WHERE places.term = $1 AND woken_at IS NOT NULL AND woken_at <= $2 AND jobs.lane <> ALL ($3) LIMIT $4";
    let held = claim.hold.iter().filter(|(_, until)| *until > claim.monotonic);
    let held: Vec<String> = held.map(|(lane, _)| lane.as_str().to_owned()).collect();
    (SQL, params![term, claim.now.as_millis(), held, sql_limit(MOST_WOKEN)])
}

pub(super) fn read_due(row: &Row) -> Result<(Lane, DueJob), Fault> {
    let (due_at, woken_at) = (time(row, 1)?, maybe_time(row, 6)?);
    let due = DueJob {
        due_at,
        wanted_at: woken_at.map_or(due_at, |woken_at| woken_at.min(due_at)),
        is_woken: woken_at.is_some(),
        id: id(row, 2)?,
        place: get(row, 3)?,
        once: get(row, 4)?,
        failures: get(row, 5)?,
        kind: get(row, 7)?,
        payload: get(row, 8)?,
    };
    Ok((Lane::parse(get(row, 0)?), due))
}

impl DueJobs {
    pub(super) fn add_woken(&mut self, memory: &LeaseState, claim: &Claim, rows: &[Row]) -> Result<(), Fault> {
        for row in rows {
            let (lane, due) = read_due(row)?;
            self.add(memory, claim, lane, due);
        }
        Ok(())
    }

    /// Returns true if a claim gets any of the jobs found.
    pub(super) fn has_some_for(&self, claim: &Claim) -> bool {
        let share = |lane: &Lane| claim.shares.get(lane.shared()).copied().unwrap_or(claim.per_lane);
        self.lanes.keys().any(|lane| share(lane) > 0 && held_until(claim, lane).is_none())
    }

    pub(super) fn add(&mut self, memory: &LeaseState, claim: &Claim, lane: Lane, due: DueJob) {
        if memory.is_free(due.id, claim.monotonic) && !memory.leaving.contains(&due.place) && self.seen.insert(due.id) {
            self.lanes.entry(lane).or_default().push(due);
        }
    }

    /// Lanes from which no more jobs need to be read.
    pub(super) fn full(&self, claim: &Claim) -> HashSet<String> {
        let is_full = |(lane, jobs): &(&Lane, &Vec<DueJob>)| {
            let share = claim.shares.get(lane.shared()).copied().unwrap_or(claim.per_lane);
            // One job more than the lane's share shows that it has more.
            jobs.len() > share.min(MAX_OF_LANE) || held_until(claim, lane).is_some()
        };
        self.lanes.iter().filter(is_full).map(|(lane, _)| lane.as_str().to_owned()).collect()
    }
}

/// Returns the time until which a claim takes nothing from a lane, if the lane is held back.
pub(super) fn held_until(claim: &Claim, lane: &Lane) -> Option<Monotonic> {
    if claim.withholds(lane) {
        return Some(Monotonic::NEVER);
    }
    let held = claim.hold.iter().filter(|(held, until)| *held == lane.shared() && *until > claim.monotonic);
    held.map(|(_, until)| *until).max()
}
