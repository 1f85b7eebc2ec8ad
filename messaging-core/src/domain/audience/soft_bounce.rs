//! Addresses with repeated soft bounces.
//!
//! Contract section 10, "Automatic": five final soft bounces in a row, with no delivery between, count as a hard one. A
//! streak is counted: it grows with each such bounce and ends with any delivery, or when it is long enough to suppress
//! the address.

use crate::domain::channel::Channel;
use crate::domain::delivery::bounce::BounceClass;
use crate::ids::WorkspaceId;

/// Number of soft bounces in a row that suppresses an address.
pub const LIMIT: u32 = 5;

/// Detail of the resulting suppression.
pub const DETAIL: &str = "soft_bounce_limit";

/// Soft bounces in a row of one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streak {
    /// Workspace whose messages bounced.
    pub workspace_id: WorkspaceId,
    /// The channel.
    pub channel: Channel,
    /// The address, normalised.
    pub address: String,
    /// Number of soft bounces in a row so far.
    pub length: u32,
}

impl Streak {
    /// True if one more bounce reaches the limit.
    pub const fn is_full(&self) -> bool {
        self.length + 1 >= LIMIT
    }
}

/// True if a bounce of a class belongs to a streak. Refusals for policy or content concern the sender and the content;
/// a hard bounce suppresses at once.
pub const fn counts(class: BounceClass) -> bool {
    matches!(class, BounceClass::MailboxFull | BounceClass::Unreachable | BounceClass::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fifth_is_one_too_many() {
        let streak = |length| Streak {
            workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            channel: Channel::Email,
            address: "a@example.org".to_owned(),
            length,
        };
        let full: Vec<_> = (0..7).map(|length| streak(length).is_full()).collect();
        assert_eq!(full, [false, false, false, false, true, true, true]);
    }

    #[test]
    fn only_what_is_about_the_mailbox_counts() {
        use BounceClass as C;
        let counted =
            [C::InvalidRecipient, C::InvalidDomain, C::MailboxFull, C::Policy, C::Content, C::Unreachable, C::Unknown]
                .map(counts);
        assert_eq!(counted, [false, false, true, false, false, true, true]);
    }
}
