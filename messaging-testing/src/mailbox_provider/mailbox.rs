//! Mailboxes of a simulated site.

/// The mailbox behind an address, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mailbox {
    /// A recipient who never complains.
    Content,
    /// The mailbox does not exist.
    Unknown,
    /// A recipient who reports every message as spam.
    Complaining,
}

/// Chooses the mailbox of an address.
pub(super) type Mailboxes = dyn Fn(&str) -> Mailbox + Send + Sync;

impl Mailbox {
    /// Returns the mailbox of an address, where so many addresses in ten thousand are unknown, and so many complain;
    /// always the same for one address, whatever the case of its letters.
    ///
    /// ```
    /// use messaging_testing::Mailbox;
    ///
    /// assert_eq!(Mailbox::by_share("ann@one.test", 0, 0), Mailbox::Content);
    /// assert_eq!(Mailbox::by_share("ann@one.test", 10_000, 0), Mailbox::Unknown);
    /// assert_eq!(Mailbox::by_share("ann@one.test", 0, 10_000), Mailbox::Complaining);
    /// ```
    pub fn by_share(address: &str, unknown: u64, complaining: u64) -> Self {
        let place = hash(address) % 10_000;
        if place < unknown {
            Self::Unknown
        } else if place < unknown.saturating_add(complaining) {
            Self::Complaining
        } else {
            Self::Content
        }
    }
}

/// FNV-1a with a final mix, so that addresses that differ in a digit lie far apart.
fn hash(address: &str) -> u64 {
    let bytes = address.bytes().map(|byte| u64::from(byte.to_ascii_lowercase()));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ byte).wrapping_mul(0x0100_0000_01b3));
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept_to() {
        let all: Vec<_> =
            (0..20_000).map(|n| Mailbox::by_share(&format!("reader{n}@d{}.test", n % 7), 400, 50)).collect();
        let count = |kind| all.iter().filter(|mailbox| **mailbox == kind).count();
        assert!((600..=1000).contains(&count(Mailbox::Unknown)), "{}", count(Mailbox::Unknown));
        assert!((50..=150).contains(&count(Mailbox::Complaining)), "{}", count(Mailbox::Complaining));
    }

    #[test]
    fn an_address_keeps_its_mailbox() {
        for n in 0..100 {
            let address = format!("Ann{n}@B.test");
            let lower = Mailbox::by_share(&address.to_lowercase(), 3000, 3000);
            assert_eq!(Mailbox::by_share(&address, 3000, 3000), lower);
        }
    }
}
