//! Result of a campaign for one contact of its lists and segments: one line for each of them.
//!
//! Contract section 12.5.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audience::AudienceVerdict;
use crate::domain::message::MessageStatus;
use crate::domain::message::milestones::EngagementFlags;

/// Result, final or not, of a campaign for a contact. In the order in which they apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecipientOutcome {
    /// The recipient complained.
    Complained,
    /// The recipient unsubscribed through the message.
    Unsubscribed,
    /// The recipient followed a link.
    Clicked,
    /// The recipient opened the message.
    Opened,
    /// The message was refused or came back.
    Bounced,
    /// The message could not be sent.
    Failed,
    /// The address is suppressed, or the last check before sending found another reason not to send.
    Suppressed,
    /// The message was cancelled, or the campaign was cancelled or failed before the contact had one.
    Cancelled,
    /// The message was delivered.
    Delivered,
    /// The message was handed to a relay or provider.
    Sent,
    /// The message has not been sent, or waits for another attempt.
    Waiting,
    /// An excluded list names the contact.
    Excluded,
    /// The contact has no address.
    NoAddress,
    /// The contact has not agreed.
    NoConsent,
    /// Another contact has the address.
    Duplicate,
}

impl RecipientOutcome {
    /// Returns the outcome of a message.
    pub const fn of_message(status: MessageStatus, seen: EngagementFlags) -> Self {
        if seen.has(EngagementFlags::COMPLAINED) {
            return Self::Complained;
        }
        if seen.has(EngagementFlags::UNSUBSCRIBED) {
            return Self::Unsubscribed;
        }
        if seen.has(EngagementFlags::CLICKED) {
            return Self::Clicked;
        }
        if seen.has(EngagementFlags::OPENED) {
            return Self::Opened;
        }
        match status {
            MessageStatus::Complained => Self::Complained,
            MessageStatus::Bounced => Self::Bounced,
            MessageStatus::Failed => Self::Failed,
            MessageStatus::Suppressed => Self::Suppressed,
            MessageStatus::Cancelled => Self::Cancelled,
            MessageStatus::Delivered => Self::Delivered,
            MessageStatus::Sent => Self::Sent,
            MessageStatus::Queued | MessageStatus::Sending | MessageStatus::Deferred => Self::Waiting,
        }
    }

    /// Returns the outcome for a contact without a message: the verdict of the freeze; for recipients, `is_withdrawn`
    /// is true if the campaign ended before they got a message.
    pub const fn without_message(verdict: AudienceVerdict, is_withdrawn: bool) -> Self {
        match verdict {
            AudienceVerdict::Excluded => Self::Excluded,
            AudienceVerdict::NoAddress => Self::NoAddress,
            AudienceVerdict::Suppressed => Self::Suppressed,
            AudienceVerdict::NoConsent => Self::NoConsent,
            AudienceVerdict::Duplicate => Self::Duplicate,
            AudienceVerdict::Recipient if is_withdrawn => Self::Cancelled,
            AudienceVerdict::Recipient => Self::Waiting,
        }
    }

    /// Returns the flag by which a listing finds contacts for this outcome: it includes contacts that have the flag
    /// although another outcome outweighs it. `None` if the listing goes by the outcome itself.
    pub const fn seen(self) -> Option<EngagementFlags> {
        match self {
            Self::Complained => Some(EngagementFlags::COMPLAINED),
            Self::Unsubscribed => Some(EngagementFlags::UNSUBSCRIBED),
            Self::Clicked => Some(EngagementFlags::CLICKED),
            Self::Opened => Some(EngagementFlags::OPENED),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_applies_counts() {
        // Engagement outweighs the status, the worse the more.
        let seen = [
            EngagementFlags::OPENED,
            EngagementFlags::CLICKED,
            EngagementFlags::UNSUBSCRIBED,
            EngagementFlags::COMPLAINED,
        ];
        let mut all = EngagementFlags::MACHINE_OPENED;
        assert_eq!(RecipientOutcome::of_message(MessageStatus::Sent, all), RecipientOutcome::Sent);
        for (one, expected) in seen.into_iter().zip([
            RecipientOutcome::Opened,
            RecipientOutcome::Clicked,
            RecipientOutcome::Unsubscribed,
            RecipientOutcome::Complained,
        ]) {
            all = all.union(one);
            for status in [MessageStatus::Delivered, MessageStatus::Bounced] {
                assert_eq!(RecipientOutcome::of_message(status, all), expected);
            }
            assert_eq!(expected.seen(), Some(one));
        }
        let bare = MessageStatus::ALL.map(|status| RecipientOutcome::of_message(status, EngagementFlags::default()));
        let told: Vec<_> = bare.iter().map(|one| serde_json::to_value(one).unwrap()).collect();
        assert_eq!(
            told,
            [
                "waiting",
                "waiting",
                "sent",
                "delivered",
                "waiting",
                "bounced",
                "complained",
                "failed",
                "suppressed",
                "cancelled"
            ]
        );
    }

    #[test]
    fn whoever_has_no_message_has_a_verdict() {
        let told = |is_withdrawn| {
            AudienceVerdict::ALL.map(|verdict| {
                let outcome = RecipientOutcome::without_message(verdict, is_withdrawn);
                serde_json::to_value(outcome).unwrap().as_str().unwrap().to_owned()
            })
        };
        assert_eq!(told(false), ["excluded", "no_address", "suppressed", "no_consent", "duplicate", "waiting"]);
        assert_eq!(told(true)[5], "cancelled");
    }
}
