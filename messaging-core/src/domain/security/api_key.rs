//! API keys: their text form, and the rules of their validity.
//!
//! Contract sections 2.1 and 2.2.

pub mod expiry;
pub mod rotation;
pub mod usage;

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::domain::security::digest::Digest;
use crate::entropy::Entropy;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::scope::Scope;
use crate::time::Timestamp;

const MARKER: &str = "mk_live_";
const PREFIX_LENGTH: usize = 12;
const SECRET_LENGTH: usize = 40;

/// A key as stored, without the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// Its id.
    pub id: ApiKeyId,
    /// Workspace that the key gives access to.
    pub workspace_id: WorkspaceId,
    /// 1 to 100 characters.
    pub name: String,
    /// Marker and prefix, `mk_live_ab12cd34ef56`, which are shown and by which the key is found.
    pub prefix: String,
    /// SHA-256 of the secret.
    pub secret_digest: Digest,
    /// Scopes of the key: the parts of the API that it gives access to.
    pub scopes: Vec<Scope>,
    /// Requests a minute.
    pub rate_limit: u32,
    /// Addresses and blocks from which the key works; empty means all.
    pub ip_allowlist: Vec<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Key that this one replaced by a rotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_from: Option<ApiKeyId>,
    /// Key that replaced this one by a rotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<ApiKeyId>,
    /// Days before its end at which the last warning was given, see [`expiry::WARN_DAYS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warned_days: Option<u8>,
}

/// State of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeyStatus {
    /// The key works.
    Active,
    /// Another key has replaced it; it works until the overlap ends.
    Replaced,
    /// The key has expired.
    Expired,
    /// The key was revoked.
    Revoked,
}

impl ApiKeyStatus {
    /// Returns the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Replaced => "replaced",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl ApiKey {
    /// Returns the state of the key at `now`.
    pub fn status(&self, now: Timestamp) -> ApiKeyStatus {
        if self.revoked_at.is_some() {
            ApiKeyStatus::Revoked
        } else if !self.is_live(now) {
            ApiKeyStatus::Expired
        } else if self.replaced_by.is_some() {
            ApiKeyStatus::Replaced
        } else {
            ApiKeyStatus::Active
        }
    }

    /// True if the key works at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    /// True if the key has the scope.
    pub fn covers(&self, wanted: Scope) -> bool {
        self.scopes.iter().any(|held| held.covers(wanted))
    }

    /// True if the key works from `address`. IPv4-mapped IPv6 addresses count as IPv4.
    pub fn admits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.ip_allowlist.is_empty()
            || self.ip_allowlist.iter().any(|entry| parse_block(entry).is_some_and(|block| block.contains(&address)))
    }
}

/// Parses an address or a CIDR block.
pub fn parse_block(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>()
        .ok()
        .or_else(|| text.parse::<IpAddr>().ok().map(|address| IpNet::from(address.to_canonical())))
}

/// The two halves of a key's text form.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText<'a> {
    /// Marker and prefix.
    pub prefix: &'a str,
    /// The secret.
    pub secret: &'a str,
}

impl<'a> KeyText<'a> {
    /// Splits `^mk_live_[a-z0-9]{12}\.[A-Za-z0-9]{40}$`.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (prefix, secret) = text.split_once('.')?;
        let well_formed = prefix.strip_prefix(MARKER).is_some_and(|rest| {
            rest.len() == PREFIX_LENGTH && rest.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
        }) && secret.len() == SECRET_LENGTH
            && secret.bytes().all(|b| b.is_ascii_alphanumeric());
        well_formed.then_some(Self { prefix, secret })
    }
}

/// Returns a new key's prefix and secret.
pub fn generate(entropy: &dyn Entropy) -> (String, String) {
    const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    const MIXED: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let prefix = format!("{MARKER}{}", random_text(entropy, LOWER, PREFIX_LENGTH));
    (prefix, random_text(entropy, MIXED, SECRET_LENGTH))
}

/// Returns `length` characters of `alphabet`, each equally likely.
pub fn random_text(entropy: &dyn Entropy, alphabet: &[u8], length: usize) -> String {
    // Bytes from the uneven end of the range are discarded, so that no character is favored.
    let even = 256 - 256 % alphabet.len();
    let mut text = String::with_capacity(length);
    let mut buffer = [0_u8; 64];
    while text.len() < length {
        entropy.fill(&mut buffer);
        for byte in buffer {
            if usize::from(byte) < even && text.len() < length {
                text.push(char::from(alphabet[usize::from(byte) % alphabet.len()]));
            }
        }
    }
    text
}

/// Returns a key without scopes that never expires.
#[cfg(test)]
pub(crate) fn sample(created_at: Timestamp) -> ApiKey {
    ApiKey {
        id: "key_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        name: "backend".to_owned(),
        prefix: "mk_live_ab12cd34ef56".to_owned(),
        secret_digest: Digest::of(""),
        scopes: Vec::new(),
        rate_limit: 600,
        ip_allowlist: Vec::new(),
        created_at,
        expires_at: None,
        revoked_at: None,
        rotated_from: None,
        replaced_by: None,
        warned_days: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    #[test]
    fn generated_keys_have_the_documented_form() {
        let (prefix, secret) = generate(&SystemEntropy::default());
        let text = format!("{prefix}.{secret}");
        let parsed = KeyText::parse(&text).unwrap();
        assert_eq!((parsed.prefix, parsed.secret), (prefix.as_str(), secret.as_str()));
    }

    #[test]
    fn other_texts_are_no_keys() {
        let secret = "a".repeat(40);
        for bad in [
            String::new(),
            format!("mk_live_ab12cd34ef56{secret}"),
            format!("mk_live_AB12cd34ef56.{secret}"),
            format!("mk_test_ab12cd34ef56.{secret}"),
            format!("mk_live_ab12cd34ef5.{secret}"),
            format!("mk_live_ab12cd34ef56.{secret}a"),
            format!("mk_live_ab12cd34ef56.{}-", &secret[1..]),
        ] {
            assert!(KeyText::parse(&bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_key_has_the_state_that_says_most() {
        let (at, other) = (Timestamp::from_millis, "key_01JB3Q8Z5N6W7X8Y9ZABCDEFGJ".parse().unwrap());
        let key = |expires_at, revoked_at, replaced_by| {
            ApiKey { expires_at, revoked_at, replaced_by, ..sample(Timestamp::from_millis(0)) }.status(at(10)).as_str()
        };
        assert_eq!(key(None, None, None), "active");
        assert_eq!(key(Some(at(11)), None, None), "active");
        assert_eq!(key(Some(at(11)), None, Some(other)), "replaced");
        assert_eq!(key(Some(at(10)), None, Some(other)), "expired");
        assert_eq!(key(Some(at(9)), Some(at(3)), Some(other)), "revoked");
    }

    #[test]
    fn blocks_admit_what_they_contain() {
        let key = |list: &[&str]| ApiKey {
            ip_allowlist: list.iter().map(ToString::to_string).collect(),
            ..sample(Timestamp::from_millis(0))
        };
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(key(&[]).admits(address("192.0.2.1")));
        assert!(key(&["10.0.0.0/8"]).admits(address("10.9.8.7")));
        assert!(key(&["10.0.0.0/8"]).admits(address("::ffff:10.9.8.7")));
        assert!(!key(&["10.0.0.0/8"]).admits(address("11.0.0.1")));
        assert!(key(&["192.0.2.1", "2001:db8::/32"]).admits(address("2001:db8::1")));
        assert!(!key(&["192.0.2.1"]).admits(address("192.0.2.2")));
    }
}
