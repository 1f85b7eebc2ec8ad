//! The rows of deliveries.

use messaging_core::changes::UpdateDelivery;
use messaging_core::domain::webhook::EventType;
use messaging_core::domain::webhook::delivery::{Delivery, DeliveryError, DeliveryStatus, Replayed, Subject};
use messaging_core::ids::{DeliveryId, Id, MessageId, WebhookId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, ReplayRange, Slice, StoreCursor};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, Row, params};

use super::super::fault::{Fault, expect_one};
use super::super::query::{many, one};
use super::super::row::{below, document, id, maybe_id, number, numbered, one_more, or_empty, slice, sql_limit, time};

/// How many rows one call of a listing looks at.
const MAX_SCANNED: usize = 20_000;

/// The columns that [`delivery`] reads, in its order.
macro_rules! columns {
    () => {
        "id, event, type, message, at, payload, status, attempts, created_at, next_attempt_at, delivered_at, \
         duration_ms, response_status, response_body, error, replay_of, backlog"
    };
}

/// A webhook, and the workspace that owns it.
type Receiver = (WorkspaceId, WebhookId);

pub(in super::super) fn insert(connection: &Connection, delivery: &Delivery) -> Result<(), Fault> {
    let (message, at, payload) = match &delivery.subject {
        Subject::Event { message_id, at } => (Some(message_id.to_bytes()), Some(at.as_millis()), None),
        Subject::Test(data) => (None, None, data.as_ref().map(document).transpose()?),
    };
    connection
        .prepare_cached(
            "INSERT INTO webhook_deliveries (id, workspace, webhook, event, type, message, at, payload, status,
                 attempts, created_at, next_attempt_at, delivered_at, duration_ms, response_status, response_body,
                 error, replay_of, backlog, missed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
        )?
        .execute(params![
            delivery.id.to_bytes(),
            delivery.workspace_id.to_bytes(),
            delivery.webhook_id.to_bytes(),
            delivery.event_id.to_bytes(),
            number(&EventType::ALL, &delivery.event_type),
            message,
            at,
            payload,
            number(&DeliveryStatus::ALL, &delivery.status),
            delivery.attempts,
            delivery.created_at.as_millis(),
            delivery.next_attempt_at.map(Timestamp::as_millis),
            delivery.delivered_at.map(Timestamp::as_millis),
            delivery.duration_ms.map(u64::cast_signed),
            delivery.response_status,
            delivery.response_body,
            delivery.error.map(|error| number(&DeliveryError::ALL, &error)),
            delivery.replay_of.map(Id::to_bytes),
            delivery.in_backlog,
            delivery.is_missed(),
        ])?;
    Ok(())
}

pub(in super::super) fn update(connection: &Connection, update: &UpdateDelivery) -> Result<(), Fault> {
    let UpdateDelivery { delivery, read: (status, attempts) } = update;
    let rows = connection
        .prepare_cached(
            "UPDATE webhook_deliveries SET status = ?3, attempts = ?4, next_attempt_at = ?5, delivered_at = ?6,
                 duration_ms = ?7, response_status = ?8, response_body = ?9, error = ?10, backlog = ?11, missed = ?12
             WHERE id = ?1 AND workspace = ?2 AND status = ?13 AND attempts = ?14",
        )?
        .execute(params![
            delivery.id.to_bytes(),
            delivery.workspace_id.to_bytes(),
            number(&DeliveryStatus::ALL, &delivery.status),
            delivery.attempts,
            delivery.next_attempt_at.map(Timestamp::as_millis),
            delivery.delivered_at.map(Timestamp::as_millis),
            delivery.duration_ms.map(u64::cast_signed),
            delivery.response_status,
            delivery.response_body,
            delivery.error.map(|error| number(&DeliveryError::ALL, &error)),
            delivery.in_backlog,
            delivery.is_missed(),
            number(&DeliveryStatus::ALL, status),
            attempts,
        ])?;
    expect_one(rows)
}

pub(in super::super) fn mark_replayed(
    connection: &Connection,
    workspace: WorkspaceId,
    id: DeliveryId,
) -> Result<(), Fault> {
    connection
        .prepare_cached("UPDATE webhook_deliveries SET missed = 0 WHERE id = ?1 AND workspace = ?2")?
        .execute([id.to_bytes(), workspace.to_bytes()])?;
    Ok(())
}

