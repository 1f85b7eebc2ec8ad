//! Parsers of the nodes that send, change the contact or call a web address.

use http::HeaderName;
use serde_json::Value;

use super::super::forms::{Category, Method, SendConfig, TagConfig, UpdateContactConfig, WebhookConfig};
use super::super::reader::{LocatedObject, Reader};
use crate::domain::audience::contact::attributes;
use crate::domain::audience::contact::fields::is_locale;
use crate::domain::automation::graph::{Call, ContactUpdate, Send};
use crate::domain::campaign::check::is_template;
use crate::domain::channel::Channel;
use crate::domain::channel::address;
use crate::domain::limits::MAX_TAG;
use crate::domain::segment::parse::Reference;
use crate::time::zone;
use crate::violation::{FieldCode, Violations, escape};

/// Maximum number of characters of a text that may be a template.
const MAX_TEMPLATE: usize = 1024;
/// Maximum number of headers of a call; the same as of a message.
const MAX_HEADERS: usize = 30;
/// Maximum size of the body of a call, and of the values for a template, in bytes of JSON.
const MAX_JSON: usize = 64 << 10;
/// Headers that a call may not have: those about the transfer of the request, and the server's own idempotency key.
const OUR_HEADERS: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Reads the config of a send node.
pub(super) fn send(reader: &mut Reader, config: LocatedObject<'_>, form: SendConfig) -> Option<Send> {
    for (name, address) in [("from_email", &form.from_email), ("reply_to", &form.reply_to)] {
        if let Some(text) = address {
            address::check_sent(Channel::Email, text, config.at(name), "not an email address", &mut reader.shape);
        }
    }
    for (name, text) in [("from_name", &form.from_name), ("subject_override", &form.subject_override)] {
        if let Some(text) = text {
            reader.line(config.at(name), text);
        }
    }
    if form.quiet_hours.is_some_and(|quiet| quiet.start == quiet.end) {
        let at = format!("{}/end", config.at("quiet_hours"));
        reader.fault(at, FieldCode::Conflict, "must be another time than start");
    }
    if form.frequency_cap.is_some_and(|cap| cap.per_day.is_none() && cap.per_week.is_none()) {
        reader.gap(config.at("frequency_cap"), FieldCode::Required, "per_day or per_week is required");
    }
    let is_marketing = form.category != Some(Category::Transactional);
    for name in ["quiet_hours", "frequency_cap"] {
        if !is_marketing && config.get(name).is_some() {
            reader.fault(config.at(name), FieldCode::Conflict, "a transactional message goes at once, to everyone");
        }
    }
    if let Some(variables) = config.get("variables") {
        bounded(reader, config.at("variables"), variables);
    }
    let template_id = reader.need_id(config, "template_id", form.template_id, Reference::Template);
    Some(Send {
        template_id: template_id?,
        channel: form.channel,
        from_email: form.from_email,
        from_name: form.from_name,
        reply_to: form.reply_to,
        subject_override: form.subject_override,
        is_marketing,
        quiet_hours: form.quiet_hours,
        frequency_cap: form.frequency_cap,
        variables: form.variables.unwrap_or_default(),
    })
}

/// Reads the changes to a contact. Values that are not templates are checked like those of `POST /contacts`.
pub(super) fn update(reader: &mut Reader, config: LocatedObject<'_>, form: UpdateContactConfig) -> ContactUpdate {
    if let Some(sent) = &form.attributes {
        let mut found = Violations::new();
        attributes::check(sent, &mut found);
        for violation in found.as_slice() {
            if let crate::violation::At::Pointer(pointer) = &violation.at {
                reader.fault(format!("{}{pointer}", config.pointer), violation.code, &violation.message);
            }
        }
        reader.sources_in(&Value::Object(sent.clone()), &config.at("attributes"));
    }
    if let Some(locale) = &form.locale {
        if !is_template(locale) && !is_locale(locale) {
            reader.fault(config.at("locale"), FieldCode::InvalidFormat, "is not a language tag");
        }
        reader.source(config.at("locale"), locale);
    }
    if let Some(timezone) = &form.timezone {
        if !is_template(timezone) && zone(timezone).is_none() {
            reader.fault(config.at("timezone"), FieldCode::InvalidFormat, "is not an IANA time zone name");
        }
        reader.source(config.at("timezone"), timezone);
    }
    for (name, tags) in [("tags_add", &form.tags_add), ("tags_remove", &form.tags_remove)] {
        for (index, tag) in tags.iter().flatten().enumerate() {
            check_tag(reader, format!("{}/{index}", config.at(name)), tag);
        }
    }
    ContactUpdate {
        attributes: form.attributes.unwrap_or_default(),
        locale: form.locale,
        timezone: form.timezone,
        tags_add: form.tags_add.unwrap_or_default(),
        tags_remove: form.tags_remove.unwrap_or_default(),
    }
}

/// Reads a tag to add or remove.
pub(super) fn tag(reader: &mut Reader, config: LocatedObject<'_>, form: TagConfig) -> Option<String> {
    let tag = reader.need_text(config, "tag", form.tag)?;
    check_tag(reader, config.at("tag"), &tag);
    Some(tag)
}

fn check_tag(reader: &mut Reader, pointer: String, tag: &str) {
    let (longest, length) = (if is_template(tag) { MAX_TEMPLATE } else { MAX_TAG }, tag.chars().count());
    if length == 0 {
        reader.fault(pointer.as_str(), FieldCode::TooShort, "must have at least 1 character");
    } else if length > longest {
        reader.fault(pointer.as_str(), FieldCode::TooLong, &format!("must have at most {longest} characters"));
    }
    reader.source(pointer, tag);
}

/// Reads the config of a call. The caller checks that the web address may be called: [`Reader::urls`].
pub(super) fn call(reader: &mut Reader, config: LocatedObject<'_>, form: WebhookConfig) -> Option<Call> {
    let headers = form.headers.unwrap_or_default();
    if headers.len() > MAX_HEADERS {
        reader.fault(config.at("headers"), FieldCode::TooManyItems, "at most 30 headers");
    }
    for (name, value) in &headers {
        let at = format!("{}/{}", config.at("headers"), escape(name));
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            reader.fault(at.as_str(), FieldCode::InvalidFormat, "is not the name of a header");
        } else if OUR_HEADERS.iter().any(|ours| ours.eq_ignore_ascii_case(name)) {
            reader.fault(at.as_str(), FieldCode::NotAllowed, "this header is set by the server");
        } else if value.chars().count() > MAX_TEMPLATE {
            reader.fault(at.as_str(), FieldCode::TooLong, &format!("must have at most {MAX_TEMPLATE} characters"));
        }
        reader.line(at, value);
    }
    if let Some(body) = &form.body {
        if !(body.is_string() || body.is_array() || body.is_object()) {
            reader.fault(config.at("body"), FieldCode::InvalidType, "must be a string, an object or an array");
        }
        bounded(reader, config.at("body"), body);
    }
    let url = reader.need_text(config, "url", form.url)?;
    reader.urls.push((config.at("url"), url.clone()));
    Some(Call { url, is_put: form.method == Some(Method::Put), headers, body: form.body })
}

/// Checks the size of a JSON value, and adds all texts in it as templates.
fn bounded(reader: &mut Reader, pointer: String, value: &Value) {
    if value.to_string().len() > MAX_JSON {
        reader.fault(pointer.as_str(), FieldCode::TooLarge, "is at most 64 KiB of JSON");
    }
    reader.sources_in(value, &pointer);
}
