//! Checks of the settings that are sent for a provider: all required ones are given, and each has the form that the
//! provider takes.

use serde_json::{Map, Value};

use super::kind::{Form, MASK, Member, ProviderKind, TLS};
use crate::domain::channel::Channel;
use crate::domain::channel::address;
use crate::domain::security::web_url::is_absolute;
use crate::input::faults_by_schema;
use crate::violation::{FieldCode, Violations, escape};

/// The longest text setting, in characters.
const MAX_TEXT: usize = 4096;
/// The longest document setting, in bytes; a service account is about 2.5 KiB.
const MAX_DOCUMENT: usize = 64 << 10;
/// The longest name that text messages come from, in characters.
const MAX_SENDER_NAME: usize = 11;

/// Checks the settings of a provider, and adds a violation for each fault; pointers are below `at`. `null` counts as
/// not given, and a secret that is [`MASK`] is kept as it is stored. The caller checks what stands under
/// [`ROUTES`](super::kind::ROUTES), because it knows which providers there are.
pub fn check(kind: &ProviderKind, config: &Map<String, Value>, at: &str, violations: &mut Violations) {
    if let Some(schema) = &kind.schema {
        return check_by_schema(kind, schema, config, at, violations);
    }
    for member in kind.members.iter().filter(|member| !member.is_made_by_us) {
        let pointer = format!("{at}/{}", member.name);
        match config.get(&member.name).filter(|value| !value.is_null()) {
            None if member.required => violations.add(pointer, FieldCode::Required, missing_message(member)),
            None => {}
            Some(Value::String(text)) if text.is_empty() && member.required => {
                violations.add(pointer, FieldCode::Required, missing_message(member));
            }
            Some(Value::String(text)) if member.is_secret() && text == MASK => {}
            Some(value) => {
                if let Err((code, message)) = check_member(member.form, value) {
                    violations.add(pointer, code, explained(member, message));
                }
            }
        }
    }
}

/// Message about a required setting that is not given.
fn missing_message(member: &Member) -> String {
    explained(member, "is required by this provider".to_owned())
}

/// A rule, followed by the meaning of the setting.
fn explained(member: &Member, rule: String) -> String {
    if member.meaning.is_empty() { rule } else { format!("{rule}: {}", member.meaning) }
}

/// Checks settings by the JSON Schema of a provider that an embedding program brings. A secret that is kept is left
/// out: it was checked when it was given.
fn check_by_schema(
    kind: &ProviderKind,
    schema: &Value,
    config: &Map<String, Value>,
    at: &str,
    violations: &mut Violations,
) {
    if Value::Object(config.clone()).to_string().len() > MAX_DOCUMENT {
        return violations.add(at, FieldCode::TooLarge, "must be at most 64 KiB");
    }
    let is_kept = |name: &str| kind.secrets().any(|secret| secret == name) && config.get(name) == Some(&MASK.into());
    let mut schema = schema.clone();
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !name.as_str().is_some_and(is_kept));
    }
    for name in kind.secrets().filter(|name| config.get(*name).is_some_and(|value| !value.is_string())) {
        violations.add(format!("{at}/{}", escape(name)), FieldCode::InvalidType, "must be a string");
    }
    let given = config.iter().filter(|(name, _)| !is_kept(name)).map(|(name, value)| (name.clone(), value.clone()));
    violations.merge(faults_by_schema(&schema, Value::Object(given.collect()), at));
}

/// Code and message of a violation.
type Fault = (FieldCode, String);

fn fault(code: FieldCode, message: impl Into<String>) -> Result<(), Fault> {
    Err((code, message.into()))
}