/// A delivery from the columns of `columns`.
fn delivery((workspace_id, webhook_id): Receiver, row: &Row<'_>) -> Result<Delivery, Fault> {
    let maybe_time = |column| Ok::<_, Fault>(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis));
    let subject = match (maybe_id(row, 3)?, maybe_time(4)?) {
        (Some(message_id), Some(at)) => Subject::Event { message_id, at },
        _ => Subject::Test(or_empty(row, 5)?),
    };
    let error = row.get::<_, Option<i64>>(14)?;
    Ok(Delivery {
        id: id(row, 0)?,
        workspace_id,
        webhook_id,
        event_id: id(row, 1)?,
        event_type: numbered(&EventType::ALL, row.get(2)?)?,
        subject,
        status: numbered(&DeliveryStatus::ALL, row.get(6)?)?,
        attempts: row.get(7)?,
        created_at: time(row, 8)?,
        next_attempt_at: maybe_time(9)?,
        delivered_at: maybe_time(10)?,
        duration_ms: row.get::<_, Option<i64>>(11)?.map(i64::cast_unsigned),
        response_status: row.get(12)?,
        response_body: row.get(13)?,
        error: error.map(|error| numbered(&DeliveryError::ALL, error)).transpose()?,
        replay_of: maybe_id(row, 15)?,
        in_backlog: row.get(16)?,
    })
}

pub(super) fn get(connection: &Connection, workspace: WorkspaceId, id: DeliveryId) -> Result<Option<Delivery>, Fault> {
    const SQL: &str =
        concat!("SELECT ", columns!(), ", webhook FROM webhook_deliveries WHERE id = ?1 AND workspace = ?2");
    one(connection, SQL, [id.to_bytes(), workspace.to_bytes()], |row| {
        delivery((workspace, super::super::row::id(row, 17)?), row)
    })
}

pub(super) fn list(
    connection: &Connection,
    receiver: Receiver,
    status: Option<DeliveryStatus>,
    page: &PageRequest,
) -> Result<Slice<Delivery>, Fault> {
    const ALL: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM webhook_deliveries INDEXED BY webhook_deliveries_by_webhook
          WHERE webhook = ?1 AND workspace = ?2 AND id < ?3 ORDER BY id DESC LIMIT ?4"
    );
    // The index holds only these; the statement has to say so.
    const ENDED: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM webhook_deliveries INDEXED BY webhook_deliveries_by_status
          WHERE webhook = ?1 AND workspace = ?2 AND id < ?3 AND status = ?5 AND status >= 2 ORDER BY id DESC LIMIT ?4"
    );
    use DeliveryStatus as S;
    let (workspace, webhook) = (receiver.0.to_bytes(), receiver.1.to_bytes());
    let key = |delivery: &Delivery| delivery.id.to_bytes();
    match status {
        None => {
            let bounds = params![webhook, workspace, below(page), one_more(page)];
            Ok(slice(many(connection, ALL, bounds, |row| delivery(receiver, row))?, page.limit, key))
        }
        Some(status @ (S::Failed | S::Held | S::Expired)) => {
            let status = number(&S::ALL, &status);
            let bounds = params![webhook, workspace, below(page), one_more(page), status];
            Ok(slice(many(connection, ENDED, bounds, |row| delivery(receiver, row))?, page.limit, key))
        }
        Some(status @ (S::Pending | S::Delivered)) => {
            let mut statement = connection.prepare_cached(ALL)?;
            let mut rows = statement.query(params![webhook, workspace, below(page), sql_limit(MAX_SCANNED)])?;
            let (mut items, mut scanned, mut last): (Vec<Delivery>, _, _) = (Vec::new(), 0, None);
            while let Some(row) = rows.next()? {
                let matches = row.get::<_, i64>(6)? == number(&S::ALL, &status);
                if matches && items.len() == page.limit {
                    return Ok(Slice { next: items.last().map(key).map(StoreCursor::from_bytes), items });
                }
                last = Some(StoreCursor::from_bytes(row.get(0)?));
                if matches {
                    items.push(delivery(receiver, row)?);
                }
                scanned += 1;
            }
            Ok(Slice { next: if scanned == MAX_SCANNED { last } else { None }, items })
        }
    }
}

pub(super) fn of_message(
    connection: &Connection,
    workspace: WorkspaceId,
    message: MessageId,
    page: &PageRequest,
) -> Result<Slice<Delivery>, Fault> {
    const SQL: &str = concat!(
        "SELECT ",
        columns!(),
        ", webhook FROM webhook_deliveries INDEXED BY webhook_deliveries_by_message
          WHERE message = ?1 AND workspace = ?2 AND id < ?3 ORDER BY id DESC LIMIT ?4"
    );
    let bounds = params![message.to_bytes(), workspace.to_bytes(), below(page), one_more(page)];
    let items = many(connection, SQL, bounds, |row| delivery((workspace, id(row, 17)?), row))?;
    Ok(slice(items, page.limit, |delivery: &Delivery| delivery.id.to_bytes()))
}

pub(super) fn backlog(connection: &Connection, receiver: Receiver, limit: usize) -> Result<Vec<Delivery>, Fault> {
    const SQL: &str = concat!(
        "SELECT ",
        columns!(),
        " FROM webhook_deliveries INDEXED BY webhook_deliveries_in_backlog
          WHERE webhook = ?1 AND workspace = ?2 AND backlog = 1 ORDER BY id LIMIT ?3"
    );
    let bounds = params![receiver.1.to_bytes(), receiver.0.to_bytes(), sql_limit(limit)];
    many(connection, SQL, bounds, |row| delivery(receiver, row))
}

