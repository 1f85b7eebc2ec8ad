//! Resend: `POST /emails` and `POST /emails/batch`.
//!
//! <https://resend.com/docs/api-reference/emails/send-email>. The names of errors are Resend's if it has one, because
//! its libraries distinguish errors by them.

use http::{HeaderMap, StatusCode};
use messaging_core::ids::MessageId;
use messaging_core::violation::{At, FieldCode, Violation, Violations};
use messaging_engine::Error;
use serde_json::{Value, json};

use super::idempotency::told;
use super::members::{Members, Person};
use super::translation::{MAX_MESSAGES, Translated, Translation, dotted};
use crate::reply::{self, Reply};

/// Header by which clients of Resend choose if a batch with a broken email is sent without it; only `strict` is
/// accepted: all or none.
const BATCH_VALIDATION: &str = "x-batch-validation";

/// An email.
pub(super) fn one(body: Value) -> Result<Translated, Error> {
    if !body.is_object() {
        return Err(Error::InvalidJson(None));
    }
    let mut faults = Violations::new();
    let email = email(body, "", &mut faults);
    Translated::new(vec![email], false, faults)
}

/// A list of emails.
pub(super) fn several(body: Value, headers: &HeaderMap) -> Result<Translated, Error> {
    let Value::Array(emails) = body else { return Err(Error::InvalidJson(None)) };
    let mut faults = Violations::new();
    if headers.get(BATCH_VALIDATION).is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"strict")) {
        let rule = "only strict is known here: all emails are accepted or none";
        faults.add_parameter(BATCH_VALIDATION, FieldCode::UnknownValue, rule);
    }
    if emails.is_empty() || emails.len() > MAX_MESSAGES {
        faults.add("", FieldCode::OutOfRange, "must hold 1 to 100 emails");
        return Err(Error::Validation(faults));
    }
    let emails = emails.into_iter().enumerate();
    let emails = emails.map(|(index, body)| email(body, &format!("/{index}"), &mut faults)).collect();
    Translated::new(emails, false, faults)
}

fn email(body: Value, at: &str, faults: &mut Violations) -> Translation {
    let mut theirs = Members::of(body, at, faults);
    let mut ours = Translation::email(at);
    match theirs.text("from", faults) {
        Some(text) => ours.put_sender(Person::of_mailbox(&text), &theirs.pointer("from")),
        None => faults.add(theirs.pointer("from"), FieldCode::Required, "is required"),
    }
    let (to, cc) = (people(&mut theirs, "to", faults), people(&mut theirs, "cc", faults));
    ours.put_recipients(to, cc);
    let bcc = people(&mut theirs, "bcc", faults);
    ours.put_list("bcc", bcc.into_iter().map(|(from, person)| (from, person.address.into())).collect());
    let reply_to = people(&mut theirs, "reply_to", faults);
    ours.put_reply_to(reply_to, faults);
    for name in ["subject", "html", "text"] {
        ours.put_some(name, theirs.text(name, faults), theirs.pointer(name));
    }
    ours.put_some("headers", theirs.object("headers", faults), theirs.pointer("headers"));
    ours.put_some("send_at", theirs.text("scheduled_at", faults), theirs.pointer("scheduled_at"));
    if let Some(mut template) = theirs.members("template", faults) {
        ours.put_some("template_id", template.text("id", faults), template.pointer("id"));
        ours.put_some("variables", template.object("variables", faults), template.pointer("variables"));
        template.finish(faults);
    }
    let tags = theirs.list("tags", faults).into_iter().filter_map(|(from, tag)| {
        let mut tag = Members::of(tag, &from, faults);
        let name = tag.text("name", faults);
        let value = tag.text("value", faults);
        if name.is_none() {
            faults.add(tag.pointer("name"), FieldCode::Required, "is required");
        }
        tag.finish(faults);
        let name = name?;
        Some((from, Value::from(value.map_or(name.clone(), |value| format!("{name}:{value}")))))
    });
    let tags = tags.collect();
    ours.put_list("tags", tags);
    attachments(&mut theirs, &mut ours, faults);
    theirs.finish(faults);
    ours
}

/// People as texts, one or several.
fn people(theirs: &mut Members, name: &str, faults: &mut Violations) -> Vec<(String, Person)> {
    let texts = theirs.one_or_more(name, faults).into_iter();
    let read = texts.filter_map(|(from, one)| {
        if let Value::String(text) = one {
            Some((from, Person::of_mailbox(&text)))
        } else {
            faults.add(from, FieldCode::InvalidType, "must be a string");
            None
        }
    });
    read.collect()
}

