//! Sending messages and following them.
//!
//! Contract section 4.

use http::{Method, StatusCode};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::domain::message::hold::HoldReason;
use messaging_core::domain::message::{EventKind, Message, MessageFilter, MessageStatus};
use messaging_core::domain::message_input::MessageInput;
use messaging_core::ids::{AutomationId, CampaignId, ContactId, MessageId, TemplateId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::app::App;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};
use crate::ops::page::Page;
use crate::services::acceptance::SentMessage;

/// The longest body of `POST /messages` (contract section 1.1).
const MESSAGE_BODY_LIMIT: usize = 25 << 20;

/// A message shows at most this many events; a message has a handful, opens and clicks may add more.
const MAX_EVENTS_SHOWN: usize = 1000;

/// What accepting a message answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AcceptedMessage {
    /// The id to follow it by.
    pub message_id: MessageId,
    /// Always `queued`.
    pub status: MessageStatus,
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
        let sent = SentMessage {
            workspace_id: cx.workspace()?,
            input: call.body,
            request: cx.body.clone(),
            campaign_id: None,
            automation_id: None,
        };
        let accepted = cx.app.accept_message(sent, cx.now, &mut cx.violations).await?;
        cx.changes.extend(accepted.writes);
        cx.files.extend(accepted.files);
        let message_id = accepted.message_id;
        Ok(AcceptedMessage { message_id, status: MessageStatus::Queued })
    }
}

/// What a message shows in a listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct MessageSummary {
    /// Its id.
    pub message_id: MessageId,
    /// Its state.
    pub status: MessageStatus,
    /// Its channel.
    pub channel: Channel,
    /// The recipient; masked without `pii:read`.
    pub to: String,
    /// The contact it is attributed to.
    pub contact_id: Option<ContactId>,
    /// The campaign it belongs to.
    pub campaign_id: Option<CampaignId>,
    /// The automation it belongs to.
    pub automation_id: Option<AutomationId>,
    /// The template it is rendered from.
    pub template_id: Option<TemplateId>,
    /// The sender's tags.
    pub tags: Vec<String>,
    /// The sender's data.
    pub metadata: Map<String, Value>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
    /// What it waits for before its next attempt; null when that is up to its recipient's server or to its turn.
    pub hold: Option<HoldView>,
}

/// What a message waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Hold")]
#[non_exhaustive]
pub struct HoldView {
    /// Why it waits.
    pub reason: HoldReason,
    /// Until when; null until somebody acts.
    pub until: Option<Timestamp>,
}

impl HoldView {
    /// What a message waits for.
    pub(crate) fn of(app: &App, message: &Message) -> Option<Self> {
        let is_fenced = app.fence().is_some() && !message.status.is_settled();
        is_fenced.then_some(Self { reason: HoldReason::Held, until: None })
    }
}

/// A message with everything that happened to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessageStatusReport")]
#[non_exhaustive]
pub struct MessageReport {
    /// Its id.
    pub message_id: MessageId,
    /// Its state.
    pub status: MessageStatus,
    /// Its channel.
    pub channel: Channel,
    /// The contact it is attributed to.
    pub contact_id: Option<ContactId>,
    /// The campaign it belongs to.
    pub campaign_id: Option<CampaignId>,
    /// The automation it belongs to.
    pub automation_id: Option<AutomationId>,
    /// The template it is rendered from.
    pub template_id: Option<TemplateId>,
    /// The sender's tags.
    pub tags: Vec<String>,
    /// The sender's data.
    pub metadata: Map<String, Value>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
    /// What it waits for before its next attempt; null when that is up to its recipient's server or to its turn.
    pub hold: Option<HoldView>,
    /// What happened, in order.
    pub events: Vec<EventView>,
}

/// Something that happened to a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessageEvent")]
#[non_exhaustive]
pub struct EventView {
    /// What happened.
    pub kind: EventKind,
    /// When it happened.
    pub at: Timestamp,
    /// More, by kind; addresses in it are masked without `pii:read`.
    pub meta: Map<String, Value>,
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
    const ACCESS: Access = Access::Scope(Scope::MessagesSend);
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

/// A message with everything that happened to it.
pub(super) async fn report(cx: &Context<'_>, message: Message) -> Result<MessageReport, Error> {
    let events = cx.store().message_events(message.workspace_id, message.id, MAX_EVENTS_SHOWN).await?;
    let redactor = cx.redactor();
    // The first event is not stored: it is the message's creation.
    let queued = EventView { kind: EventKind::Queued, at: message.created_at, meta: Map::new() };
    let happened = events.into_iter().map(|event| EventView {
        kind: event.kind,
        at: event.at,
        meta: redactor.meta(message.channel, event.meta),
    });
    Ok(MessageReport {
        hold: HoldView::of(cx.app, &message),
        message_id: message.id,
        status: message.status,
        channel: message.channel,
        contact_id: message.contact_id,
        campaign_id: message.campaign_id,
        automation_id: message.automation_id,
        template_id: message.template_id,
        created_at: message.created_at,
        updated_at: message.updated_at,
        events: std::iter::once(queued).chain(happened).collect(),
        tags: message.tags,
        metadata: message.metadata,
    })
}

/// What `GET /messages` is narrowed to.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct MessageQuery {
    /// Of this campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign_id: Option<CampaignId>,
    /// Of this automation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automation_id: Option<AutomationId>,
    /// Of this contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<ContactId>,
    /// In this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<MessageStatus>,
    /// With this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Of this channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
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
    const ACCESS: Access = Access::Scope(Scope::MessagesSend);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "message list";
    const SUMMARY: &'static str = "List messages, newest first";
    type Path = Empty;
    type Query = MessageQuery;
    type Body = Empty;
    type Output = Page<MessageSummary>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<MessageSummary>, Error> {
        let workspace = cx.workspace()?;
        let MessageQuery { campaign_id, automation_id, contact_id, status, tag, channel, limit, cursor } = call.query;
        let filter = MessageFilter { campaign_id, automation_id, contact_id, status, tag, channel };
        let page = cx.page(&PageQuery::of(limit, cursor))?;
        let slice = cx.store().messages(workspace, &filter, page).await?;
        let (redactor, app) = (cx.redactor(), cx.app);
        Ok(cx.answer_page(slice, |message| MessageSummary {
            hold: HoldView::of(app, &message),
            message_id: message.id,
            status: message.status,
            channel: message.channel,
            to: redactor.address(message.channel, message.to),
            contact_id: message.contact_id,
            campaign_id: message.campaign_id,
            automation_id: message.automation_id,
            template_id: message.template_id,
            tags: message.tags,
            metadata: message.metadata,
            created_at: message.created_at,
            updated_at: message.updated_at,
        }))
    }
}
