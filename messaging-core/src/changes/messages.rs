//! What changes of messages, their copies and their events.

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
    /// What takes a message from one of its states to another. How that changes what is counted is
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

/// The writes that take a message from one of its states to another at a time, and count the change: with the visit
/// that made it, an open or a click and whether a machine did it. Whoever changes a message changes it by these.
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

/// The writes that count a visit of a message, an open or a click and whether a machine made it, which leaves these
/// milestones. The message changes only if they do: of the first of a kind there is one, and all others only add to sums.
pub fn visited(message: &Message, milestones: Milestones, visit: (EventKind, bool), at: Timestamp) -> Vec<Write> {
    if milestones == message.milestones {
        let count = CountMessages::of_change(message, message, Some(visit), at);
        return count.map(|count| Write::CountMessages(Box::new(count))).into_iter().collect();
    }
    let after = Message { milestones, revision: message.revision + 1, ..message.clone() };
    moves(message, &after, Some(visit), at)
}

/// By how much counters change.
///
/// Sums, so that it conflicts with nothing; the revision that guards the message of the same commit guards it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountMessages {
    /// The workspace that sent the messages.
    pub workspace_id: WorkspaceId,
    /// Their channel.
    pub channel: Channel,
    /// Who sent them. Totals are kept of campaigns by variant, series of all.
    pub source: MessageSource,
    /// By how much the totals change.
    pub totals: Counts,
    /// By how much the series change, and in which quarters of an hour.
    pub series: Vec<(Quarter, Counts)>,
}

impl CountMessages {
    /// What a new message counts for; `None` where nothing counts it.
    pub fn of_new(message: &Message) -> Option<Self> {
        Self::of(message, tally::tally(&Row::from(message)), Vec::new())
    }

    /// What new messages count for, in one write for each source.
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

    /// What a change of a message counts for, with the event that made it, if that was an open or a click; `None` where
    /// nothing counts it. `at` is when it happened.
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

/// By how much the counters of sites change; sums, as [`CountMessages`] is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountSites {
    /// Workspace that sent the mail.
    pub workspace_id: WorkspaceId,
    /// By how much each site's counters change, and in which quarters of an hour.
    pub counts: Vec<(SiteName, Quarter, SiteCounts)>,
}

/// Names an event in the log of its workspace.
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

/// A change of the contact that a message is attributed to; its revision stays. Nothing happens when it
/// is not attributed to `from` any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeMessage {
    /// The workspace that owns it.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// The contact it is attributed to.
    pub from: ContactId,
    /// The contact it shall be attributed to.
    pub to: ContactId,
}

/// What is left of a message whose recipient was erased. It loses address, contact, metadata, content,
/// attempts and capture.
#[derive(Debug, Clone, PartialEq)]
pub struct RedactMessage {
    /// Workspace of the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// The revision that was read; any other is a conflict.
    pub revision: u32,
    /// The state it is in from now on.
    pub status: MessageStatus,
    /// When it came into that state.
    pub updated_at: Timestamp,
    /// The tags it keeps.
    pub tags: Vec<String>,
    /// The events that change: when, which, and what is left of their meta.
    pub events: Vec<(Timestamp, EventId, Map<String, Value>)>,
}

/// What changes of a message when somebody who was copied on it is erased.
#[derive(Debug, Clone, PartialEq)]
pub struct EraseCopy {
    /// Workspace that owns the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// The revision that was read; any other is a conflict.
    pub revision: u32,
    /// The tags it keeps.
    pub tags: Vec<String>,
    /// The metadata it keeps.
    pub metadata: Map<String, Value>,
    /// Replaces the stored request, unless that stays or is not kept any more.
    pub content: Option<MessageContent>,
    /// The events that change: when, which, and what is left of their meta.
    pub events: Vec<(Timestamp, EventId, Map<String, Value>)>,
    /// The attempts that change, and what is left of what was said.
    pub attempts: Vec<(EventId, Dialog)>,
    /// Replaces what the sandbox captured, unless that stays or there is nothing.
    pub capture: Option<Capture>,
}
