//! `GET /messages/{id}/attempts`: what was said on the wire.

use http::{Method, StatusCode};
use messaging_core::domain::delivery::attempt::{AttemptOutcome, AttemptTls, MessageAttempt};
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::input::{Empty, PageQuery};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::messages::MessagePath;
use crate::ops::operation::{Call, Operation};
use crate::ops::page::Page;

/// The dialog with one peer during an attempt to deliver a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessageAttempt")]
#[non_exhaustive]
pub struct AttemptReport {
    /// Which attempt of the message; one attempt may talk to several peers.
    pub attempt: u32,
    /// When it ended.
    pub at: Timestamp,
    /// The host that was talked to.
    pub mx: Option<String>,
    /// Its address and port.
    pub remote_addr: Option<String>,
    /// Version, cipher suite and verification of TLS; null in plain text.
    pub tls: Option<AttemptTls>,
    /// Outcome of the attempt at this peer.
    pub outcome: AttemptOutcome,
    /// `> ` what we said, `< ` what the peer said, `* ` what happened otherwise. Never content; addresses
    /// are masked without `pii:read`.
    pub transcript: Vec<String>,
}

impl AttemptReport {
    fn of(attempt: MessageAttempt, redactor: Redactor) -> Self {
        let dialog = attempt.dialog;
        Self {
            attempt: attempt.attempt,
            at: attempt.at,
            mx: dialog.mx.map(|mx| redactor.text(mx)),
            remote_addr: dialog.remote_addr,
            tls: dialog.tls,
            outcome: dialog.outcome,
            transcript: dialog.transcript.into_iter().map(|line| redactor.text(line)).collect(),
        }
    }
}

/// `GET /messages/{id}/attempts`
pub struct ListAttempts;

impl Operation for ListAttempts {
    const ID: &'static str = "listMessageAttempts";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/messages/{id}/attempts";
    const ACCESS: Access = Access::Scope(Scope::MessagesRead);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "message attempts";
    const SUMMARY: &'static str = "Show what was said on the wire, newest first; kept for 30 days";
    type Path = MessagePath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<AttemptReport>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<AttemptReport>, Error> {
        let workspace = cx.workspace()?;
        let message = cx.store().message(workspace, call.path.id).await?.ok_or(Error::NotFound)?;
        let slice = cx.store().attempts(workspace, message.id, cx.page(&call.query)?).await?;
        let redactor = cx.redactor();
        Ok(cx.answer_page(slice, |attempt| AttemptReport::of(attempt, redactor)))
    }
}
