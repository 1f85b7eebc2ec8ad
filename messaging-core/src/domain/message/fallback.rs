//! Fallbacks: the next message of a chain, if one does not arrive (contract section 4.1, `fallback`).
//!
//! Each message of a chain has a job in a lane of its own, which is woken when the message is settled.

use crate::domain::channel::Channel;
use crate::domain::channel::address;
use crate::domain::delivery::lane::{JobClass, Lane};
use crate::domain::message::MessageStatus;
use crate::ids::{MessageId, WorkspaceId};
use crate::time::Timestamp;

/// Beginning of the resources of these lanes; the id of the message follows.
pub const RESOURCE: &str = "fallback:";

/// Returns the lane of the job for a message of a chain.
pub fn lane(workspace: WorkspaceId, message: MessageId) -> Lane {
    Lane::new(JobClass::Transactional, workspace, &format!("{RESOURCE}{message}"))
}

/// Next step for a chain of fallback messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The message may still arrive. The job checks again when it is settled, and at this time if there is one.
    Wait(Option<Timestamp>),
    /// The next message is sent.
    Send,
    /// The chain has ended.
    End,
}

/// Returns the next step for a chain whose last message has a status. `until` is the end of the wait for that message,
/// if one was requested: without it a message that a relay or provider has ends the chain.
pub fn next(status: MessageStatus, until: Option<Timestamp>, now: Timestamp) -> Next {
    use MessageStatus as S;
    match status {
        S::Bounced | S::Failed | S::Suppressed => Next::Send,
        S::Delivered | S::Complained | S::Cancelled => Next::End,
        S::Sent if until.is_none() => Next::End,
        S::Queued | S::Sending | S::Deferred | S::Sent => {
            if until.is_some_and(|until| now >= until) {
                Next::Send
            } else {
                Next::Wait(until)
            }
        }
    }
}

/// Returns the address of the next message: the one in the request, else the contact's for its channel, else that of
/// the message before, if it is an address of that channel too. A phone number serves several channels; any other
/// address serves only its own channel, although it may have the form of a push token.
pub fn address(
    channel: Channel,
    asked: Option<&str>,
    of_contact: Option<String>,
    before: (Channel, &str),
) -> Option<String> {
    let asked = asked.filter(|to| !to.is_empty()).map(ToOwned::to_owned);
    let (before_channel, to) = before;
    let is_phone = matches!(channel, Channel::Sms | Channel::Whatsapp | Channel::Viber) && address::is_e164(to);
    let agrees = !to.is_empty() && (is_phone || before_channel == channel);
    asked.or(of_contact).or_else(|| agrees.then(|| to.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_ends_and_silence_lead_on_and_everything_else_ends_or_waits() {
        use MessageStatus as S;
        let at = Timestamp::from_millis;
        let cases = [
            (S::Bounced, None, Next::Send),
            (S::Failed, None, Next::Send),
            (S::Suppressed, Some(9), Next::Send),
            (S::Delivered, Some(1), Next::End),
            (S::Complained, Some(1), Next::End),
            (S::Cancelled, Some(1), Next::End),
            (S::Sent, None, Next::End),
            (S::Sent, Some(6), Next::Wait(Some(at(6)))),
            (S::Sent, Some(5), Next::Send),
            (S::Queued, None, Next::Wait(None)),
            (S::Sending, Some(6), Next::Wait(Some(at(6)))),
            (S::Deferred, None, Next::Wait(None)),
            (S::Deferred, Some(5), Next::Send),
        ];
        for (status, until, expected) in cases {
            assert_eq!(next(status, until.map(at), at(5)), expected, "{status:?} {until:?}");
        }
    }

    #[test]
    fn the_next_message_goes_where_it_is_told_or_to_whom_the_one_before_went() {
        let of = |asked: Option<&str>, contact: Option<&str>, before: (Channel, &str)| {
            address(Channel::Sms, asked, contact.map(ToOwned::to_owned), before)
        };
        let (one, two, three) = ("+14155550001", "+14155550002", "+14155550003");
        let phone = (Channel::Viber, three);
        assert_eq!(of(Some(one), Some(two), phone).as_deref(), Some(one));
        assert_eq!(of(Some(""), Some(two), phone).as_deref(), Some(two));
        assert_eq!(of(None, None, phone).as_deref(), Some(three));
        assert_eq!(of(None, None, (Channel::Email, "ann@example.com")), None);
        assert_eq!(of(None, None, (Channel::Sms, "")), None);
        for channel in [Channel::Push, Channel::Viber, Channel::Telegram] {
            assert_eq!(address(channel, None, None, (Channel::Email, "ann@example.com")), None, "{channel}");
            assert_eq!(address(channel, None, None, (channel, "4711")).as_deref(), Some("4711"), "{channel}");
        }
        assert_eq!(address(Channel::Push, None, None, phone), None, "a number is no token");
    }
}
