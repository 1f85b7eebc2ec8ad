//! Commits and their effects in this process.

use messaging_core::changes::{Changes, Condition, Document, JobWrite, Write};
use messaging_core::domain::campaign::Reference;
use messaging_core::error::Chain;
use messaging_core::ports::store::{CommitError, Priority, StoreError, Topic, Topics};
use tracing::Instrument as _;

use crate::app::App;
use crate::app::account_pauses::AccountPauses;
use crate::app::event_signal::EventSignal;
use crate::app::known_urls::KnownUrls;
use crate::spans::TARGET;

impl App {
    /// Commits the changes of a request.
    pub(crate) async fn commit(&self, changes: Changes) -> Result<(), CommitError> {
        self.0.callers.note(self.monotonic());
        self.commit_promptly(changes).await
    }

    /// Commits changes of background work that does not wait for others.
    pub(crate) async fn commit_promptly(&self, changes: Changes) -> Result<(), CommitError> {
        self.commit_as(changes, Priority::Foreground).await
    }

    /// Commits the start of a delivery attempt, while its connection is open and waits.
    pub(crate) async fn commit_attempt(&self, changes: Changes) -> Result<(), CommitError> {
        self.commit_as(changes, Priority::Attempt).await
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
                Write::Job(
                    JobWrite::Enqueue(_)
                        | JobWrite::EnqueueOnce(_)
                        | JobWrite::WakeLane(..)
                        | JobWrite::MakeDue(..)
                        | JobWrite::Reschedule(..)
                        | JobWrite::PutBack(..)
                )
            )
        };
        let accounts = AccountPauses::concerned(&changes);
        let adds_work = changes.writes().iter().any(is_work);
        let relied_on_webhooks =
            changes.writes().iter().any(|write| matches!(write, Write::Expect(Condition::Webhook(..))));
        let relied_on_domains = changes.writes().iter().any(|write| match write {
            Write::Put(Document::Campaign(campaign), _) => !campaign.sending_domains.is_empty(),
            Write::PutAutomation(put, _) => put.holds.iter().any(|held| matches!(held, Reference::Domain(_))),
            _ => false,
        });
        let observed = changes.writes().iter().any(|write| matches!(write, Write::Observe(_))).then(|| changes.clone());
        let span = tracing::info_span!(
            target: TARGET,
            "commit",
            writes = changes.writes().len(),
            background = priority == Priority::Background,
            outcome = tracing::field::Empty
        );
        let committed = self.commit_with_blobs(changes, priority).instrument(span.clone()).await;
        span.record("outcome", outcome(&committed));
        if relied_on_webhooks && matches!(committed, Err(CommitError::Conflict)) {
            // The caller's retry then reads the listeners from the store.
            self.0.lookups.listeners.clear();
        }
        if relied_on_domains && matches!(committed, Err(CommitError::Conflict)) {
            self.0.lookups.domains.clear();
        }
        committed?;
        if let Some(changes) = &observed {
            self.tell_log(changes);
        }
        self.0.lookups.forget(topics);
        if topics.contains(Topic::Workspaces) {
            self.0.request_logger.forget_settings();
        }
        self.0.account_pauses.forget(&accounts);
        self.0.account_rates.forget(&accounts);
        self.0.unreadable_answers.forget(&accounts);
        self.0.known_urls.add(urls, self.monotonic());
        self.0.known_urls.forget(removed_urls);
        self.0.events.announce(&told);
        if adds_work {
            self.0.work.announce();
        }
        if topics.contains(Topic::Queue) {
            self.0.follow_suspensions().await;
        }
        Ok(())
    }

    /// Commits, then keeps or removes the blobs that the changes name.
    async fn commit_with_blobs(&self, changes: Changes, priority: Priority) -> Result<(), CommitError> {
        let (mut kept, mut removed) = (Vec::new(), Vec::new());
        for write in changes.writes() {
            match write {
                Write::KeepBlob(blob) => kept.push(*blob),
                Write::DeleteBlob(workspace, id) => removed.push((*workspace, *id)),
                _ => {}
            }
        }
        if kept.is_empty() && removed.is_empty() {
            return self.0.store.commit(changes, priority).await;
        }
        let app = self.clone();
        // A separate task, so that a caller that is dropped leaves nothing half done.
        let task = tokio::spawn(async move {
            app.0.store.commit(changes, priority).await?;
            // The commit stands even if this fails: the sweep later finds pending and unneeded blobs.
            if !kept.is_empty()
                && let Err(error) = app.blobs().keep_blobs(&kept).await
            {
                tracing::warn!(error = %Chain(&error), "a blob stays pending until a sweep");
            }
            if !removed.is_empty()
                && let Err(error) = app.blobs().remove_blobs(&removed).await
            {
                tracing::warn!(error = %Chain(&error), "a blob could not be removed");
            }
            Ok(())
        });
        task.await.map_err(|error| StoreError::Failed(Box::new(error)))?
    }
}

/// Returns the outcome of a commit in a word.
const fn outcome(committed: &Result<(), CommitError>) -> &'static str {
    match committed {
        Ok(()) => "committed",
        Err(CommitError::Conflict) => "conflict",
        Err(CommitError::LeaseLost) => "lease_lost",
        Err(CommitError::Refused(_)) => "refused",
        Err(CommitError::Store(_)) => "failed",
    }
}
