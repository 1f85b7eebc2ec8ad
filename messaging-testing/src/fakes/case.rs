//! What becomes of a message at a fake, by the last two digits of its recipient.

/// The fate of a message at a fake provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Case {
    /// It is taken, and these reports follow, in this order.
    Accepted(&'static [Report], Order),
    /// It is refused.
    Refused(Refusal),
    /// Something is the matter with the answer.
    Trouble(Trouble),
}

/// Why a message is refused: a class of outcome in the provider's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Nobody has the address.
    Address,
    /// The recipient refuses us.
    Blocked,
    /// The recipient is on the provider's list of those who want nothing.
    OptedOut,
    /// The recipient cannot be reached.
    Soft,
    /// A policy of the provider or a filter.
    Policy,
    /// The message cannot be taken.
    Content,
    /// A failure of the provider.
    Retry,
    /// Too many requests of the account.
    Throttled(Wait),
    /// Too many messages for the recipient.
    ThrottledRecipient,
    /// The key or the account is refused.
    Auth,
}

/// How long the answer asks to wait (RFC 9110 section 10.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Seven seconds.
    Seconds,
    /// Until a date, which lies far ahead: 24 hours are granted.
    Date,
    /// It does not say.
    Absent,
    /// More seconds than fit in anything.
    Absurd,
    /// A word.
    Unreadable,
}

impl Wait {
    /// The header `Retry-After`, if there is one.
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

/// Something is the matter with the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// It comes late; see [`FakeProvider::slow`](super::FakeProvider::slow).
    Slow,
    /// It never comes, and the connection stays open.
    Silent,
    /// The connection is reset when the request was read.
    Reset,
    /// The message is taken, its reports follow, and the connection is reset before the answer.
    ResetWhenTaken,
    /// 200 with JSON that is cut off.
    Broken,
    /// 200 with 3 MiB of JSON.
    Huge,
    /// 307 to another path.
    Redirect,
    /// 408.
    RequestTimeout,
    /// 401 the first time, then the message is taken.
    UnauthorizedOnce,
}

/// What a provider reports about a message that it has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Report {
    /// It has left.
    Sent,
    /// The recipient has it.
    Delivered,
    /// The recipient has read it.
    Read,
    /// It did not arrive.
    Failed(Refusal),
}

/// When and how reports come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// After the answer, one after another.
    InOrder,
    /// The last first.
    Reversed,
    /// Each two times.
    Twice,
    /// Before the answer to the request.
    BeforeAnswer,
    /// About a message that nobody knows, and then in order.
    Unknown,
    /// With a wrong signature.
    Forged,
    /// Without a signature.
    Unsigned,
    /// Signed with the secret that was valid before.
    OldSecret,
    /// In one call where the provider batches.
    Batched,
    /// In a call of 3 MiB and a bit.
    Large,
}

/// The way in which a callback is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signature {
    /// As it should be.
    Valid,
    /// Wrongly.
    Forged,
    /// Not at all.
    Missing,
    /// With another secret than the one that is valid.
    OldSecret,
}

const DELIVERED: &[Report] = &[Report::Sent, Report::Delivered];
const READ: &[Report] = &[Report::Sent, Report::Delivered, Report::Read];

/// What becomes of a message by the last two digits; other recipients are as 01. The first seven are those of the
/// sandbox (contract section 4.3).
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
    // No reports at all.
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
    // It arrived, whatever is said later.
    (61, Case::Accepted(&[Report::Delivered, Report::Failed(Refusal::Soft)], Order::InOrder)),
];

impl Case {
    /// The case of a recipient, by the last two of the digits in it.
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
