//! `POST /messages/{id}/cancel`: a message is withdrawn before it is sent.

use http::{Method, StatusCode};
use messaging_core::changes::{WaitingKey, Write, track_of};
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::ids::{CampaignId, MessageId};
use messaging_core::input::Empty;
use messaging_core::ports::store::StoreError;
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MessagePath;
use crate::app::App;
use crate::error::Error;
use crate::jobs::deliver_message::DeliverMessage;
use crate::ops::context::Context;
use crate::ops::operation::{Call, Operation};

/// Messages that wait on one track of a campaign, at most: all that may be ahead of sending.
const MAX_WAITING: usize = 50_000;

/// Later than anything is due.
const FOREVER: Timestamp = Timestamp::from_millis(i64::MAX);

/// Answer to the cancellation of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CancelledMessage {
    /// Its id.
    pub message_id: MessageId,
    /// Always `cancelled`.
    pub status: MessageStatus,
}

/// `POST /messages/{id}/cancel`
pub struct CancelMessage;

impl Operation for CancelMessage {
    const ID: &'static str = "cancelMessage";
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/messages/{id}/cancel";
    const ACCESS: Access = Access::Scope(Scope::MessagesSend);
    const SUCCESS: StatusCode = StatusCode::ACCEPTED;
    const CLI: &'static str = "message cancel";
    const SUMMARY: &'static str = "Withdraw a message that waits to be sent, or to be tried again";
    type Path = MessagePath;
    type Query = Empty;
    type Body = Empty;
    type Output = CancelledMessage;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<CancelledMessage, Error> {
        let workspace = cx.workspace()?;
        let message = cx.store().message(workspace, call.path.id).await?.ok_or(Error::NotFound)?;
        if !message.status.may_become(MessageStatus::Cancelled) {
            return Err(Error::InvalidState { status: message.status.as_str(), allowed: &["queued", "deferred"] });
        }
        cx.changes.extend(cx.app.cancellation_of(&message, cx.now).await?);
        if let Some(campaign) = message.campaign_id
            && let Some(key) = waiting_key(cx.app, &message, campaign).await?
        {
            cx.change(Write::TakeWaiting(workspace, campaign, vec![key]));
        }
        Ok(CancelledMessage { message_id: message.id, status: MessageStatus::Cancelled })
    }
}

/// Names the message among those of its campaign that wait to be released, if it is one of them.
async fn waiting_key(app: &App, message: &Message, campaign: CampaignId) -> Result<Option<WaitingKey>, StoreError> {
    let track = track_of(DeliverMessage::lane_of(message).resource());
    let waiting = app.store().due_messages(message.workspace_id, campaign, track, FOREVER, MAX_WAITING).await?;
    Ok(waiting.into_iter().find(|key| key.message_id == message.id))
}
