//! Messages: stored row, events, and the permitted changes of status.
//!
//! Contract section 4.2.

pub mod attachment;
pub mod channel_content;
pub mod content;
mod cure;
pub mod explanation;
pub mod fallback;
pub mod hold;
pub mod message_input;
pub mod milestones;
pub mod obstacle;
pub mod recipients;
pub mod simulator;
mod status;

use serde_json::{Map, Value};

use self::hold::Hold;
use self::milestones::Milestones;
use crate::domain::channel::Channel;
use crate::domain::search::Search;
use crate::ids::{AutomationId, CampaignId, ContactId, EventId, MessageId, TemplateId, WorkspaceId};
use crate::time::Timestamp;

pub use self::status::{EventKind, MessageStatus};

/// A message as stored: the narrow row that changes. The request is stored beside it, once, as received.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Workspace that sent the message.
    pub workspace_id: WorkspaceId,
    /// Revision of this row, counted from 1; each change adds one.
    pub revision: u32,
    /// Status of the message.
    pub status: MessageStatus,
    /// The channel.
    pub channel: Channel,
    /// Address of the recipient, as given; empty once the recipient was erased.
    pub to: String,
    /// Address of the sender, decided on when the message was accepted; email only.
    pub from_email: Option<String>,
    /// Contact that the message is attributed to.
    pub contact_id: Option<ContactId>,
    /// Campaign that the message belongs to.
    pub campaign_id: Option<CampaignId>,
    /// Automation that the message belongs to.
    pub automation_id: Option<AutomationId>,
    /// Index of its variant of the campaign; 0 in a campaign without variants.
    pub variant: Option<u8>,
    /// Template that the message is rendered from.
    pub template_id: Option<TemplateId>,
    /// First message of the chain of fallbacks that the message belongs to; `None` for the first itself.
    pub fallback_of: Option<MessageId>,
    /// True if another message is sent should this one not arrive.
    pub has_fallback: bool,
    /// True for a test of a campaign, which no statistics count.
    pub is_test: bool,
    /// Tags of the sender.
    pub tags: Vec<String>,
    /// Data of the sender, a JSON object.
    pub metadata: Map<String, Value>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When the status last changed.
    pub updated_at: Timestamp,
    /// Reason, begin and end of the wait of a message that is not attempted yet; `None` where nothing holds it back.
    pub hold: Option<Hold>,
    /// Facts besides the status that statistics count.
    pub milestones: Milestones,
}

impl Message {
    /// Returns a message that was just accepted and has nothing but its recipient. Every message begins as one:
    /// `Message { contact_id, ..Message::queued(…) }`.
    pub fn queued(id: MessageId, workspace_id: WorkspaceId, channel: Channel, to: String, now: Timestamp) -> Self {
        Self {
            id,
            workspace_id,
            revision: 1,
            status: MessageStatus::Queued,
            channel,
            to,
            from_email: None,
            contact_id: None,
            campaign_id: None,
            automation_id: None,
            variant: None,
            template_id: None,
            fallback_of: None,
            has_fallback: false,
            is_test: false,
            tags: Vec::new(),
            metadata: Map::new(),
            created_at: now,
            updated_at: now,
            hold: None,
            milestones: Milestones::default(),
        }
    }

    /// Returns true if the recipient was erased: every message that was accepted has an address, or is attributed to a
    /// contact that had none.
    pub const fn is_redacted(&self) -> bool {
        self.to.is_empty() && self.contact_id.is_none()
    }

    /// Returns the message in another status, or in its own at another time. The hold ends once an attempt begins or
    /// nothing more is attempted.
    #[must_use]
    pub fn moved(&self, status: MessageStatus, at: Timestamp) -> Self {
        let waits = matches!(status, MessageStatus::Queued | MessageStatus::Deferred);
        Self {
            status,
            updated_at: at,
            revision: self.revision + 1,
            // A message that a server puts off has left its path behind.
            hold: self.hold.filter(|hold| waits && !(status == MessageStatus::Deferred && hold.reason.is_of_path())),
            milestones: self.milestones.with_status(status, at),
            ..self.clone()
        }
    }

    /// Returns the message after events at a time: in another status if they led to one, and with the milestones that
    /// they set.
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
            after.milestones = after.milestones.with_event(kind, false);
        }
        after
    }

    /// Returns the source of the message, in whose statistics it counts.
    pub fn source(&self) -> MessageSource {
        match (self.campaign_id, self.automation_id) {
            (Some(campaign), _) => MessageSource::Campaign(campaign, self.variant.unwrap_or_default()),
            (None, Some(automation)) => MessageSource::Automation(automation),
            (None, None) => MessageSource::Transactional,
        }
    }
}

/// Source of a message: a request, a campaign or an automation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageSource {
    /// A request.
    Transactional,
    /// A campaign, with the index of the variant.
    Campaign(CampaignId, u8),
    /// An automation.
    Automation(AutomationId),
}

/// Request of the sender, stored once. Only the erasure of a contact changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageContent {
    /// The request as JSON; attachments are replaced by references to blobs.
    pub request: bytes::Bytes,
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
    /// Kind of the event, such as delivered or open.
    pub kind: EventKind,
    /// When it happened.
    pub at: Timestamp,
    /// The members that contract section 4.2 lists for the kind.
    pub meta: Map<String, Value>,
}

/// Filter of a listing of messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageFilter {
    /// Only messages of this campaign.
    pub campaign_id: Option<CampaignId>,
    /// Only messages of this automation.
    pub automation_id: Option<AutomationId>,
    /// Only messages of this contact.
    pub contact_id: Option<ContactId>,
    /// Only messages with one of these statuses; with any if empty.
    pub statuses: Vec<MessageStatus>,
    /// Only messages with this tag.
    pub tag: Option<String>,
    /// Only messages of this channel.
    pub channel: Option<Channel>,
    /// Only messages to this address, in any spelling of its channel.
    pub to: Option<String>,
    /// Only messages rendered from this template.
    pub template_id: Option<TemplateId>,
    /// Only messages accepted at this time or later; the id of a message has the time in milliseconds.
    pub since: Option<Timestamp>,
    /// Only messages accepted before this time.
    pub until: Option<Timestamp>,
    /// Only messages that contain a text. Rendered text is found once the index has it.
    pub search: Option<Search>,
}

/// A message as the sandbox captured it.
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
