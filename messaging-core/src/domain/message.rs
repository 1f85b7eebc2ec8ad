//! A message: its states, its events, and which move is allowed from where.
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
    /// The first message of the chain of fallbacks that it belongs to; `None` of the first itself.
    pub fallback_of: Option<MessageId>,
    /// Whether another message is sent should this one not arrive.
    pub has_fallback: bool,
    /// True of a test of a campaign, which no statistics count.
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
    /// What of it counts besides the status.
    pub milestones: Milestones,
}

impl Message {
    /// A message that was just accepted and has nothing but its recipient. It is what every message begins as:
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

    /// Whether its recipient was erased: every message that was accepted has an address, or is attributed to a contact
    /// that had none.
    pub const fn is_redacted(&self) -> bool {
        self.to.is_empty() && self.contact_id.is_none()
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
            // What is put off by a server has left its path behind.
            hold: self.hold.filter(|hold| waits && !(status == MessageStatus::Deferred && hold.reason.is_of_path())),
            milestones: self.milestones.with_status(status, at),
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
            after.milestones = after.milestones.with_event(kind, false);
        }
        after
    }

    /// Source of the message, for whose statistics it counts.
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

/// What a listing of messages is narrowed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageFilter {
    /// Of this campaign.
    pub campaign_id: Option<CampaignId>,
    /// Of this automation.
    pub automation_id: Option<AutomationId>,
    /// Of this contact.
    pub contact_id: Option<ContactId>,
    /// In one of these states; in any where none is named.
    pub statuses: Vec<MessageStatus>,
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
    /// With a piece of text. What is rendered is found once the index has it.
    pub search: Option<Search>,
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
