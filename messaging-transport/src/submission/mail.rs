//! Converts a mail to the body of `POST /messages`: its addresses and headers. [`structure`](super::structure) reads
//! its content.

use std::collections::BTreeMap;

use mail_parser::{Addr, Address, HeaderValue};
use messaging_core::domain::channel::address::normalize_email;
use messaging_core::domain::message::attachment::{AttachmentInput, Base64};
use messaging_core::domain::message::message_input::MessageInput;
use ring::digest::{SHA256, digest};

use super::part::{Fields, split};
use super::recipients::{self, Recipients};
use super::refusal::Refusal;
use super::structure::{self, Content};

/// Maximum number of characters of a value of a message (contract section 4.1).
const MAX_VALUE: usize = 998;

/// Fields about the transport of the mail or its blind copies; they are dropped.
const DROPPED: [&str; 4] = ["bcc", "dkim-signature", "received", "return-path"];

/// Fields that become members of the message, or that every message gets anew.
const READ: [&str; 8] = ["cc", "date", "from", "message-id", "mime-version", "reply-to", "subject", "to"];

/// The envelope: the sender given by MAIL and the recipients given by RCPT.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    pub(super) from: Option<String>,
    pub(super) recipients: Vec<String>,
}

/// A mail that was read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) message: MessageInput,
    /// The same for the same mail to the same recipients; `None` without a Message-ID.
    pub(super) idempotency_key: Option<String>,
}

/// Reads a mail. Rules that hold for every message are checked by the sink.
pub(super) fn read(source: &[u8], envelope: &Envelope) -> Result<Read, Refusal> {
    let (header, body) = split(source)?;
    let Recipients { to, cc, bcc } =
        recipients::assign(&envelope.recipients, &addresses(&header, "to"), &addresses(&header, "cc"));
    let Content { text, html, files } = structure::read(&header, body)?;
    let mut message = MessageInput::email(to);
    (message.cc, message.bcc) = (some(cc), some(bcc));
    let from = header.all("from").find_map(HeaderValue::as_address).and_then(Address::first);
    message.from_email = from.and_then(Addr::address).map(str::to_owned).or_else(|| envelope.from.clone());
    message.from_name = from.and_then(Addr::name).map(str::to_owned).filter(|name| !name.is_empty());
    message.reply_to = reply_to(&header)?;
    message.subject = text_of(&header, "subject");
    (message.text, message.html) = (text, html);
    // A mail with nothing but files, such as a scanner's, gets an empty text.
    if message.text.is_none() && message.html.is_none() && !files.is_empty() {
        message.text = Some("\r\n".to_owned());
    }
    message.headers = further(&header)?;
    for file in files {
        message = message.attachment_of(attachment(file));
    }
    let idempotency_key = text_of(&header, "message-id").map(|id| key(&id, &envelope.recipients));
    Ok(Read { message, idempotency_key })
}

fn addresses(header: &Fields<'_>, name: &str) -> Vec<String> {
    let values = header.all(name).filter_map(HeaderValue::as_address);
    values.flat_map(Address::iter).filter_map(|address| address.address().map(str::to_owned)).collect()
}

/// Returns the first value of a field, if it is not empty.
fn text_of(header: &Fields<'_>, name: &str) -> Option<String> {
    let text = header.all(name).next()?.as_text()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn reply_to(header: &Fields<'_>) -> Result<Option<String>, Refusal> {
    let mut found = addresses(header, "reply-to");
    match found.len() {
        0 | 1 => Ok(found.pop()),
        _ => Err(Refusal::new(550, "5.6.0", "validation_failed: Reply-To may name one address")),
    }
}

/// Returns the fields that are sent along. They are checked with the message; each may occur once.
fn further(header: &Fields<'_>) -> Result<Option<BTreeMap<String, String>>, Refusal> {
    let mut kept = BTreeMap::new();
    for (name, value) in header.iter() {
        let lower = name.to_ascii_lowercase();
        let is_read = DROPPED.contains(&lower.as_str()) || READ.contains(&lower.as_str());
        if is_read || lower.starts_with("content-") {
            continue;
        }
        if kept.keys().any(|known: &String| known.eq_ignore_ascii_case(name)) {
            return Err(Refusal::new(550, "5.6.0", format!("validation_failed: the header {name} is there twice")));
        }
        let value = match value {
            HeaderValue::Text(text) => text.trim().to_owned(),
            HeaderValue::TextList(texts) => texts.join(" "),
            // The sink refuses an address field that a message may not have: it needs the name only.
            _ => String::new(),
        };
        let value = if lower == "references" { shortened(&value) } else { value };
        kept.insert(name.to_owned(), value);
    }
    Ok(if kept.is_empty() { None } else { Some(kept) })
}

/// Returns the last message ids that fit a value, after the first (RFC 5322 section 3.6.4 allows to shorten long chains
/// like this).
fn shortened(references: &str) -> String {
    if references.len() <= MAX_VALUE {
        return references.to_owned();
    }
    let ids: Vec<_> = references.split_whitespace().collect();
    let Some((first, rest)) = ids.split_first() else { return String::new() };
    let mut room = MAX_VALUE.saturating_sub(first.len());
    let fitting = rest.iter().rev().take_while(|id| {
        let fits = room > id.len();
        room = room.saturating_sub(id.len() + 1);
        fits
    });
    let kept = fitting.count();
    [&[*first], &rest[rest.len() - kept..]].concat().join(" ")
}

fn attachment(file: structure::File) -> AttachmentInput {
    let mut input = AttachmentInput::new(file.name, Base64::Decoded(file.bytes.into()));
    input.content_type = Some(file.content_type);
    input.content_id = file.content_id;
    input
}

fn some(list: Vec<String>) -> Option<Vec<String>> {
    (!list.is_empty()).then_some(list)
}

/// Returns the Idempotency-Key of a mail: SHA-256 in hex, 64 characters. It includes the recipients, because servers
/// pass on a mail with many recipients in several transactions, each of which is a message here.
fn key(message_id: &str, recipients: &[String]) -> String {
    let mut spelled: Vec<_> = recipients.iter().map(|recipient| normalize_email(recipient)).collect();
    spelled.sort_unstable();
    spelled.dedup();
    let text = format!("submission\0{message_id}\0{}", spelled.join("\0"));
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
