//! Committing, and what follows from a commit in this process.

use messaging_core::changes::{Changes, Write};
use messaging_core::ports::store::{CommitError, Priority, Topics};

use crate::app::App;
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
        let topics = Topics::of(&changes);
        let urls = KnownUrls::keys(&changes);
        let removed_urls = KnownUrls::removed(&changes);
        let told = EventSignal::concerned(&changes);
        let is_work = |write: &Write| {
            matches!(
                write,
                Write::Enqueue(_) | Write::EnqueueOnce(_) | Write::RescheduleJob(..) | Write::PutJobBack(..)
            )
        };
        let adds_work = changes.writes().iter().any(is_work);
        let relied_on_webhooks = changes.writes().iter().any(|write| matches!(write, Write::ExpectWebhook(..)));
        let committed = self.0.store.commit(changes, priority).await;
        if relied_on_webhooks && matches!(committed, Err(CommitError::Conflict)) {
            // Whoever decides again looks again.
            self.0.lookups.listeners.clear();
        }
        committed?;
        self.0.lookups.forget(topics);
        self.0.known_urls.add(urls, self.monotonic());
        self.0.known_urls.forget(removed_urls);
        self.0.events.announce(&told);
        if adds_work {
            self.0.work.announce();
        }
        Ok(())
    }
}
