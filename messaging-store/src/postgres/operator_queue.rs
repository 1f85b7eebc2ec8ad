//! The queue by hand: the parts that are suspended, and what waits in lanes.

use async_trait::async_trait;
use messaging_core::changes::JobPlace;
use messaging_core::domain::lane::Lane;
use messaging_core::domain::queue::{QueueScope, Suspension};
use messaging_core::ids::{Id as _, JobId};
use messaging_core::ports::store::{DatedJob, LaneSummary, OperatorQueue, StoreError};
use messaging_core::time::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::fault::Fault;
use super::jobs::stored_job;
use super::query::params;
use super::row::{count, document, get, id, record, sql_limit, time, uuid};
use super::transaction::Transaction;

/// Suspends a part of the queue, unless it is suspended already.
pub(super) fn suspend(transaction: &mut Transaction, suspension: &Suspension) -> Result<(), Fault> {
    transaction.run(
        "INSERT INTO suspensions (scope, since) VALUES ($1, $2) ON CONFLICT (scope) DO NOTHING",
        params![document(&suspension.scope)?, suspension.since.as_millis()],
    );
    Ok(())
}

/// Lifts the suspension of a part of the queue.
pub(super) fn lift(transaction: &mut Transaction, scope: &QueueScope) -> Result<(), Fault> {
    transaction.run("DELETE FROM suspensions WHERE scope = $1", params![document(scope)?]);
    Ok(())
}

#[async_trait]
impl OperatorQueue for PostgresStore {
    async fn suspensions(&self) -> Result<Vec<Suspension>, StoreError> {
        self.reads
            .many("SELECT scope, since FROM suspensions", params![], |row| {
                Ok(Suspension { scope: record(row, 0)?, since: time(row, 1)? })
            })
            .await
    }

    async fn lane_summaries(
        &self,
        kind: &'static str,
        after: Option<&Lane>,
        limit: usize,
    ) -> Result<Vec<LaneSummary>, StoreError> {
        const SQL: &str = "SELECT lane, count(*),
                count(*) FILTER (WHERE (convert_from(payload, 'UTF8')::json ->> 'attempt')::bigint > 1),
                min(id::text)::uuid, min(least(due_at, woken_at))
            FROM jobs WHERE lane > $1 AND kind = $2 GROUP BY lane ORDER BY lane LIMIT $3";
        let after = after.map_or_else(String::new, ToString::to_string);
        self.reads
            .many(SQL, params![after, kind.to_owned(), sql_limit(limit)], |row| {
                Ok(LaneSummary {
                    lane: Lane::parse(get(row, 0)?),
                    jobs: count(row, 1)?,
                    deferred: count(row, 2)?,
                    oldest: Timestamp::from_millis(id::<JobId>(row, 3)?.millis()),
                    next_due: time(row, 4)?,
                })
            })
            .await
    }

    async fn jobs_after(&self, after: Option<&JobPlace>, limit: usize) -> Result<Vec<DatedJob>, StoreError> {
        const SQL: &str = "SELECT lane, due_at, id, kind, payload, dated_at FROM jobs
            WHERE (lane, due_at, id) > ($1, $2, $3) ORDER BY lane, due_at, id LIMIT $4";
        let (lane, due_at, id) = after.map_or_else(
            || (String::new(), i64::MIN, Uuid::nil()),
            |place| (place.lane.to_string(), place.due_at.as_millis(), uuid(place.id)),
        );
        self.reads
            .many(SQL, params![lane, due_at, id, sql_limit(limit)], |row| {
                Ok(DatedJob { job: stored_job(row)?, dated_at: time(row, 5)? })
            })
            .await
    }
}