/// Checks a value by the form of its setting. Texts are left to [`check_text`].
fn check_member(form: Form, value: &Value) -> Result<(), Fault> {
    match (form, value) {
        (Form::BySchema, _) | (Form::Routes, Value::Object(_)) | (Form::Flag, Value::Bool(_)) => Ok(()),
        (Form::Port, Value::Number(number)) => match number.as_u64() {
            Some(1..=65535) => Ok(()),
            _ => fault(FieldCode::OutOfRange, "must be from 1 to 65535"),
        },
        (Form::Port, _) => fault(FieldCode::InvalidType, "must be an integer"),
        (Form::Rate, Value::Number(number)) => match number.as_f64() {
            Some(rate) if rate > 0.0 => Ok(()),
            _ => fault(FieldCode::OutOfRange, "must be greater than 0"),
        },
        (Form::Rate, _) => fault(FieldCode::InvalidType, "must be a number"),
        (Form::Flag, _) => fault(FieldCode::InvalidType, "must be true or false"),
        (Form::Routes, _) => fault(FieldCode::InvalidType, "must be an object"),
        (Form::Document, Value::Object(_) | Value::String(_)) => {
            let length = value.as_str().map_or_else(|| value.to_string().len(), str::len);
            if length <= MAX_DOCUMENT { Ok(()) } else { fault(FieldCode::TooLarge, "must be at most 64 KiB") }
        }
        (Form::Document, _) => fault(FieldCode::InvalidType, "must be an object or a string"),
        (_, Value::String(text)) => check_text(form, text),
        _ => fault(FieldCode::InvalidType, "must be a string"),
    }
}

/// Checks a text by the form of its setting: its length, its characters, and what the form says.
fn check_text(form: Form, text: &str) -> Result<(), Fault> {
    if form == Form::Pem {
        let is_control = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\r');
        return if text.len() > MAX_DOCUMENT {
            fault(FieldCode::TooLarge, "must be at most 64 KiB")
        } else if text.contains(is_control) {
            fault(FieldCode::InvalidFormat, "must not contain control characters but line breaks")
        } else {
            Ok(())
        };
    }
    let longest = if let Form::TextUpTo(longest) = form { longest } else { MAX_TEXT };
    if text.chars().count() > longest {
        return fault(FieldCode::TooLong, format!("must have at most {longest} characters"));
    }
    if text.chars().any(char::is_control) {
        return fault(FieldCode::InvalidFormat, "must not contain control characters");
    }
    let one_of = |words: &[&str]| {
        let is_known = words.contains(&text);
        if is_known { Ok(()) } else { fault(FieldCode::UnknownValue, format!("must be {}", joined_with_or(words))) }
    };
    let (fits, wanted) = match form {
        Form::Tls => return one_of(TLS),
        Form::OneOf(words) => return one_of(words),
        Form::Host => (is_host(text), "must be a host name or address"),
        Form::Url => (is_url(text), "must be an absolute http or https URL"),
        Form::ContactUri => (is_contact_uri(text), "must be a mailto: or https: URI"),
        Form::SmsSender => {
            (is_sender(text), "must be a number such as +14155550123, a short code or up to 11 letters and digits")
        }
        _ => (true, ""),
    };
    if fits { Ok(()) } else { fault(FieldCode::InvalidFormat, wanted) }
}

/// Words as an enumeration for people, such as `starttls, tls or none`.
fn joined_with_or(words: &[&str]) -> String {
    match words {
        [head @ .., last] if !head.is_empty() => format!("{} or {last}", head.join(", ")),
        _ => words.concat(),
    }
}

fn is_url(text: &str) -> bool {
    is_absolute(text, &["http", "https"]) && text.parse::<http::Uri>().is_ok()
}

/// True for a `mailto:` URI of an email address and for an `https:` URL (RFC 8292 section 2.1).
fn is_contact_uri(text: &str) -> bool {
    text.strip_prefix("mailto:").is_some_and(|address| address::EmailAddress::parse(address).is_ok())
        || (text.starts_with("https:") && is_url(text))
}

