//! Jobs: adding and ending them, and queries about them.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::changes::{Changes, JobHandle, JobPlace, JobWrite, NewJob, PutBack, Reschedule, Write};
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{Id as _, JobId};
use messaging_core::ports::store::jobs::{Claim, ClaimedJob, Queued, Queues, StoredJob};
use messaging_core::ports::store::{Jobs, StoreError};
use messaging_core::time::{Monotonic, Timestamp};
use tokio_postgres::Row;

use super::fault::Fault;
use super::lease_table::{Effect, Lease};
use super::places::{lock_of, place_of};
use super::query::many;
use super::transaction::Transaction;
use super::{PostgresStore, redating};
use crate::pages::sql_limit;
use crate::row::{count, get, id, time};
use crate::sql::{Params, key, params};
use crate::tables::operator_queue::stored_job;

/// Number of columns in the key of a job, see [`place_key`].
const KEY: usize = 3;

/// Finds the rows of jobs by columns of these names.
macro_rules! rows_of_jobs {
    ($columns:literal $names:literal $chosen:literal) => {
        concat!(
            "(SELECT ",
            $chosen,
            "found.at FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::smallint[], $5::boolean[]",
            $columns,
            ") AS key (lane, due_at, id, place, bulk",
            $names,
            ") CROSS JOIN LATERAL (SELECT jobs.ctid AS at FROM jobs
                WHERE jobs.lane = key.lane AND jobs.due_at = key.due_at AND jobs.id = key.id AND jobs.place = key.place
                    AND jobs.bulk = key.bulk OFFSET 0) AS found
            WHERE key.due_at BETWEEN -9223372036854775808 AND 9223372036854775807) AS named"
        )
    };
}

pub(super) fn enqueue(transaction: &mut Transaction, job: &NewJob) {
    let sql = "INSERT INTO jobs (lane, due_at, id, place, bulk, dated_at, kind, payload)
         SELECT * FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::smallint[], $5::boolean[], $6::bigint[], $7::text[],
             $8::bytea[])";
    let row = row(transaction, job);
    transaction.add_row(sql, row);
}

/// Takes the locks of lanes that changes need, before their rows: exclusively to end the only job of a lane, in shared
/// mode to add one or to wake the lane.
pub(super) fn lock_lanes(transaction: &mut Transaction, all: &[&Changes]) {
    let mut locks: BTreeMap<i64, bool> = BTreeMap::new();
    for write in all.iter().flat_map(|changes| changes.writes()) {
        let (lane, alone) = match write {
            Write::Job(JobWrite::Finish(handle)) if transaction.uses.is_once(handle) => (&handle.lane, true),
            Write::Job(JobWrite::EnqueueOnce(job)) => (&job.lane, false),
            Write::Job(JobWrite::WakeLane(lane, _)) => (lane, false),
            _ => continue,
        };
        *locks.entry(lock_of(lane)).or_default() |= alone;
    }
    for (lock, alone) in locks {
        if alone {
            transaction.run("SELECT pg_advisory_xact_lock($1)", params![lock]);
        } else {
            transaction.run("SELECT pg_advisory_xact_lock_shared($1)", params![lock]);
        }
    }
}

/// Adds a job unless its lane has one. The lock of the lane is held until the commit, so that a job that ends meanwhile
/// waits for it: either a run sees the notes of the commit, or there is another job.
pub(super) fn enqueue_once(transaction: &mut Transaction, job: &NewJob) {
    // Jobs of the lane that were added with `Enqueue` end without the lock.
    let sql = "SELECT 1 FROM jobs WHERE lane = $1 AND NOT once ORDER BY due_at DESC LIMIT 4 FOR KEY SHARE";
    transaction.run(sql, params![job.lane.as_str().to_owned()]);
    let sql = "INSERT INTO jobs (lane, due_at, id, place, bulk, dated_at, kind, payload, once)
         SELECT $1::text, $2::bigint, $3::uuid, $4::smallint, $5::boolean, $6::bigint, $7::text, $8::bytea, true
         WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE lane = $1)
         ON CONFLICT (lane) WHERE once DO NOTHING";
    let row = row(transaction, job);
    transaction.run(sql, row);
}

