//! What a process sees to before it works.

use messaging_core::changes::{Changes, Write};
use messaging_core::ports::store::CommitError;

use crate::app::App;
use crate::work::sweep;

impl App {
    /// Sees to it that the installation has its name, the `hostname` of the first process that works for it, and that
    /// every sweep is a job; and that campaigns of a copy wait for somebody. What is there already stays. [`Workers`](crate::work::Workers) call this; a program that
    /// claims jobs in its own way does so before.
    pub async fn prepare_to_work(&self) -> Result<(), CommitError> {
        self.keep_name().await?;
        self.heed_fence().await?;
        self.commit(sweep::enqueue_all(self)).await
    }

    async fn keep_name(&self) -> Result<(), CommitError> {
        if self.store().installation_name().await?.is_some() {
            return Ok(());
        }
        let name = Write::PutInstallationName(self.settings().hostname.clone(), None);
        match self.commit(Changes::from_iter([name])).await {
            // Somebody else was faster, whose name it is now.
            Err(CommitError::Conflict) => Ok(()),
            outcome => outcome,
        }
    }
}
