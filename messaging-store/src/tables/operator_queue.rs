//! The queue by hand: the parts that are suspended, and what waits in lanes.

use async_trait::async_trait;
use bytes::Bytes;
use messaging_core::changes::JobPlace;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::domain::delivery::queue::{QueueScope, Suspension};
use messaging_core::ids::{Id as _, JobId};
use messaging_core::ports::store::{DatedJob, LaneSummary, OperatorQueue, StoreError, StoredJob};
use messaging_core::time::Timestamp;

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::sql_limit;
use crate::row::{Row, count, document, get, id, record, time};
use crate::sql::{Sql, params, sql};

/// Suspends a part of the queue, unless it is suspended already.
pub(crate) fn suspend(on: &mut dyn Statements, suspension: &Suspension) -> Result<(), Fault> {
    on.run(
        sql!("INSERT INTO suspensions (scope, since) VALUES ($1, $2) ON CONFLICT (scope) DO NOTHING"),
        params![document(&suspension.scope)?, suspension.since],
    )
}

/// Lifts the suspension of a part of the queue.
pub(crate) fn lift(on: &mut dyn Statements, scope: &QueueScope) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM suspensions WHERE scope = $1"), params![document(scope)?])
}

/// The job of a row of lane, due time, id, kind and payload.
pub(crate) fn stored_job(row: &dyn Row) -> Result<StoredJob, Fault> {
    let place = JobPlace { id: id(row, 2)?, lane: Lane::parse(get(row, 0)?), due_at: time(row, 1)? };
    Ok(StoredJob { place, kind: get(row, 3)?, payload: Bytes::from(get::<Vec<u8>>(row, 4)?) })
}

#[async_trait]
impl<D: Database> OperatorQueue for SqlStore<D> {
    async fn suspensions(&self) -> Result<Vec<Suspension>, StoreError> {
        const SQL: Sql = sql!("SELECT scope, since FROM suspensions");
        let query = Query::new(SQL, params![], |row| Ok(Suspension { scope: record(row, 0)?, since: time(row, 1)? }));
        self.many(query.point()).await
    }

    async fn lane_summaries(
        &self,
        kind: &'static str,
        after: Option<&Lane>,
        limit: usize,
    ) -> Result<Vec<LaneSummary>, StoreError> {
        const SQL: Sql = sql!(
            sqlite: "SELECT lane, count(*), count(*) FILTER (WHERE CAST(payload AS TEXT) ->> '$.attempt' > 1), min(id),
                    min(due_at)
                FROM jobs WHERE lane > $1 AND kind = $2 GROUP BY lane ORDER BY lane LIMIT $3",
            postgres: "SELECT lane, count(*),
                    count(*) FILTER (WHERE (convert_from(payload, 'UTF8')::json ->> 'attempt')::bigint > 1),
                    min(id::text)::uuid, min(least(due_at, woken_at))
                FROM jobs WHERE lane > $1 AND kind = $2 GROUP BY lane ORDER BY lane LIMIT $3",
        );
        let after = after.map_or_else(String::new, ToString::to_string);
        let query = Query::new(SQL, params![after, kind, sql_limit(limit)], |row| {
            Ok(LaneSummary {
                lane: Lane::parse(get(row, 0)?),
                jobs: count(row, 1)?,
                deferred: count(row, 2)?,
                oldest: Timestamp::from_millis(id::<JobId>(row, 3)?.millis()),
                next_due: time(row, 4)?,
            })
        });
        self.many(query.scan()).await
    }

    async fn jobs_after(&self, after: Option<&JobPlace>, limit: usize) -> Result<Vec<DatedJob>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT lane, due_at, id, kind, payload, dated_at FROM jobs
             WHERE (lane, due_at, id) > ($1, $2, $3) ORDER BY lane, due_at, id LIMIT $4"
        );
        let (lane, due_at, id) = after.map_or_else(
            || (String::new(), i64::MIN, [0; 16]),
            |place| (place.lane.to_string(), place.due_at.as_millis(), place.id.to_bytes()),
        );
        let query = Query::new(SQL, params![lane, due_at, id, sql_limit(limit)], |row| {
            Ok(DatedJob { job: stored_job(row)?, dated_at: time(row, 5)? })
        });
        self.many(query.scan()).await
    }
}
