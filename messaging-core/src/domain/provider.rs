//! The providers of each channel and the settings they take.
//!
//! Contract section 16: the second table.

use serde_json::{Map, Value};

use crate::domain::channel::Channel;
use crate::violation::{FieldCode, Violations};

/// The text that stands for a stored secret in answers, and keeps it when it is sent back.
pub const MASK: &str = "***";

/// The provider of email that delivers to the recipients' own servers; it needs no settings.
pub const BUILTIN: &str = "builtin";

/// One provider of a channel.
#[derive(Debug, PartialEq, Eq)]
pub struct ProviderKind {
    /// The channel.
    pub channel: Channel,
    /// The name.
    pub name: &'static str,
    /// Its settings.
    pub members: &'static [Member],
}

/// One setting of a provider.
#[derive(Debug, PartialEq, Eq)]
pub struct Member {
    /// The name in `config`.
    pub name: &'static str,
    /// Whether it must be given.
    pub required: bool,
    /// What it is for.
    pub role: Role,
    /// What it holds.
    pub form: Form,
}

/// What a setting is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Stored sealed, shown as `***`.
    Secret,
    /// Says where the secrets go or to which account they belong: a stored secret is only kept while it is
    /// unchanged, so that nobody can have a secret sent to a host of their own without knowing it.
    Destination,
    /// Anything else, such as the sender's name.
    Detail,
}

impl Member {
    /// Whether it is stored sealed.
    pub const fn is_secret(&self) -> bool {
        matches!(self.role, Role::Secret)
    }
}

impl ProviderKind {
    /// Whether two configurations send their secrets to the same place and account.
    pub fn has_same_destination(&self, one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
        let given =
            |config: &Map<String, Value>, name: &str| config.get(name).filter(|value| !value.is_null()).cloned();
        let mut destinations = self.members.iter().filter(|member| member.role == Role::Destination);
        destinations.all(|member| given(one, member.name) == given(other, member.name))
    }
}

/// What a setting holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// 1 to 4096 characters without control characters.
    Text,
    /// A host name or address.
    Host,
    /// 1 to 65535.
    Port,
    /// An absolute http or https URL.
    Url,
    /// `starttls`, `tls` or `none`.
    Tls,
    /// A JSON document: a string or an object, at most 64 KiB.
    Document,
}

const fn secret(name: &'static str, required: bool, form: Form) -> Member {
    Member { name, required, role: Role::Secret, form }
}

const fn destination(name: &'static str, required: bool, form: Form) -> Member {
    Member { name, required, role: Role::Destination, form }
}

const fn detail(name: &'static str, required: bool, form: Form) -> Member {
    Member { name, required, role: Role::Detail, form }
}

const fn provider(channel: Channel, name: &'static str, members: &'static [Member]) -> ProviderKind {
    ProviderKind { channel, name, members }
}

/// The longest text setting.
const MAX_TEXT: usize = 4096;
/// The longest document setting; a service account is about 2.5 KiB.
const MAX_DOCUMENT: usize = 64 << 10;

/// Every provider of every channel; the first of a channel is its default.
pub(crate) const PROVIDERS: &[ProviderKind] = &[
    provider(Channel::Email, BUILTIN, &[]),
    provider(
        Channel::Email,
        "smtp",
        &[
            destination("host", true, Form::Host),
            destination("port", true, Form::Port),
            destination("username", false, Form::Text),
            secret("password", false, Form::Text),
            destination("tls", false, Form::Tls),
        ],
    ),
    provider(Channel::Email, "sandbox", &[]),
    provider(
        Channel::Sms,
        "http",
        &[
            destination("api_base", true, Form::Url),
            detail("sender", true, Form::Text),
            secret("token", false, Form::Text),
        ],
    ),
    provider(
        Channel::Sms,
        "twilio",
        &[
            destination("api_base", false, Form::Url),
            detail("sender", true, Form::Text),
            destination("account_sid", true, Form::Text),
            secret("auth_token", true, Form::Text),
        ],
    ),
    provider(Channel::Sms, "sandbox", &[]),
    provider(
        Channel::Push,
        "fcm",
        &[
            destination("api_base", false, Form::Url),
            destination("project_id", true, Form::Text),
            secret("service_account", true, Form::Document),
        ],
    ),
    provider(Channel::Push, "sandbox", &[]),
    provider(
        Channel::Telegram,
        "bot_api",
        &[destination("api_base", false, Form::Url), secret("bot_token", true, Form::Text)],
    ),
    provider(Channel::Telegram, "sandbox", &[]),
    provider(
        Channel::Whatsapp,
        "cloud_api",
        &[
            destination("api_base", false, Form::Url),
            destination("phone_number_id", true, Form::Text),
            secret("access_token", true, Form::Text),
            secret("app_secret", false, Form::Text),
        ],
    ),
    provider(Channel::Whatsapp, "sandbox", &[]),
    provider(
        Channel::Viber,
        "http",
        &[
            destination("api_base", true, Form::Url),
            detail("sender", true, Form::Text),
            secret("token", false, Form::Text),
        ],
    ),
    provider(Channel::Viber, "sandbox", &[]),
];

