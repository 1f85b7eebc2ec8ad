//! Changes of messages, their copies and their events.

use serde_json::{Map, Value};

use super::campaigns::Engagement;
use super::{JobWrite, Write};
use crate::domain::analytics::site_tally::SiteCounts;
use crate::domain::analytics::tally::buckets::Quarter;
use crate::domain::analytics::tally::{self, Counts, Row};
use crate::domain::channel::Channel;
use crate::domain::delivery::attempt::Dialog;
use crate::domain::delivery::site::SiteName;
use crate::domain::message::fallback;
use crate::domain::message::hold::Hold;
use crate::domain::message::milestones::Milestones;
use crate::domain::message::{Capture, EventKind, Message, MessageContent, MessageSource, MessageStatus};
use crate::ids::{ContactId, EventId, MessageId, WorkspaceId};
use crate::time::Timestamp;

/// A change of a message's narrow row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveMessage {
    /// The workspace that owns it.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// The revision that was read; any other is a conflict.
    pub revision: u32,
    /// The new state.
    pub status: MessageStatus,
    /// The time of the change.
    pub at: Timestamp,
    /// New reason for which the message is held; `None` if it is not.
    pub hold: Option<Hold>,
    /// New milestones, by which the message is counted.
    pub milestones: Milestones,
}

impl MoveMessage {
    /// Returns the write that takes a message from one of its states to another. The counters are changed by
    /// [`CountMessages::of_change`], a write of the same commit.
    pub fn new(before: &Message, after: &Message) -> Self {
        Self {
            workspace_id: before.workspace_id,
            message_id: before.id,
            revision: before.revision,
            status: after.status,
            at: after.updated_at,
            hold: after.hold,
            milestones: after.milestones,
        }
    }
}

/// Returns the writes that take a message from one of its states to another at a time, and count the change: with
/// `visit`, an open or a click and whether a machine made it. Every change of a message is made by these writes.
pub fn moves(before: &Message, after: &Message, visit: Option<(EventKind, bool)>, at: Timestamp) -> Vec<Write> {
    let mut writes = vec![Write::MoveMessage(MoveMessage::new(before, after))];
    writes
        .extend(CountMessages::of_change(before, after, visit, at).map(|count| Write::CountMessages(Box::new(count))));
    if let Some(campaign_id) = before.campaign_id {
        let new = after.milestones.seen.difference(before.milestones.seen);
        writes.extend(new.iter().map(|seen| {
            Write::NoteEngagement(Engagement {
                workspace_id: before.workspace_id,
                campaign_id,
                seen,
                message_id: before.id,
                at,
            })
        }));
    }
    if before.has_fallback && after.status.is_settled() && after.status != before.status {
        writes.push(Write::Job(JobWrite::WakeLane(fallback::lane(before.workspace_id, before.id), at)));
    }
    writes
}

/// Returns the writes that count a visit of a message, an open or a click and whether a machine made it, with the
/// milestones after it. The message changes only if they do: only the first visit of a kind changes it, and later ones
/// only add to sums.
pub fn visited(message: &Message, milestones: Milestones, visit: (EventKind, bool), at: Timestamp) -> Vec<Write> {
    if milestones == message.milestones {
        let count = CountMessages::of_change(message, message, Some(visit), at);
        return count.map(|count| Write::CountMessages(Box::new(count))).into_iter().collect();
    }
    let after = Message { milestones, revision: message.revision + 1, ..message.clone() };
    moves(message, &after, Some(visit), at)
}

/// A change of the counters of messages.
///
/// These are sums, so the write conflicts with nothing; the revision that guards the message of the same commit guards
/// it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountMessages {
    /// The workspace that sent the messages.
    pub workspace_id: WorkspaceId,
    /// Their channel.
    pub channel: Channel,
    /// Source of the messages. Totals are kept by variant for campaigns; series are kept for every source.
    pub source: MessageSource,
    /// Change of the totals.
    pub totals: Counts,
    /// Change of the series, by quarter of an hour.
    pub series: Vec<(Quarter, Counts)>,
}

