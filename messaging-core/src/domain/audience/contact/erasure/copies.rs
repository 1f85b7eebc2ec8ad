//! Erasure of a copied person from other people's messages.
//!
//! The message keeps its meaning for its own recipient: it loses the copy, and every other mention of the address is
//! crossed out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::domain::channel::address::{fold_letter, normalize_email, unicode_spelling};
use crate::domain::delivery::Judgment;
use crate::domain::delivery::attempt::Dialog;
use crate::domain::message::content::{self, ContentError};
use crate::domain::message::{Capture, MessageContent};
use crate::domain::security::redaction::cross_out;

/// Octets in a line of base64 (RFC 2045 section 6.8), decoded.
const BASE64_LINE: usize = 57;

/// Addresses of an erased person, which are taken out of messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasedAddresses {
    /// Each in its one spelling.
    addresses: Vec<String>,
    /// Spellings of the addresses in texts, with letters as [`fold_letter`] returns them.
    spellings: Vec<String>,
    /// Addresses that may be ordinary words in texts: only taken out in places for addresses.
    opaque: Vec<String>,
}

impl ErasedAddresses {
    /// Returns the email addresses and phone numbers of a person, in any spelling.
    pub fn new<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut exact, mut spellings) = (Vec::new(), Vec::new());
        for address in addresses {
            let normal = normalize_email(address);
            let readable = unicode_spelling(&normal);
            let all = [Some(address), Some(normal.as_str()), readable.as_deref()];
            spellings.extend(all.into_iter().flatten().map(|text| text.chars().map(fold_letter).collect::<String>()));
            exact.push(normal);
        }
        for list in [&mut exact, &mut spellings] {
            list.sort();
            list.dedup();
        }
        Self { addresses: exact, spellings, opaque: Vec::new() }
    }

    /// Adds addresses such as ids of chats and tokens of devices.
    #[must_use]
    pub fn and_opaque(self, addresses: impl IntoIterator<Item = String>) -> Self {
        Self { opaque: addresses.into_iter().collect(), ..self }
    }

    /// True if there is no address to take out.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// True if a text is one of the addresses.
    pub fn are(&self, address: &str) -> bool {
        self.addresses.contains(&normalize_email(address))
    }

    /// Returns the text without the addresses; `None` if it does not contain them.
    pub fn out_of_text(&self, text: &str) -> Option<String> {
        cross_out(text, &self.spellings)
    }

    /// Takes the addresses out of every text of a value, the names of members included; returns true if there were any.
    pub(crate) fn out_of_value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.out_of_text(text) {
                Some(crossed) => {
                    *text = crossed;
                    true
                }
                None => false,
            },
            Value::Array(items) => self.out_of_each(items),
            Value::Object(members) => self.out_of_members(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn out_of_each<'a>(&self, values: impl IntoIterator<Item = &'a mut Value>) -> bool {
        let mut changed = false;
        for value in values {
            changed |= self.out_of_value(value);
        }
        changed
    }

    /// Takes the person out of the names and values of an object. True if something changed.
    pub fn out_of_members(&self, members: &mut Map<String, Value>) -> bool {
        let mut changed = self.out_of_each(members.values_mut());
        let renamed: Vec<_> = members.keys().filter_map(|name| Some((name.clone(), self.out_of_text(name)?))).collect();
        for (name, crossed) in renamed {
            if let Some(member) = members.remove(&name) {
                members.insert(crossed, member);
                changed = true;
            }
        }
        changed
    }

    /// Returns the `meta` of an event without the addresses; `None` if it stays as it is. An event of one of the
    /// person's own copies keeps what statistics need.
    pub fn out_of_meta(&self, meta: &Map<String, Value>) -> Option<Map<String, Value>> {
        let mut kept = meta.clone();
        let is_own = meta.get("recipient").and_then(Value::as_str).is_some_and(|recipient| self.are(recipient));
        if is_own {
            kept.remove("recipient");
        }
        (self.out_of_members(&mut kept) || is_own).then_some(kept)
    }

    /// Returns the stored request without the person: they are copied no more, and no message of its fallback chain
    /// goes to them. `None` if it stays as it is.
    pub fn out_of_content(&self, content: &MessageContent) -> Result<Option<MessageContent>, ContentError> {
        content::edit_request(content, |request| {
            let mut changed = false;
            for list in ["cc", "bcc"] {
                if let Some(Value::Array(copies)) = request.get_mut(list) {
                    let before = copies.len();
                    copies.retain(|copy| !copy.as_str().is_some_and(|copy| self.are(copy)));
                    changed |= copies.len() < before;
                }
            }
            if let Some(Value::Array(steps)) = request.get_mut("fallback") {
                let before = steps.len();
                let is_theirs = |to: &str| self.are(to) || self.opaque.iter().any(|opaque| opaque == to);
                steps.retain(|step| !step.get("to").and_then(Value::as_str).is_some_and(is_theirs));
                changed |= steps.len() < before;
            }
            self.out_of_members(request) || changed
        })
    }

    /// Returns a dialog without the addresses; `None` if it stays as it is.
    pub fn out_of_dialog(&self, dialog: &Dialog) -> Option<Dialog> {
        let mut kept = dialog.clone();
        let mut changed = false;
        for line in &mut kept.transcript {
            if let Some(crossed) = self.out_of_text(line) {
                *line = crossed;
                changed = true;
            }
        }
        changed.then_some(kept)
    }

    /// Returns the capture of the sandbox without the addresses; `None` if it stays as it is. The signature of a
    /// changed email is no longer valid.
    pub fn out_of_capture(&self, capture: &Capture) -> Option<Capture> {
        let source = self.out_of_source(&capture.source);
        let subject = capture.subject.as_deref().and_then(|subject| self.out_of_text(subject));
        if source.is_none() && subject.is_none() {
            return None;
        }
        let mut kept = capture.clone();
        kept.source = source.unwrap_or(kept.source);
        kept.subject = subject.or(kept.subject);
        Some(kept)
    }

    /// Returns the source of an email without the addresses, in the header fields that list recipients and in its
    /// texts, in any transfer encoding. A source that is not UTF-8 stays.
    pub fn out_of_source(&self, source: &Bytes) -> Option<Bytes> {
        let text = std::str::from_utf8(source).ok()?;
        let mut kept = String::with_capacity(text.len());
        let mut changed = false;
        let (header, body) = text.find("\r\n\r\n").map_or((text, ""), |end| text.split_at(end + 2));
        let mut add = |before: &str, after: Option<String>| {
            changed |= after.is_some();
            kept.push_str(after.as_deref().unwrap_or(before));
        };
        for field in fields(header) {
            add(field, self.out_of_field(field));
        }
        for (is_code, lines) in sections(header, body) {
            add(lines, if is_code { self.out_of_code(lines) } else { self.out_of_text(lines) });
        }
        changed.then(|| kept.into())
    }

    /// Returns a header field without the addresses: empty if no recipient is left on a list.
    fn out_of_field(&self, field: &str) -> Option<String> {
        let (name, value) = field.split_once(':')?;
        if !["cc", "bcc"].contains(&name.to_ascii_lowercase().as_str()) {
            return self.out_of_text(field);
        }
        let listed: Vec<_> = value.split(',').map(str::trim).collect();
        let left: Vec<_> =
            listed.iter().filter(|address| !self.are(address.trim_matches(['<', '>']))).copied().collect();
        match (left.len() < listed.len(), left.is_empty()) {
            (false, _) => self.out_of_text(field),
            (true, true) => Some(String::new()),
            // Folded like any list of addresses: one a line.
            (true, false) => Some(format!("{name}: {}\r\n", left.join(",\r\n "))),
        }
    }

    /// Returns lines of base64 that are a text without the addresses; `None` if they stay as they are.
    fn out_of_code(&self, lines: &str) -> Option<String> {
        let code: String = lines.lines().map(str::trim_end).collect();
        let octets = STANDARD.decode(code).ok()?;
        let crossed = self.out_of_text(std::str::from_utf8(&octets).ok()?)?;
        let lines = crossed.as_bytes().chunks(BASE64_LINE).map(|line| STANDARD.encode(line) + "\r\n");
        Some(lines.collect())
    }

    /// Takes the addresses out of the outcome of an attempt that ended after the erasure: the person is not tried
    /// again.
    pub fn out_of_judgment(&self, judgment: &mut Judgment) {
        for (_, meta) in &mut judgment.events {
            if let Some(kept) = self.out_of_meta(meta) {
                *meta = kept;
            }
        }
        judgment.open.retain(|recipient| !self.are(&recipient.address));
        judgment.soft_bounces.retain(|address| !self.are(address));
        judgment.reached.retain(|address| !self.are(address));
        if judgment.open.is_empty() {
            judgment.next_attempt_at = None;
        }
    }
}

