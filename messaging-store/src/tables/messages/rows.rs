//! Conversion of messages and their events to rows and back.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::hold::{Hold, HoldReason};
use messaging_core::domain::message::milestones::{EngagementFlags, Milestones, Skip};
use messaging_core::domain::message::{EventKind, Message, MessageEvent, MessageStatus};
use messaging_core::ids::{Id, WorkspaceId};
use messaging_core::time::Timestamp;
use serde::Serialize;

use crate::fault::Fault;
use crate::pages::number;
use crate::row::{Row, document, get, id, maybe_id, maybe_time, numbered, or_empty, time};
use crate::sql::{Params, key, params};

/// The columns that [`message`] reads, in the order of its reading; with `after_id` those after the id. Listings read the
/// status and the channel by their positions 1 and 2.
macro_rules! message_columns {
    () => {
        concat!("id, ", $crate::tables::messages::rows::message_columns!(after_id))
    };
    (after_id) => {
        "status, channel, tags, revision, created_at, updated_at, recipient, sender, contact, campaign, automation, \
         template, metadata, variant, hold_reason, hold_until, hold_since, seen, links, skip, sent_at, delivered_at, \
         fallback_of, has_fallback, is_test"
    };
}
pub(crate) use message_columns;

/// Number of columns of `message_columns`, and so the position of the first further column of a longer selection.
pub(crate) const MESSAGE_COLUMNS: usize = 26;

/// Placeholder on SQLite for a time that is not known yet. It takes six bytes like a real time, so that a row does not
/// grow when its message is sent. A row that grows may move to another page, and SQLite does not overwrite its old place,
/// so personal data that is erased from the row later would remain there.
const NOT_YET: i64 = -(1 << 46);

/// A message from the columns of `message_columns`.
pub(crate) fn message(workspace: WorkspaceId, row: &dyn Row) -> Result<Message, Fault> {
    Ok(Message {
        id: id(row, 0)?,
        workspace_id: workspace,
        revision: get(row, 4)?,
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
        is_test: get::<Option<bool>>(row, 25)?.unwrap_or_default(),
        tags: or_empty(row, 3)?,
        metadata: or_empty(row, 13)?,
        created_at: time(row, 5)?,
        updated_at: time(row, 6)?,
        variant: get(row, 14)?,
        hold: hold(row)?,
        milestones: Milestones {
            seen: EngagementFlags::from_bits(get(row, 18)?),
            links: get::<i64>(row, 19)?.cast_unsigned(),
            skip: get::<Option<i64>>(row, 20)?.map(|number| numbered(&Skip::ALL, number)).transpose()?,
            sent_at: kept_time(row, 21)?,
            delivered_at: kept_time(row, 22)?,
        },
    })
}

/// A time, or `None` for NULL and for [`NOT_YET`].
fn kept_time(row: &dyn Row, column: usize) -> Result<Option<Timestamp>, Fault> {
    Ok(maybe_time(row, column)?.filter(|time| time.as_millis() != NOT_YET))
}

/// The reason and times for which a message is held back; `None` if it is not.
fn hold(row: &dyn Row) -> Result<Option<Hold>, Fault> {
    let Some(reason) = get::<Option<i64>>(row, 15)? else { return Ok(None) };
    let reason = numbered(&HoldReason::ALL, reason)?;
    Ok(Some(Hold { reason, until: maybe_time(row, 16)?, since: time(row, 17)? }))
}

/// The columns of `message_columns`, then id, at, kind and meta of an event, for [`with_event`]. Only columns that both
/// tables have are qualified.
macro_rules! event_columns {
    () => {
        concat!("m.id, ", $crate::tables::messages::rows::message_columns!(after_id), ", e.id, e.at, e.kind, e.meta")
    };
}
pub(crate) use event_columns;

/// An event and its message from the columns of `event_columns`.
pub(crate) fn with_event(workspace: WorkspaceId, row: &dyn Row) -> Result<(MessageEvent, Message), Fault> {
    let message = message(workspace, row)?;
    let event = MessageEvent {
        id: id(row, MESSAGE_COLUMNS)?,
        workspace_id: workspace,
        message_id: message.id,
        kind: numbered(&EventKind::ALL, get(row, MESSAGE_COLUMNS + 2)?)?,
        at: time(row, MESSAGE_COLUMNS + 1)?,
        meta: or_empty(row, MESSAGE_COLUMNS + 3)?,
    };
    Ok((event, message))
}

/// The text of a document column in which NULL stands for an empty document.
pub(crate) fn unless_empty<T: Serialize>(is_empty: bool, record: &T) -> Result<Option<String>, Fault> {
    if is_empty { Ok(None) } else { document(record).map(Some) }
}

/// The workspace of a message and its values for `message_columns`.
pub(super) fn values(message: &Message) -> Result<Params, Fault> {
    let Milestones { seen, links, skip, sent_at, delivered_at } = message.milestones;
    Ok(params![
        key(message.workspace_id),
        key(message.id),
        number(&MessageStatus::ALL, &message.status),
        number(&Channel::ALL, &message.channel),
        unless_empty(message.tags.is_empty(), &message.tags)?,
        message.revision,
        message.created_at,
        message.updated_at,
        message.to.as_str(),
        message.from_email.as_deref(),
        message.contact_id.map(Id::to_bytes),
        message.campaign_id.map(Id::to_bytes),
        message.automation_id.map(Id::to_bytes),
        message.template_id.map(Id::to_bytes),
        unless_empty(message.metadata.is_empty(), &message.metadata)?,
        message.variant,
        message.hold.map(|hold| number(&HoldReason::ALL, &hold.reason)),
        message.hold.and_then(|hold| hold.until),
        message.hold.map(|hold| hold.since),
        seen.bits(),
        links.cast_signed(),
        skip.map(|skip| number(&Skip::ALL, &skip)),
        sent_at,
        delivered_at,
        message.fallback_of.map(Id::to_bytes),
        message.has_fallback.then_some(true),
        message.is_test.then_some(true),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_of_sqlite_name_the_time_that_has_not_come() {
        assert_eq!(NOT_YET.to_string(), "-70368744177664");
    }
}
