//! Stored form of the job that delivers a message to its recipients of one domain.

use std::time::Duration;

use messaging_core::domain::campaign::settings::{FrequencyCap, QuietHours};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::delivery::retry;
use messaging_core::domain::message::Message;
use messaging_core::domain::message::recipients::{self, Recipient, RecipientKey, RecipientKind};
use messaging_core::ids::{ListId, MessageId, WorkspaceId};
use messaging_core::ports::store::ClaimedJob;
use messaging_core::ports::transport::Outcome;
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Job that delivers a message to its recipients of one domain that are still open. It is stored again before each
/// further attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeliverMessage {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) message_id: MessageId,
    /// Lane of the job's row. The payload does not repeat it; [`JobData::claimed_in`] sets it when the job is claimed.
    #[serde(skip, default = "unclaimed")]
    pub(crate) lane: Lane,
    /// Number of the attempt that the job makes, counted from 1.
    pub(crate) attempt: u32,
    /// Domain, in A-labels, whose recipients the job serves; `None` means all recipients of the message, because they
    /// share one domain or, off email, have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) domain: Option<String>,
    /// Recipients that are still open; `None` before the first attempt, when all recipients of the job are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<Vec<RecipientProgress>>,
    /// Time from which the expiry of the message counts, if not from its creation: the release of a message of a
    /// campaign, or the `send_at` of a scheduled message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) released_at: Option<Timestamp>,
    /// Time when the message was counted among the marketing messages to its contact, for frequency caps: once, at its
    /// first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reserved_at: Option<Timestamp>,
    /// Terms of the automation that sends the message as marketing; `None` for any other message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) marketing: Option<MarketingTerms>,
    /// The recipient, on a channel where messages to one recipient leave in the order in which they were accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chat: Option<RecipientKey>,
    /// Off email: maximum number of seconds for which the message is tried, from its creation or `released_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<u32>,
}

/// A chat: all messages of a workspace to one recipient on a channel that keeps their order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Chat {
    pub(crate) workspace: WorkspaceId,
    pub(crate) channel: Channel,
    pub(crate) recipient: RecipientKey,
}

/// Terms on which an automation sends marketing. They are checked once more right before an attempt
/// ([`marketing_look`](crate::work::deliver::marketing_look)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MarketingTerms {
    /// Hours during which the message waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quiet_hours: Option<QuietHours>,
    /// Maximum numbers of marketing messages to a contact within any 24 hours and any 168 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) frequency_cap: Option<FrequencyCap>,
    /// List that brings contacts into the automation: a contact who has left it, if it is public, gets no more
    /// messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) list_id: Option<ListId>,
}

impl DeliverMessage {
    /// Returns the jobs of a new message: one for each domain of its recipients, so that nothing that happens at one
    /// domain repeats or delays deliveries to another.
    ///
    /// Email shares a lane with all mail of the same class and workspace to the same domain. On other channels the
    /// messages of a workspace share a lane, because each workspace has its own provider account. A message of a
    /// campaign is bulk; so is marketing of an automation, see [`of_marketing`](Self::of_marketing). Each campaign and
    /// automation has a lane of its own among the bulk lanes, so that they take turns.
    pub fn jobs_of(message: &Message, cc: Option<&[String]>, bcc: Option<&[String]>) -> Vec<Self> {
        let (cc, bcc) = (cc.unwrap_or_default(), bcc.unwrap_or_default());
        if message.channel != Channel::Email || cc.is_empty() && bcc.is_empty() {
            return vec![Self::first_attempt_in(message, Self::lane_of(message))];
        }
        let lane = |domain: &str| Self::lane(message, &format!("{}{domain}", lanes::EMAIL));
        match &recipients::domains(&recipients::all(&message.to, cc, bcc))[..] {
            [only] => vec![Self::first_attempt_in(message, lane(only))],
            several => several
                .iter()
                .map(|domain| Self { domain: Some(domain.clone()), ..Self::first_attempt_in(message, lane(domain)) })
                .collect(),
        }
    }

    /// Returns the job of a message that an automation sends as marketing: bulk, in a lane of the automation.
    pub(crate) fn of_marketing(message: &Message, terms: MarketingTerms) -> Self {
        Self { marketing: Some(terms), ..Self::in_bulk(message) }
    }

