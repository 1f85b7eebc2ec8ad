//! The queue by hand: the parts that are suspended, and what waits in lanes.

use async_trait::async_trait;
use messaging_core::changes::JobPlace;
use messaging_core::domain::lane::Lane;
use messaging_core::domain::queue::{QueueScope, Suspension};
use messaging_core::ids::{Id as _, JobId};
use messaging_core::ports::store::{DatedJob, LaneSummary, OperatorQueue, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::Fault;
use super::jobs::stored_job;
use super::query::many;
use super::row::{self, document};

/// Suspends a part of the queue, unless it is suspended already.
pub(super) fn suspend(connection: &Connection, suspension: &Suspension) -> Result<(), Fault> {
    connection
        .prepare_cached("INSERT INTO suspensions (scope, since) VALUES (?1, ?2) ON CONFLICT (scope) DO NOTHING")?
        .execute(params![document(&suspension.scope)?, suspension.since.as_millis()])?;
    Ok(())
}

/// Lifts the suspension of a part of the queue.
pub(super) fn lift(connection: &Connection, scope: &QueueScope) -> Result<(), Fault> {
    connection.prepare_cached("DELETE FROM suspensions WHERE scope = ?1")?.execute([document(scope)?])?;
    Ok(())
}

#[async_trait]
impl OperatorQueue for SqliteStore {
    async fn suspensions(&self) -> Result<Vec<Suspension>, StoreError> {
        self.readers
            .point_read(|connection| {
                many(connection, "SELECT scope, since FROM suspensions", [], |row| {
                    Ok(Suspension { scope: row::record(row, 0)?, since: row::time(row, 1)? })
                })
            })
            .await
    }

    async fn lane_summaries(
        &self,
        kind: &'static str,
        after: Option<&Lane>,
        limit: usize,
    ) -> Result<Vec<LaneSummary>, StoreError> {
        const SQL: &str =
            "SELECT lane, count(*), count(*) FILTER (WHERE CAST(payload AS TEXT) ->> '$.attempt' > 1), min(id),
                min(due_at)
            FROM jobs WHERE lane > ?1 AND kind = ?2 GROUP BY lane ORDER BY lane LIMIT ?3";
        let after = after.map_or_else(String::new, ToString::to_string);
        self.scans
            .read(move |connection| {
                many(connection, SQL, params![after, kind, row::sql_limit(limit)], |row| {
                    Ok(LaneSummary {
                        lane: Lane::parse(&row.get::<_, String>(0)?),
                        jobs: row::count(row, 1)?,
                        deferred: row::count(row, 2)?,
                        oldest: Timestamp::from_millis(row::id::<JobId>(row, 3)?.millis()),
                        next_due: row::time(row, 4)?,
                    })
                })
            })
            .await
    }

    async fn jobs_after(&self, after: Option<&JobPlace>, limit: usize) -> Result<Vec<DatedJob>, StoreError> {
        const SQL: &str = "SELECT lane, due_at, id, kind, payload, dated_at FROM jobs
            WHERE (lane, due_at, id) > (?1, ?2, ?3) ORDER BY lane, due_at, id LIMIT ?4";
        let (lane, due_at, id) = after.map_or_else(
            || (String::new(), i64::MIN, [0; 16]),
            |place| (place.lane.to_string(), place.due_at.as_millis(), place.id.to_bytes()),
        );
        self.scans
            .read(move |connection| {
                many(connection, SQL, params![lane, due_at, id, row::sql_limit(limit)], |row| {
                    Ok(DatedJob { job: stored_job(row)?, dated_at: row::time(row, 5)? })
                })
            })
            .await
    }
}
