//! SendGrid: `POST /v3/mail/send`.
//!
//! <https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send>. Each personalization is one message, and
//! all of them are accepted or none. As at SendGrid, errors of a body are answered with 400.

use http::{HeaderValue, StatusCode};
use messaging_core::ids::MessageId;
use messaging_core::time::Timestamp;
use messaging_core::violation::{At, FieldCode, Violations};
use messaging_engine::Error;
use serde_json::{Map, Value, json};

use super::idempotency::told;
use super::members::{Members, Person};
use super::translation::{MAX_BYTES, MAX_MESSAGES, Translated, Translation, dotted};
use crate::reply::{self, Reply};

/// Last second of the year 9999, as a Unix time: later times cannot be written.
const LAST_SECOND: i64 = 253_402_300_799;

/// Settings of which only `enable: false` has a counterpart.
const MAIL_SETTINGS: [&str; 6] = [
    "bypass_list_management",
    "bypass_spam_management",
    "bypass_bounce_management",
    "bypass_unsubscribe_management",
    "footer",
    "spam_check",
];
/// Settings of tracking of which only `enable: false` has a counterpart.
const TRACKING_SETTINGS: [&str; 2] = ["subscription_tracking", "ganalytics"];

/// Translates a request into messages.
pub(super) fn send(body: Value) -> Result<Translated, Error> {
    if !body.is_object() {
        return Err(Error::InvalidJson(None));
    }
    let mut faults = Violations::new();
    let mut theirs = Members::of(body, "", &mut faults);
    let personalizations = theirs.list("personalizations", &mut faults);
    if personalizations.is_empty() {
        faults.add("/personalizations", FieldCode::Required, "is required, with at least one");
    } else if personalizations.len() > MAX_MESSAGES {
        faults.add("/personalizations", FieldCode::TooManyItems, "at most 100 at once");
        return Err(Error::Validation(faults));
    }
    let mut shared = Shared::read(&mut theirs, &mut faults);
    let check_only = mail_settings(&mut theirs, &mut faults);
    theirs.finish(&mut faults);
    // Files and texts are sent once and copied into every message.
    if shared.message.length().saturating_mul(personalizations.len()) > MAX_BYTES {
        return Err(Error::PayloadTooLarge { limit: MAX_BYTES });
    }
    let personalizations = personalizations.into_iter();
    let messages = personalizations.map(|(at, own)| shared.personalized(own, at, &mut faults)).collect();
    Translated::new(messages, check_only, faults)
}

/// Values that all messages of a request have unless a personalization has its own.
struct Shared {
    message: Translation,
    headers: Map<String, Value>,
    metadata: Map<String, Value>,
}

impl Shared {
    fn read(theirs: &mut Members, faults: &mut Violations) -> Self {
        let mut message = Translation::email("");
        sender(theirs, &mut message, faults);
        let replies = theirs.members("reply_to", faults).map(|person| (theirs.pointer("reply_to"), person));
        let mut people: Vec<_> =
            replies.and_then(|(at, person)| Some((at, read_person(person, faults)?))).into_iter().collect();
        people.extend(self::people(theirs, "reply_to_list", faults));
        message.put_reply_to(people, faults);
        subject_and_time(theirs, &mut message, faults);
        content(theirs, &mut message, faults);
        attachments(theirs, &mut message, faults);
        message.put_some("template_id", theirs.text("template_id", faults), "/template_id");
        let categories = theirs.one_or_more("categories", faults);
        message.put_list("tags", categories);
        tracking(theirs, &mut message, faults);
        let headers = theirs.object("headers", faults).unwrap_or_default();
        let metadata = theirs.object("custom_args", faults).unwrap_or_default();
        Self { message, headers, metadata }
    }

