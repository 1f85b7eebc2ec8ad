//! Messages as rows: storing, moving and reading them, and noting that one has changed.

use messaging_core::changes::MoveMessage;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::milestones::{Milestones, Seen, Skip};
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, Id, MessageId, WorkspaceId};
use messaging_core::time::Timestamp;
use serde::Serialize;
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::outbox;
use super::super::query::{one, params};
use super::super::row::{
    document, get, id, maybe_id, maybe_time, number, numbered, or_empty, revision_param, small, time, uuid,
};
use super::super::transaction::Transaction;

/// The columns that [`message`] reads, in its order; or those after the id. Position 1 and 2 are looked at by `list`.
macro_rules! message_columns {
    () => {
        concat!("id, ", message_columns!(after_id))
    };
    (after_id) => {
        "status, channel, tags, revision, created_at, updated_at, recipient, sender, contact, campaign, automation, \
         template, metadata, variant, hold_reason, hold_until, hold_since, seen, links, skip, sent_at, delivered_at, \
         fallback_of, has_fallback"
    };
}
pub(in super::super) use message_columns;

/// How many columns those are: where those of a longer selection begin.
pub(in super::super) const MESSAGE_COLUMNS: usize = 25;

/// A message from the columns of `message_columns`.
pub(in super::super) fn message(workspace: WorkspaceId, row: &Row) -> Result<Message, Fault> {
    Ok(Message {
        id: id(row, 0)?,
        workspace_id: workspace,
        revision: small(row, 4)?,
        status: numbered(&MessageStatus::ALL, get(row, 1)?)?,
        channel: numbered(&Channel::ALL, get(row, 2)?)?,
        to: get(row, 7)?,
        from_email: get(row, 8)?,
        contact_id: maybe_id(row, 9)?,
        campaign_id: maybe_id(row, 10)?,
        automation_id: maybe_id(row, 11)?,
        template_id: maybe_id(row, 12)?,
        fallback_of: maybe_id(row, 23)?,
        has_fallback: get::<Option<bool>>(row, 24)?.unwrap_or_default(),
        tags: or_empty(row, 3)?,
        metadata: or_empty(row, 13)?,
        created_at: time(row, 5)?,
        updated_at: time(row, 6)?,
        variant: get::<Option<i64>>(row, 14)?.map(|_| small(row, 14)).transpose()?,
        hold: hold(row)?,
        milestones: Milestones {
            seen: Seen::from_bits(small(row, 18)?),
            links: get::<i64>(row, 19)?.cast_unsigned(),
            skip: get::<Option<i64>>(row, 20)?.map(|number| numbered(&Skip::ALL, number)).transpose()?,
            sent_at: maybe_time(row, 21)?,
            delivered_at: maybe_time(row, 22)?,
        },
    })
}

fn hold(row: &Row) -> Result<Option<Hold>, Fault> {
    let Some(reason) = get::<Option<i64>>(row, 15)? else { return Ok(None) };
    let reason = numbered(&HoldReason::ALL, reason)?;
    Ok(Some(Hold { reason, until: maybe_time(row, 16)?, since: time(row, 17)? }))
}

/// The text of a document column in which NULL stands for an empty document.
pub(super) fn unless_empty<T: Serialize>(is_empty: bool, record: &T) -> Result<Option<String>, Fault> {
    if is_empty { Ok(None) } else { document(record).map(Some) }
}

fn maybe_uuid(id: Option<impl Id>) -> Option<Uuid> {
    id.map(uuid)
}

/// Stores a message without its content.
pub(in super::super) fn insert_row(transaction: &mut Transaction, message: &Message) -> Result<(), Fault> {
    const SQL: &str = concat!(
        "INSERT INTO messages (workspace, ",
        message_columns!(),
        ") SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[],
             $7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::uuid[], $12::uuid[], $13::uuid[], $14::uuid[],
             $15::text[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[],
             $22::bigint[], $23::bigint[], $24::bigint[], $25::uuid[], $26::boolean[])"
    );
    let Milestones { seen, links, skip, sent_at, delivered_at } = message.milestones;
    let row = params![
        uuid(message.workspace_id),
        uuid(message.id),
        number(&MessageStatus::ALL, &message.status),
        number(&Channel::ALL, &message.channel),
        unless_empty(message.tags.is_empty(), &message.tags)?,
        revision_param(message.revision),
        message.created_at.as_millis(),
        message.updated_at.as_millis(),
        message.to.clone(),
        message.from_email.clone(),
        maybe_uuid(message.contact_id),
        maybe_uuid(message.campaign_id),
        maybe_uuid(message.automation_id),
        maybe_uuid(message.template_id),
        unless_empty(message.metadata.is_empty(), &message.metadata)?,
        message.variant.map(i64::from),
        message.hold.map(|hold| number(&HoldReason::ALL, &hold.reason)),
        message.hold.and_then(|hold| hold.until).map(Timestamp::as_millis),
        message.hold.map(|hold| hold.since.as_millis()),
        i64::from(seen.bits()),
        links.cast_signed(),
        skip.map(|skip| number(&Skip::ALL, &skip)),
        sent_at.map(Timestamp::as_millis),
        delivered_at.map(Timestamp::as_millis),
        maybe_uuid(message.fallback_of),
        message.has_fallback.then_some(true),
    ];
    transaction.add_row(SQL, row);
    Ok(())
}

pub(in super::super) fn change_status(transaction: &mut Transaction, movement: &MoveMessage) {
    let Milestones { seen, links, skip, sent_at, delivered_at } = movement.milestones;
    transaction.run_one(
        "UPDATE messages SET status = $4, updated_at = $5, revision = revision + 1, hold_reason = $6, hold_until = $7,
             hold_since = $8, seen = $9, links = $10, skip = $11, sent_at = $12, delivered_at = $13
         WHERE workspace = $1 AND id = $2 AND revision = $3",
        params![
            uuid(movement.workspace_id),
            uuid(movement.message_id),
            revision_param(movement.revision),
            number(&MessageStatus::ALL, &movement.status),
            movement.at.as_millis(),
            movement.hold.map(|hold| number(&HoldReason::ALL, &hold.reason)),
            movement.hold.and_then(|hold| hold.until).map(Timestamp::as_millis),
            movement.hold.map(|hold| hold.since.as_millis()),
            i64::from(seen.bits()),
            links.cast_signed(),
            skip.map(|skip| number(&Skip::ALL, &skip)),
            sent_at.map(Timestamp::as_millis),
            delivered_at.map(Timestamp::as_millis),
        ],
    );
}

/// Notes that the events of messages changed for the contact of a message.
pub(super) async fn note_contact(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    message: MessageId,
) -> Result<(), Fault> {
    const SQL: &str = "SELECT contact FROM messages WHERE workspace = $1 AND id = $2";
    if outbox::read_mask_in(transaction, workspace, ReadMask::MESSAGES).await?.is_none() {
        return Ok(());
    }
    let key = params![uuid(workspace), uuid(message)];
    let contact: Option<ContactId> = one(transaction, SQL, key, |row| maybe_id(row, 0)).await?.flatten();
    match contact {
        Some(contact) => outbox::note_contact(transaction, workspace, contact, ReadMask::MESSAGES).await,
        None => Ok(()),
    }
}
