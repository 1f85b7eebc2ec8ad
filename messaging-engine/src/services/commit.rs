//! Committing, and what follows from a commit in this process.

use messaging_core::changes::{Changes, Write};
use messaging_core::ports::store::{CommitError, Priority};

use crate::app::App;
use crate::app::caches::CacheInvalidation;
use crate::app::event_signal::EventSignal;
use crate::app::known_urls::KnownUrls;

impl App {
    /// Commits the changes of a request.
    pub(crate) async fn commit(&self, changes: Changes) -> Result<(), CommitError> {
        self.commit_as(changes, Priority::Foreground).await
    }

    /// Commits the changes of background work.
    pub(crate) async fn commit_in_background(&self, changes: Changes) -> Result<(), CommitError> {
        self.commit_as(changes, Priority::Background).await
    }

    async fn commit_as(&self, mut changes: Changes, priority: Priority) -> Result<(), CommitError> {
        self.have_changes_followed(&mut changes).await;
        let invalidation = CacheInvalidation::by(&changes);
        let urls = KnownUrls::keys(&changes);
        let removed_urls = KnownUrls::removed(&changes);
        let told = EventSignal::concerned(&changes);
        let due = changes
            .writes()
            .iter()
            .filter_map(|write| match write {
                Write::Enqueue(job) | Write::EnqueueOnce(job) => Some(job.due_at),
                Write::RescheduleJob(_, next) => Some(next.due_at),
                Write::PutJobBack(_, to) => Some(to.due_at),
                _ => None,
            })
            .min();
        let relied_on_webhooks = changes.writes().iter().any(|write| matches!(write, Write::ExpectWebhook(..)));
        let committed = self.0.store.commit(changes, priority).await;
        if relied_on_webhooks && matches!(committed, Err(CommitError::Conflict)) {
            // Whoever decides again looks again.
            self.0.lookups.listeners.clear();
        }
        committed?;
        self.0.lookups.forget(invalidation);
        self.0.known_urls.add(urls);
        self.0.known_urls.forget(removed_urls);
        self.0.events.announce(&told);
        if let Some(due) = due {
            self.0.work.announce(due);
        }
        Ok(())
    }
}
