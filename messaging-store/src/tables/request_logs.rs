//! The log of API requests. Bodies are in a separate table, so that listings do not read them.

use async_trait::async_trait;
use messaging_core::domain::security::request_log::{LoggedBodies, LoggedRequest, RequestFilter};
use messaging_core::ids::{Id, RequestId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, RequestLogs, Slice, StoreError};
use messaging_core::time::Timestamp;

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, first_id_of, one_more, sql_limit};
use crate::row::{Row, count, get, id, time};
use crate::sql::{Params, Sql, key, params, sql};

/// The columns of a request, in the order in which they are read.
macro_rules! columns {
    () => {
        "r.key, r.id, r.at, r.method, r.path, r.operation, r.status, r.code, r.duration_ms, r.request_bytes, r.key_id, \
         r.user_id, r.ip, r.user_agent, r.idempotency_key, r.resource_id"
    };
}

/// Number of columns in `columns!`.
const COLUMNS: usize = 16;

/// Adds requests with their bodies.
pub(crate) fn add(on: &mut dyn Statements, requests: &[(LoggedRequest, LoggedBodies)]) -> Result<(), Fault> {
    const REQUEST: Sql = sql!(
        sqlite: "INSERT INTO api_requests (workspace, key, id, at, method, path, operation, status, code, duration_ms,
                request_bytes, key_id, user_id, ip, user_agent, idempotency_key, resource_id)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        postgres: "INSERT INTO api_requests (workspace, key, id, at, method, path, operation, status, code, duration_ms,
                request_bytes, key_id, user_id, ip, user_agent, idempotency_key, resource_id)
            SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[],
                $8::bigint[], $9::text[], $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::text[],
                $15::text[], $16::text[], $17::text[])",
    );
    const BODIES: Sql = sql!(
        sqlite: "INSERT INTO api_request_bodies (workspace, key, request, response) VALUES ($1, $2, $3, $4)",
        postgres: "INSERT INTO api_request_bodies (workspace, key, request, response)
            SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[])",
    );
    for (request, bodies) in requests {
        on.gather(REQUEST, row_of(request))?;
        if !bodies.is_empty() {
            let (workspace, place) = (key(request.workspace_id), key(request.key));
            on.gather(BODIES, params![workspace, place, bodies.request.as_deref(), bodies.response.as_deref()])?;
        }
    }
    Ok(())
}

/// Returns the values of a request for the table `api_requests`.
fn row_of(request: &LoggedRequest) -> Params {
    params![
        key(request.workspace_id),
        key(request.key),
        request.id.as_str(),
        request.at,
        request.method.as_str(),
        request.path.as_str(),
        request.operation.as_str(),
        i64::from(request.status),
        request.code.as_deref(),
        request.duration_ms.cast_signed(),
        request.request_bytes.cast_signed(),
        request.key_id.map(|id| id.to_string()),
        request.user_id.map(|id| id.to_string()),
        request.ip.map(|ip| ip.to_string()),
        request.user_agent.as_deref(),
        request.idempotency_key.as_deref(),
        request.resource_id.as_deref(),
    ]
}

/// Deletes the bodies of requests; the requests themselves stay.
pub(crate) fn forget_bodies(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    requests: &[RequestId],
) -> Result<(), Fault> {
    const SQL: Sql = sql!("DELETE FROM api_request_bodies WHERE workspace = $1 AND key = $2");
    requests.iter().try_for_each(|request| on.run(SQL, params![key(workspace), key(*request)]))
}

/// Parses the text in a column that may be NULL.
fn parsed<T: std::str::FromStr>(row: &dyn Row, column: usize) -> Result<Option<T>, Fault> {
    let text = get::<Option<&str>>(row, column)?;
    text.map(|text| text.parse().map_err(|_| Fault::Malformed("a logged request names nothing"))).transpose()
}

/// Reads a request from the columns of `columns!`.
fn request(workspace_id: WorkspaceId, row: &dyn Row) -> Result<LoggedRequest, Fault> {
    Ok(LoggedRequest {
        key: id(row, 0)?,
        workspace_id,
        id: get(row, 1)?,
        at: time(row, 2)?,
        method: get(row, 3)?,
        path: get(row, 4)?,
        operation: get(row, 5)?,
        status: get(row, 6)?,
        code: get(row, 7)?,
        duration_ms: count(row, 8)?,
        request_bytes: count(row, 9)?,
        key_id: parsed(row, 10)?,
        user_id: parsed(row, 11)?,
        ip: parsed(row, 12)?,
        user_agent: get(row, 13)?,
        idempotency_key: get(row, 14)?,
        resource_id: get(row, 15)?,
    })
}

/// Reads the bodies of request and answer from a column and the next one.
fn bodies(row: &dyn Row, from: usize) -> Result<LoggedBodies, Fault> {
    Ok(LoggedBodies { request: get(row, from)?, response: get(row, from + 1)? })
}

