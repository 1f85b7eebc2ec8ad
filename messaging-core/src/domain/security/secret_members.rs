//! Secrets in JSON, found by the names of members and by how tokens of ours begin, and crossed out before anything is
//! kept for people to read: logs of requests and audit logs.
//!
//! A member is taken for a secret too readily rather than too rarely: a value that is missing in a log harms nobody.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::Value;

use crate::domain::channel::provider::{self, Role};

/// The text that stands for a secret.
pub const HIDDEN: &str = "•••";

/// Parts of names, in small letters without separators, of which one makes a member a secret.
const PARTS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "authorization",
    "apikey",
    "privatekey",
    "signingkey",
    "accesskey",
    "credential",
    "ticket",
    "cookie",
    "assertion",
    "recoverycode",
    "callbackurl",
    "uploadurl",
];

/// Names, in the same form, that make a member a secret when they are the whole name.
const NAMES: &[&str] = &["auth", "p256dh", "otp", "pin"];

/// Beginnings of texts that are secrets of ours wherever they stand: API keys, sessions, second factors, secrets of webhooks, and what links
/// of tickets, uploads and callbacks go on with.
const MARKERS: &[&str] = &[
    "mk_live_",
    "ms_",
    "mf_",
    "mp_",
    "otpauth://",
    "whsec_",
    "#ticket=",
    "/uploads/",
    "/callbacks/",
    "Bearer ",
    "Basic ",
];

/// Length of a text after a marker from which on it is taken for a secret.
const LEAST_SECRET: usize = 16;

/// Names of the settings of providers that are secrets.
static OF_PROVIDERS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let members = provider::all().iter().flat_map(|kind| &kind.members);
    members.filter(|member| member.role == Role::Secret).map(|member| plain(&member.name)).collect()
});

/// True if a member of this name holds a secret.
pub fn is_secret(name: &str) -> bool {
    let name = plain(name);
    NAMES.contains(&name.as_str())
        || PARTS.iter().any(|part| name.contains(part))
        || OF_PROVIDERS.contains(name.as_str())
}

/// True if a text holds a secret of ours.
pub fn holds_secret(text: &str) -> bool {
    MARKERS.iter().any(|marker| {
        text.match_indices(marker).any(|(place, found)| {
            let is_within_word = text[..place].ends_with(|before: char| before.is_ascii_alphanumeric())
                && marker.starts_with(|first: char| first.is_ascii_alphanumeric());
            let rest = &text[place + found.len()..];
            let secret = rest.bytes().take_while(u8::is_ascii_graphic).take(LEAST_SECRET).count();
            !is_within_word && secret == LEAST_SECRET
        })
    })
}

/// Crosses out every secret in a value.
pub fn hide_secrets(value: &mut Value) {
    match value {
        Value::String(text) if holds_secret(text) => HIDDEN.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(hide_secrets),
        Value::Object(members) => {
            for (name, member) in members {
                if is_secret(name) {
                    hide(member);
                } else {
                    hide_secrets(member);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Crosses a value out; one that says nothing stays.
fn hide(value: &mut Value) {
    if !matches!(value, Value::Null | Value::Bool(_)) {
        *value = Value::from(HIDDEN);
    }
}

/// A name in small letters without separators.
fn plain(name: &str) -> String {
    name.chars().filter(|sign| sign.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        let secret = [
            "password",
            "Password",
            "new_password",
            "secret",
            "client-secret",
            "auth_token",
            "token",
            "Authorization",
            "X-Api-Key",
            "api_key",
            "private_key",
            "credentials",
            "ticket",
            "Set-Cookie",
            "callback_url",
            "auth",
            "signature_secret",
            "upload_url",
        ];
        for name in secret {
            assert!(is_secret(name), "{name}");
        }
        for name in ["name", "key", "email", "subject", "author", "prefix", "pinned", "url", "events", "html"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn every_secret_setting_of_a_provider_is_known() {
        for kind in provider::all() {
            for member in kind.members.iter().filter(|member| member.role == Role::Secret) {
                assert!(is_secret(&member.name), "{} of {}", member.name, kind.name);
            }
        }
    }

    #[test]
    fn secrets_of_ours_are_known_wherever_they_stand() {
        for text in [
            "mk_live_ab12cd34ef56.4vQxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "the key mk_live_ab12cd34ef56.4vQxxxxxxxx",
            "ms_0123456789abcdef0123",
            "mf_0123456789abcdef0123",
            "otpauth://totp/mail.example.com:ann",
            "whsec_0123456789abcdef",
            "https://mail.example/console#ticket=0123456789abcdef",
            "https://mail.example/uploads/0123456789abcdef",
            "Bearer 0123456789abcdef",
        ] {
            assert!(holds_secret(text), "{text}");
        }
        for text in
            ["mk_live_ab12", "terms_and_conditions_of_everything", "Bearer of bad news, once more", "whsec_", ""]
        {
            assert!(!holds_secret(text), "{text}");
        }
    }

    #[test]
    fn secrets_are_crossed_out_at_every_depth() {
        let mut value = json!({
            "name": "backend",
            "key": "mk_live_ab12cd34ef56.4vQ0123456789",
            "config": {"password": {"deep": 1}, "host": "mx", "tls": null, "auth_token": null},
            "nodes": [{"headers": {"X-API-Key": "abc", "Accept": "text/plain"}}],
            "tokens": ["a", "b"],
            "reset_password": true,
        });
        hide_secrets(&mut value);
        let expected = json!({
            "name": "backend",
            "key": HIDDEN,
            "config": {"password": HIDDEN, "host": "mx", "tls": null, "auth_token": null},
            "nodes": [{"headers": {"X-API-Key": HIDDEN, "Accept": "text/plain"}}],
            "tokens": HIDDEN,
            "reset_password": true,
        });
        assert_eq!(value, expected);
    }
}
