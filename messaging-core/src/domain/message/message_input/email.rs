//! Rules for email: subject and parts, copies, sender, headers, attachments.

use std::collections::HashSet;

use super::{MessageInput, is_given};
use crate::domain::channel::Channel;
use crate::domain::channel::address;
use crate::domain::mail::headers::{self, HeaderFault};
use crate::domain::message::attachment::{self, Base64};
use crate::violation::{FieldCode, Violations, escape};

impl MessageInput {
    /// Adds the faults that the message has as an email.
    pub(super) fn check_email(&self, violations: &mut Violations) {
        check(self, violations);
    }
}

/// Adds the faults of an email.
fn check(input: &MessageInput, violations: &mut Violations) {
    check_copies(input, violations);
    if input.has_own_parts() {
        if !is_given(input.subject.as_ref()) {
            violations.add("/subject", FieldCode::Required, "is required without a template");
        }
        if !is_given(input.text.as_ref()) && !is_given(input.html.as_ref()) {
            violations.add("/html", FieldCode::Required, "html or text is required without a template");
        }
    }
    check_sender(input, violations);
    check_headers(input, violations);
    check_attachments(input, violations);
}

fn check_copies(input: &MessageInput, violations: &mut Violations) {
    for (name, list) in [("cc", &input.cc), ("bcc", &input.bcc)] {
        for (index, copy) in list.iter().flatten().enumerate() {
            let pointer = format!("/{name}/{index}");
            address::check_sent(Channel::Email, copy, pointer, "not an email address", violations);
        }
    }
}

fn check_sender(input: &MessageInput, violations: &mut Violations) {
    for (pointer, given) in [("/from_email", &input.from_email), ("/reply_to", &input.reply_to)] {
        if let Some(text) = given {
            address::check_sent(Channel::Email, text, pointer, "not an email address", violations);
        }
    }
    if input.from_name.as_ref().is_some_and(|name| name.chars().any(char::is_control)) {
        violations.add("/from_name", FieldCode::InvalidFormat, "must not contain control characters");
    }
}

fn check_headers(input: &MessageInput, violations: &mut Violations) {
    for (name, value) in input.headers.iter().flatten() {
        let at = format!("/headers/{}", escape(name));
        match headers::check(name, value) {
            Ok(()) => {}
            Err(HeaderFault::Name) => {
                violations.add(at, FieldCode::InvalidFormat, "a name has 1 to 76 letters, digits and hyphens");
            }
            Err(HeaderFault::Denied) => violations.add(at, FieldCode::NotAllowed, "this header cannot be set"),
            Err(HeaderFault::TooLong) => {
                violations.add(at, FieldCode::TooLong, "must have at most 998 characters");
            }
            Err(HeaderFault::Value) => {
                violations.add(at, FieldCode::InvalidFormat, "must not contain control characters");
            }
        }
    }
}

fn check_attachments(input: &MessageInput, violations: &mut Violations) {
    let mut total = 0;
    let mut ids = HashSet::new();
    for (index, file) in input.attachments.iter().flatten().enumerate() {
        if file.filename.chars().any(char::is_control) {
            violations.add(
                format!("/attachments/{index}/filename"),
                FieldCode::InvalidFormat,
                "must not contain control characters",
            );
        }
        if file.content_type.as_ref().is_some_and(|text| !text.is_empty() && !attachment::is_media_type(text)) {
            violations.add(format!("/attachments/{index}/content_type"), FieldCode::InvalidFormat, "not a media type");
        }
        if let Some(id) = &file.content_id {
            let at = format!("/attachments/{index}/content_id");
            if !attachment::is_content_id(id) {
                violations.add(at, FieldCode::InvalidFormat, "must be visible ASCII characters without angle brackets");
            } else if !ids.insert(id) {
                violations.add(at, FieldCode::Duplicate, "another attachment has this content id");
            }
        }
        let at = || format!("/attachments/{index}/content_b64");
        match &file.content_b64 {
            Base64::Malformed => violations.add(at(), FieldCode::InvalidFormat, "not padded base64"),
            Base64::Decoded(bytes) if bytes.is_empty() => {
                violations.add(at(), FieldCode::Required, "must hold at least 1 byte");
            }
            Base64::Decoded(bytes) => total += bytes.len(),
        }
    }
    if total > attachment::MAX_TOTAL_BYTES {
        violations.add("/attachments", FieldCode::TooLarge, "must be at most 15 MiB decoded in total");
    }
}
