//! The sandbox inbox: messages that were captured instead of leaving the server.
//!
//! Contract section 22, "Sandbox inbox".

use bytes::Bytes;
use http::{Method, StatusCode};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::input::{Empty, PageQuery};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Answer, Call, InWorkspace, JSON, Operation, Output, OutputKind};
use crate::ops::page::Page;

/// Media type of an email's source.
const EMAIL_SOURCE: &str = "message/rfc822";

/// A captured message as listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SandboxMessage {
    /// The message.
    pub message_id: MessageId,
    /// Channel of the message.
    pub channel: Channel,
    /// The recipient; masked without `pii:read`.
    pub to: String,
    /// The sender, of an email.
    pub from: Option<String>,
    /// The subject of an email, the title of a push message; addresses in it are masked without `pii:read`.
    pub subject: Option<String>,
    /// When it was captured.
    pub captured_at: Timestamp,
}

/// `GET /workspaces/{workspace_id}/sandbox/messages`
pub struct ListSandboxMessages;

impl Operation for ListSandboxMessages {
    const ID: &'static str = "listSandboxMessages";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/sandbox/messages";
    const ACCESS: Access = Access::Scope(Scope::MessagesRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "sandbox list";
    const SUMMARY: &'static str = "List what the sandbox captured, newest message first";
    type Path = InWorkspace;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<SandboxMessage>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<SandboxMessage>, Error> {
        let page = cx.page(&call.query)?;
        let slice = cx.store().captures(call.path.workspace_id, page).await?;
        let redactor = cx.redactor();
        Ok(cx.answer_page(slice, |capture| SandboxMessage {
            message_id: capture.message_id,
            channel: capture.channel,
            to: redactor.address(capture.channel, capture.to),
            from: capture.from,
            // The subject may contain values of a template.
            subject: capture.subject.map(|subject| redactor.text(subject)),
            captured_at: capture.captured_at,
        }))
    }
}

/// The path of a captured message.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct SandboxPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
}

/// Source of a captured message: the bytes that would have been sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapturedSource {
    /// True for an email; other channels have JSON.
    pub is_email: bool,
    /// The bytes.
    pub source: Bytes,
}

impl Output for CapturedSource {
    const KIND: OutputKind = OutputKind::Document(&[EMAIL_SOURCE, "application/json"]);

    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }

    fn to_answer(&self, success: StatusCode) -> Result<Answer, Error> {
        let content_type = if self.is_email { EMAIL_SOURCE } else { JSON };
        Ok(Answer { content_type: Some(content_type), body: self.source.clone(), ..Answer::empty(success) })
    }

    fn from_body(body: &[u8]) -> Result<Self, serde_json::Error> {
        // No email begins with a brace: header names do not.
        Ok(Self { is_email: body.first() != Some(&b'{'), source: Bytes::copy_from_slice(body) })
    }
}

/// `GET /workspaces/{workspace_id}/sandbox/messages/{message_id}`
pub struct GetSandboxMessage;

impl Operation for GetSandboxMessage {
    const ID: &'static str = "getSandboxMessage";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/sandbox/messages/{message_id}";
    const ACCESS: Access = Access::Scopes(Scope::MessagesSend, Scope::PiiRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "sandbox get";
    const SUMMARY: &'static str = "Show the source of a captured message";
    type Path = SandboxPath;
    type Query = Empty;
    type Body = Empty;
    type Output = CapturedSource;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CapturedSource, Error> {
        let SandboxPath { workspace_id, message_id } = call.path;
        let capture = cx.store().capture(workspace_id, message_id).await?.ok_or(Error::NotFound)?;
        Ok(CapturedSource { is_email: capture.channel == Channel::Email, source: capture.source })
    }
}
