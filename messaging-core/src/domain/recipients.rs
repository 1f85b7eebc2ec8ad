//! Who receives an email: each address once.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::domain::address::normalize_email;

/// Where a recipient was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipientKind {
    /// `to`: the message's status follows this one.
    To,
    /// `cc`.
    Cc,
    /// `bcc`: appears in no header.
    Bcc,
}

/// One recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    /// Where it was named first.
    pub kind: RecipientKind,
    /// The address.
    pub address: String,
}

/// The recipients of a message. An address that is named twice receives once, at its first place.
pub fn all(to: &str, cc: &[String], bcc: &[String]) -> Vec<Recipient> {
    let mut seen = HashSet::new();
    let named = |kind, list: &[String]| {
        list.iter().map(|address| Recipient { kind, address: address.clone() }).collect::<Vec<_>>()
    };
    [named(RecipientKind::To, &[to.to_owned()]), named(RecipientKind::Cc, cc), named(RecipientKind::Bcc, bcc)]
        .into_iter()
        .flatten()
        .filter(|recipient| seen.insert(normalize_email(&recipient.address)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_once() {
        let text = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let found = all(
            "a@b.co",
            &text(&["c@b.co", "A@B.co"]),
            &text(&["c@b.co", "d@b.co", "d@b.co", "d@b\u{fc}.co", "d@xn--b-xga.co"]),
        );
        let shown: Vec<_> = found.iter().map(|one| (one.kind, one.address.as_str())).collect();
        assert_eq!(
            shown,
            [(RecipientKind::To, "a@b.co"), (RecipientKind::Cc, "c@b.co"), (RecipientKind::Bcc, "d@b.co"), (RecipientKind::Bcc, "d@b\u{fc}.co")]
        );
    }
}
