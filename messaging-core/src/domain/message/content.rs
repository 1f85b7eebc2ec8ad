//! The stored form of the request for a message.
//!
//! Usually it is the bytes of the request as they were received. A request with attachments or a template, or of an
//! automation, is stored as an envelope behind a one-byte mark instead: references replace its files, and the
//! template's version is stored beside it. The mark is a byte rather than a JSON member, so that no request can pretend
//! to be an envelope and refer to files that are not its own.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::campaign::Campaign;
use crate::domain::message::MessageContent;
use crate::domain::message::attachment::StoredFile;
use crate::domain::message::message_input::MessageInput;
use crate::ids::TemplateId;
use crate::input;

/// First byte of a stored envelope, which is never the first byte of a JSON text.
const ENVELOPE: u8 = 0x01;

/// The template that a message is rendered from when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateUse {
    /// The template.
    pub id: TemplateId,
    /// Its version: the current one when the message was accepted, or when its campaign started.
    pub version: u32,
}

/// The request for a message, as delivery reads it from its stored form.
#[derive(Debug, Clone)]
pub struct RequestContent {
    /// The request without its attachments.
    pub input: MessageInput,
    /// References to the stored attachments.
    pub files: Vec<StoredFile>,
    /// Template of the subject, HTML and text that are not in the request.
    pub template: Option<TemplateUse>,
    /// Campaign whose settings take the place of the request, because messages of campaigns store none.
    pub campaign: Option<Arc<Campaign>>,
    /// Data of the automation that sends the message; `None` if none does.
    pub automation: Option<AutomationContent>,
}

/// Data that an automation stores beside the request of its message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutomationContent {
    /// True if the message is marketing, which must offer to unsubscribe.
    pub is_marketing: bool,
    /// Rendered subject that replaces the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

impl RequestContent {
    /// Returns the content of a campaign's message, which is rendered from a template.
    pub fn of_campaign(campaign: Arc<Campaign>, template: TemplateUse) -> Self {
        let input = MessageInput::new(campaign.plan.channel, "");
        Self { input, files: Vec::new(), template: Some(template), campaign: Some(campaign), automation: None }
    }
}

/// The JSON behind the mark [`ENVELOPE`].
#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    input: T,
    files: Vec<StoredFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    template: Option<TemplateUse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    automation: Option<AutomationContent>,
}

/// Error for stored content that this version cannot read.
#[derive(Debug, thiserror::Error)]
#[error("the stored request cannot be read")]
pub struct ContentError(#[source] serde_json::Error);

/// Encodes a request for storage.
///
/// The result is `raw`, the bytes as received, or `input` as JSON if it did not come as bytes. With files, a template
/// or an automation it is an envelope around `input`, without the bytes of attachments. It also leaves out the members
/// that a template provides (subject, HTML, text) or, without a template, the variables; a message with a fallback
/// keeps subject and variables.
pub fn encode(
    raw: Option<&Bytes>,
    mut input: MessageInput,
    files: Vec<StoredFile>,
    template: Option<TemplateUse>,
    automation: Option<AutomationContent>,
) -> MessageContent {
    if files.is_empty() && template.is_none() && automation.is_none() {
        let written = || serde_json::to_vec(&input).expect("plain data serializes").into();
        return MessageContent { request: raw.cloned().unwrap_or_else(written) };
    }
    input.attachments = None;
    // The next message of a fallback chain may take over the subject and the variables, so they are kept for it.
    let has_fallback = input.has_fallback();
    if template.is_some() {
        let subject = input.subject.take().filter(|_| has_fallback);
        (input.subject, input.html, input.text) = (subject, None, None);
    } else if !has_fallback {
        input.variables = None;
    }
    let mut request = vec![ENVELOPE];
    serde_json::to_writer(&mut request, &Envelope { input, files, template, automation })
        .expect("plain data serializes");
    MessageContent { request: request.into() }
}

/// Returns the stored form after `change` edited the members of its request; `None` if `change` returns false because
/// it changed nothing, or if the request is no JSON object.
pub fn edit_request(
    content: &MessageContent,
    change: impl FnOnce(&mut Map<String, Value>) -> bool,
) -> Result<Option<MessageContent>, ContentError> {
    let (mark, json) = match content.request.split_first() {
        Some((&ENVELOPE, rest)) => (&content.request[..1], rest),
        _ => (&[][..], &content.request[..]),
    };
    let mut whole: Value = serde_json::from_slice(json).map_err(ContentError)?;
    let request = if mark.is_empty() { Some(&mut whole) } else { whole.get_mut("input") };
    let Some(Value::Object(members)) = request else { return Ok(None) };
    if !change(members) {
        return Ok(None);
    }
    let mut request = mark.to_vec();
    serde_json::to_writer(&mut request, &whole).expect("plain data serializes");
    Ok(Some(MessageContent { request: request.into() }))
}

/// Reads the stored form of a request. Its members are not checked again.
pub fn decode(content: &MessageContent) -> Result<RequestContent, ContentError> {
    if let Some((&ENVELOPE, rest)) = content.request.split_first() {
        let Envelope { input, files, template, automation } = serde_json::from_slice(rest).map_err(ContentError)?;
        return Ok(RequestContent { input, files, template, campaign: None, automation });
    }
    let input = input::kept::<MessageInput>(&content.request).map_err(ContentError)?;
    Ok(RequestContent { input, files: Vec::new(), template: None, campaign: None, automation: None })
}