/// Returns the fields of a header, each with its folded lines.
fn fields(header: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    let mut start = 0;
    let mut place = 0;
    for line in header.split_inclusive("\r\n") {
        if !line.starts_with([' ', '\t']) && place > start {
            fields.push(&header[start..place]);
            start = place;
        }
        place += line.len();
    }
    if place > start {
        fields.push(&header[start..place]);
    }
    fields
}

/// Splits a body into sections: lines of base64 that are a text, and everything else.
fn sections<'a>(header: &str, body: &'a str) -> Vec<(bool, &'a str)> {
    let mut sections: Vec<(bool, &str)> = Vec::new();
    let (mut is_code, mut start, mut place) = (false, 0, 0);
    let mut in_coded_text = is_coded_text(header);
    // Start of the header of a part, while it is read.
    let mut part = None;
    for line in body.split_inclusive("\r\n") {
        if line.starts_with("--") {
            (in_coded_text, part) = (false, Some(place + line.len()));
        } else if let Some(header) = part.filter(|_| line == "\r\n") {
            (in_coded_text, part) = (is_coded_text(&body[header..place]), None);
        }
        let is_code_too = in_coded_text && part.is_none() && line != "\r\n";
        if is_code_too != is_code {
            sections.push((is_code, &body[start..place]));
            (is_code, start) = (is_code_too, place);
        }
        place += line.len();
    }
    sections.push((is_code, &body[start..]));
    sections
}

