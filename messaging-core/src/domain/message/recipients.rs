//! Recipients of an email, each address once.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::domain::channel::address::{EmailAddress, normalize_email};

/// Field of the message that names a recipient, or a further device of the contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipientKind {
    /// `to`: the message's status follows this one.
    To,
    /// `cc`.
    Cc,
    /// `bcc`: appears in no header.
    Bcc,
    /// Another device of the contact that a push message is for. The message's status follows the device that is `to`.
    Device,
}

/// One recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    /// Kind of the recipient; if several fields name the address, that of the first.
    pub kind: RecipientKind,
    /// The address.
    pub address: String,
    /// True if an attempt was put off for another reason than a failure of the provider. Otherwise a message that
    /// expires has failed and not bounced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_deferred: bool,
}

impl Recipient {
    /// Returns a recipient before the first attempt.
    pub const fn new(kind: RecipientKind, address: String) -> Self {
        Self { kind, address, was_deferred: false }
    }

    /// Returns the domain of an email address in A-labels, by which delivery is divided; if it has none, the whole
    /// address in its normalized spelling.
    pub fn domain(&self) -> String {
        EmailAddress::parse(&self.address)
            .map_or_else(|_| normalize_email(&self.address), |address| address.ascii_domain())
    }
}

/// Identifies a recipient in stored jobs without its address, which only the message and its request have: a job that
/// waits for hours holds nothing that would have to be erased.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecipientKey(String);

impl RecipientKey {
    /// Returns the key of an address: the beginning of its SHA-256 digest, whatever its case, in hexadecimal digits.
    pub fn of(address: &str) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, normalize_email(address).as_bytes());
        Self(digest.as_ref()[..10].iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Returns the recipients of a message. An address that is named twice occurs once, at its first place.
pub fn all(to: &str, cc: &[String], bcc: &[String]) -> Vec<Recipient> {
    let mut seen = HashSet::new();
    let named =
        |kind, list: &[String]| list.iter().map(|address| Recipient::new(kind, address.clone())).collect::<Vec<_>>();
    [named(RecipientKind::To, &[to.to_owned()]), named(RecipientKind::Cc, cc), named(RecipientKind::Bcc, bcc)]
        .into_iter()
        .flatten()
        .filter(|recipient| seen.insert(normalize_email(&recipient.address)))
        .collect()
}

/// Returns the domains of recipients, each once, in the order of the recipients.
pub fn domains(recipients: &[Recipient]) -> Vec<String> {
    let mut seen = HashSet::new();
    recipients.iter().map(Recipient::domain).filter(|domain| seen.insert(domain.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_an_address_in_any_case() {
        let key = RecipientKey::of("Ann@Example.com");
        let kept = serde_json::to_string(&key).unwrap();
        assert!(kept.len() == 22 && kept != serde_json::to_string(&RecipientKey::of("bob@example.com")).unwrap());
        assert_eq!(serde_json::from_str::<RecipientKey>(&kept).unwrap(), key);
    }

    #[test]
    fn each_address_once() {
        let text = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let found = all("a@b.co", &text(&["c@b.co", "A@B.co"]), &text(&["c@b.co", "d@b.co", "d@b.co"]));
        let shown: Vec<_> = found.iter().map(|one| (one.kind, one.address.as_str())).collect();
        assert_eq!(
            shown,
            [(RecipientKind::To, "a@b.co"), (RecipientKind::Cc, "c@b.co"), (RecipientKind::Bcc, "d@b.co")]
        );
    }

    #[test]
    fn both_spellings_of_a_domain_are_one() {
        let copies = ["b@BÜCHER.example", "c@xn--bcher-kva.example", "d@b.co", "e@B.CO"];
        let found = all("a@bücher.example", &copies.map(ToOwned::to_owned), &[]);
        assert_eq!(domains(&found), ["xn--bcher-kva.example", "b.co"]);
    }
}