/// Columns of a new job, whose date is noted.
fn row(transaction: &mut Transaction, job: &NewJob) -> Params {
    let place = place_of(&job.lane);
    redating::note(transaction, place, job.id.millis());
    let is_bulk = job.lane.class() == JobClass::Bulk;
    transaction.uses.date((place, is_bulk), job.due_at.as_millis());
    params![
        job.lane.as_str().to_owned(),
        job.due_at.as_millis(),
        key(job.id),
        place,
        is_bulk,
        job.id.millis(),
        job.kind.to_owned(),
        job.payload.clone(),
    ]
}

/// Fails unless the claim of a job is the current one. It stays so until the transaction ends.
pub(super) fn require_lease(transaction: &mut Transaction, handle: &JobHandle) -> Result<(), Fault> {
    let term = transaction.term();
    transaction.uses.claim(term, handle, Effect::Keeps).map(drop)
}

pub(super) fn finish(transaction: &mut Transaction, handle: &JobHandle) -> Result<(), Fault> {
    const ONE: &str = "DELETE FROM jobs WHERE lane = $1 AND due_at = $2 AND id = $3 AND place = $4 AND bulk = $5";
    const MANY: &str = concat!("DELETE FROM jobs USING ", rows_of_jobs!("" "" ""), " WHERE jobs.ctid = named.at");
    let term = transaction.term();
    let lease = transaction.uses.claim(term, handle, Effect::Ends)?;
    transaction.change_claimed_row(ONE, MANY, KEY, row_key(handle, &lease));
    Ok(())
}

/// Removes a job that is not claimed.
pub(super) fn remove(transaction: &mut Transaction, place: &JobPlace) -> Result<(), Fault> {
    transaction.uses.free(place.id)?;
    let sql = "DELETE FROM jobs WHERE lane = $1 AND due_at = $2 AND id = $3";
    transaction.run(sql, place_key(&place.lane, place.due_at, place.id));
    Ok(())
}

/// Gives a claimed job a new date and a new payload: it did not fail.
pub(super) fn reschedule(transaction: &mut Transaction, handle: &JobHandle, to: &Reschedule) -> Result<(), Fault> {
    const SQL: &str = "UPDATE jobs SET due_at = $4, dated_at = $5, payload = $6, failures = 0
                       WHERE lane = $1 AND due_at = $2 AND id = $3";
    let mut key = moving(transaction, handle, (to.due_at, to.at))?;
    key.push(to.payload.clone().into());
    transaction.run_claimed(SQL, key);
    Ok(())
}

/// Gives a claimed job a new date after a run that did not end it.
pub(super) fn put_back(transaction: &mut Transaction, handle: &JobHandle, to: PutBack) -> Result<(), Fault> {
    const SQL: &str = "UPDATE jobs SET due_at = $4, dated_at = $5, failures = failures + $6
                       WHERE lane = $1 AND due_at = $2 AND id = $3";
    let mut key = moving(transaction, handle, (to.due_at, to.at))?;
    key.push(i64::from(to.is_failure).into());
    transaction.run_claimed(SQL, key);
    Ok(())
}

/// Ends the claim of a job and gives it a new date. If its lane was woken meanwhile, its row shows that.
fn moving(
    transaction: &mut Transaction,
    handle: &JobHandle,
    (due_at, at): (Timestamp, Timestamp),
) -> Result<Params, Fault> {
    let term = transaction.term();
    let lease = transaction.uses.claim(term, handle, Effect::Ends)?;
    redating::note(transaction, lease.place, at.as_millis());
    transaction.uses.date((lease.place, handle.lane.class() == JobClass::Bulk), due_at.as_millis());
    let mut params = place_key(&handle.lane, handle.due_at, handle.id);
    params.extend(params![due_at.as_millis(), at.as_millis()]);
    Ok(params)
}

pub(super) fn save(transaction: &mut Transaction, handle: &JobHandle, payload: &[u8]) -> Result<(), Fault> {
    const ONE: &str =
        "UPDATE jobs SET payload = $6 WHERE lane = $1 AND due_at = $2 AND id = $3 AND place = $4 AND bulk = $5";
    const MANY: &str = concat!(
        "UPDATE jobs SET payload = named.payload FROM ",
        rows_of_jobs!(", $6::bytea[]" ", payload" "key.payload, "),
        " WHERE jobs.ctid = named.at"
    );
    let term = transaction.term();
    let lease = transaction.uses.claim(term, handle, Effect::Saves)?;
    let mut row = row_key(handle, &lease);
    row.extend(params![payload]);
    transaction.change_claimed_row(ONE, MANY, KEY, row);
    Ok(())
}

