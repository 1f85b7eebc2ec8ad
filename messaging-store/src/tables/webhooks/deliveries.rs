//! Rows of webhook deliveries.
//!
//! Few deliveries are looked for by their state: failed, held, expired, missed, or in a backlog. SQLite has partial
//! indexes of those. On PostgreSQL, where each index makes every change of a row dearer, triggers keep them in the
//! table `marked_deliveries`.
//!
//! Numbers of statuses in statements are places in [`DeliveryStatus::ALL`]: 0 pending, 1 delivered, 2 failed, 3 held, 4
//! expired. A delivery is missed if its receiver never got the event by it and nobody has replayed it.

use std::sync::Arc;

use messaging_core::changes::UpdateDelivery;
use messaging_core::domain::webhook::EventType;
use messaging_core::domain::webhook::delivery::{Delivery, DeliveryError, DeliveryStatus, Replayed, Subject};
use messaging_core::ids::{DeliveryId, Id, MessageId, WebhookId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, ReplayRange, Slice, StoreError};
use messaging_core::time::Timestamp;

use crate::database::scan::{Listing, page_of};
use crate::database::{Database, Query, Statements};
use crate::fault::Fault;
use crate::pages::{below, first_id_of, number, one_more, sql_limit};
use crate::row::{self, Row, count, document, id, maybe_id, maybe_time, numbered, or_empty, time};
use crate::sql::{Sql, key, params, sql};

/// The columns that [`delivery`] reads, in the order in which it reads them.
macro_rules! columns {
    () => {
        "id, event, type, message, at, payload, status, attempts, created_at, next_attempt_at, delivered_at, \
         duration_ms, response_status, response_body, error, replay_of, backlog"
    };
}

/// SQL that selects the deliveries of a webhook under a condition on their state, in the order of their ids: by a
/// partial index on SQLite, by `marked_deliveries` on PostgreSQL.
macro_rules! marked {
    (sqlite: $index:literal, $condition:literal, $order:literal, $limit:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM webhook_deliveries INDEXED BY ",
            $index,
            " WHERE webhook = $1 AND workspace = $2 AND ",
            $condition,
            " ORDER BY id ",
            $order,
            " LIMIT ",
            $limit
        )
    };
    (postgres: $condition:literal, $order:literal, $limit:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM (SELECT delivery FROM marked_deliveries WHERE webhook = $1 AND ",
            $condition,
            " ORDER BY delivery ",
            $order,
            " LIMIT ",
            $limit,
            ") AS marked CROSS JOIN LATERAL (
                 SELECT * FROM webhook_deliveries WHERE id = delivery AND workspace = $2 OFFSET 0) AS found
             ORDER BY delivery ",
            $order
        )
    };
}

/// A webhook, and the workspace that owns it.
type Receiver = (WorkspaceId, WebhookId);

/// Inserts a delivery.
pub(crate) fn insert(on: &mut dyn Statements, delivery: &Delivery) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "INSERT INTO webhook_deliveries (id, workspace, webhook, event, type, message, at, payload, status,
                attempts, created_at, next_attempt_at, delivered_at, duration_ms, response_status, response_body,
                error, replay_of, backlog, missed)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)",
        postgres: "INSERT INTO webhook_deliveries (id, workspace, webhook, event, type, message, at, payload, status,
                attempts, created_at, next_attempt_at, delivered_at, duration_ms, response_status, response_body,
                error, replay_of, backlog, missed)
            SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bigint[], $6::uuid[], $7::bigint[],
                $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[],
                $15::bigint[], $16::text[], $17::bigint[], $18::uuid[], $19::boolean[], $20::boolean[])",
    );
    let (message, at, payload) = match &delivery.subject {
        Subject::Event { message_id, at } => (Some(message_id.to_bytes()), Some(*at), None),
        Subject::Record(entry) => (None, Some(delivery.created_at), Some(document(entry)?)),
        Subject::Test(data) => (None, None, data.as_ref().map(document).transpose()?),
    };
    on.gather(
        SQL,
        params![
            key(delivery.id),
            key(delivery.workspace_id),
            key(delivery.webhook_id),
            key(delivery.event_id),
            number(&EventType::ALL, &delivery.event_type),
            message,
            at,
            payload,
            number(&DeliveryStatus::ALL, &delivery.status),
            delivery.attempts,
            delivery.created_at,
            delivery.next_attempt_at,
            delivery.delivered_at,
            delivery.duration_ms.map(u64::cast_signed),
            delivery.response_status.map(i64::from),
            delivery.response_body.as_deref(),
            delivery.error.map(|error| number(&DeliveryError::ALL, &error)),
            delivery.replay_of.map(Id::to_bytes),
            delivery.in_backlog,
            delivery.is_missed(),
        ],
    )
}

