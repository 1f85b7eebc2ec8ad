//! A message: its states, its events, and which move is allowed from where.
//!
//! Contract section 4.2.

pub mod explanation;
pub mod hold;
pub mod milestones;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::hold::Hold;
use self::milestones::Milestones;
use crate::domain::channel::Channel;
use crate::ids::{AutomationId, CampaignId, ContactId, EventId, MessageId, TemplateId, WorkspaceId};
use crate::time::Timestamp;

/// The state of a message. Follows the `to` recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    /// Accepted.
    Queued,
    /// An attempt is running.
    Sending,
    /// Handed to a relay or provider.
    Sent,
    /// The recipient's server or the provider confirmed.
    Delivered,
    /// Temporary refusal; will be tried again.
    Deferred,
    /// Final: refused.
    Bounced,
    /// Final: the recipient complained.
    Complained,
    /// Final: could not be sent.
    Failed,
    /// Final: the address is suppressed.
    Suppressed,
    /// Final: withdrawn before it was sent.
    Cancelled,
}

impl MessageStatus {
    /// Every status, in the order of the stored numbers.
    pub const ALL: [Self; 10] = [
        Self::Queued,
        Self::Sending,
        Self::Sent,
        Self::Delivered,
        Self::Deferred,
        Self::Bounced,
        Self::Complained,
        Self::Failed,
        Self::Suppressed,
        Self::Cancelled,
    ];

    /// The text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Deferred => "deferred",
            Self::Bounced => "bounced",
            Self::Complained => "complained",
            Self::Failed => "failed",
            Self::Suppressed => "suppressed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of a text form.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Whether a message in this state may get into `next` (the table of contract section 4.2).
    ///
    /// A report that arrives out of order asks for a move that is not in the table and is recorded
    /// as an event only: the status never moves backwards.
    pub const fn may_become(self, next: Self) -> bool {
        use MessageStatus as S;
        match self {
            S::Queued => matches!(next, S::Sending | S::Suppressed | S::Cancelled | S::Failed),
            S::Sending => matches!(next, S::Sent | S::Delivered | S::Deferred | S::Bounced | S::Failed),
            S::Deferred => matches!(next, S::Sending | S::Bounced | S::Suppressed | S::Cancelled | S::Failed),
            S::Sent => matches!(next, S::Delivered | S::Bounced | S::Failed | S::Complained),
            S::Delivered => matches!(next, S::Bounced | S::Complained),
            S::Bounced | S::Complained | S::Failed | S::Suppressed | S::Cancelled => false,
        }
    }

    /// Whether nothing more is attempted for a message in this state.
    pub const fn is_settled(self) -> bool {
        !matches!(self, Self::Queued | Self::Sending | Self::Deferred)
    }
}

/// A message as stored: the narrow row that changes. The request is stored beside it, once, as received.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Workspace that sent the message.
    pub workspace_id: WorkspaceId,
    /// Counts the changes of this row; the first is 1.
    pub revision: u32,
    /// The state.
    pub status: MessageStatus,
    /// The channel.
    pub channel: Channel,
    /// The recipient's address, as given; empty once the recipient was erased.
    pub to: String,
    /// The sender that was decided on when the message was accepted; email only.
    pub from_email: Option<String>,
    /// The contact it is attributed to.
    pub contact_id: Option<ContactId>,
    /// The campaign it belongs to.
    pub campaign_id: Option<CampaignId>,
    /// The automation it belongs to.
    pub automation_id: Option<AutomationId>,
    /// Its variant of the campaign, by place; 0 in a campaign that compares none.
    pub variant: Option<u8>,
    /// The template it is rendered from.
    pub template_id: Option<TemplateId>,
    /// Tags of the sender.
    pub tags: Vec<String>,
    /// Data of the sender, a JSON object.
    pub metadata: Map<String, Value>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When the status last changed.
    pub updated_at: Timestamp,
    /// What it waits for.
    pub hold: Option<Hold>,
    /// What of it counts besides the status.
    pub milestones: Milestones,
}

impl Message {
    /// Whether its recipient was erased: every message that was accepted has one.
    pub const fn is_redacted(&self) -> bool {
        self.to.is_empty()
    }

    /// The same in another state, or in its own at another time. What it waited for is over once an attempt begins or
    /// nothing more is attempted.
    #[must_use]
    pub fn moved(&self, status: MessageStatus, at: Timestamp) -> Self {
        let waits = matches!(status, MessageStatus::Queued | MessageStatus::Deferred);
        Self {
            status,
            updated_at: at,
            revision: self.revision + 1,
            hold: self.hold.filter(|_| waits),
            milestones: self.milestones.reaching(status, at),
            ..self.clone()
        }
    }