    /// The message of a personalization.
    fn personalized(&mut self, own: Value, at: String, faults: &mut Violations) -> Translation {
        let mut own = Members::of(own, at.clone(), faults);
        let mut message = Translation::email(at);
        let (to, cc) = (people(&mut own, "to", faults), people(&mut own, "cc", faults));
        if to.is_empty() {
            faults.add(own.pointer("to"), FieldCode::Required, "is required, with at least one");
        }
        message.put_recipients(to, cc);
        let bcc = people(&mut own, "bcc", faults);
        message.put_list("bcc", bcc.into_iter().map(|(from, person)| (from, person.address.into())).collect());
        sender(&mut own, &mut message, faults);
        subject_and_time(&mut own, &mut message, faults);
        let variables = own.object("dynamic_template_data", faults);
        message.put_some("variables", variables, own.pointer("dynamic_template_data"));
        for (member, name, shared) in
            [("headers", "headers", &self.headers), ("metadata", "custom_args", &self.metadata)]
        {
            let own_members = own.object(name, faults).unwrap_or_default();
            let from = if own_members.is_empty() { format!("/{name}") } else { own.pointer(name) };
            let mut members = shared.clone();
            members.extend(own_members);
            if !members.is_empty() {
                message.put(member, members, from);
            }
        }
        own.finish(faults);
        message.with_shared(&self.message)
    }
}

fn sender(theirs: &mut Members, message: &mut Translation, faults: &mut Violations) {
    let at = theirs.pointer("from");
    if let Some(person) = theirs.members("from", faults).and_then(|person| read_person(person, faults)) {
        message.put("from_email", person.address, format!("{at}/email"));
        // Empty without a name: a sender of a personalization does not take the name of the request's sender.
        message.put("from_name", person.name.unwrap_or_default(), format!("{at}/name"));
    }
}

/// Reads subject and time, which both a request and a personalization may have.
fn subject_and_time(theirs: &mut Members, message: &mut Translation, faults: &mut Violations) {
    message.put_some("subject", theirs.text("subject", faults), theirs.pointer("subject"));
    let Some(send_at) = theirs.take("send_at") else { return };
    match send_at.as_i64().filter(|seconds| (0..=LAST_SECOND).contains(seconds)) {
        Some(seconds) => {
            message.put("send_at", Timestamp::from_millis(seconds * 1000).to_string(), theirs.pointer("send_at"));
        }
        None => faults.add(theirs.pointer("send_at"), FieldCode::InvalidFormat, "must be a Unix time in seconds"),
    }
}

/// Recipients as objects.
fn people(theirs: &mut Members, name: &str, faults: &mut Violations) -> Vec<(String, Person)> {
    let items = theirs.list(name, faults).into_iter();
    let read = items.filter_map(|(at, item)| {
        let person = read_person(Members::of(item, &at, faults), faults)?;
        Some((format!("{at}/email"), person))
    });
    read.collect()
}

fn read_person(mut person: Members, faults: &mut Violations) -> Option<Person> {
    let address = person.text("email", faults);
    let name = person.text("name", faults).filter(|name| !name.is_empty());
    if address.is_none() {
        faults.add(person.pointer("email"), FieldCode::Required, "is required");
    }
    person.finish(faults);
    Some(Person { address: address?, name })
}

fn content(theirs: &mut Members, message: &mut Translation, faults: &mut Violations) {
    let mut given = Vec::new();
    for (at, part) in theirs.list("content", faults) {
        let mut part = Members::of(part, &at, faults);
        let kind = part.text("type", faults).unwrap_or_default().to_ascii_lowercase();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let value = part.text("value", faults);
        let member = match kind {
            "text/plain" => "text",
            "text/html" => "html",
            _ => {
                faults.add(part.pointer("type"), FieldCode::UnknownValue, "must be text/plain or text/html");
                continue;
            }
        };
        if given.contains(&member) {
            faults.add(part.pointer("type"), FieldCode::Duplicate, "stands there already");
        }
        given.push(member);
        message.put_some(member, value, part.pointer("value"));
        part.finish(faults);
    }
}