/// What a replay is about: missed deliveries, or all that are settled and repeat no other. Replays and
/// tests are no events of their own.
macro_rules! replayable {
    (Failed) => {
        " FROM webhook_deliveries INDEXED BY webhook_deliveries_missed
          WHERE webhook = ?1 AND workspace = ?2 AND id > ?3 AND id <= ?4 AND missed = 1 ORDER BY id LIMIT ?5"
    };
    (All) => {
        " FROM webhook_deliveries INDEXED BY webhook_deliveries_by_webhook
          WHERE webhook = ?1 AND workspace = ?2 AND id > ?3 AND id <= ?4 AND status IN (1, 2, 4)
              AND replay_of IS NULL AND message IS NOT NULL
          ORDER BY id LIMIT ?5"
    };
}

pub(super) fn replayable(
    connection: &Connection,
    receiver: Receiver,
    range: &ReplayRange,
    limit: usize,
) -> Result<Vec<Delivery>, Fault> {
    let sql = match range.replayed {
        Replayed::Failed => concat!("SELECT ", columns!(), replayable!(Failed)),
        Replayed::All => concat!("SELECT ", columns!(), replayable!(All)),
    };
    let (after, until) = (range.after.to_bytes(), range.until.to_bytes());
    let bounds = params![receiver.1.to_bytes(), receiver.0.to_bytes(), after, until, sql_limit(limit)];
    many(connection, sql, bounds, |row| delivery(receiver, row))
}

pub(super) fn count_replayable(
    connection: &Connection,
    receiver: Receiver,
    range: &ReplayRange,
    limit: usize,
) -> Result<Option<(u64, DeliveryId)>, Fault> {
    let sql = match range.replayed {
        Replayed::Failed => concat!("SELECT count(*), max(id) FROM (SELECT id", replayable!(Failed), ")"),
        Replayed::All => concat!("SELECT count(*), max(id) FROM (SELECT id", replayable!(All), ")"),
    };
    let (after, until) = (range.after.to_bytes(), range.until.to_bytes());
    let bounds = params![receiver.1.to_bytes(), receiver.0.to_bytes(), after, until, sql_limit(limit)];
    let found = one(connection, sql, bounds, |row| Ok((super::super::row::count(row, 0)?, maybe_id(row, 1)?)))?;
    Ok(found.and_then(|(count, last)| Some((count, last?))))
}

pub(super) fn expire(connection: &Connection, before: Timestamp, limit: usize) -> Result<u64, Fault> {
    let held: Vec<[u8; 16]> = many(
        connection,
        "SELECT id, created_at FROM webhook_deliveries INDEXED BY webhook_deliveries_held
         WHERE status = 3 ORDER BY id LIMIT ?1",
        [sql_limit(limit)],
        |row| Ok((row.get(0)?, time(row, 1)?)),
    )?
    .into_iter()
    .take_while(|(_, created_at)| *created_at < before)
    .map(|(id, _)| id)
    .collect();
    let mut expire = connection.prepare_cached(
        "UPDATE webhook_deliveries SET status = 4, next_attempt_at = NULL, backlog = 0, missed = (message IS NOT NULL)
         WHERE id = ?1",
    )?;
    for id in &held {
        expire.execute([id])?;
    }
    Ok(held.len() as u64)
}

/// Gives up what waits for its turn, or for its paused webhook.
pub(super) fn give_up_backlogs(connection: &Connection, limit: usize) -> Result<u64, Fault> {
    let waiting: Vec<[u8; 16]> = many(
        connection,
        "SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_held WHERE status = 3
         UNION SELECT id FROM webhook_deliveries INDEXED BY webhook_deliveries_in_backlog WHERE backlog = 1 LIMIT ?1",
        [sql_limit(limit)],
        |row| Ok(row.get(0)?),
    )?;
    let mut give_up = connection.prepare_cached(
        "UPDATE webhook_deliveries SET status = 2, next_attempt_at = NULL, backlog = 0, missed = (message IS NOT NULL)
         WHERE id = ?1",
    )?;
    for id in &waiting {
        give_up.execute([id])?;
    }
    Ok(waiting.len() as u64)
}

pub(super) fn forget(connection: &Connection, before: Timestamp, limit: usize) -> Result<u64, Fault> {
    // Ids are in the order of their times: the first that is too young ends the search.
    let oldest = many(
        connection,
        "SELECT id, created_at FROM webhook_deliveries ORDER BY id LIMIT ?1",
        [sql_limit(limit)],
        |row| Ok((row.get::<_, [u8; 16]>(0)?, time(row, 1)?)),
    )?;
    let mut delete = connection.prepare_cached("DELETE FROM webhook_deliveries WHERE id = ?1")?;
    let mut forgotten = 0;
    for (id, _) in oldest.iter().take_while(|(_, created_at)| *created_at < before) {
        forgotten += delete.execute([id])? as u64;
    }
    Ok(forgotten)
}
