//! The providers of each channel and the settings they take.
//!
//! Contract section 16: the second table.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::domain::channel::Channel;
use crate::input::faults_by_schema;
use crate::violation::{FieldCode, Violations, escape};

/// The text that stands for a stored secret in answers, and keeps it when it is sent back.
pub const MASK: &str = "***";

/// The provider of email that delivers to the recipients' own servers; it needs no settings.
pub const BUILTIN: &str = "builtin";

/// The provider of Viber that is a bot: its recipients are no phone numbers.
pub const VIBER_BOT: &str = "bot";

/// One provider of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderKind {
    /// The channel.
    pub channel: Channel,
    /// The name.
    pub name: String,
    /// Its settings.
    pub members: Vec<Member>,
    /// What its settings are checked against, besides the forms of the members: of a provider that a program brings.
    schema: Option<Value>,
}

/// One setting of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name in `config`.
    pub name: String,
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

/// Marks, in the JSON Schema of a provider's settings, one that neither is a secret nor says where secrets go.
pub const DETAIL: &str = "x-detail";

impl ProviderKind {
    /// A provider that a program brings, by the JSON Schema of its settings.
    ///
    /// Its properties are the settings. What is `writeOnly` is a secret: stored sealed and shown as `***`; it is a string.
    /// Anything else says where secrets go, so that a stored one is kept only while it is unchanged, unless it is marked
    /// with [`DETAIL`].
    pub fn from_schema(channel: Channel, name: &str, schema: Value) -> Self {
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let member = |(name, property): (&String, &Value)| Member {
            name: name.clone(),
            required: required.contains(&name.as_str()),
            role: if property["writeOnly"] == true {
                Role::Secret
            } else if property[DETAIL] == true {
                Role::Detail
            } else {
                Role::Destination
            },
            form: Form::BySchema,
        };
        let members: Vec<_> = schema["properties"].as_object().into_iter().flatten().map(member).collect();
        Self { channel, name: name.to_owned(), members, schema: Some(schema) }
    }

    /// A provider without settings.
    pub fn without_settings(channel: Channel, name: &str) -> Self {
        Self { channel, name: name.to_owned(), members: Vec::new(), schema: None }
    }

    /// The names of the settings that are stored sealed.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|member| member.is_secret()).map(|member| member.name.as_str())
    }

    /// Whether two configurations send their secrets to the same place and account.
    pub fn has_same_destination(&self, one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
        let given =
            |config: &Map<String, Value>, name: &str| config.get(name).filter(|value| !value.is_null()).cloned();
        let mut destinations = self.members.iter().filter(|member| member.role == Role::Destination);
        destinations.all(|member| given(one, &member.name) == given(other, &member.name))
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
    /// What the provider's own schema says.
    BySchema,
}

fn secret(name: &str, required: bool, form: Form) -> Member {
    Member { name: name.to_owned(), required, role: Role::Secret, form }
}

fn destination(name: &str, required: bool, form: Form) -> Member {
    Member { name: name.to_owned(), required, role: Role::Destination, form }
}

fn detail(name: &str, required: bool, form: Form) -> Member {
    Member { name: name.to_owned(), required, role: Role::Detail, form }
}

fn provider(channel: Channel, name: &str, members: Vec<Member>) -> ProviderKind {
    ProviderKind { channel, name: name.to_owned(), members, schema: None }
}

/// The longest text setting.
const MAX_TEXT: usize = 4096;
/// The longest document setting; a service account is about 2.5 KiB.
const MAX_DOCUMENT: usize = 64 << 10;

/// Every provider of every channel; the first of a channel is its default.
pub(crate) static PROVIDERS: LazyLock<Vec<ProviderKind>> = LazyLock::new(|| {
    vec![
        provider(Channel::Email, BUILTIN, vec![]),
        provider(
            Channel::Email,
            "smtp",
            vec![
                destination("host", true, Form::Host),
                destination("port", true, Form::Port),
                destination("username", false, Form::Text),
                secret("password", false, Form::Text),
                destination("tls", false, Form::Tls),
            ],
        ),
        provider(Channel::Email, "sandbox", vec![]),
        provider(
            Channel::Sms,
            "http",
            vec![
                destination("api_base", true, Form::Url),
                detail("sender", true, Form::Text),
                secret("token", false, Form::Text),
            ],
        ),
        provider(
            Channel::Sms,
            "twilio",
            vec![
                destination("api_base", false, Form::Url),
                detail("sender", true, Form::Text),
                destination("account_sid", true, Form::Text),
                secret("auth_token", true, Form::Text),
            ],
        ),
        provider(Channel::Sms, "sandbox", vec![]),
        provider(
            Channel::Push,
            "fcm",
            vec![
                destination("api_base", false, Form::Url),
                destination("project_id", true, Form::Text),
                secret("service_account", true, Form::Document),
            ],
        ),
        provider(Channel::Push, "sandbox", vec![]),
        provider(
            Channel::Telegram,
            "bot_api",
            vec![destination("api_base", false, Form::Url), secret("bot_token", true, Form::Text)],
        ),
        provider(Channel::Telegram, "sandbox", vec![]),
        provider(
            Channel::Whatsapp,
            "cloud_api",
            vec![
                destination("api_base", false, Form::Url),
                destination("phone_number_id", true, Form::Text),
                secret("access_token", true, Form::Text),
                secret("app_secret", false, Form::Text),
            ],
        ),
        provider(Channel::Whatsapp, "sandbox", vec![]),
        provider(
            Channel::Viber,
            "http",
            vec![
                destination("api_base", true, Form::Url),
                detail("sender", true, Form::Text),
                secret("token", false, Form::Text),
            ],
        ),
        provider(Channel::Viber, "sandbox", vec![]),
    ]
});

