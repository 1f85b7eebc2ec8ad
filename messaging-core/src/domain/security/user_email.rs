//! The name people sign in with.
//!
//! Looser than a recipient's address, because nothing is sent there: `admin@localhost` is one.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::domain::channel::address::normalize_email;

/// The longest sign-in name, in octets.
pub const MAX_LENGTH: usize = 254;

/// A user's email.
///
/// Invariant: one `@` with something on both sides, no white space, no control characters, at most
/// [`MAX_LENGTH`] octets, spelled as [`normalize_email`] does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct UserEmail(String);

/// The text cannot be a user's email.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an email address")]
pub struct MalformedUserEmail;

impl UserEmail {
    /// The email in its one spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserEmail {
    type Err = MalformedUserEmail;
    fn from_str(text: &str) -> Result<Self, MalformedUserEmail> {
        let (local, domain) = text.split_once('@').ok_or(MalformedUserEmail)?;
        let email = normalize_email(text);
        let well_formed = !local.is_empty()
            && !domain.is_empty()
            && !domain.contains('@')
            && email.len() <= MAX_LENGTH
            && !text.chars().any(|c| c.is_whitespace() || c.is_control());
        if well_formed { Ok(Self(email)) } else { Err(MalformedUserEmail) }
    }
}

impl fmt::Display for UserEmail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for UserEmail {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for UserEmail {
    fn schema_name() -> Cow<'static, str> {
        "UserEmail".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "user-email", "maxLength": MAX_LENGTH})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let parsed = text.parse::<UserEmail>().ok();
        assert_eq!(parsed.as_ref().map(UserEmail::as_str), expected, "{text}");
    }

    #[test]
    fn loose_but_not_shapeless() {
        check("admin@localhost", Some("admin@localhost"));
        check("Ann.Lee@Example.COM", Some("ann.lee@example.com"));
        check("jörg@bücher.example", Some("jörg@xn--bcher-kva.example"));
        check("\u{212a}im@example.com", Some("\u{212a}im@example.com"));
        for bad in ["", "@", "a@", "@b", "ab", "a@b@c", "a b@c", "a@b\n", "a\u{0}@b", "a@b\u{a0}c"] {
            check(bad, None);
        }
        let longest = format!("{}@b", "a".repeat(252));
        check(&longest, Some(&longest));
        check(&format!("a{longest}"), None);
    }
}
