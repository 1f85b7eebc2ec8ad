//! Outcome of a message at a fake, by the last two digits of its recipient.

/// Outcome of a message at a fake provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Case {
    /// The message is accepted, and these reports follow, in this order.
    Accepted(&'static [Report], Order),
    /// The message is refused.
    Refused(Refusal),
    /// The answer is faulty.
    Trouble(Trouble),
}

/// Reason why a message is refused; the provider has its own code for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The address does not exist.
    Address,
    /// The recipient has blocked the sender.
    Blocked,
    /// The recipient is on the provider's list of opt-outs.
    OptedOut,
    /// The recipient cannot be reached.
    Soft,
    /// A policy of the provider or a filter.
    Policy,
    /// The content of the message is not acceptable.
    Content,
    /// A failure of the provider.
    Retry,
    /// The account sends too many requests.
    Throttled(Wait),
    /// The recipient gets too many messages.
    ThrottledRecipient,
    /// The key or the account is refused.
    Auth,
}

/// Wait that the answer asks for (RFC 9110 section 10.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Seven seconds.
    Seconds,
    /// Until a date in the far future; the server waits at most 24 hours.
    Date,
    /// No wait is given.
    Absent,
    /// More seconds than any number type holds.
    Absurd,
    /// A word that is no number or date.
    Unreadable,
}

impl Wait {
    /// Returns the header `Retry-After`, if there is one.
    pub const fn header(self) -> Option<&'static str> {
        match self {
            Self::Seconds => Some("7"),
            Self::Date => Some("Thu, 31 Dec 2099 23:59:59 GMT"),
            Self::Absent => None,
            Self::Absurd => Some("99999999999999999999"),
            Self::Unreadable => Some("soon"),
        }
    }
}

/// Fault of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// The answer comes late; see [`FakeProvider::slow`](super::FakeProvider::slow).
    Slow,
    /// The answer never comes, and the connection stays open.
    Silent,
    /// The connection is reset after the request was read.
    Reset,
    /// The message is accepted, its reports follow, and the connection is reset before the answer.
    ResetWhenTaken,
    /// 200 with JSON that is cut off.
    Broken,
    /// 200 with 3 MiB of JSON.
    Huge,
    /// 307 to another path.
    Redirect,
    /// 408.
    RequestTimeout,
    /// 401 the first time, then the message is accepted.
    UnauthorizedOnce,
}

/// Report of a provider about a message that it has accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Report {
    /// The message was sent on.
    Sent,
    /// The message was delivered.
    Delivered,
    /// The recipient has read the message.
    Read,
    /// The message was not delivered.
    Failed(Refusal),
}

/// Order, time and form of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// After the answer, one after another.
    InOrder,
    /// In reverse order.
    Reversed,
    /// Each one twice.
    Twice,
    /// Before the answer to the request.
    BeforeAnswer,
    /// First about an unknown message, then in order.
    Unknown,
    /// With a wrong signature.
    Forged,
    /// Without a signature.
    Unsigned,
    /// Signed with the previous secret.
    OldSecret,
    /// In one call if the provider batches.
    Batched,
    /// In a call of more than 3 MiB.
    Large,
}

/// Signature of a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signature {
    /// A valid signature.
    Valid,
    /// A wrong signature.
    Forged,
    /// No signature.
    Missing,
    /// A signature with another secret than the valid one.
    OldSecret,
}

const DELIVERED: &[Report] = &[Report::Sent, Report::Delivered];
const READ: &[Report] = &[Report::Sent, Report::Delivered, Report::Read];

