//! Secrets in JSON, found by the names of members, by the prefixes of this server's tokens and by parts of URLs, and
//! crossed out before logs of requests and audit logs are stored.
//!
//! A member is taken for a secret rather too often than too rarely: a value that is missing in a log does no harm.

use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use serde_json::Value;

use crate::domain::channel::provider::{self, Role};

/// The text that stands for a secret.
pub const HIDDEN: &str = "•••";

/// Parts of names, in lower case without separators, any of which makes a member a secret.
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

/// The member with a person's present password in a request to change it. Unlike other secrets it is not stored.
pub(super) const OLD_PASSWORD: &str = "current";

/// Names, in the same form, that make a member a secret as a whole name.
const NAMES: &[&str] = &["auth", "xauth", "xkey", "p256dh", "otp", "pin", OLD_PASSWORD];

/// Names, in the same form, that make a parameter of a URL a secret as well.
const OF_URLS: &[&str] = &["key", "sig", "signature", "code"];

/// The member that holds the settings of a provider.
const SETTINGS: &str = "config";

/// Prefixes of this server's secrets, wherever they stand in a text: API keys, sessions, second factors, secrets of
/// webhooks, and the tokens in links of tickets, uploads and callbacks.
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

/// Minimum length of a text after a marker to be taken for a secret.
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

/// True if a text contains a secret of this server, or is a URL that contains one of its target.
pub fn holds_secret(text: &str) -> bool {
    is_telling_url(text) || holds_own(text)
}

/// Returns a text as it may be stored: crossed out if it holds a secret.
pub fn shown(text: String) -> String {
    if holds_secret(&text) { HIDDEN.to_owned() } else { text }
}

/// True for a URL with user info, or with a secret among its parameters. Other texts than URLs are not searched: pages
/// and mails are full of links that are for their readers.
fn is_telling_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_of_scheme = |octet: u8| octet.is_ascii_alphanumeric() || b"+-.".contains(&octet);
    if scheme.is_empty() || !scheme.bytes().all(is_of_scheme) || text.contains(char::is_whitespace) {
        return false;
    }
    let has_user = rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'));
    let is_telling = |parameter: &str| {
        let (name, value) = parameter.split_once('=').unwrap_or_default();
        !value.is_empty() && (is_secret(name) || OF_URLS.contains(&plain(name).as_str()))
    };
    has_user || rest.split(['?', '&', '#']).skip(1).any(is_telling)
}

/// True if a text contains a secret of this server.
fn holds_own(text: &str) -> bool {
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
    hide_secrets_and(value, &BTreeSet::new());
}

/// Crosses out every secret in a value, and in settings of providers also the members with these names: secrets of
/// providers that a program brings.
pub fn hide_secrets_and(value: &mut Value, of_settings: &BTreeSet<&str>) {
    hide_in(value, of_settings, false);
}

fn hide_in(value: &mut Value, of_settings: &BTreeSet<&str>, is_settings: bool) {
    match value {
        Value::String(text) if holds_secret(text) => HIDDEN.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| hide_in(item, of_settings, is_settings)),
        Value::Object(members) => {
            for (name, member) in members {
                if is_secret(name) || is_settings && of_settings.contains(name.as_str()) {
                    hide(member);
                } else {
                    hide_in(member, of_settings, is_settings || name == SETTINGS);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Crosses a value out; null and booleans stay.
fn hide(value: &mut Value) {
    if !matches!(value, Value::Null | Value::Bool(_)) {
        *value = Value::from(HIDDEN);
    }
}

/// Returns a name in lower case without separators.
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
            "current",
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
    fn a_url_that_opens_something_by_itself_is_a_secret() {
        for url in [
            "https://ann:hunter22@hooks.example.com/x",
            "https://ann@hooks.example.com",
            "postgres://app:hunter22@db/app",
            "https://hooks.example.com/x?token=abc",
            "https://hooks.example.com/x?a=1&api_key=abc#top",
            "https://hooks.example.com/x?sig=abc",
            "https://hooks.example.com/x?Key=abc",
            "https://app.example.com/reset#token=abc",
        ] {
            assert!(holds_secret(url), "{url}");
            assert_eq!(shown(url.to_owned()), HIDDEN);
        }
        for text in [
            "https://hooks.example.com/@ann?page=2&sort=name",
            "https://hooks.example.com/x?token=&tokens",
            "https://hooks.example.com/token=abc",
            "see https://hooks.example.com/x?token=abc",
            "<a href=\"https://hooks.example.com/x?token=abc\">",
            "://?token=abc",
            "token=abc",
        ] {
            assert!(!holds_secret(text), "{text}");
            assert_eq!(shown(text.to_owned()), text);
        }
    }

    #[test]
    fn secrets_of_a_provider_that_a_program_brings_are_crossed_out_in_its_settings() {
        let mut value = json!({"key": "plan", "config": {"key": "12345678", "routes": [{"key": 1}], "bucket": "mail"}});
        hide_secrets_and(&mut value, &BTreeSet::from(["key"]));
        let expected = json!({"key": "plan", "config": {"key": HIDDEN, "routes": [{"key": HIDDEN}], "bucket": "mail"}});
        assert_eq!(value, expected);
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
