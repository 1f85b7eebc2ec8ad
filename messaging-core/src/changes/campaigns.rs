//! What changes of campaigns, their audiences, and what waits for its turn.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;

use crate::domain::campaign::audience::AudienceSet;
use crate::domain::campaign::audience::bits::Bits;
use crate::domain::channel::Channel;
use crate::domain::message::Message;
use crate::domain::message::milestones::EngagementFlags;
use crate::ids::{CampaignId, ContactId, MessageId, WorkspaceId};
use crate::time::Timestamp;

/// One set of the contacts of a piece of a frozen audience.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AudienceRow {
    /// The workspace that sends the campaign.
    pub workspace_id: WorkspaceId,
    /// The campaign.
    pub campaign_id: CampaignId,
    /// The piece: all but the last 16 bits of the contacts' numbers.
    pub piece: u64,
    /// Verdict or due time that the contacts have in common.
    pub set: AudienceSet,
    /// Their places in the piece.
    pub bits: Bits,
}

/// A new message of a campaign or an automation, which waits to be released: it has no job and no content of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct NewWaiting {
    /// The message.
    pub message: Message,
    /// What it shares its pace with; see [`WaitingKey::track`].
    pub track: u8,
    /// Not before.
    pub due_at: Timestamp,
}

/// What a message that waits shares its pace with: a hash of the resource of the lane that delivers it, which is the
/// domain of its recipient.
#[expect(clippy::cast_possible_truncation, reason = "one of 256")]
pub fn track_of(resource: &str) -> u8 {
    let mut hasher = SipHasher24::new();
    hasher.write(resource.as_bytes());
    hasher.finish() as u8
}

/// Names a message that waits to be released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitingKey {
    /// What it shares its pace with: a hash of the recipient's domain, 0 to 255.
    pub track: u8,
    /// Not before.
    pub due_at: Timestamp,
    /// The message.
    pub message_id: MessageId,
}

/// When attempts of marketing messages to a contact on a channel began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactSends {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The contact.
    pub contact_id: ContactId,
    /// The channel.
    pub channel: Channel,
    /// In order; those of the last 168 hours, [`remembered`](crate::domain::delivery::recipient_time::frequency_cap::remembered).
    /// A store may keep seconds, rounded up.
    pub times: Vec<Timestamp>,
}

/// That something was seen of a message of a campaign for the first time; what listings by outcome go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Engagement {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The campaign.
    pub campaign_id: CampaignId,
    /// The kind of engagement that was seen, exactly one bit.
    pub seen: EngagementFlags,
    /// The message.
    pub message_id: MessageId,
    /// When it was seen.
    pub at: Timestamp,
}

/// A click on a link of a campaign's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountLink {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The campaign.
    pub campaign_id: CampaignId,
    /// Its variant, by place.
    pub variant: u8,
    /// The number of the link in the variant's template, 0 to 63.
    pub link: u8,
    /// The URL as it stands in the template.
    pub url: String,
    /// Whether it is the first click on it in the message.
    pub is_first: bool,
}
