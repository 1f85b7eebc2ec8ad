//! Reactions to the store's news of changes by other processes: caches are cleared, and waiting work looks again.

use std::sync::Arc;

use messaging_core::error::Chain;
use messaging_core::ports::store::{News, Topic, Topics};
use tokio::sync::watch;

use super::Shared;

/// Follows the news as long as the application and its store exist, on the runtime that the application was built on.
/// If that runtime ends before, entries of caches expire and workers look now and then, as they do when news is late.
pub(super) fn follow(shared: &Arc<Shared>) {
    let (weak, mut news) = (Arc::downgrade(shared), shared.store.news());
    let mut heard = *news.borrow_and_update();
    tokio::spawn(async move {
        while let Some(told) = next(&mut news, &mut heard).await {
            let Some(shared) = weak.upgrade() else { return };
            shared.hear(told);
            if told.contains(Topic::Queue) {
                shared.follow_suspensions().await;
            }
            if told.contains(Topic::Sources)
                && let Err(error) = shared.paths.look_again(shared.store.as_ref()).await
            {
                tracing::warn!(error = %Chain(&error), "it is not known what the operator ordered for sources and paths");
            }
            // A failure is made up for before the next claim.
            if told.contains(Topic::Fence)
                && let Err(error) = shared.look_at_fence().await
            {
                tracing::warn!(error = %Chain(&error), "it is not known whether the fence is still up");
            }
        }
    });
}

/// Returns the topics of the news since the last call; `None` when the store is gone.
async fn next(news: &mut watch::Receiver<News>, heard: &mut News) -> Option<Topics> {
    news.changed().await.ok()?;
    let now = *news.borrow_and_update();
    Some(now.since(&std::mem::replace(heard, now)))
}

impl Shared {
    fn hear(&self, told: Topics) {
        self.lookups.forget(told);
        if told.contains(Topic::Workspaces) {
            self.request_logger.forget_settings();
        }
        if told.contains(Topic::Links) {
            self.known_urls.clear();
        }
        if told.contains(Topic::Work) {
            self.work.announce();
        }
        if told.contains(Topic::Events) {
            self.events.announce_all();
        }
    }
}