/// A provider by name.
pub fn find(channel: Channel, name: &str) -> Option<&'static ProviderKind> {
    PROVIDERS.iter().find(|kind| kind.channel == channel && kind.name == name)
}

/// The provider that a channel without settings shows.
pub fn default_of(channel: Channel) -> &'static ProviderKind {
    PROVIDERS.iter().find(|kind| kind.channel == channel).expect("every channel has a provider")
}

/// The names of the members that are stored sealed; none for a provider that is not known.
pub fn secret_members(channel: Channel, name: &str) -> impl Iterator<Item = &'static str> {
    let members = find(channel, name).map_or(&[][..], |kind| kind.members);
    members.iter().filter(|member| member.is_secret()).map(|member| member.name)
}

/// The port on which SMTP has TLS from the first byte by registration (RFC 8314 section 7.3).
const SUBMISSIONS_PORT: u64 = 465;

/// Puts in what is meant where a setting is left out: how the connection is secured.
pub fn complete(kind: &ProviderKind, config: &mut Map<String, Value>) {
    for member in kind.members.iter().filter(|member| member.form == Form::Tls) {
        if config.get(member.name).is_none_or(Value::is_null) {
            let is_submissions = config.get("port").and_then(Value::as_u64) == Some(SUBMISSIONS_PORT);
            config.insert(member.name.to_owned(), if is_submissions { "tls" } else { "starttls" }.into());
        }
    }
}

/// Checks the settings of a provider; pointers are below `/config`. `null` counts as not given.
pub fn check(kind: &ProviderKind, config: &Map<String, Value>, violations: &mut Violations) {
    for member in kind.members {
        let at = format!("/config/{}", member.name);
        match config.get(member.name).filter(|value| !value.is_null()) {
            None if member.required => violations.add(at, FieldCode::Required, "is required by this provider"),
            None => {}
            Some(Value::String(text)) if text.is_empty() && member.required => {
                violations.add(at, FieldCode::Required, "is required by this provider");
            }
            Some(value) => {
                if let Err((code, message)) = check_member(member.form, value) {
                    violations.add(at, code, message);
                }
            }
        }
    }
}

fn check_member(form: Form, value: &Value) -> Result<(), (FieldCode, &'static str)> {
    match (form, value) {
        (Form::Port, Value::Number(number)) => match number.as_u64() {
            Some(1..=65535) => Ok(()),
            _ => Err((FieldCode::OutOfRange, "must be from 1 to 65535")),
        },
        (Form::Port, _) => Err((FieldCode::InvalidType, "must be an integer")),
        (Form::Document, Value::Object(_) | Value::String(_)) => {
            let length = value.as_str().map_or_else(|| value.to_string().len(), str::len);
            if length <= MAX_DOCUMENT { Ok(()) } else { Err((FieldCode::TooLarge, "must be at most 64 KiB")) }
        }
        (Form::Document, _) => Err((FieldCode::InvalidType, "must be an object or a string")),
        (_, Value::String(text)) => check_text(form, text),
        _ => Err((FieldCode::InvalidType, "must be a string")),
    }
}

fn check_text(form: Form, text: &str) -> Result<(), (FieldCode, &'static str)> {
    if text.chars().count() > MAX_TEXT {
        return Err((FieldCode::TooLong, "must have at most 4096 characters"));
    }
    if text.chars().any(char::is_control) {
        return Err((FieldCode::InvalidFormat, "must not contain control characters"));
    }
    let fits = match form {
        Form::Host => is_host(text),
        Form::Url => text.parse::<http::Uri>().is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
        }),
        Form::Tls => {
            return if matches!(text, "starttls" | "tls" | "none") {
                Ok(())
            } else {
                Err((FieldCode::UnknownValue, "must be starttls, tls or none"))
            };
        }
        Form::Text | Form::Port | Form::Document => true,
    };
    if fits { Ok(()) } else { Err((FieldCode::InvalidFormat, "is not well formed")) }
}

fn is_host(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
        || (text.len() <= 253
            && !text.is_empty()
            && text.split('.').all(|label| {
                (1..=63).contains(&label.len())
                    && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_but_the_sender_says_where_secrets_go() {
        for kind in PROVIDERS {
            for member in kind.members {
                let expected = matches!(member.name, "sender");
                assert_eq!(member.role == Role::Detail, expected, "{} {} {}", kind.channel, kind.name, member.name);
            }
        }
    }
}