impl CountMessages {
    /// Counts a new message; `None` if no counter covers it.
    pub fn of_new(message: &Message) -> Option<Self> {
        Self::of(message, tally::tally(&Row::from(message)), Vec::new())
    }

    /// Counts new messages, in one write for each source.
    pub fn of_all_new<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for new in messages.into_iter().filter_map(Self::of_new) {
            match found.iter_mut().find(|known| known.source == new.source && known.channel == new.channel) {
                Some(known) => known.totals += new.totals,
                None => found.push(new),
            }
        }
        found
    }

    /// Counts a change of a message, with the event that made it if that was an open or a click; `None` if no counter
    /// covers it. `at` is the time of the change.
    pub fn of_change(
        before: &Message,
        after: &Message,
        visit: Option<(EventKind, bool)>,
        at: Timestamp,
    ) -> Option<Self> {
        let row = Row::from(before);
        let visits = visit.map(|(kind, is_machine)| tally::of_event(kind, is_machine)).unwrap_or_default();
        let totals = tally::change(&row, &Row::from(after)) + visits;
        let series = tally::activity(&row, totals, at);
        Self::of(before, totals, series)
    }

    fn of(message: &Message, totals: Counts, series: Vec<(Quarter, Counts)>) -> Option<Self> {
        if message.is_test {
            return None;
        }
        let source = message.source();
        let has_totals = !totals.is_zero() && matches!(source, MessageSource::Campaign(..));
        (has_totals || !series.is_empty()).then_some(Self {
            workspace_id: message.workspace_id,
            channel: message.channel,
            source,
            totals,
            series,
        })
    }
}

/// A change of the counters of sites; sums, like [`CountMessages`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountSites {
    /// Workspace that sent the mail.
    pub workspace_id: WorkspaceId,
    /// Change of each site's counters, by quarter of an hour.
    pub counts: Vec<(SiteName, Quarter, SiteCounts)>,
}

/// Key of an event in the log of its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEvent {
    /// The workspace that owns it.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// When it happened.
    pub at: Timestamp,
    /// The event.
    pub event_id: EventId,
}

/// A change of the contact that a message is attributed to; its revision stays. Nothing happens if the message is no
/// longer attributed to `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeMessage {
    /// The workspace that owns it.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// Contact that the message was attributed to.
    pub from: ContactId,
    /// Contact that the message will be attributed to.
    pub to: ContactId,
}

/// Erasure of a message's recipient: the message loses address, contact, metadata, content, attempts and capture.
#[derive(Debug, Clone, PartialEq)]
pub struct RedactMessage {
    /// Workspace of the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// The revision that was read; any other is a conflict.
    pub revision: u32,
    /// New state of the message.
    pub status: MessageStatus,
    /// Time of that state.
    pub updated_at: Timestamp,
    /// Tags that stay.
    pub tags: Vec<String>,
    /// Events that change: time, id, and the members of `meta` that stay.
    pub events: Vec<(Timestamp, EventId, Map<String, Value>)>,
}

/// Erasure of a copied recipient from a message.
#[derive(Debug, Clone, PartialEq)]
pub struct EraseCopy {
    /// Workspace that owns the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// The revision that was read; any other is a conflict.
    pub revision: u32,
    /// Tags that stay.
    pub tags: Vec<String>,
    /// Metadata that stays.
    pub metadata: Map<String, Value>,
    /// New stored request; `None` if it stays or is no longer stored.
    pub content: Option<MessageContent>,
    /// Events that change: time, id, and the members of `meta` that stay.
    pub events: Vec<(Timestamp, EventId, Map<String, Value>)>,
    /// Attempts that change, with the rest of their dialog.
    pub attempts: Vec<(EventId, Dialog)>,
    /// New capture of the sandbox; `None` if it stays or there is none.
    pub capture: Option<Capture>,
}
