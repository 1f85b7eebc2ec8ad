//! The stored form of what a sender asked for.
//!
//! Usually the request's bytes as they were received. A request with attachments or a template is stored
//! behind a one-byte mark instead, its files replaced by references, the template's version beside it: a
//! mark rather than a JSON member, so that no request can pretend to refer to somebody's file.

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

/// Never the first byte of a JSON text.
const ENVELOPE: u8 = 0x01;

/// The template that a message is rendered from when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateUse {
    /// The template.
    pub id: TemplateId,
    /// The version that was current when the message was accepted.
    pub version: u32,
}

/// What delivery needs to know of a request.
#[derive(Debug, Clone)]
pub struct RequestContent {
    /// The request, its attachments taken out.
    pub input: MessageInput,
    /// The attachments.
    pub files: Vec<StoredFile>,
    /// What its subject, HTML and text come from.
    pub template: Option<TemplateUse>,
    /// The campaign that it is made of instead: messages of campaigns store no request.
    pub campaign: Option<Arc<Campaign>>,
    /// What an automation says of it besides.
    pub automation: Option<AutomationContent>,
}

/// What an automation says of its message besides the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutomationContent {
    /// Whether it is marketing, which carries the offer to unsubscribe.
    pub is_marketing: bool,
    /// The subject in place of the template's, rendered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

impl RequestContent {
    /// What delivery needs to know of a message of a campaign that sends it by a template.
    pub fn of_campaign(campaign: Arc<Campaign>, template: TemplateUse) -> Self {
        let input = MessageInput::new(campaign.plan.channel, "");
        Self { input, files: Vec::new(), template: Some(template), campaign: Some(campaign), automation: None }
    }
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    input: T,
    files: Vec<StoredFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    template: Option<TemplateUse>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    automation: Option<AutomationContent>,
}

/// The stored content is not what this version writes.
#[derive(Debug, thiserror::Error)]
#[error("the stored request cannot be read")]
pub struct Unreadable(#[source] serde_json::Error);

/// The form to store: `raw` as it is (or, where the input did not come as bytes, the input as JSON); when files were
/// stored, a template is used or an automation sends it, the input without the files and without what comes from the template.
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
    // What follows in the chain may be given its subject and its variables.
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

/// The stored form with its request changed; `None` when `change` says that it changed nothing.
pub fn edit(
    content: &MessageContent,
    change: impl FnOnce(&mut Map<String, Value>) -> bool,
) -> Result<Option<MessageContent>, Unreadable> {
    let (mark, json) = match content.request.split_first() {
        Some((&ENVELOPE, rest)) => (&content.request[..1], rest),
        _ => (&[][..], &content.request[..]),
    };
    let mut whole: Value = serde_json::from_slice(json).map_err(Unreadable)?;
    let request = if mark.is_empty() { Some(&mut whole) } else { whole.get_mut("input") };
    let Some(Value::Object(members)) = request else { return Ok(None) };
    if !change(members) {
        return Ok(None);
    }
    let mut request = mark.to_vec();
    serde_json::to_writer(&mut request, &whole).expect("plain data serializes");
    Ok(Some(MessageContent { request: request.into() }))
}

/// Reads the stored form.
pub fn decode(content: &MessageContent) -> Result<RequestContent, Unreadable> {
    if let Some((&ENVELOPE, rest)) = content.request.split_first() {
        let Envelope { input, files, template, automation } = serde_json::from_slice(rest).map_err(Unreadable)?;
        return Ok(RequestContent { input, files, template, campaign: None, automation });
    }
    let input = input::kept::<MessageInput>(&content.request).map_err(Unreadable)?;
    Ok(RequestContent { input, files: Vec::new(), template: None, campaign: None, automation: None })
}
