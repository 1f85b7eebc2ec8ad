//! The delivery of a message to its recipients of one domain.

use std::time::Duration;

use messaging_core::domain::campaign::settings::{FrequencyCap, QuietHours};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::delivery::retry;
use messaging_core::domain::message::Message;
use messaging_core::domain::message::recipients::{self, Recipient, RecipientKey, RecipientKind};
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::ClaimedJob;
use messaging_core::ports::transport::Outcome;
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Delivers a message to those of its recipients of one domain that are still open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeliverMessage {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) message_id: MessageId,
    /// That of its row, where it stands already.
    #[serde(skip, default = "unclaimed")]
    pub(crate) lane: Lane,
    /// Counts from 1.
    pub(crate) attempt: u32,
    /// The domain, in A-labels, of the recipients that it serves; `None`: all recipients of the message, because
    /// they have one domain, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) domain: Option<String>,
    /// Who is still open; `None` before anything was sent: everybody whom it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<Vec<RecipientProgress>>,
    /// When a message of a campaign was released: its time to expire counts from then, not from when it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) released_at: Option<Timestamp>,
    /// When it took its place among the marketing messages to its contact: once, at its first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reserved_at: Option<Timestamp>,
    /// What an automation asks for whose message is marketing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) marketing: Option<MarketingTerms>,
    /// The recipient, on a channel whose chats keep their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chat: Option<RecipientKey>,
    /// Off email: how long it is tried at most, in seconds, as its request says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<u32>,
}

/// A chat of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Chat {
    pub(crate) workspace: WorkspaceId,
    pub(crate) channel: Channel,
    pub(crate) recipient: RecipientKey,
}

/// What an automation asks for whose message is marketing: the last look right before the attempt heeds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MarketingTerms {
    /// When nobody is disturbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quiet_hours: Option<QuietHours>,
    /// How much a contact gets at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) frequency_cap: Option<FrequencyCap>,
}

impl DeliverMessage {
    /// The jobs of a new message: one for each domain of its recipients, so that nothing that happens at one domain
    /// repeats or delays what another has taken. Each shares a lane with all mail of its class and workspace to its
    /// domain; the other channels share lanes by workspace, each of which has its own provider account. A message of
    /// a campaign is bulk; so is marketing of an automation, see [`of_marketing`](Self::of_marketing). Each campaign and
    /// automation is a sender of its own there, so that they take turns.
    pub fn of(message: &Message, cc: Option<&[String]>, bcc: Option<&[String]>) -> Vec<Self> {
        let (cc, bcc) = (cc.unwrap_or_default(), bcc.unwrap_or_default());
        if message.channel != Channel::Email || cc.is_empty() && bcc.is_empty() {
            return vec![Self::in_lane(message, Self::lane_of(message))];
        }
        let lane = |domain: &str| Self::lane(message, &format!("{}{domain}", lanes::EMAIL));
        match &recipients::domains(&recipients::all(&message.to, cc, bcc))[..] {
            [only] => vec![Self::in_lane(message, lane(only))],
            several => several
                .iter()
                .map(|domain| Self { domain: Some(domain.clone()), ..Self::in_lane(message, lane(domain)) })
                .collect(),
        }
    }

    /// The job of a message that an automation sends as marketing, which is bulk.
    pub(crate) fn of_marketing(message: &Message, terms: MarketingTerms) -> Self {
        let lane = Lane::new(JobClass::Bulk, message.workspace_id, Self::lane_of(message).resource());
        let lane = message.automation_id.map_or_else(|| lane.clone(), |automation| lane.of_sender(automation));
        Self { marketing: Some(terms), ..Self::in_lane(message, lane) }
    }

    /// The same for a message that is tried for so many seconds at most. Off email, one that is to end before a day has
    /// passed has a lane beside that of the others, which is claimed also while nothing leaves over its account: it ends
    /// when its time is over.
    pub(crate) fn living(mut self, channel: Channel, ttl: Option<u32>) -> Self {
        self.ttl = ttl;
        let ends_early = ttl.is_some_and(|ttl| ttl > 0 && Duration::from_secs(ttl.into()) < retry::OFF_EMAIL_EXPIRY);
        if channel != Channel::Email && ends_early {
            self.lane = lanes::short_lived(&self.lane);
        }
        self
    }