    /// Returns the job of a message without copies that nobody waits for: bulk, in a lane of its automation, or without
    /// one in the bulk lane of its workspace and resource.
    pub(crate) fn in_bulk(message: &Message) -> Self {
        let lane = Lane::new(JobClass::Bulk, message.workspace_id, Self::lane_of(message).resource());
        let lane = message.automation_id.map_or_else(|| lane.clone(), |automation| lane.of_sender(automation));
        Self::first_attempt_in(message, lane)
    }

    /// Returns the job with a limit of `ttl` seconds for its tries; `None` means no limit of its own.
    ///
    /// Off email, a message with a limit above 0 and below a day goes to a lane for such messages beside the lane of
    /// the others. This lane is claimed even while nothing leaves over the account, so that the message expires on
    /// time.
    pub(crate) fn with_ttl(mut self, channel: Channel, ttl: Option<u32>) -> Self {
        self.ttl = ttl;
        let ends_early = ttl.is_some_and(|ttl| ttl > 0 && Duration::from_secs(ttl.into()) < retry::OFF_EMAIL_EXPIRY);
        if channel != Channel::Email && ends_early {
            self.lane = lanes::short_lived(&self.lane);
        }
        self
    }

    /// Returns the job of a message that its campaign releases now.
    pub(crate) fn released(message: &Message, now: Timestamp) -> Self {
        Self { released_at: Some(now), ..Self::first_attempt_in(message, Self::lane_of(message)) }
    }

    /// Returns the lane of a message without copies, which depends on its `to` recipient alone.
    pub(crate) fn lane_of(message: &Message) -> Lane {
        if message.channel != Channel::Email {
            return Self::lane(message, message.channel.as_str());
        }
        let to = Recipient::new(RecipientKind::To, message.to.clone());
        Self::lane(message, &format!("{}{}", lanes::EMAIL, to.domain()))
    }

    /// Returns the lane of a message to a resource: bulk for a message of a campaign, transactional otherwise.
    fn lane(message: &Message, resource: &str) -> Lane {
        let of = |class| Lane::new(class, message.workspace_id, resource);
        message.campaign_id.map_or_else(|| of(JobClass::Transactional), |id| of(JobClass::Bulk).of_sender(id))
    }

    /// Returns the job of the first attempt, in a lane.
    fn first_attempt_in(message: &Message, lane: Lane) -> Self {
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

    /// Returns the chat of a claimed job; `None` if the job delivers no message or its channel keeps no order.
    pub(crate) fn chat_of(job: &ClaimedJob) -> Option<Chat> {
        /// Members of the payload that name the chat.
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

/// Returns true if messages to one recipient of the channel leave in the order in which they were accepted.
const fn keeps_order(channel: Channel) -> bool {
    matches!(channel, Channel::Telegram)
}

/// Returns a placeholder for the lane of a job that was read from its payload, until [`JobData::claimed_in`] sets it.
fn unclaimed() -> Lane {
    Lane::parse("")
}

/// Progress of the delivery to one recipient that is still open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecipientProgress {
    pub(crate) recipient: RecipientKey,
    /// Number of attempts that were cut off because the process ended after their content may have left.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) cut_off: u8,
    /// True if an earlier attempt may have arrived.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) ambiguous: bool,
    /// Off email: number of attempts that left and whose answer was lost or could not be read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) lost: u8,
    /// True if an attempt was put off for another reason than a provider failure, see [`Recipient::was_deferred`].
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) was_deferred: bool,
    /// True once the recipient was counted at the site of its domain.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) is_counted: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) transaction: Transaction,
}

/// The transaction of a recipient in this attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Transaction {
    /// None has begun so far.
    #[default]
    Waiting,
    /// Its content may have left.
    Begun,
    /// It ended while transactions of other recipients in the same attempt went on.
    Ended {
        /// Outcome of the transaction for the recipient.
        outcome: Outcome,
    },
}

impl RecipientProgress {
    /// Returns the progress of a recipient to whom nothing was sent yet.
    pub(crate) fn new(recipient: &Recipient) -> Self {
        Self {
            recipient: RecipientKey::of(&recipient.address),
            cut_off: 0,
            ambiguous: false,
            lost: 0,
            was_deferred: recipient.was_deferred,
            is_counted: false,
            transaction: Transaction::Waiting,
        }
    }

    /// Records that an attempt was cut off because its process ended after the content may have left.
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