/// True if a part with this header is a text in base64.
fn is_coded_text(header: &str) -> bool {
    let value = |wanted: &str| {
        let fields = fields(header).into_iter();
        let mut found = fields.filter_map(|field| field.split_once(':'));
        found.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim().to_ascii_lowercase())
    };
    value("content-transfer-encoding").is_some_and(|encoding| encoding == "base64")
        && value("content-type").is_none_or(|kind| kind.starts_with("text/"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ann() -> ErasedAddresses {
        ErasedAddresses::new(["Ann@Example.com"])
    }

    #[test]
    fn a_stored_request_copies_the_person_no_more() {
        let request = json!({
            "channel": "email", "to": "bob@example.com", "cc": ["ann@example.com", "c@example.com"],
            "bcc": ["ANN@example.com"], "subject": "Hello", "text": "ask ann@example.com",
            "metadata": {"ann@example.com": 1},
        });
        for prefix in ["", "\u{1}"] {
            let whole = if prefix.is_empty() { request.clone() } else { json!({"input": request, "files": []}) };
            let stored = MessageContent { request: format!("{prefix}{whole}").into() };
            let kept = ann().out_of_content(&stored).unwrap().unwrap();
            let kept = content::decode(&kept).unwrap().input;
            assert_eq!((kept.cc.unwrap(), kept.bcc.unwrap()), (vec!["c@example.com".to_owned()], Vec::new()));
            assert_eq!(kept.text.as_deref(), Some("ask ***"));
            assert_eq!(Value::Object(kept.metadata.unwrap()), json!({"***": 1}));
        }
        let other =
            MessageContent { request: json!({"channel": "email", "to": "joann@example.com"}).to_string().into() };
        assert_eq!(ann().out_of_content(&other).unwrap(), None);
    }

    #[test]
    fn events_of_the_copy_keep_what_happened() {
        let meta = |value: Value| value.as_object().cloned().unwrap();
        let check = |before: Value, after: Value| {
            let kept = ann().out_of_meta(&meta(before.clone())).map_or(before, Value::Object);
            assert_eq!(kept, after);
        };
        check(
            json!({"recipient": "ANN@example.com", "smtp_code": 550, "response": "no <ann@example.com>"}),
            json!({"smtp_code": 550, "response": "no <***>"}),
        );
        check(
            json!({"recipient": "bob@example.com", "response": "ok"}),
            json!({"recipient": "bob@example.com", "response": "ok"}),
        );
    }

    #[track_caller]
    fn check_source(before: &str, after: &str) {
        let source = Bytes::from(before.replace('\n', "\r\n"));
        let kept = ann().out_of_source(&source).unwrap_or(source);
        assert_eq!(std::str::from_utf8(&kept).unwrap().replace("\r\n", "\n"), after);
    }

    #[test]
    fn the_source_of_an_email_loses_the_copy() {
        check_source(
            "To: bob@example.com\nCc: ann@example.com\nSubject: x\n\nHi ann@example.com\n",
            "To: bob@example.com\nSubject: x\n\nHi ***\n",
        );
        check_source(
            "Cc: c@example.com,\n Ann@example.com,\n d@example.com\n\nHi\n",
            "Cc: c@example.com,\n d@example.com\n\nHi\n",
        );
        check_source("Subject: x\n\nannette@example.com\n", "Subject: x\n\nannette@example.com\n");
        let part = |kind: &str, text: &str| {
            format!("--b\nContent-Type: {kind}\nContent-Transfer-Encoding: base64\n\n{}\n", STANDARD.encode(text))
        };
        let mail = |text: &str, file: &str| {
            format!(
                "Content-Type: multipart/mixed; boundary=b\n\n{}{}--b--\n",
                part("text/plain", text),
                part("image/png", file)
            )
        };
        check_source(&mail("ask ann@example.com", "ann@example.com"), &mail("ask ***", "ann@example.com"));
        check_source(
            "Content-Transfer-Encoding: quoted-printable\n\nfrom ann@exam=\nple.com =3D\n",
            "Content-Transfer-Encoding: quoted-printable\n\nfrom *** =3D\n",
        );
    }
}