    /// The job of a message of a campaign that is released.
    pub(crate) fn released(message: &Message, now: Timestamp) -> Self {
        Self { released_at: Some(now), ..Self::in_lane(message, Self::lane_of(message)) }
    }

    /// The lane of a message without copies.
    pub(crate) fn lane_of(message: &Message) -> Lane {
        if message.channel != Channel::Email {
            return Self::lane(message, message.channel.as_str());
        }
        let to = Recipient::new(RecipientKind::To, message.to.clone());
        Self::lane(message, &format!("{}{}", lanes::EMAIL, to.domain()))
    }

    fn lane(message: &Message, resource: &str) -> Lane {
        let of = |class| Lane::new(class, message.workspace_id, resource);
        message.campaign_id.map_or_else(|| of(JobClass::Transactional), |id| of(JobClass::Bulk).of_sender(id))
    }

    fn in_lane(message: &Message, lane: Lane) -> Self {
        Self {
            workspace_id: message.workspace_id,
            message_id: message.id,
            lane,
            attempt: 1,
            domain: None,
            progress: None,
            released_at: None,
            reserved_at: None,
            marketing: None,
            chat: keeps_order(message.channel).then(|| RecipientKey::of(&message.to)),
            ttl: None,
        }
    }

    /// The chat whose order a claimed job keeps, if it is the delivery of a message to one.
    pub(crate) fn chat_of(job: &ClaimedJob) -> Option<Chat> {
        /// What of the payload names the chat.
        #[derive(Deserialize)]
        struct Named {
            workspace_id: WorkspaceId,
            chat: Option<RecipientKey>,
        }
        let channel = lanes::channel_of(job.handle.lane.resource())?;
        if job.kind != Self::KIND || !keeps_order(channel) {
            return None;
        }
        let Named { workspace_id: workspace, chat } = serde_json::from_slice(&job.payload).ok()?;
        Some(Chat { workspace, channel, recipient: chat? })
    }
}

impl JobData for DeliverMessage {
    const KIND: &'static str = "deliver_message";
    const REACH: Reach = Reach::Outside;

    fn lane(&self) -> Lane {
        self.lane.clone()
    }

    fn claimed_in(&mut self, lane: &Lane) {
        self.lane = lane.clone();
    }
}

/// Whether messages to one recipient leave in the order in which they were accepted.
const fn keeps_order(channel: Channel) -> bool {
    matches!(channel, Channel::Telegram)
}

/// The lane of a payload that nobody has claimed yet.
fn unclaimed() -> Lane {
    Lane::parse("")
}

/// What is known of one recipient whom the job still serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecipientProgress {
    pub(crate) recipient: RecipientKey,
    /// Transactions that a process left open when it ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) cut_off: u8,
    /// Whether an earlier attempt may have arrived.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) ambiguous: bool,
    /// Copies that left, off email, and whose answer was lost or could not be read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) lost: u8,
    /// See [`Recipient::was_deferred`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) was_deferred: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) transaction: Transaction,
}

/// The transaction of a recipient in this attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Transaction {
    /// None so far.
    #[default]
    Waiting,
    /// Its content may have left.
    Begun,
    /// It ended while others of the attempt went on.
    Ended {
        /// Outcome of the transaction for the recipient.
        outcome: Outcome,
    },
}

impl RecipientProgress {
    /// Nothing was tried yet.
    pub(crate) fn new(recipient: &Recipient) -> Self {
        Self {
            recipient: RecipientKey::of(&recipient.address),
            cut_off: 0,
            ambiguous: false,
            lost: 0,
            was_deferred: recipient.was_deferred,
            transaction: Transaction::Waiting,
        }
    }

    /// An attempt was cut off after its content may have left.
    pub(crate) fn note_cut_off(&mut self) {
        self.cut_off = self.cut_off.saturating_add(1);
        self.ambiguous = true;
        self.transaction = Transaction::Waiting;
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_does_not_repeat_the_lane_of_its_row() {
        let kept = r#"{"workspace_id":"wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH","message_id":"msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH","attempt":1}"#;
        let lane = Lane::parse("t/wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH/email:example.org");
        let mut job: DeliverMessage = serde_json::from_str(kept).unwrap();
        job.claimed_in(&lane);
        assert_eq!(job.lane(), lane);
        assert_eq!(serde_json::to_string(&job).unwrap(), kept);
    }
}