fn attachments(theirs: &mut Members, ours: &mut Translation, faults: &mut Violations) {
    let mut files = Vec::new();
    for (index, (from, file)) in theirs.list("attachments", faults).into_iter().enumerate() {
        let mut file = Members::of(file, &from, faults);
        let mut attachment = serde_json::Map::new();
        file.refuse("path", "files are not fetched; send their content", faults);
        let pointer = file.pointer("content");
        match file.take("content").map(base64) {
            Some(Some(content)) => {
                attachment.insert("content_b64".to_owned(), content.into());
                ours.name(format!("/attachments/{index}/content_b64"), pointer);
            }
            Some(None) => faults.add(pointer, FieldCode::InvalidFormat, "must be base64, or a list of bytes"),
            None => faults.add(pointer, FieldCode::Required, "is required: base64, or a list of bytes"),
        }
        for name in ["filename", "content_type", "content_id"] {
            attachment.extend(file.text(name, faults).map(|text| (name.to_owned(), text.into())));
        }
        file.finish(faults);
        files.push((from, Value::Object(attachment)));
    }
    ours.put_list("attachments", files);
}

/// The content of a file: base64, or the bytes as libraries of JavaScript and Python write them.
fn base64(content: Value) -> Option<String> {
    let bytes = match content {
        Value::String(text) => return Some(text),
        Value::Array(bytes) => bytes,
        Value::Object(mut buffer) if buffer.get("type").and_then(Value::as_str) == Some("Buffer") => {
            match buffer.remove("data")? {
                Value::Array(bytes) => bytes,
                _ => return None,
            }
        }
        _ => return None,
    };
    let bytes: Option<Vec<u8>> = bytes.iter().map(|byte| u8::try_from(byte.as_u64()?).ok()).collect();
    bytes.map(|bytes| messaging_core::domain::message::attachment::Base64::Decoded(bytes.into())).and_then(|decoded| {
        match serde_json::to_value(decoded) {
            Ok(Value::String(text)) => Some(text),
            _ => None,
        }
    })
}

/// The answer to one email.
pub(super) fn accepted_one(ids: &[MessageId]) -> Reply {
    reply::json(StatusCode::OK, json!({"id": ids.first()}).to_string().into())
}

/// The answer to several.
pub(super) fn accepted_several(ids: &[MessageId]) -> Reply {
    let data: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
    reply::json(StatusCode::OK, json!({"data": data}).to_string().into())
}

/// A refusal.
pub(super) fn refusal(error: &Error) -> Reply {
    let (status, name) = status_and_name(error);
    let message = match error {
        Error::Validation(violations) => violations.as_slice().iter().map(worded).collect::<Vec<_>>().join("; "),
        error => told(error),
    };
    let body = json!({"statusCode": status.as_u16(), "name": name, "message": message});
    reply::json(status, body.to_string().into())
}

/// Status and name of a refusal: Resend's where it has one for the cause, else ours.
fn status_and_name(error: &Error) -> (StatusCode, &'static str) {
    let own = error.status();
    match error {
        Error::MissingCredentials => (own, "missing_api_key"),
        Error::InvalidCredentials => (own, "invalid_api_key"),
        Error::ScopeRequired(_) => (own, "restricted_api_key"),
        Error::Validation(violations) => (own, name_of(violations)),
        Error::SenderNotVerified(_) => (StatusCode::FORBIDDEN, "validation_error"),
        Error::InvalidJson(_) | Error::Unprocessable(_) => (own, "validation_error"),
        Error::IdempotencyKeyReused => (StatusCode::CONFLICT, "invalid_idempotent_request"),
        Error::IdempotencyInProgress => (own, "concurrent_idempotent_requests"),
        Error::RateLimited { .. } => (own, "rate_limit_exceeded"),
        Error::Internal(_)
        | Error::FileFailed(_)
        | Error::Unavailable { .. }
        | Error::DiskFull { .. }
        | Error::OutcomeUnknown { .. } => (own, "application_error"),
        other => (own, other.code()),
    }
}

/// Resend's name for an error with these violations.
fn name_of(violations: &Violations) -> &'static str {
    let is_missing = |violation: &Violation| violation.code == FieldCode::Required;
    let concerns = |violation: &Violation, member: &str| match &violation.at {
        At::Pointer(pointer) => pointer.split('/').any(|part| part == member),
        At::Parameter(_) => false,
    };
    match violations.as_slice().first() {
        Some(first) if is_missing(first) => "missing_required_field",
        Some(first) if concerns(first, "attachments") => "invalid_attachment",
        Some(first) if concerns(first, "from") => "invalid_from_address",
        _ => "validation_error",
    }
}

fn worded(violation: &Violation) -> String {
    let rule = &violation.message;
    match &violation.at {
        At::Pointer(pointer) if pointer.is_empty() => format!("The body {rule}"),
        At::Pointer(pointer) => format!("Invalid `{}` field: {rule}", dotted(pointer)),
        At::Parameter(name) => format!("Invalid `{name}`: {rule}"),
    }
}
