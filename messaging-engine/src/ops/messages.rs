//! Sending messages and following them.
//!
//! Contract section 4.

use std::sync::Arc;

use http::{Method, StatusCode};
use messaging_core::changes::Write;
use messaging_core::domain::address::{self, EmailAddress};
use messaging_core::domain::attachment::{self, MessageBlob, StoredFile};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::contact::{Contact, Identifier};
use messaging_core::domain::content::TemplateUse;
use messaging_core::domain::link_token::CopyKey;
use messaging_core::domain::message::{EventKind, Message, MessageFilter, MessageStatus};
use messaging_core::domain::message_input::MessageInput;
use messaging_core::domain::sending_domain::SendingDomain;
use messaging_core::domain::template::Template;
use messaging_core::domain::{content, sender};
use messaging_core::ids::{AutomationId, CampaignId, ContactId, MessageId, TemplateId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::violation::FieldCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use validator::Validate;

use crate::error::{Error, Unprocessable};
use crate::jobs::JobData as _;
use crate::jobs::deliver_message::DeliverMessage;
use crate::ops::context::{Context, NewFile};
use crate::ops::operation::{Call, Operation};
use crate::ops::page::Page;

/// The longest body of `POST /messages` (contract section 1.1).
const MESSAGE_BODY_LIMIT: usize = 25 << 20;

/// A message shows at most this many events; a message has a handful, opens and clicks may add more.
const MAX_EVENTS_SHOWN: usize = 1000;

/// What accepting a message answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
        let workspace = cx.workspace()?;
        let input = call.body;
        let named_domain = look_up(cx, workspace, &input).await?;
        let template = named_template(cx, workspace, &input).await?;
        let input = from_template(input, template.as_deref());
        let contact = named_contact(cx, workspace, &input).await?;
        if !cx.violations.is_empty() {
            return Err(std::mem::take(&mut cx.violations).into());
        }
        let from_email = match input.channel {
            Channel::Email => Some(decide_sender(cx, workspace, &input, named_domain.as_ref()).await?),
            _ => None,
        };
        require_transport(cx, workspace, input.channel).await?;
        let (to, contact_id) = decide_recipient(cx, workspace, &input, contact).await?;

        let message = Message {
            id: cx.new_id(),
            workspace_id: workspace,
            revision: 1,
            status: MessageStatus::Queued,
            channel: input.channel,
            to,
            from_email: from_email.map(|from| from.as_str().to_owned()),
            contact_id,
            campaign_id: None,
            automation_id: None,
            template_id: template.as_ref().map(|template| template.id),
            tags: input.tags.clone().unwrap_or_default(),
            metadata: input.metadata.clone().unwrap_or_default(),
            created_at: cx.now,
            updated_at: cx.now,
        };
        let copies = copy_keys(cx, workspace, &input);
        let files = collect_files(cx, &message, &input);
        let template = template.map(|template| TemplateUse { id: template.id, version: template.version });
        let jobs = DeliverMessage::of(&message, input.cc.as_deref(), input.bcc.as_deref());
        let content = content::encode(cx.body.as_ref(), input, files, template);
        let message_id = message.id;
        cx.change(Write::InsertMessage(Box::new(message), content));
        if !copies.is_empty() {
            cx.change(Write::ListCopies(workspace, message_id, copies));
        }
        for job in jobs {
            let job = job.enqueue(cx.new_id(), cx.now);
            cx.change(Write::Enqueue(job));
        }
        Ok(AcceptedMessage { message_id, status: MessageStatus::Queued })
    }
}

