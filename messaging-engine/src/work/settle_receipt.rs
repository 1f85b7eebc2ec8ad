//! The job that looks again for the message of a receipt that came before the commit of its attempt.

use messaging_core::changes::Changes;

use crate::jobs::settle_receipt::SettleReceipt;
use crate::work::job::{Job, JobContext, JobError};

impl Job for SettleReceipt {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let found = match cx.app.receipted(&self.about).await? {
            Some(found) => Some(found),
            None => cx.app.receipted_otherwise(&self.about).await?,
        };
        if let Some((workspace, message)) = found {
            // A commit of its own: that it may happen twice changes nothing.
            return match cx.app.settle_receipt(workspace, message, &self.receipt).await {
                Ok(()) => Ok(cx.finish(Changes::default()).await?),
                Err(error) => {
                    tracing::warn!(%error, "a receipt is looked at again");
                    later(self, cx).await
                }
            };
        }
        later(self, cx).await
    }
}

async fn later(job: SettleReceipt, cx: &JobContext) -> Result<(), JobError> {
    if let Some(next) = job.again() {
        return cx.again_at(cx.app.now() + next.wait(), &next, Changes::default()).await;
    }
    tracing::debug!("a receipt names a message that nobody knows");
    Ok(cx.finish(Changes::default()).await?)
}
