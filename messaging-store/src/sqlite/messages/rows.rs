//! Messages as rows: storing, moving and reading them, and noting that one has changed.

use messaging_core::changes::MoveMessage;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::milestones::{Milestones, Seen, Skip};
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, Id, MessageId, WorkspaceId};
use messaging_core::time::Timestamp;
use rusqlite::{CachedStatement, Connection, Row, params};

use super::super::fault::{Fault, expect_one};
use super::super::query::one;
use super::super::row::{document, id, maybe_id, maybe_time, number, numbered, or_empty, time};
use super::super::segments::ReadMasks;

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
pub(in super::super) fn message(workspace: WorkspaceId, row: &Row<'_>) -> Result<Message, Fault> {
    Ok(Message {
        id: id(row, 0)?,
        workspace_id: workspace,
        revision: row.get(4)?,
        status: numbered(&MessageStatus::ALL, row.get(1)?)?,
        channel: numbered(&Channel::ALL, row.get(2)?)?,
        to: row.get(7)?,
        from_email: row.get(8)?,
        contact_id: maybe_id(row, 9)?,
        campaign_id: maybe_id(row, 10)?,
        automation_id: maybe_id(row, 11)?,
        template_id: maybe_id(row, 12)?,
        fallback_of: maybe_id(row, 23)?,
        has_fallback: row.get::<_, Option<bool>>(24)?.unwrap_or_default(),
        tags: or_empty(row, 3)?,
        metadata: or_empty(row, 13)?,
        created_at: time(row, 5)?,
        updated_at: time(row, 6)?,
        variant: row.get(14)?,
        hold: hold(row)?,
        milestones: Milestones {
            seen: Seen::from_bits(row.get(18)?),
            links: row.get::<_, i64>(19)?.cast_unsigned(),
            skip: row.get::<_, Option<i64>>(20)?.map(|number| numbered(&Skip::ALL, number)).transpose()?,
            sent_at: kept_time(row, 21)?,
            delivered_at: kept_time(row, 22)?,
        },
    })
}

/// In the place of a time that has not come, and as long as one, six bytes: a row that grew when its message is sent would
/// make pages overflow, and SQLite does not overwrite what it moves from one page to another. So what is erased from the
/// row later would stay where the row was before.
const NOT_YET: i64 = -(1 << 46);

fn time_to_keep(time: Option<Timestamp>) -> i64 {
    time.map_or(NOT_YET, Timestamp::as_millis)
}

/// A time of [`time_to_keep`], or none.
fn kept_time(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, Fault> {
    Ok(maybe_time(row, column)?.filter(|time| time.as_millis() != NOT_YET))
}

fn hold(row: &Row<'_>) -> Result<Option<Hold>, Fault> {
    let Some(reason) = row.get::<_, Option<i64>>(15)? else { return Ok(None) };
    let reason = numbered(&HoldReason::ALL, reason)?;
    Ok(Some(Hold { reason, until: maybe_time(row, 16)?, since: time(row, 17)? }))
}

/// Stores messages, one after the other.
pub(in super::super) struct InsertMessage<'connection>(CachedStatement<'connection>);

impl<'connection> InsertMessage<'connection> {
    pub(in super::super) fn prepare(connection: &'connection Connection) -> Result<Self, Fault> {
        const SQL: &str = concat!(
            "INSERT INTO messages (workspace, content, ",
            message_columns!(),
            ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                 ?22, ?23, ?24, ?25, ?26, ?27)"
        );
        Ok(Self(connection.prepare_cached(SQL)?))
    }

    /// `content` is the number of its stored content; a message of a campaign has none of its own.
    pub(in super::super) fn run(&mut self, message: &Message, content: Option<i64>) -> Result<(), Fault> {
        let Milestones { seen, links, skip, sent_at, delivered_at } = message.milestones;
        self.0.execute(params![
            message.workspace_id.to_bytes(),
            content,
            message.id.to_bytes(),
            number(&MessageStatus::ALL, &message.status),
            number(&Channel::ALL, &message.channel),
            if message.tags.is_empty() { None } else { Some(document(&message.tags)?) },
            message.revision,
            message.created_at.as_millis(),
            message.updated_at.as_millis(),
            message.to,
            message.from_email,
            message.contact_id.map(Id::to_bytes),
            message.campaign_id.map(Id::to_bytes),
            message.automation_id.map(Id::to_bytes),
            message.template_id.map(Id::to_bytes),
            if message.metadata.is_empty() { None } else { Some(document(&message.metadata)?) },
            message.variant,
            message.hold.map(|hold| number(&HoldReason::ALL, &hold.reason)),
            message.hold.and_then(|hold| hold.until).map(Timestamp::as_millis),
            message.hold.map(|hold| hold.since.as_millis()),
            seen.bits(),
            links.cast_signed(),
            skip.map(|skip| number(&Skip::ALL, &skip)),
            time_to_keep(sent_at),
            time_to_keep(delivered_at),
            message.fallback_of.map(Id::to_bytes),
            message.has_fallback.then_some(true),
        ])?;
        Ok(())
    }
}

pub(in super::super) fn change_status(connection: &Connection, movement: &MoveMessage) -> Result<(), Fault> {
    let Milestones { seen, links, skip, sent_at, delivered_at } = movement.milestones;
    let rows = connection
        .prepare_cached(
            "UPDATE messages SET status = ?4, updated_at = ?5, revision = revision + 1, hold_reason = ?6, hold_until = ?7,
                 hold_since = ?8, seen = ?9, links = ?10, skip = ?11, sent_at = ?12, delivered_at = ?13
             WHERE workspace = ?1 AND id = ?2 AND revision = ?3",
        )?
        .execute(params![
            movement.workspace_id.to_bytes(),
            movement.message_id.to_bytes(),
            movement.revision,
            number(&MessageStatus::ALL, &movement.status),
            movement.at.as_millis(),
            movement.hold.map(|hold| number(&HoldReason::ALL, &hold.reason)),
            movement.hold.and_then(|hold| hold.until).map(Timestamp::as_millis),
            movement.hold.map(|hold| hold.since.as_millis()),
            seen.bits(),
            links.cast_signed(),
            skip.map(|skip| number(&Skip::ALL, &skip)),
            time_to_keep(sent_at),
            time_to_keep(delivered_at),
        ])?;
    expect_one(rows)
}

/// Notes that the events of messages changed for the contact of a message.
pub(super) fn note_contact(
    connection: &Connection,
    read_masks: &mut ReadMasks,
    workspace: WorkspaceId,
    message: MessageId,
) -> Result<(), Fault> {
    if read_masks.in_mask(connection, workspace, ReadMask::MESSAGES)?.is_none() {
        return Ok(());
    }
    let sql = "SELECT contact FROM messages WHERE workspace = ?1 AND id = ?2";
    let key = [workspace.to_bytes(), message.to_bytes()];
    let contact: Option<ContactId> = one(connection, sql, key, |row| maybe_id(row, 0))?.flatten();
    match contact {
        Some(contact) => read_masks.note(connection, workspace, contact, ReadMask::MESSAGES),
        None => Ok(()),
    }
}