#[async_trait]
impl<D: Database> RequestLogs for SqlStore<D> {
    async fn logged_requests(
        &self,
        workspace: WorkspaceId,
        filter: &RequestFilter,
        page: PageRequest,
    ) -> Result<Slice<LoggedRequest>, StoreError> {
        const SQL: Sql = sql!(concat!(
            "SELECT ",
            columns!(),
            " FROM api_requests r WHERE r.workspace = $1 AND r.key < $2
                 AND (CAST($3 AS text) IS NULL OR r.key_id = CAST($3 AS text))
                 AND (CAST($4 AS text) IS NULL OR r.user_id = CAST($4 AS text))
                 AND (CAST($5 AS text) IS NULL OR r.method = CAST($5 AS text))
                 AND (CAST($6 AS text) IS NULL OR substr(r.path, 1, length(CAST($6 AS text))) = CAST($6 AS text))
                 AND (CAST($7 AS bigint) IS NULL OR r.status >= CAST($7 AS bigint))
                 AND (CAST($8 AS bigint) IS NULL OR r.status <= CAST($8 AS bigint))
                 AND (CAST($9 AS bigint) IS NULL OR r.at >= CAST($9 AS bigint))
                 AND (CAST($10 AS bigint) IS NULL OR r.at < CAST($10 AS bigint))
                 AND (CAST($11 AS text) IS NULL OR r.idempotency_key = CAST($11 AS text))
             ORDER BY r.key DESC LIMIT $12"
        ));
        let wanted = params![
            key(workspace),
            below(&page),
            filter.key_id.map(|id| id.to_string()),
            filter.user_id.map(|id| id.to_string()),
            filter.method.as_deref(),
            filter.path.as_deref(),
            filter.status.map(|(first, _)| i64::from(first)),
            filter.status.map(|(_, last)| i64::from(last)),
            filter.since,
            filter.until,
            filter.idempotency_key.as_deref(),
            one_more(&page),
        ];
        let query = Query::new(SQL, wanted, move |row| request(workspace, row)).scan();
        self.page(query, page, |request| request.key.to_bytes()).await
    }

    async fn logged_request(
        &self,
        workspace: WorkspaceId,
        id: &str,
    ) -> Result<Option<(LoggedRequest, LoggedBodies)>, StoreError> {
        const SQL: Sql = sql!(concat!(
            "SELECT ",
            columns!(),
            ", b.request, b.response FROM api_requests r {INDEXED BY api_requests_by_id}
                 LEFT JOIN api_request_bodies b ON b.workspace = r.workspace AND b.key = r.key
             WHERE r.workspace = $1 AND r.id = $2 ORDER BY r.key DESC LIMIT 1"
        ));
        let query = Query::new(SQL, params![key(workspace), id], move |row| {
            Ok((request(workspace, row)?, bodies(row, COLUMNS)?))
        });
        self.one(query.point()).await
    }

    async fn logged_bodies(
        &self,
        workspace: WorkspaceId,
        page: PageRequest,
    ) -> Result<Slice<(RequestId, Option<String>, LoggedBodies)>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT b.key, r.resource_id, b.request, b.response FROM api_request_bodies b
                 JOIN api_requests r ON r.workspace = b.workspace AND r.key = b.key
             WHERE b.workspace = $1 AND b.key < $2 ORDER BY b.key DESC LIMIT $3"
        );
        let bounds = params![key(workspace), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| Ok((id::<RequestId>(row, 0)?, get(row, 1)?, bodies(row, 2)?)));
        self.page(query.scan(), page, |(key, ..)| key.to_bytes()).await
    }

    async fn forget_requests(&self, before: Timestamp, keep: usize, limit: usize) -> Result<u64, StoreError> {
        // One workspace after the other, in the order of their ids.
        const NEXT: Sql = sql!("SELECT workspace FROM api_requests WHERE workspace > $1 ORDER BY workspace LIMIT 1");
        const BEYOND: Sql =
            sql!("SELECT key FROM api_requests WHERE workspace = $1 ORDER BY key DESC LIMIT 1 OFFSET $2");
        let (mut workspace, mut gone) = ([0; 16], 0);
        loop {
            let next = Query::new(NEXT, params![workspace], |row| get::<[u8; 16]>(row, 0)).point();
            let Some(found) = self.one(next).await? else { return Ok(gone) };
            workspace = found;
            let beyond = Query::new(BEYOND, params![workspace, sql_limit(keep)], |row| get::<[u8; 16]>(row, 0));
            let beyond = self.one(beyond.scan()).await?;
            // Lowest key that stays: within the newest `keep` requests, and not older than `before`.
            let first = beyond.map_or([0; 16], after).max(first_id_of(before));
            gone += forget_below(&self.0, workspace, first, limit).await?;
            if gone >= limit as u64 {
                return Ok(gone);
            }
        }
    }
}

/// Returns the key after a key in order.
fn after(key: [u8; 16]) -> [u8; 16] {
    u128::from_be_bytes(key).saturating_add(1).to_be_bytes()
}

/// Deletes up to `limit` requests of a workspace with keys below `first`, and up to `limit` bodies before them. Returns
/// the number of deleted requests.
async fn forget_below(
    database: &impl Database,
    workspace: [u8; 16],
    first: [u8; 16],
    limit: usize,
) -> Result<u64, StoreError> {
    const BODIES: Sql = sql!(
        sqlite: "DELETE FROM api_request_bodies WHERE (workspace, key) IN
            (SELECT workspace, key FROM api_request_bodies WHERE workspace = ?1 AND key < ?2 ORDER BY key LIMIT ?3)",
        postgres: "DELETE FROM api_request_bodies WHERE ctid = ANY (ARRAY (SELECT ctid FROM api_request_bodies
            WHERE workspace = $1 AND key < $2 ORDER BY key LIMIT $3 FOR UPDATE SKIP LOCKED))",
    );
    const REQUESTS: Sql = sql!(
        sqlite: "DELETE FROM api_requests WHERE (workspace, key) IN
            (SELECT workspace, key FROM api_requests WHERE workspace = ?1 AND key < ?2 ORDER BY key LIMIT ?3)",
        postgres: "DELETE FROM api_requests WHERE ctid = ANY (ARRAY (SELECT ctid FROM api_requests
            WHERE workspace = $1 AND key < $2 ORDER BY key LIMIT $3 FOR UPDATE SKIP LOCKED))",
    );
    database.sweep(BODIES, params![workspace, first, sql_limit(limit)]).await?;
    database.sweep(REQUESTS, params![workspace, first, sql_limit(limit)]).await
}