/// True for a sender of text messages: a phone number, a short code, a name, or a Twilio messaging service (`MG…`).
fn is_sender(text: &str) -> bool {
    let is_number = address::check(Channel::Sms, text).is_ok();
    let is_short_code = (3..=15).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = (1..=MAX_SENDER_NAME).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ');
    let is_service = text
        .strip_prefix("MG")
        .is_some_and(|rest| rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_number || is_short_code || is_name || is_service
}

/// True for an IP address, and for a host name of ASCII letters, digits and hyphens.
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

    use super::super::kind::Role;
    use super::super::table::find;
    use super::*;

    fn faults(kind: &ProviderKind, config: &Value) -> String {
        let mut violations = Violations::new();
        check(kind, config.as_object().unwrap(), "/config", &mut violations);
        let shown = |one: &crate::violation::Violation| {
            let one = serde_json::to_value(one).unwrap();
            format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap())
        };
        violations.as_slice().iter().map(shown).collect::<Vec<_>>().join(", ")
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
        faults(&kind, config)
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

    #[test]
    fn each_form_of_a_setting() {
        let member = |channel, provider: &str, name: &str, value: Value| {
            let config = json!({name: value});
            let all = faults(find(channel, provider).unwrap(), &config);
            let pointer = format!("/config/{name} ");
            all.split(", ").find_map(|one| one.strip_prefix(&pointer).map(str::to_owned)).unwrap_or_default()
        };
        let sms = |name: &str, value: Value| member(Channel::Sms, "twilio", name, value);
        for sender in ["+4915112345678", "12345", "ACME", "Acme Shop 1", &format!("MG{}", "0".repeat(32))] {
            assert_eq!(sms("sender", json!(sender)), "", "{sender}");
        }
        for sender in ["Acme Shop 12", "+0123", "Ácme", "MG1234567890", "1234567890123456"] {
            assert_eq!(sms("sender", json!(sender)), "invalid_format", "{sender}");
        }
        assert_eq!(sms("sender", json!("")), "required");
        let smpp = |value: Value| member(Channel::Sms, "smpp", "tls", value);
        assert_eq!((smpp(json!(true)), smpp(json!("tls"))), (String::new(), "invalid_type".to_owned()));
        for rate in [json!(0.5), json!(30), json!(null)] {
            assert_eq!(sms("max_rate", rate.clone()), "", "{rate}");
        }
        assert_eq!(
            (sms("max_rate", json!(0)), sms("max_rate", json!(-1))),
            ("out_of_range".into(), "out_of_range".into())
        );
        assert_eq!(sms("max_rate", json!("30")), "invalid_type");
        let apns = |name: &str, value: Value| member(Channel::Push, "apns", name, value);
        assert_eq!(apns("environment", json!("development")), "");
        assert_eq!(apns("environment", json!("staging")), "unknown_value");
        assert_eq!(apns("private_key", json!("-----BEGIN PRIVATE KEY-----\nMIG\r\n")), "");
        assert_eq!(apns("private_key", json!("a\tb")), "invalid_format");
        assert_eq!(apns("private_key", json!("a".repeat(MAX_DOCUMENT + 1))), "too_large");
        let webpush = |value: &str| member(Channel::Push, "webpush", "subject", json!(value));
        assert_eq!((webpush("mailto:ops@example.com"), webpush("https://example.com")), Default::default());
        for subject in ["ops@example.com", "mailto:", "http://example.com", "https:x", "https://x/\\y"] {
            assert_eq!(webpush(subject), "invalid_format", "{subject}");
        }
        assert_eq!(sms("api_base", json!("https://x")), "");
        for url in ["https:x", "https:/x", "https:///x", "https://x\\y", "https://x/\\y"] {
            assert_eq!(sms("api_base", json!(url)), "invalid_format", "{url}");
        }
        assert_eq!(member(Channel::Viber, "bot", "sender", json!("é".repeat(28))), "");
        assert_eq!(member(Channel::Viber, "bot", "sender", json!("é".repeat(29))), "too_long");
        assert_eq!(member(Channel::Push, "fcm", "routes", json!([])), "invalid_type");
    }
}