/// Writes the new state of a delivery. It is a conflict if its status or number of attempts is not what was read.
pub(crate) fn update(on: &mut dyn Statements, update: &UpdateDelivery) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        sqlite: "UPDATE webhook_deliveries SET status = $3, attempts = $4, next_attempt_at = $5, delivered_at = $6,
                duration_ms = $7, response_status = $8, response_body = $9, error = $10, backlog = $11, missed = $12
            WHERE id = $1 AND workspace = $2 AND status = $13 AND attempts = $14",
        postgres: "UPDATE webhook_deliveries AS d SET status = u.status, attempts = u.attempts,
                next_attempt_at = u.next_attempt_at, delivered_at = u.delivered_at, duration_ms = u.duration_ms,
                response_status = u.response_status, response_body = u.response_body, error = u.error,
                backlog = u.backlog, missed = u.missed
            FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                $8::bigint[], $9::text[], $10::bigint[], $11::boolean[], $12::boolean[], $13::bigint[], $14::bigint[])
                AS u (id, workspace, status, attempts, next_attempt_at, delivered_at, duration_ms, response_status,
                    response_body, error, backlog, missed, read_status, read_attempts)
            WHERE d.id = u.id AND d.workspace = u.workspace AND d.status = u.read_status
                AND d.attempts = u.read_attempts",
    );
    let UpdateDelivery { delivery, read: (status, attempts) } = update;
    on.gather_one(
        SQL,
        params![
            key(delivery.id),
            key(delivery.workspace_id),
            number(&DeliveryStatus::ALL, &delivery.status),
            delivery.attempts,
            delivery.next_attempt_at,
            delivery.delivered_at,
            delivery.duration_ms.map(u64::cast_signed),
            delivery.response_status.map(i64::from),
            delivery.response_body.as_deref(),
            delivery.error.map(|error| number(&DeliveryError::ALL, &error)),
            delivery.in_backlog,
            delivery.is_missed(),
            number(&DeliveryStatus::ALL, status),
            *attempts,
        ],
    )
}

/// Notes that a delivery was replayed, so that it no longer counts as missed.
pub(crate) fn mark_replayed(on: &mut dyn Statements, workspace: WorkspaceId, id: DeliveryId) -> Result<(), Fault> {
    on.run(
        sql!("UPDATE webhook_deliveries SET missed = false WHERE id = $1 AND workspace = $2"),
        params![key(id), key(workspace)],
    )
}

