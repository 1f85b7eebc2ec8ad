//! The loop of reading, deciding and committing for code that is neither an operation nor a job.

use std::future::Future;

use messaging_core::changes::Changes;
use messaging_core::ports::store::CommitError;

use crate::app::App;
use crate::error::Error;

/// Number of times a decision is made while its data keeps changing.
const MAX_RUNS: usize = 8;

impl App {
    /// Decides and commits, again when the data changed meanwhile: the counterpart of `invoke` for operations.
    pub(crate) async fn until_committed<T, F, D>(&self, mut decide: D) -> Result<T, Error>
    where
        D: FnMut() -> F + Send,
        F: Future<Output = Result<(Changes, T), Error>> + Send,
        T: Send,
    {
        for _ in 0..MAX_RUNS {
            let (changes, answer) = decide().await?;
            if changes.is_empty() {
                return Ok(answer);
            }
            match self.commit(changes).await {
                Ok(()) => return Ok(answer),
                Err(CommitError::Conflict) => {}
                Err(error) => return Err(error.into_store_error().into()),
            }
        }
        Err(Error::Unavailable { retry_after: 1 })
    }
}
