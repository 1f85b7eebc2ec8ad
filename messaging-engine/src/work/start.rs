//! Preparation of a process before it works.

use messaging_core::changes::{Changes, Write};
use messaging_core::domain::mail::domain_name::is_fully_qualified;
use messaging_core::ports::store::CommitError;

use crate::app::App;
use crate::work::sweep;

impl App {
    /// Makes sure that the installation has its name, the `hostname` of the first process that works for it or, if that
    /// is not fully qualified, of the first whose name is; that the stored state of its sources is read; that every
    /// sweep is a job, and so is the removal of every workspace under deletion; and that campaigns of a copy wait for a
    /// person. [`Workers`](crate::work::Workers) call this; a program that claims jobs in its own way does so before;
    /// one that answers requests, before it answers: otherwise a sending domain that is added at once would be refused
    /// for want of a name, and a campaign of a copy could be seen at work.
    pub async fn prepare_to_work(&self) -> Result<(), CommitError> {
        // Done before the name is stored: an installation without one is new.
        self.open_paths().await?;
        self.keep_name().await?;
        self.heed_fence().await?;
        let mut jobs = sweep::enqueue_all(self);
        jobs.extend(self.see_to_all_ends().await?);
        self.commit(jobs).await
    }

    async fn keep_name(&self) -> Result<(), CommitError> {
        let own = self.settings().hostname.to_ascii_lowercase();
        let known = self.store().installation_name().await?;
        let is_better = |known: &String| !is_fully_qualified(known) && is_fully_qualified(&own);
        if !known.as_ref().is_none_or(is_better) {
            return Ok(());
        }
        let name = Write::PutInstallationName(own, known);
        match self.commit(Changes::from_iter([name])).await {
            // Another process was faster, and gave it its name.
            Err(CommitError::Conflict) => Ok(()),
            outcome => outcome,
        }
    }
}