/// Reads a delivery from a row of the columns that `columns!` names.
fn delivery((workspace_id, webhook_id): Receiver, row: &dyn Row) -> Result<Delivery, Fault> {
    let subject = match (maybe_id(row, 3)?, maybe_time(row, 4)?) {
        (Some(message_id), Some(at)) => Subject::Event { message_id, at },
        // A test has no time.
        (None, Some(_)) => Subject::Record(or_empty(row, 5)?),
        _ => Subject::Test(or_empty(row, 5)?),
    };
    let error = row::get::<Option<i64>>(row, 14)?;
    Ok(Delivery {
        id: id(row, 0)?,
        workspace_id,
        webhook_id,
        event_id: id(row, 1)?,
        event_type: numbered(&EventType::ALL, row::get(row, 2)?)?,
        subject,
        status: numbered(&DeliveryStatus::ALL, row::get(row, 6)?)?,
        attempts: row::get(row, 7)?,
        created_at: time(row, 8)?,
        next_attempt_at: maybe_time(row, 9)?,
        delivered_at: maybe_time(row, 10)?,
        duration_ms: row::get::<Option<i64>>(row, 11)?.map(i64::cast_unsigned),
        response_status: row::get(row, 12)?,
        response_body: row::get(row, 13)?,
        error: error.map(|error| numbered(&DeliveryError::ALL, error)).transpose()?,
        replay_of: maybe_id(row, 15)?,
        in_backlog: row::get(row, 16)?,
    })
}

/// A delivery of a workspace by its id.
pub(super) async fn get(
    database: &impl Database,
    workspace: WorkspaceId,
    id: DeliveryId,
) -> Result<Option<Delivery>, StoreError> {
    const SQL: Sql =
        sql!(concat!("SELECT ", columns!(), ", webhook FROM webhook_deliveries WHERE id = $1 AND workspace = $2"));
    let query =
        Query::new(SQL, params![key(id), key(workspace)], move |row| delivery((workspace, row::id(row, 17)?), row));
    database.one(query.point()).await
}

/// Those of some deliveries that are there.
pub(super) async fn among(
    database: &impl Database,
    workspace: WorkspaceId,
    ids: &[DeliveryId],
) -> Result<Vec<Delivery>, StoreError> {
    const SQL: Sql = sql!(
        sqlite: concat!(
            "SELECT ", columns!(), ", webhook FROM webhook_deliveries WHERE workspace = $1 AND id = $2"
        ),
        postgres: concat!(
            "SELECT ", columns!(), ", webhook FROM webhook_deliveries WHERE workspace = $1 AND id = ANY ($2)"
        ),
    );
    let query = Query::new(SQL, params![key(workspace)], move |row| delivery((workspace, row::id(row, 17)?), row));
    database.gathered(query, ids.iter().map(|id| params![key(*id)]).collect()).await
}

/// A page of the deliveries of a webhook, newest first; with `status`, of those in that status.
///
/// Failed, held and expired ones have an index. Pending and delivered ones have none: the rows of the webhook are read
/// and compared, so a page of these may be short although more follow.
pub(super) async fn list(
    database: &impl Database,
    receiver: Receiver,
    status: Option<DeliveryStatus>,
    page: PageRequest,
) -> Result<Slice<Delivery>, StoreError> {
    use DeliveryStatus as S;
    const ALL: Sql = sql!(concat!(
        "SELECT ",
        columns!(),
        " FROM webhook_deliveries {INDEXED BY webhook_deliveries_by_webhook}
          WHERE webhook = $1 AND workspace = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
    ));
    const ENDED: Sql = sql!(
        // SQLite takes the partial index only if the condition repeats that of the index, `status >= 2`.
        sqlite: marked!(
            sqlite: "webhook_deliveries_by_status", "id < $3 AND status = $5 AND status >= 2", "DESC", "$4"
        ),
        postgres: marked!(postgres: "delivery < $3 AND status = $5 AND status >= 2", "DESC", "$4"),
    );
    let (workspace, webhook) = receiver;
    let mut bounds = params![key(webhook), key(workspace), below(&page), one_more(&page)];
    let read = move |row: &dyn Row| delivery(receiver, row);
    let id_of = |delivery: &Delivery| delivery.id.to_bytes();
    match status {
        None => database.page(Query::new(ALL, bounds, read), page, id_of).await,
        Some(status @ (S::Failed | S::Held | S::Expired)) => {
            bounds.push(number(&S::ALL, &status).into());
            database.page(Query::new(ENDED, bounds, read), page, id_of).await
        }
        Some(status @ (S::Pending | S::Delivered)) => {
            let status = number(&S::ALL, &status);
            let listing = Listing {
                sql: ALL,
                params: |below: [u8; 16], piece: i64| params![key(webhook), key(workspace), below, piece],
                pick: Arc::new(move |row: &dyn Row| {
                    if row::get::<i64>(row, 6)? == status { delivery(receiver, row).map(Some) } else { Ok(None) }
                }),
            };
            page_of(database, listing, below(&page), page.limit).await
        }
    }
}

