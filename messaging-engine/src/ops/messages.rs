//! Sending messages and following them.
//!
//! Contract section 4.

pub mod batch;
pub mod cancel;
pub mod content;
mod view;

use http::{Method, StatusCode};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::domain::message::{MessageFilter, MessageStatus};
use messaging_core::domain::search::{MAX_SEARCH, MIN_SEARCH, Search};
use messaging_core::ids::{AutomationId, CampaignId, ContactId, MessageId, TemplateId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::ports::store::Slice;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::ops::page::Page;
use crate::services::acceptance::SentMessage;

use view::summaries;

pub(super) use view::report;
pub use view::{EventView, HoldView, MessageReport, MessageSummary};

/// Longest body of `POST /messages` in bytes (contract section 1.1).
const MESSAGE_BODY_LIMIT: usize = 25 << 20;

/// Answer to a message that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AcceptedMessage {
    /// Id of the message.
    pub message_id: MessageId,
    /// Always `queued`.
    pub status: MessageStatus,
    /// Number of parts in which a text message is sent, each of which is paid for; left out for other messages, and if
    /// the text is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<u32>,
}

/// `POST /messages`
pub struct SendMessage;

impl Operation for SendMessage {
    const ID: &'static str = "sendMessage";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/messages";
    const ACCESS: Access = Access::Scope(Scope::MessagesSend);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "message send";
    const SUMMARY: &'static str = "Send one message";
    const BODY_LIMIT: usize = MESSAGE_BODY_LIMIT;
    const LOOKS_UP: bool = true;
    type Path = Empty;
    type Query = Empty;
    type Body = MessageInput;
    type Output = AcceptedMessage;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<AcceptedMessage, Error> {
        let sent = SentMessage { request: cx.body.clone(), ..SentMessage::new(cx.workspace()?, call.body) };
        let accepted = cx.app.accept_message(sent, cx.now, &mut cx.violations).await?;
        let segments = cx.app.segments_of_new(&accepted.writes, cx.redactor()).await;
        cx.changes.extend(accepted.writes);
        cx.files.extend(accepted.files);
        let message_id = accepted.message_id;
        Ok(AcceptedMessage { message_id, status: MessageStatus::Queued, segments })
    }
}

/// The path of an operation on a message.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct MessagePath {
    /// The message.
    pub id: MessageId,
}

/// `GET /messages/{id}`
pub struct GetMessage;

impl Operation for GetMessage {
    const ID: &'static str = "getMessage";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/messages/{id}";
    const ACCESS: Access = Access::Scope(Scope::MessagesRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "message get";
    const SUMMARY: &'static str = "Show a message and everything that happened to it";
    type Path = MessagePath;
    type Query = Empty;
    type Body = Empty;
    type Output = MessageReport;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<MessageReport, Error> {
        let workspace = cx.workspace()?;
        let message = cx.store().message(workspace, call.path.id).await?.ok_or(Error::NotFound)?;
        report(cx, message).await
    }
}

/// Filters and page of `GET /messages`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct MessageQuery {
    /// Messages of this campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<CampaignId>,
    /// Messages of this automation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automation_id: Option<AutomationId>,
    /// Messages of this contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<ContactId>,
    /// Messages in one of these states, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Vec<MessageStatus>>,
    /// Messages with this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Messages on this channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Messages to this address, in any spelling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1))]
    pub to: Option<String>,
    /// Messages rendered from this template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<TemplateId>,
    /// Messages accepted at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Messages accepted before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Messages with this text, in any case, in the recipient, the subject or the id; for a caller without the scope
    /// `pii:read` in the subject or the id. 2 to 100 characters. A subject is found some seconds after the message was
    /// accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = MIN_SEARCH, max = MAX_SEARCH))]
    pub q: Option<String>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for MessageQuery {}

/// `GET /messages`
pub struct ListMessages;

impl Operation for ListMessages {
    const ID: &'static str = "listMessages";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/messages";
    const ACCESS: Access = Access::Scope(Scope::MessagesRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "message list";
    const SUMMARY: &'static str = "List messages, newest first";
    type Path = Empty;
    type Query = MessageQuery;
    type Body = Empty;
    type Output = Page<MessageSummary>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<MessageSummary>, Error> {
        let workspace = cx.workspace()?;
        let MessageQuery { campaign_id, automation_id, contact_id, status, tag, channel, .. } = call.query;
        let MessageQuery { to, template_id, since, until, q, limit, cursor, .. } = call.query;
        let filter = MessageFilter {
            campaign_id,
            automation_id,
            contact_id,
            statuses: status.unwrap_or_default(),
            tag,
            channel,
            to,
            template_id,
            since,
            until,
            search: q.map(|q| Search::new(&q, cx.sees_addresses())),
        };
        let page = cx.page(&PageQuery::of(limit, cursor))?;
        let Slice { items, next } = cx.store().messages(workspace, &filter, page).await?;
        let items = summaries(cx, items).await?;
        Ok(cx.answer_page(Slice { items, next }, |summary| summary))
    }
}
