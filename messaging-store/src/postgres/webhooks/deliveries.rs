//! The rows of deliveries.

use messaging_core::changes::UpdateDelivery;
use messaging_core::domain::webhook::EventType;
use messaging_core::domain::webhook::delivery::{Delivery, DeliveryError, DeliveryStatus, Replayed, Subject};
use messaging_core::ids::{DeliveryId, Id as _, MessageId, WebhookId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, ReplayRange, Slice, StoreError};
use messaging_core::time::Timestamp;
use tokio_postgres::Row;

use super::super::fault::Fault;
use super::super::query::params;
use super::super::reads::Reads;
use super::super::row::{
    self, below_id, document, id, maybe_id, maybe_time, number, numbered, one_more, or_empty, slice, small, sql_limit,
    time, uuid,
};
use super::super::scan::{Listing, page_of};
use super::super::transaction::Transaction;

/// The columns that [`delivery`] reads, in its order.
macro_rules! columns {
    () => {
        "id, event, type, message, at, payload, status, attempts, created_at, next_attempt_at, delivered_at, \
         duration_ms, response_status, response_body, error, replay_of, backlog"
    };
}

/// Selects the deliveries of a webhook that `marked_deliveries` finds under a condition, in an order, from one side of an id.
macro_rules! marked {
    ($condition:literal, $order:literal, $limit:literal) => {
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

pub(in super::super) fn insert(transaction: &mut Transaction, delivery: &Delivery) -> Result<(), Fault> {
    let (message, at, payload) = match &delivery.subject {
        Subject::Event { message_id, at } => (Some(uuid(*message_id)), Some(at.as_millis()), None),
        Subject::Test(data) => (None, None, data.as_ref().map(document).transpose()?),
    };
    transaction.add_row(
        "INSERT INTO webhook_deliveries (id, workspace, webhook, event, type, message, at, payload, status,
             attempts, created_at, next_attempt_at, delivered_at, duration_ms, response_status, response_body,
             error, replay_of, backlog, missed)
         SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bigint[], $6::uuid[], $7::bigint[],
             $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[],
             $15::bigint[], $16::text[], $17::bigint[], $18::uuid[], $19::boolean[], $20::boolean[])",
        params![
            uuid(delivery.id),
            uuid(delivery.workspace_id),
            uuid(delivery.webhook_id),
            uuid(delivery.event_id),
            number(&EventType::ALL, &delivery.event_type),
            message,
            at,
            payload,
            number(&DeliveryStatus::ALL, &delivery.status),
            i64::from(delivery.attempts),
            delivery.created_at.as_millis(),
            delivery.next_attempt_at.map(Timestamp::as_millis),
            delivery.delivered_at.map(Timestamp::as_millis),
            delivery.duration_ms.map(u64::cast_signed),
            delivery.response_status.map(i64::from),
            delivery.response_body.clone(),
            delivery.error.map(|error| number(&DeliveryError::ALL, &error)),
            delivery.replay_of.map(uuid),
            delivery.in_backlog,
            delivery.is_missed(),
        ],
    );
    Ok(())
}

pub(in super::super) fn update(transaction: &mut Transaction, update: &UpdateDelivery) {
    let UpdateDelivery { delivery, read: (status, attempts) } = update;
    transaction.run_one(
        "UPDATE webhook_deliveries SET status = $3, attempts = $4, next_attempt_at = $5, delivered_at = $6,
             duration_ms = $7, response_status = $8, response_body = $9, error = $10, backlog = $11, missed = $12
         WHERE id = $1 AND workspace = $2 AND status = $13 AND attempts = $14",
        params![
            uuid(delivery.id),
            uuid(delivery.workspace_id),
            number(&DeliveryStatus::ALL, &delivery.status),
            i64::from(delivery.attempts),
            delivery.next_attempt_at.map(Timestamp::as_millis),
            delivery.delivered_at.map(Timestamp::as_millis),
            delivery.duration_ms.map(u64::cast_signed),
            delivery.response_status.map(i64::from),
            delivery.response_body.clone(),
            delivery.error.map(|error| number(&DeliveryError::ALL, &error)),
            delivery.in_backlog,
            delivery.is_missed(),
            number(&DeliveryStatus::ALL, status),
            i64::from(*attempts),
        ],
    );
}

pub(in super::super) fn mark_replayed(transaction: &mut Transaction, workspace: WorkspaceId, id: DeliveryId) {
    transaction.run(
        "UPDATE webhook_deliveries SET missed = false WHERE id = $1 AND workspace = $2",
        params![uuid(id), uuid(workspace)],
    );
}

/// A delivery from the columns of `columns`.
fn delivery((workspace_id, webhook_id): Receiver, row: &Row) -> Result<Delivery, Fault> {
    let subject = match (maybe_id(row, 3)?, maybe_time(row, 4)?) {
        (Some(message_id), Some(at)) => Subject::Event { message_id, at },
        _ => Subject::Test(or_empty(row, 5)?),
    };
    let response_status = row::get::<Option<i64>>(row, 12)?.map(|_| small(row, 12)).transpose()?;
    let error = row::get::<Option<i64>>(row, 14)?;
    Ok(Delivery {
        id: id(row, 0)?,
        workspace_id,
        webhook_id,
        event_id: id(row, 1)?,
        event_type: numbered(&EventType::ALL, row::get(row, 2)?)?,
        subject,
        status: numbered(&DeliveryStatus::ALL, row::get(row, 6)?)?,
        attempts: small(row, 7)?,
        created_at: time(row, 8)?,
        next_attempt_at: maybe_time(row, 9)?,
        delivered_at: maybe_time(row, 10)?,
        duration_ms: row::get::<Option<i64>>(row, 11)?.map(i64::cast_unsigned),
        response_status,
        response_body: row::get(row, 13)?,
        error: error.map(|error| numbered(&DeliveryError::ALL, error)).transpose()?,
        replay_of: maybe_id(row, 15)?,
        in_backlog: row::get(row, 16)?,
    })
}