/// A page of the deliveries of a message's events to all webhooks, newest first.
pub(super) async fn of_message(
    database: &impl Database,
    workspace: WorkspaceId,
    message: MessageId,
    page: PageRequest,
) -> Result<Slice<Delivery>, StoreError> {
    const SQL: Sql = sql!(concat!(
        "SELECT ",
        columns!(),
        ", webhook FROM webhook_deliveries {INDEXED BY webhook_deliveries_by_message}
          WHERE message = $1 AND workspace = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
    ));
    let bounds = params![key(message), key(workspace), below(&page), one_more(&page)];
    let query = Query::new(SQL, bounds, move |row| delivery((workspace, id(row, 17)?), row));
    database.page(query, page, |delivery| delivery.id.to_bytes()).await
}

/// The deliveries in the backlog of a webhook, oldest first.
pub(super) async fn backlog(
    database: &impl Database,
    receiver: Receiver,
    limit: usize,
) -> Result<Vec<Delivery>, StoreError> {
    const SQL: Sql = sql!(
        sqlite: marked!(sqlite: "webhook_deliveries_in_backlog", "backlog = 1", "ASC", "$3"),
        postgres: marked!(postgres: "backlog", "ASC", "$3"),
    );
    let bounds = params![key(receiver.1), key(receiver.0), sql_limit(limit)];
    database.many(Query::new(SQL, bounds, move |row| delivery(receiver, row))).await
}

/// SQL that selects what a replay repeats, oldest first. `Failed`: the missed ones. `All`: the first delivery of every
/// event of a message, once it has ended.
macro_rules! replayable {
    (sqlite Failed) => {
        marked!(sqlite: "webhook_deliveries_missed", "id > $3 AND id <= $4 AND missed = 1", "ASC", "$5")
    };
    (postgres Failed) => {
        marked!(postgres: "delivery > $3 AND delivery <= $4 AND missed", "ASC", "$5")
    };
    ($database:ident All) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM webhook_deliveries {INDEXED BY webhook_deliveries_by_webhook}
              WHERE webhook = $1 AND workspace = $2 AND id > $3 AND id <= $4 AND status IN (1, 2, 4)
                  AND replay_of IS NULL AND message IS NOT NULL
              ORDER BY id LIMIT $5"
        )
    };
}

/// Missed deliveries in a range, for [`Replayed::Failed`].
const REPLAYABLE_FAILED: Sql = sql!(sqlite: replayable!(sqlite Failed), postgres: replayable!(postgres Failed));
/// Ended first deliveries in a range, for [`Replayed::All`].
const REPLAYABLE: Sql = sql!(sqlite: replayable!(sqlite All), postgres: replayable!(postgres All));

/// The deliveries that a replay repeats, oldest first, at most `limit`.
pub(super) async fn replayable(
    database: &impl Database,
    receiver: Receiver,
    range: &ReplayRange,
    limit: usize,
) -> Result<Vec<Delivery>, StoreError> {
    let sql = match range.replayed {
        Replayed::Failed => REPLAYABLE_FAILED,
        Replayed::All => REPLAYABLE,
    };
    let bounds = params![key(receiver.1), key(receiver.0), key(range.after), key(range.until), sql_limit(limit)];
    database.many(Query::new(sql, bounds, move |row| delivery(receiver, row))).await
}

