//! The job that sends a confirmation, once.
//!
//! Contract section 23. The message, and that it was sent for a list, are one commit with the end of the job.

use messaging_core::changes::Changes;
use messaging_core::error::Chain;
use messaging_core::ports::store::{CommitError, StoreError};

use crate::error::Error;
use crate::jobs::send_confirmation::SendConfirmation;
use crate::work::job::{Job, JobContext, JobError};

impl Job for SendConfirmation {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let writes = match cx.app.confirmation_writes(&self).await {
            Ok(writes) => writes,
            Err(Error::Unavailable { .. } | Error::OutcomeUnknown { .. }) => return Err(StoreError::Unavailable.into()),
            Err(Error::Internal(source)) => match source.downcast::<StoreError>() {
                Ok(failed) => return Err((*failed).into()),
                Err(other) => return Err(StoreError::Failed(other).into()),
            },
            // Nothing that the reader could do: the workspace has no sender, or no verified domain.
            Err(error) => {
                tracing::warn!(
                    workspace_id = %self.workspace_id,
                    error = %Chain(&error),
                    "a confirmation could not be sent"
                );
                Vec::new()
            }
        };
        match cx.finish(Changes::from_iter(writes)).await {
            // The record has changed: whether anything is left to confirm is decided again.
            Err(CommitError::Conflict) => cx.again_at(cx.app.now(), &self, Changes::default()).await,
            outcome => Ok(outcome?),
        }
    }
}