/// Cases by the last two digits; other recipients are treated as 01. The first seven are those of the sandbox (contract
/// section 4.3).
pub const CASES: &[(u8, Case)] = &[
    (1, Case::Accepted(DELIVERED, Order::InOrder)),
    (2, Case::Refused(Refusal::Address)),
    (3, Case::Refused(Refusal::Soft)),
    (4, Case::Refused(Refusal::Retry)),
    (5, Case::Refused(Refusal::Policy)),
    (6, Case::Refused(Refusal::Content)),
    (7, Case::Accepted(READ, Order::InOrder)),
    (8, Case::Refused(Refusal::OptedOut)),
    (9, Case::Refused(Refusal::Auth)),
    (10, Case::Refused(Refusal::Blocked)),
    (11, Case::Refused(Refusal::ThrottledRecipient)),
    // There are no reports at all.
    (12, Case::Accepted(&[], Order::InOrder)),
    (20, Case::Refused(Refusal::Throttled(Wait::Seconds))),
    (21, Case::Refused(Refusal::Throttled(Wait::Date))),
    (22, Case::Refused(Refusal::Throttled(Wait::Absent))),
    (23, Case::Refused(Refusal::Throttled(Wait::Absurd))),
    (24, Case::Refused(Refusal::Throttled(Wait::Unreadable))),
    (30, Case::Trouble(Trouble::Slow)),
    (31, Case::Trouble(Trouble::Silent)),
    (32, Case::Trouble(Trouble::Reset)),
    (33, Case::Trouble(Trouble::ResetWhenTaken)),
    (34, Case::Trouble(Trouble::Broken)),
    (35, Case::Trouble(Trouble::Huge)),
    (36, Case::Trouble(Trouble::UnauthorizedOnce)),
    (37, Case::Trouble(Trouble::Redirect)),
    (38, Case::Trouble(Trouble::RequestTimeout)),
    (40, Case::Accepted(READ, Order::Reversed)),
    (41, Case::Accepted(READ, Order::Twice)),
    (42, Case::Accepted(READ, Order::BeforeAnswer)),
    (43, Case::Accepted(READ, Order::Unknown)),
    (44, Case::Accepted(READ, Order::Forged)),
    (45, Case::Accepted(READ, Order::Unsigned)),
    (46, Case::Accepted(READ, Order::OldSecret)),
    (47, Case::Accepted(READ, Order::Batched)),
    (48, Case::Accepted(READ, Order::Large)),
    (52, Case::Accepted(&[Report::Failed(Refusal::Address)], Order::InOrder)),
    (53, Case::Accepted(&[Report::Failed(Refusal::Soft)], Order::InOrder)),
    (54, Case::Accepted(&[Report::Failed(Refusal::Retry)], Order::InOrder)),
    (55, Case::Accepted(&[Report::Failed(Refusal::Policy)], Order::InOrder)),
    (56, Case::Accepted(&[Report::Failed(Refusal::Content)], Order::InOrder)),
    (58, Case::Accepted(&[Report::Failed(Refusal::OptedOut)], Order::InOrder)),
    (59, Case::Accepted(&[Report::Failed(Refusal::Auth)], Order::InOrder)),
    (60, Case::Accepted(&[Report::Failed(Refusal::Blocked)], Order::InOrder)),
    // The message was delivered, whatever is reported later.
    (61, Case::Accepted(&[Report::Delivered, Report::Failed(Refusal::Soft)], Order::InOrder)),
];

impl Case {
    /// Returns the case of a recipient, by the last two of the digits in it.
    pub fn of(recipient: &str) -> Self {
        let mut digits = recipient.chars().rev().filter_map(|character| character.to_digit(10));
        let (ones, tens) = (digits.next().unwrap_or(1), digits.next().unwrap_or(0));
        let number = tens * 10 + ones;
        let found = CASES.iter().find(|(one, _)| u32::from(*one) == number);
        found.map_or(Self::Accepted(DELIVERED, Order::InOrder), |(_, case)| *case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_digits_choose() {
        assert_eq!(Case::of("+9990000002"), Case::Refused(Refusal::Address));
        assert_eq!(Case::of("whatsapp:+9990000031"), Case::Trouble(Trouble::Silent));
        assert_eq!(Case::of("https://push.example/x20"), Case::Refused(Refusal::Throttled(Wait::Seconds)));
        for other in ["", "abc", "+9990000099", "+9990000000"] {
            assert_eq!(Case::of(other), Case::Accepted(DELIVERED, Order::InOrder), "{other}");
        }
        let mut numbers: Vec<_> = CASES.iter().map(|(number, _)| number).collect();
        numbers.sort();
        numbers.dedup();
        assert_eq!(numbers.len(), CASES.len());
    }
}
