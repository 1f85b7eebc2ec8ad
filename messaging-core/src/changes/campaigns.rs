//! Changes of campaigns, their audiences, and the messages that wait to be released.

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
    /// Places of the contacts in the piece.
    pub bits: Bits,
}

/// A new message of a campaign or an automation, which waits to be released: it has no job and no content of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct NewWaiting {
    /// The message.
    pub message: Message,
    /// Track of the message, a hash of the lane with which it shares its pace; see [`WaitingKey::track`].
    pub track: u8,
    /// Earliest time of its release.
    pub due_at: Timestamp,
}

/// Returns the track of a waiting message: a hash of the resource of the lane that delivers it, which is the domain of
/// its recipient. Messages of one track share their pace.
#[expect(clippy::cast_possible_truncation, reason = "one of 256")]
pub fn track_of(resource: &str) -> u8 {
    let mut hasher = SipHasher24::new();
    hasher.write(resource.as_bytes());
    hasher.finish() as u8
}

/// Key of a message that waits to be released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitingKey {
    /// Track of the message: a hash of the recipient's domain, 0 to 255.
    pub track: u8,
    /// Earliest time of its release.
    pub due_at: Timestamp,
    /// The message.
    pub message_id: MessageId,
}

/// Times at which attempts of marketing messages to a contact on a channel began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactSends {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The contact.
    pub contact_id: ContactId,
    /// The channel.
    pub channel: Channel,
    /// Times in order, those of the last 168 hours; see
    /// [`remembered`](crate::domain::delivery::recipient_time::frequency_cap::remembered). A store may keep seconds,
    /// rounded up.
    pub times: Vec<Timestamp>,
}

/// First engagement of a kind with a message of a campaign; listings by outcome use it.
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
    /// Variant of the campaign, by its position.
    pub variant: u8,
    /// The number of the link in the variant's template, 0 to 63.
    pub link: u8,
    /// The URL as it stands in the template.
    pub url: String,
    /// True if it is the first click on the link in the message.
    pub is_first: bool,
}
