//! The job that watches a message with `fallback`, and sends the next message of the chain if it does not arrive.
//!
//! Contract section 4.1. The next message carries the rest of the chain. It is committed together with the end of this
//! job, so a crash neither loses it nor sends it twice.

use messaging_core::changes::{Changes, Condition, Write};
use messaging_core::domain::message::content;
use messaging_core::domain::message::fallback::{self, Next};
use messaging_core::domain::message::{Message, MessageStatus};
use messaging_core::error::Chain;
use messaging_core::ports::store::{CommitError, StoreError};

use crate::app::App;
use crate::jobs::send_fallback::{LOOK_AGAIN_AFTER, SendFallback};
use crate::services::fallbacks::Chained;
use crate::work::job::{Job, JobContext, JobError};

impl Job for SendFallback {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let app = &cx.app;
        let found = app.store().message_with_content(self.workspace_id, self.message_id).await?;
        let Some((message, Some(stored))) = found else { return Ok(cx.finish(Changes::default()).await?) };
        if is_cancelled(app, &message).await? {
            return Ok(cx.finish(Changes::default()).await?);
        }
        match fallback::next(message.status, self.until, app.now()) {
            Next::End => Ok(cx.finish(Changes::default()).await?),
            Next::Wait(until) => {
                let until = until.unwrap_or_else(|| app.now() + LOOK_AGAIN_AFTER);
                cx.again_at(until, &self, Changes::default()).await
            }
            Next::Send => {
                let request = match content::decode(&stored) {
                    Ok(request) => request,
                    Err(error) => {
                        tracing::error!(message_id = %message.id, error = %Chain(&error), "unreadable content");
                        return Ok(cx.finish(Changes::default()).await?);
                    }
                };
                let Some(next) = Chained::after(request.input) else {
                    return Ok(cx.finish(Changes::default()).await?);
                };
                let mut changes = Changes::from_iter(app.accept_fallback(&message, next).await?);
                // If the message changes before the commit, the job decides again.
                changes.push(Write::Expect(Condition::Message(message.workspace_id, message.id, message.revision)));
                match cx.finish(changes).await {
                    Err(CommitError::Conflict) => cx.again_at(app.now(), &self, Changes::default()).await,
                    outcome => Ok(outcome?),
                }
            }
        }
    }
}

/// True if the first message of the chain was cancelled, which ends the whole chain.
async fn is_cancelled(app: &App, message: &Message) -> Result<bool, StoreError> {
    let Some(first) = message.fallback_of else { return Ok(false) };
    let first = app.store().message(message.workspace_id, first).await?;
    Ok(first.is_some_and(|first| first.status == MessageStatus::Cancelled))
}
