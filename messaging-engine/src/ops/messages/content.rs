//! `GET /messages/{id}/content`: the content of a message.

use http::{Method, StatusCode};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::attachment::StoredFile;
use messaging_core::domain::message::channel_content::{ChannelContent, TelegramText, WhatsappContent};
use messaging_core::domain::message::content::RequestContent;
use messaging_core::domain::message::{EventKind, Message};
use messaging_core::ids::TemplateId;
use messaging_core::input::Empty;
use messaging_core::scope::{Access, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::MessagePath;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::services::message_content::or_unrenderable;
use crate::services::templates::Unrendered;

/// Upper bound on the copies of a message that were left out; it has at most a hundred, each left out once.
const MAX_LEFT_OUT: usize = 1000;

/// The version of a template that a message is rendered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RenderedTemplate {
    /// The template.
    pub id: TemplateId,
    /// Version that was current when the message was accepted, or its campaign started.
    pub version: u32,
}

/// Content of a message, as it was sent or would be now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessageContent")]
#[non_exhaustive]
pub struct ContentReport {
    /// The request. Attachments have their `size` in the place of their bytes. For a message of a campaign, the members
    /// that the campaign gives it.
    pub request: Map<String, Value>,
    /// Template version that it is rendered from; null if the request has its own parts.
    pub template: Option<RenderedTemplate>,
    /// Subject of an email or title of a push message. This and the other parts are null if the template cannot be
    /// rendered.
    pub subject: Option<String>,
    /// The HTML, with links and pixel as recipients get them.
    pub html: Option<String>,
    /// The text; for an email made of the HTML if none was given.
    pub text: Option<String>,
    /// Names and values of the headers of an email in their order, decoded; without signatures and headers about the
    /// encoding. Empty on other channels.
    pub headers: Vec<(String, String)>,
    /// Bytes of subject, HTML, text and attachments together, before they are encoded.
    pub size: u64,
}

/// `GET /messages/{id}/content`
pub struct GetMessageContent;

impl Operation for GetMessageContent {
    const ID: &'static str = "getMessageContent";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/messages/{id}/content";
    const ACCESS: Access = Access::Scopes(Scope::MessagesSend, Scope::PiiRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "message content";
    const SUMMARY: &'static str = "Show what a message says; kept for 30 days";
    type Path = MessagePath;
    type Query = Empty;
    type Body = Empty;
    type Output = ContentReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<ContentReport, Error> {
        let workspace = cx.workspace()?;
        let message = cx.store().message(workspace, call.path.id).await?.ok_or(Error::NotFound)?;
        let kept = cx.app.kept_content(&message).await?.ok_or(Error::NotFound)?;
        let request = &kept.request;
        let shown = or_unrenderable(shown(cx, &message, request).await)?.unwrap_or_default();
        let files: u64 = request.files.iter().map(|file| file.size).sum();
        let parts = [&shown.subject, &shown.html, &shown.text];
        let length: usize = parts.into_iter().flatten().map(String::len).sum();
        Ok(ContentReport {
            request: as_sent_in(&message, request)?,
            template: request.template.map(|used| RenderedTemplate { id: used.id, version: used.version }),
            subject: shown.subject,
            html: shown.html,
            text: shown.text,
            headers: shown.headers,
            size: length as u64 + files,
        })
    }
}

/// The parts of a message as its recipients see them.
#[derive(Default)]
struct Shown {
    subject: Option<String>,
    html: Option<String>,
    text: Option<String>,
    headers: Vec<(String, String)>,
}

async fn shown(cx: &Context<'_>, message: &Message, request: &RequestContent) -> Result<Shown, Unrendered> {
    if message.channel != Channel::Email {
        return Ok(match cx.app.channel_content(message, request).await? {
            ChannelContent::Sms(sms) => Shown { text: Some(sms.text), ..Shown::default() },
            ChannelContent::Push(push) => Shown { subject: push.title, text: Some(push.text), ..Shown::default() },
            ChannelContent::Telegram(telegram) => match telegram.text {
                TelegramText::Plain(text) => Shown { text: Some(text), ..Shown::default() },
                TelegramText::Html(html) => Shown { html: Some(html), ..Shown::default() },
            },
            ChannelContent::Whatsapp(whatsapp) => match *whatsapp {
                WhatsappContent::Text { text, .. } => Shown { text: Some(text), ..Shown::default() },
                WhatsappContent::Template(_) => Shown::default(),
            },
            ChannelContent::Viber(viber) => Shown { text: Some(viber.text), ..Shown::default() },
        });
    }
    let (workspace, kind) = (message.workspace_id, EventKind::Suppressed);
    let events = cx.store().message_events_of_kind(workspace, message.id, kind, MAX_LEFT_OUT).await?;
    let left_out = events.iter().filter_map(|event| event.meta.get("recipient")?.as_str().map(ToOwned::to_owned));
    let parts = cx.app.email_parts(message, request, &left_out.collect::<Vec<_>>()).await?;
    let headers = parts.all_headers();
    Ok(Shown { subject: Some(parts.subject), html: parts.html, text: parts.text, headers })
}

/// Returns the request as it was sent, with its files but without their bytes.
fn as_sent_in(message: &Message, content: &RequestContent) -> Result<Map<String, Value>, Error> {
    let Value::Object(mut members) = serde_json::to_value(&content.input).map_err(Error::internal)? else {
        return Ok(Map::new());
    };
    if content.campaign.is_some() {
        let contact_id = message.contact_id.map(|id| id.to_string());
        let given = [
            ("to", Some(&message.to)),
            ("contact_id", contact_id.as_ref()),
            ("from_email", message.from_email.as_ref()),
        ];
        let given = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
        members.extend(given);
        members.extend(content.template.map(|used| ("template_id".to_owned(), json!(used.id))));
    }
    if !content.files.is_empty() {
        let file = |file: &StoredFile| {
            let mut shown = json!({"filename": file.filename, "content_type": file.content_type, "size": file.size});
            if let Some(id) = &file.content_id {
                shown["content_id"] = json!(id);
            }
            shown
        };
        members.insert("attachments".to_owned(), content.files.iter().map(file).collect());
    }
    Ok(members)
}