/// What erasing finds the message by, for each of its copies once.
fn copy_keys(cx: &Context<'_>, workspace: WorkspaceId, input: &MessageInput) -> Vec<CopyKey> {
    let copies = input.cc.iter().chain(&input.bcc).flatten();
    let mut keys: Vec<_> =
        copies.map(|copy| cx.app.link_key().copy(workspace, &address::normalize(Channel::Email, copy))).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Looks up what the request names. What is not there is added to the violations.
async fn look_up(
    cx: &mut Context<'_>,
    workspace: WorkspaceId,
    input: &MessageInput,
) -> Result<Option<SendingDomain>, Error> {
    let Some(id) = input.sending_domain_id.as_ref().filter(|id| !id.is_empty()) else { return Ok(None) };
    if input.channel != Channel::Email {
        return Ok(None);
    }
    let domain = match id.parse() {
        Ok(id) => cx.store().domain(workspace, id).await?,
        Err(_) => None,
    };
    if domain.is_none() {
        cx.violations.add("/sending_domain_id", FieldCode::NotFound, "no such sending domain in this workspace");
    }
    Ok(domain.map(|stored| stored.record))
}

/// The template that the request names. One that is not there, is for another channel or has not what a
/// message needs is added to the violations.
async fn named_template(
    cx: &mut Context<'_>,
    workspace: WorkspaceId,
    input: &MessageInput,
) -> Result<Option<Arc<Template>>, Error> {
    let Some(id) = input.template_id.as_ref().filter(|id| !id.is_empty()) else { return Ok(None) };
    let found = match id.parse() {
        Ok(id) => cx.app.template_head(workspace, id).await?,
        Err(_) => None,
    };
    let fault = match &found {
        None => Some((FieldCode::NotFound, "no such template in this workspace")),
        Some(template) if template.channel != input.channel => {
            Some((FieldCode::Conflict, "the template is for another channel"))
        }
        Some(template) if !template.can_be_sent() => {
            Some((FieldCode::Required, "the template has no subject, or nothing to say"))
        }
        Some(_) => None,
    };
    if let Some((code, rule)) = fault {
        cx.violations.add("/template_id", code, rule);
    }
    Ok(found)
}

/// The request with the template's sender where it names none itself.
fn from_template(mut input: MessageInput, template: Option<&Template>) -> MessageInput {
    let Some(template) = template else { return input };
    let fill = |member: &mut Option<String>, own: &Option<String>| {
        if member.as_ref().is_none_or(String::is_empty) {
            member.clone_from(own);
        }
    };
    fill(&mut input.from_email, &template.design.from_email);
    fill(&mut input.from_name, &template.design.from_name);
    fill(&mut input.reply_to, &template.design.reply_to);
    input
}

/// The contact that the request names. One that is not there is added to the violations.
async fn named_contact(
    cx: &mut Context<'_>,
    workspace: WorkspaceId,
    input: &MessageInput,
) -> Result<Option<Contact>, Error> {
    let Some(id) = input.contact_id.as_ref().filter(|id| !id.is_empty()) else { return Ok(None) };
    let found = match id.parse() {
        Ok(id) => cx.store().contact(workspace, id).await?,
        Err(_) => None,
    };
    if found.is_none() {
        cx.violations.add("/contact_id", FieldCode::NotFound, "no such contact in this workspace");
    }
    Ok(found.map(|stored| stored.record))
}

/// Where the message goes, and the contact it is attributed to: the one that is named, else the one that
/// has the address.
async fn decide_recipient(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    input: &MessageInput,
    contact: Option<Contact>,
) -> Result<(String, Option<ContactId>), Error> {
    let to = input.to.clone().filter(|to| !to.is_empty());
    if let Some(contact) = contact {
        let own = || contact.addresses(input.channel).into_iter().next();
        return Ok((to.or_else(own).ok_or(Unprocessable::ContactAddressMissing)?, Some(contact.id)));
    }
    let to = to.ok_or(Unprocessable::ContactAddressMissing)?;
    let contact_id = match Identifier::of_address(input.channel, &to) {
        Some(identifier) if cx.app.has_contacts(workspace).await? => {
            cx.store().contact_identified(workspace, &identifier).await?
        }
        _ => None,
    };
    Ok((to, contact_id))
}

async fn decide_sender(
    cx: &Context<'_>,
    workspace: WorkspaceId,
    input: &MessageInput,
    named: Option<&SendingDomain>,
) -> Result<EmailAddress, Error> {
    let domains = cx.app.sending_domains(workspace).await?;
    let asked = input.from_email.as_deref().filter(|text| !text.is_empty());
    let asked = asked.map(EmailAddress::parse).transpose().map_err(Error::internal)?;
    Ok(sender::decide(asked.as_ref(), named, &domains)?)
}

/// Refuses a channel that nothing carries: no settings, or a provider this installation does not have.
async fn require_transport(cx: &Context<'_>, workspace: WorkspaceId, channel: Channel) -> Result<(), Error> {
    let provider = cx.app.provider(workspace, channel).await?;
    let known = provider.is_some_and(|provider| cx.app.transport(channel, &provider.name).is_some());
    if known { Ok(()) } else { Err(Unprocessable::ChannelNotConfigured.into()) }
}

/// Names the attachments, which are stored beside the message. They are durable before the message is.
fn collect_files(cx: &mut Context<'_>, message: &Message, input: &MessageInput) -> Vec<StoredFile> {
    let mut files = Vec::new();
    for file in input.attachments.iter().flatten() {
        let blob = MessageBlob { workspace_id: message.workspace_id, message_id: message.id, id: cx.new_id() };
        let bytes = file.content_b64.bytes();
        files.push(StoredFile {
            filename: file.filename.clone(),
            content_type: attachment::content_type(file),
            size: bytes.len() as u64,
            blob: blob.id,
        });
        cx.files.push(NewFile { blob, bytes });
    }
    files
}

/// What a message shows in a listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
}

/// A message with everything that happened to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessageStatusReport")]
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
    /// What happened, in order.
    pub events: Vec<EventView>,
}

/// Something that happened to a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessageEvent")]
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
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate)]
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
    #[validate(range(min = 1, max = 200))]
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
        let page = cx.page(&PageQuery { limit, cursor })?;
        let slice = cx.store().messages(workspace, &filter, page).await?;
        let redactor = cx.redactor();
        Ok(cx.answer_page(slice, |message| MessageSummary {
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