pub(super) async fn get(reads: &Reads, workspace: WorkspaceId, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
    const SQL: &str =
        concat!("SELECT ", columns!(), ", webhook FROM webhook_deliveries WHERE id = $1 AND workspace = $2");
    reads.one(SQL, params![uuid(id), uuid(workspace)], |row| delivery((workspace, row::id(row, 17)?), row)).await
}

pub(super) async fn list(
    reads: &Reads,
    receiver: Receiver,
    status: Option<DeliveryStatus>,
    page: &PageRequest,
) -> Result<Slice<Delivery>, StoreError> {
    const ALL: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM webhook_deliveries WHERE webhook = $1 AND workspace = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
    );
    const ENDED: &str = marked!("delivery < $3 AND status = $5 AND status >= 2", "DESC", "$4");
    use DeliveryStatus as S;
    let (workspace, webhook) = (uuid(receiver.0), uuid(receiver.1));
    let key = |delivery: &Delivery| delivery.id.to_bytes();
    match status {
        None => {
            let bounds = params![webhook, workspace, below_id(page), one_more(page)];
            Ok(slice(reads.many(ALL, bounds, |row| delivery(receiver, row)).await?, page.limit, key))
        }
        Some(status @ (S::Failed | S::Held | S::Expired)) => {
            let bounds = params![webhook, workspace, below_id(page), one_more(page), number(&S::ALL, &status)];
            Ok(slice(reads.many(ENDED, bounds, |row| delivery(receiver, row)).await?, page.limit, key))
        }
        Some(status @ (S::Pending | S::Delivered)) => {
            let status = number(&S::ALL, &status);
            let listing = Listing { sql: ALL, params: |below, piece| params![webhook, workspace, below, piece] };
            let page = page_of(reads, listing, below_id(page), page.limit, |row| {
                if row::get::<i64>(row, 6)? == status { delivery(receiver, row).map(Some) } else { Ok(None) }
            });
            Ok(page.await?)
        }
    }
}

pub(super) async fn of_message(
    reads: &Reads,
    workspace: WorkspaceId,
    message: MessageId,
    page: &PageRequest,
) -> Result<Slice<Delivery>, StoreError> {
    const SQL: &str = concat!(
        "SELECT ",
        columns!(),
        ", webhook FROM webhook_deliveries WHERE message = $1 AND workspace = $2 AND id < $3 ORDER BY id DESC LIMIT $4"
    );
    let bounds = params![uuid(message), uuid(workspace), below_id(page), one_more(page)];
    let items = reads.many(SQL, bounds, |row| delivery((workspace, id(row, 17)?), row)).await?;
    Ok(slice(items, page.limit, |delivery: &Delivery| delivery.id.to_bytes()))
}

pub(super) async fn backlog(reads: &Reads, receiver: Receiver, limit: usize) -> Result<Vec<Delivery>, StoreError> {
    const SQL: &str = marked!("backlog", "ASC", "$3");
    let bounds = params![uuid(receiver.1), uuid(receiver.0), sql_limit(limit)];
    reads.many(SQL, bounds, |row| delivery(receiver, row)).await
}

/// What a replay is about: missed deliveries, or all that are settled and repeat no other. Replays and
/// tests are no events of their own.
macro_rules! replayable {
    (Failed) => {
        marked!("delivery > $3 AND delivery <= $4 AND missed", "ASC", "$5")
    };
    (All) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM webhook_deliveries
              WHERE webhook = $1 AND workspace = $2 AND id > $3 AND id <= $4 AND status IN (1, 2, 4)
                  AND replay_of IS NULL AND message IS NOT NULL
              ORDER BY id LIMIT $5"
        )
    };
}

pub(super) async fn replayable(
    reads: &Reads,
    receiver: Receiver,
    range: &ReplayRange,
    limit: usize,
) -> Result<Vec<Delivery>, StoreError> {
    let sql = match range.replayed {
        Replayed::Failed => replayable!(Failed),
        Replayed::All => replayable!(All),
    };
    let (after, until) = (uuid(range.after), uuid(range.until));
    let bounds = params![uuid(receiver.1), uuid(receiver.0), after, until, sql_limit(limit)];
    reads.many(sql, bounds, |row| delivery(receiver, row)).await
}

pub(super) async fn count_replayable(
    reads: &Reads,
    receiver: Receiver,
    range: &ReplayRange,
    limit: usize,
) -> Result<Option<(u64, DeliveryId)>, StoreError> {
    macro_rules! last {
        ($of:ident) => {
            concat!("SELECT id, count(*) OVER () FROM (", replayable!($of), ") AS found ORDER BY id DESC LIMIT 1")
        };
    }
    let sql = match range.replayed {
        Replayed::Failed => last!(Failed),
        Replayed::All => last!(All),
    };
    let (after, until) = (uuid(range.after), uuid(range.until));
    let bounds = params![uuid(receiver.1), uuid(receiver.0), after, until, sql_limit(limit)];
    reads.one(sql, bounds, |row| Ok((row::count(row, 1)?, id(row, 0)?))).await
}