    /// The same after events at a time: in another state if they led to one, and with what they show.
    #[must_use]
    pub fn after(
        &self,
        status: Option<MessageStatus>,
        events: impl IntoIterator<Item = EventKind>,
        at: Timestamp,
    ) -> Self {
        let (status, moved_at) = status.map_or((self.status, self.updated_at), |status| (status, at));
        let mut after = self.moved(status, moved_at);
        for kind in events {
            after.milestones = after.milestones.showing(kind, false);
        }
        after
    }

    /// Who it counts for.
    pub fn source(&self) -> MessageSource {
        match (self.campaign_id, self.automation_id) {
            (Some(campaign), _) => MessageSource::Campaign(campaign, self.variant.unwrap_or_default()),
            (None, Some(automation)) => MessageSource::Automation(automation),
            (None, None) => MessageSource::Transactional,
        }
    }
}

/// Who sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageSource {
    /// A request.
    Transactional,
    /// A campaign; which of its variants, by place.
    Campaign(CampaignId, u8),
    /// An automation.
    Automation(AutomationId),
}

/// What the sender asked for, stored once and never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageContent {
    /// The request as JSON; attachments are replaced by references to blobs.
    pub request: bytes::Bytes,
}

/// The kinds of events of contract section 4.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum EventKind {
    Queued,
    Sent,
    Delivered,
    Deferred,
    Bounce,
    Complaint,
    Open,
    Click,
    Unsubscribe,
    Failed,
    Suppressed,
    Cancelled,
}

impl EventKind {
    /// Every kind, in the order of the stored numbers.
    pub const ALL: [Self; 12] = [
        Self::Queued,
        Self::Sent,
        Self::Delivered,
        Self::Deferred,
        Self::Bounce,
        Self::Complaint,
        Self::Open,
        Self::Click,
        Self::Unsubscribe,
        Self::Failed,
        Self::Suppressed,
        Self::Cancelled,
    ];
}

/// Something that happened to a message.
///
/// The first event, `queued`, is not stored: it is the message's `created_at`.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageEvent {
    /// Its id; also the id of the webhook event.
    pub id: EventId,
    /// Workspace of the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// What happened.
    pub kind: EventKind,
    /// When it happened.
    pub at: Timestamp,
    /// The members that contract section 4.2 lists for the kind.
    pub meta: Map<String, Value>,
}

/// What a listing of messages is narrowed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageFilter {
    /// Of this campaign.
    pub campaign_id: Option<CampaignId>,
    /// Of this automation.
    pub automation_id: Option<AutomationId>,
    /// Of this contact.
    pub contact_id: Option<ContactId>,
    /// In this state.
    pub status: Option<MessageStatus>,
    /// With this tag.
    pub tag: Option<String>,
    /// Of this channel.
    pub channel: Option<Channel>,
    /// To this address, in any spelling of its channel.
    pub to: Option<String>,
    /// Rendered from this template.
    pub template_id: Option<TemplateId>,
    /// Accepted then or later; an id knows to the millisecond when it was made.
    pub since: Option<Timestamp>,
    /// Accepted before.
    pub until: Option<Timestamp>,
}

/// What the sandbox kept of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Workspace of the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// Its channel.
    pub channel: Channel,
    /// The recipient.
    pub to: String,
    /// The sender, email only.
    pub from: Option<String>,
    /// The subject or title.
    pub subject: Option<String>,
    /// When it was captured.
    pub captured_at: Timestamp,
    /// The bytes as they would have gone on the wire.
    pub source: bytes::Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_against_every_move() {
        let grid: String = MessageStatus::ALL
            .iter()
            .map(|from| {
                let moves: Vec<_> =
                    MessageStatus::ALL.iter().filter(|to| from.may_become(**to)).map(|to| to.as_str()).collect();
                format!("{}: {}\n", from.as_str(), moves.join(" "))
            })
            .collect();
        insta::assert_snapshot!(grid, @r"
        queued: sending failed suppressed cancelled
        sending: sent delivered deferred bounced failed
        sent: delivered bounced complained failed
        delivered: bounced complained
        deferred: sending bounced failed suppressed cancelled
        bounced: 
        complained: 
        failed: 
        suppressed: 
        cancelled:
        ");
    }
}