/// The number of deliveries that a replay repeats, counted up to `limit`, and the last of those counted; `None` if
/// there is none.
pub(super) async fn count_replayable(
    database: &impl Database,
    receiver: Receiver,
    range: &ReplayRange,
    limit: usize,
) -> Result<Option<(u64, DeliveryId)>, StoreError> {
    macro_rules! last {
        ($database:ident $of:ident) => {
            concat!(
                "SELECT id, count(*) OVER () FROM (",
                replayable!($database $of),
                ") AS found ORDER BY id DESC LIMIT 1"
            )
        };
    }
    const LAST_FAILED: Sql = sql!(sqlite: last!(sqlite Failed), postgres: last!(postgres Failed));
    const LAST: Sql = sql!(sqlite: last!(sqlite All), postgres: last!(postgres All));
    let sql = match range.replayed {
        Replayed::Failed => LAST_FAILED,
        Replayed::All => LAST,
    };
    let bounds = params![key(receiver.1), key(receiver.0), key(range.after), key(range.until), sql_limit(limit)];
    database.one(Query::new(sql, bounds, |row| Ok((count(row, 1)?, id(row, 0)?)))).await
}

/// Lets up to `limit` held deliveries expire that were created before a time; answers how many. The bound on the id,
/// which begins with the time, ends the search at deliveries that are too young.
pub(super) async fn expire(database: &impl Database, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
    const SQL: Sql = sql!(
        sqlite: "UPDATE webhook_deliveries
            SET status = 4, next_attempt_at = NULL, backlog = false, missed = (message IS NOT NULL)
            WHERE id IN (
                SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_held
                WHERE status = 3 AND id < $2 AND created_at < $1 ORDER BY id LIMIT $3)",
        postgres: "UPDATE webhook_deliveries
            SET status = 4, next_attempt_at = NULL, backlog = false, missed = (message IS NOT NULL)
            WHERE id = ANY (ARRAY (
                SELECT d.id FROM marked_deliveries k JOIN webhook_deliveries d ON d.id = k.delivery
                WHERE k.status = 3 AND k.delivery < $2 AND d.status = 3 AND d.created_at < $1
                ORDER BY k.delivery LIMIT $3 FOR UPDATE OF d SKIP LOCKED))",
    );
    database.sweep(SQL, params![before, first_id_of(before), sql_limit(limit)]).await
}

/// Makes up to `limit` deliveries fail that are held or wait in a backlog, of all webhooks; answers how many.
pub(super) async fn give_up_backlogs(database: &impl Database, limit: usize) -> Result<u64, StoreError> {
    const SQL: Sql = sql!(
        sqlite: "UPDATE webhook_deliveries
            SET status = 2, next_attempt_at = NULL, backlog = false, missed = (message IS NOT NULL)
            WHERE id IN (
                SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_held WHERE status = 3
                UNION SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_in_backlog WHERE backlog = 1
                LIMIT $1)",
        postgres: "UPDATE webhook_deliveries
            SET status = 2, next_attempt_at = NULL, backlog = false, missed = (message IS NOT NULL)
            WHERE id = ANY (ARRAY (
                SELECT d.id FROM marked_deliveries k JOIN webhook_deliveries d ON d.id = k.delivery
                WHERE (k.status = 3 OR k.backlog) AND (d.status = 3 OR d.backlog)
                ORDER BY k.delivery LIMIT $1 FOR UPDATE OF d SKIP LOCKED))",
    );
    database.sweep(SQL, params![sql_limit(limit)]).await
}

/// Deletes up to `limit` deliveries that were created before a time; answers how many. The bound on the id, which
/// begins with the time, ends the search at deliveries that are too young.
pub(super) async fn forget(database: &impl Database, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
    const SQL: Sql = sql!(
        sqlite: "DELETE FROM webhook_deliveries WHERE id IN (
            SELECT id FROM webhook_deliveries WHERE id < $2 AND created_at < $1 ORDER BY id LIMIT $3)",
        postgres: "DELETE FROM webhook_deliveries WHERE id = ANY (ARRAY (
            SELECT id FROM webhook_deliveries WHERE id < $2 AND created_at < $1
            ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED))",
    );
    database.sweep(SQL, params![before, first_id_of(before), sql_limit(limit)]).await
}