/// The key of a claimed job, and the other columns that find its row, so that either index of jobs can be used.
fn row_key(handle: &JobHandle, lease: &Lease) -> Params {
    let mut row = place_key(&handle.lane, handle.due_at, handle.id);
    row.extend(params![lease.place, handle.lane.class() == JobClass::Bulk]);
    row
}

fn place_key(lane: &Lane, due_at: Timestamp, id: JobId) -> Params {
    params![lane.as_str().to_owned(), due_at.as_millis(), key(id)]
}

#[async_trait]
impl Jobs for PostgresStore {
    async fn claim(&self, claim: Claim) -> Result<Vec<ClaimedJob>, StoreError> {
        Ok(self.claim_jobs(&claim).await?)
    }

    async fn next_due(&self, now: Timestamp, monotonic: Monotonic) -> Result<Option<Duration>, StoreError> {
        Ok(self.next_job(now, monotonic).await?)
    }

    async fn job_count(&self) -> Result<u64, StoreError> {
        let found = self.reads.one("SELECT count(*) FROM jobs", params![], |row| count(row, 0)).await?;
        Ok(found.unwrap_or(0))
    }

    async fn jobs_of(&self, kinds: &[&'static str], limit: usize) -> Result<Vec<StoredJob>, StoreError> {
        const SQL: &str = "SELECT lane, due_at, id, kind, payload FROM jobs WHERE kind = ANY ($1)
                           ORDER BY lane, due_at, id LIMIT $2";
        let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        self.reads.many(SQL, params![kinds, sql_limit(limit)], |row| stored_job(row)).await
    }

    async fn queues(&self, limit: usize) -> Result<Queues, StoreError> {
        Ok(self.queued(limit).await?)
    }

    async fn lane_lengths(&self, lanes: &[Lane], due_by: Timestamp, most: usize) -> Result<Vec<u64>, StoreError> {
        const SQL: &str = "SELECT (SELECT count(*) FROM (SELECT 1 FROM jobs WHERE jobs.lane = wanted.lane
                AND least(due_at, woken_at) <= $2 LIMIT $3) AS due)
            FROM unnest($1::text[]) WITH ORDINALITY AS wanted (lane, n) ORDER BY n";
        let lanes: Vec<String> = lanes.iter().map(|lane| lane.as_str().to_owned()).collect();
        self.reads.many(SQL, params![lanes, due_by.as_millis(), sql_limit(most)], |row| count(row, 0)).await
    }
}

impl PostgresStore {
    /// Returns the sums of jobs and the longest lanes; the database counts, and only these are in memory.
    async fn queued(&self, limit: usize) -> Result<Queues, Fault> {
        const SUMS: &str = "WITH lanes AS (
                SELECT lane, count(*) AS jobs, min(id::text)::uuid AS oldest, min(due_at) AS due FROM jobs GROUP BY lane)
            SELECT split_part(CASE WHEN lane ~ '^[tb]/[^/]*/' THEN substr(lane, strpos(substr(lane, 3), '/') + 3) ELSE lane END,
                    ':', 1), sum(jobs)::bigint, min(oldest::text)::uuid, min(due)
            FROM lanes GROUP BY 1";
        const LONGEST: &str = "SELECT lane, count(*), min(id::text)::uuid, min(due_at) FROM jobs GROUP BY lane
            ORDER BY 2 DESC, 1 LIMIT $1";
        let read = |row: &Row| {
            let oldest = Timestamp::from_millis(id::<JobId>(row, 2)?.millis());
            Ok((get::<String>(row, 0)?, Queued { jobs: count(row, 1)?, oldest, due: time(row, 3)? }))
        };
        let mut snapshot = self.reads.snapshot().await?;
        let sums = many(&mut snapshot, SUMS, params![], read).await?;
        let longest = many(&mut snapshot, LONGEST, params![sql_limit(limit)], read).await?;
        snapshot.end().await?;
        let lanes = longest.into_iter().map(|(lane, queued)| (Lane::parse(&lane), queued)).collect();
        Ok(Queues { sums: sums.into_iter().collect(), lanes })
    }
}