fn attachments(theirs: &mut Members, message: &mut Translation, faults: &mut Violations) {
    let mut files = Vec::new();
    for (index, (at, file)) in theirs.list("attachments", faults).into_iter().enumerate() {
        let mut file = Members::of(file, &at, faults);
        let mut attachment = Map::new();
        let disposition = file.text("disposition", faults);
        let is_inline = disposition.as_deref() == Some("inline");
        if !is_inline && disposition.is_some_and(|text| text != "attachment") {
            faults.add(file.pointer("disposition"), FieldCode::UnknownValue, "must be inline or attachment");
        }
        for (name, ours) in [
            ("content", "content_b64"),
            ("filename", "filename"),
            ("type", "content_type"),
            ("content_id", "content_id"),
        ] {
            // A name that no text refers to.
            let is_used = name != "content_id" || is_inline;
            if let Some(text) = file.text(name, faults).filter(|_| is_used) {
                message.name(format!("/attachments/{index}/{ours}"), file.pointer(name));
                attachment.insert(ours.to_owned(), text.into());
            }
        }
        file.finish(faults);
        files.push((at, Value::Object(attachment)));
    }
    message.put_list("attachments", files);
}

/// Reads `mail_settings`; returns true in sandbox mode, in which the request is only checked.
fn mail_settings(theirs: &mut Members, faults: &mut Violations) -> bool {
    let Some(mut settings) = theirs.members("mail_settings", faults) else { return false };
    let sandbox = settings.members("sandbox_mode", faults).is_some_and(|mut sandbox| {
        let enabled = sandbox.flag("enable", faults).unwrap_or(false);
        sandbox.finish(faults);
        enabled
    });
    for name in MAIL_SETTINGS {
        refuse_enabled(&mut settings, name, faults);
    }
    settings.finish(faults);
    sandbox
}

fn tracking(theirs: &mut Members, message: &mut Translation, faults: &mut Violations) {
    let Some(mut settings) = theirs.members("tracking_settings", faults) else { return };
    let mut options = Map::new();
    for (name, ours, extra) in
        [("open_tracking", "track_opens", "substitution_tag"), ("click_tracking", "track_clicks", "enable_text")]
    {
        let Some(mut one) = settings.members(name, faults) else { continue };
        options.extend(one.flag("enable", faults).map(|enabled| (ours.to_owned(), enabled.into())));
        // The pixel has a fixed place, and texts keep their links.
        if one.take(extra).is_some_and(|value| value != Value::Bool(false) && value != "") {
            faults.add(one.pointer(extra), FieldCode::NotAllowed, "has no counterpart here; leave it out");
        }
        one.finish(faults);
    }
    for name in TRACKING_SETTINGS {
        refuse_enabled(&mut settings, name, faults);
    }
    if !options.is_empty() {
        message.put("options", options, settings.pointer(""));
    }
    settings.finish(faults);
}

/// Refuses a setting that is enabled.
fn refuse_enabled(settings: &mut Members, name: &str, faults: &mut Violations) {
    let at = settings.pointer(name);
    let Some(mut setting) = settings.members(name, faults) else { return };
    if setting.flag("enable", faults).unwrap_or(false) {
        faults.add(at, FieldCode::NotAllowed, "has no counterpart here; leave it out");
    }
}

/// The answer to accepted messages. With several, the header is a list.
pub(super) fn accepted(ids: &[MessageId]) -> Reply {
    let mut reply = reply::bare(StatusCode::ACCEPTED);
    let list = ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if let Ok(list) = HeaderValue::try_from(list) {
        reply.headers_mut().insert("x-message-id", list);
    }
    reply
}

/// A refusal.
pub(super) fn refusal(error: &Error) -> Reply {
    let status = match error {
        Error::SenderNotVerified(_) => StatusCode::FORBIDDEN,
        Error::Validation(_) | Error::Unprocessable(_) => StatusCode::BAD_REQUEST,
        other => other.status(),
    };
    let one = |message: &str, field: Option<String>| json!({"message": message, "field": field, "help": null});
    let errors: Vec<_> = match error {
        Error::Validation(violations) => violations
            .as_slice()
            .iter()
            .map(|violation| match &violation.at {
                At::Pointer(pointer) => one(&violation.message, Some(dotted(pointer)).filter(|name| !name.is_empty())),
                At::Parameter(name) => one(&violation.message, Some(name.clone())),
            })
            .collect(),
        error => vec![one(&told(error), None)],
    };
    reply::json(status, json!({"errors": errors}).to_string().into())
}