/// A provider by name.
pub fn find(channel: Channel, name: &str) -> Option<&'static ProviderKind> {
    PROVIDERS.iter().find(|kind| kind.channel == channel && kind.name == name)
}

/// The provider that a channel without settings shows.
pub fn default_of(channel: Channel) -> &'static ProviderKind {
    PROVIDERS.iter().find(|kind| kind.channel == channel).expect("every channel has a provider")
}

/// The port on which SMTP has TLS from the first byte by registration (RFC 8314 section 7.3).
const SUBMISSIONS_PORT: u64 = 465;

/// Puts in what is meant where a setting is left out: how the connection is secured.
pub fn complete(kind: &ProviderKind, config: &mut Map<String, Value>) {
    for member in kind.members.iter().filter(|member| member.form == Form::Tls) {
        if config.get(&member.name).is_none_or(Value::is_null) {
            let is_submissions = config.get("port").and_then(Value::as_u64) == Some(SUBMISSIONS_PORT);
            config.insert(member.name.clone(), if is_submissions { "tls" } else { "starttls" }.into());
        }
    }
}

/// Checks the settings of a provider; pointers are below `/config`. `null` counts as not given.
pub fn check(kind: &ProviderKind, config: &Map<String, Value>, violations: &mut Violations) {
    if let Some(schema) = &kind.schema {
        return check_by_schema(kind, schema, config, violations);
    }
    for member in &kind.members {
        let at = format!("/config/{}", member.name);
        match config.get(&member.name).filter(|value| !value.is_null()) {
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

/// The same by the schema that a program brings. A secret that is kept was checked when it was given.
fn check_by_schema(kind: &ProviderKind, schema: &Value, config: &Map<String, Value>, violations: &mut Violations) {
    if Value::Object(config.clone()).to_string().len() > MAX_DOCUMENT {
        return violations.add("/config", FieldCode::TooLarge, "must be at most 64 KiB");
    }
    let is_kept = |name: &str| kind.secrets().any(|secret| secret == name) && config.get(name) == Some(&MASK.into());
    let mut schema = schema.clone();
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !name.as_str().is_some_and(is_kept));
    }
    for name in kind.secrets().filter(|name| config.get(*name).is_some_and(|value| !value.is_string())) {
        violations.add(format!("/config/{}", escape(name)), FieldCode::InvalidType, "must be a string");
    }
    let given = config.iter().filter(|(name, _)| !is_kept(name)).map(|(name, value)| (name.clone(), value.clone()));
    violations.merge(faults_by_schema(&schema, Value::Object(given.collect()), "/config"));
}

fn check_member(form: Form, value: &Value) -> Result<(), (FieldCode, &'static str)> {
    match (form, value) {
        (Form::BySchema, _) => Ok(()),
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
        Form::Text | Form::Port | Form::Document | Form::BySchema => true,
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
    use serde_json::json;

    use super::*;

    #[test]
    fn every_setting_but_the_sender_says_where_secrets_go() {
        for kind in &*PROVIDERS {
            for member in &kind.members {
                let expected = member.name == "sender";
                assert_eq!(member.role == Role::Detail, expected, "{} {} {}", kind.channel, kind.name, member.name);
            }
        }
    }

    fn check_own(config: &Value) -> String {
        let schema = json!({
            "type": "object", "required": ["bucket", "key"], "additionalProperties": false,
            "properties": {
                "bucket": {"type": "string", "minLength": 3},
                "key": {"type": "string", "minLength": 8, "writeOnly": true},
                "label": {"type": ["string", "null"], "x-detail": true},
                "retries": {"type": "integer", "minimum": 0, "maximum": 5},
            },
        });
        let kind = ProviderKind::from_schema(Channel::Email, "archive", schema);
        let roles: Vec<_> = kind.members.iter().map(|one| (one.name.as_str(), one.role, one.required)).collect();
        let expected = [
            ("bucket", Role::Destination, true),
            ("key", Role::Secret, true),
            ("label", Role::Detail, false),
            ("retries", Role::Destination, false),
        ];
        assert_eq!(roles, expected);
        let mut violations = Violations::new();
        check(&kind, config.as_object().unwrap(), &mut violations);
        let shown = |one: &crate::violation::Violation| {
            let one = serde_json::to_value(one).unwrap();
            format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap())
        };
        violations.as_slice().iter().map(shown).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn settings_of_an_own_provider_are_checked_against_its_schema() {
        assert_eq!(check_own(&json!({"bucket": "mail", "key": "12345678", "retries": 5, "label": "x"})), "");
        assert_eq!(check_own(&json!({"bucket": "mail", "key": "***"})), "", "a kept secret was checked before");
        assert_eq!(check_own(&json!({"key": "12345678"})), "/config/bucket required");
        assert_eq!(
            check_own(&json!({"bucket": "ab", "key": "short"})),
            "/config/bucket too_short, /config/key too_short"
        );
        assert_eq!(
            check_own(&json!({"bucket": "mail", "key": "12345678", "retries": 6})),
            "/config/retries out_of_range"
        );
    }
}
