//! Trying an automation out: the engine itself on a store of its own, with a clock that jumps to whatever is next.
//!
//! Contract section 13.4, "Simulate". No rule is written down a second time: contacts, events, activation, entries, nodes and
//! deliveries are the services and jobs of the product. What is different is around them: the store is empty but for what
//! `world` copies, the transport and the receivers of webhooks are `peers` that nobody is behind, ids come from a seed,
//! and `course` moves the clock. The workspace is only read.

mod course;
mod files;
mod past;
mod peers;
mod world;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider::VIBER_BOT;
use messaging_core::domain::security::secret_key::SecretKey;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::Transport;
use messaging_core::ports::clock::{ManualClock, SeededEntropy};
use messaging_core::time::Timestamp;

use self::course::{Course, too_much};
pub use self::files::{ContactReport, DryRunFiles, FilesFault, run_each};
pub use self::past::{MAX_CONTACTS, PastContact, PastReport, replay};
use self::peers::{NobodyCalled, Outbox, PROVIDER, SEED};
use crate::app::App;
use crate::error::Error;
use crate::fair_semaphore::{Cap, FairSemaphore, Overloaded, Owner, Permit, Share};
use crate::services::dry_runs::{DryRun, DryRunOutcome};

/// How long a dry run may take.
const TIME_LIMIT: Duration = Duration::from_mins(1);
/// How long it may take to go through the past of a workspace, which only the command line does.
const REPLAY_LIMIT: Duration = Duration::from_hours(6);
/// How long one waits for others to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// Work that waits to be woken looks by itself after this: never, while a dry run lasts.
const REST: Duration = Duration::from_hours(24 * 366 * 20);
impl App {
    /// Makes a dry run. The design must be complete ([`App::automation_faults`]).
    pub(crate) fn dry_run(&self, dry_run: DryRun) -> BoxFuture<'_, Result<DryRunOutcome, Error>> {
        Box::pin(async move {
            let stores = self.temporary_stores().ok_or(Error::NotImplemented)?;
            let busy = Error::Unavailable { retry_after: 5 };
            let turn = turn(self.dry_runs(), dry_run.workspace);
            let Ok(Ok(_turn)) = tokio::time::timeout(PATIENCE, turn).await else {
                return Err(busy);
            };
            let temporary = stores.open().await?;
            let performing = perform(self, Arc::clone(&temporary.store), &dry_run);
            let limit = if dry_run.is_replay { REPLAY_LIMIT } else { TIME_LIMIT };
            let outcome = match tokio::time::timeout(limit, performing).await {
                Ok(outcome) => outcome,
                Err(_) => Err(too_much("takes more than a minute to get there; end earlier")),
            };
            temporary.store.close().await;
            outcome
        })
    }
}

/// The turn of a workspace, which leaves one for others however many dry runs it asks for.
fn turn(turns: &FairSemaphore, workspace: WorkspaceId) -> impl Future<Output = Result<Permit, Overloaded>> {
    turns.acquire(vec![Share { owner: Owner::Workspace(workspace), cap: Cap::AsMuchAsIsLeft }], 1)
}

async fn perform(
    from: &App,
    store: Arc<dyn messaging_core::ports::Store>,
    dry_run: &DryRun,
) -> Result<DryRunOutcome, Error> {
    let start = start_of(dry_run);
    let clock = Arc::new(ManualClock::new(start));
    let outbox = Arc::new(Outbox::default());
    let carrier = |channel| (channel, PROVIDER, Arc::clone(&outbox) as Arc<dyn Transport>);
    let app = App::builder(store, SecretKey::from_bytes([0; 32]))
        .clock(Arc::clone(&clock) as _)
        .entropy(Arc::new(SeededEntropy::new(SEED)))
        .fetch(Arc::new(NobodyCalled))
        .transports(Channel::ALL.map(carrier))
        .transport(Channel::Viber, VIBER_BOT, Arc::clone(&outbox) as Arc<dyn Transport>)
        .settings(from.settings().clone().message_retry_jitter(0))
        .rest(REST)
        .trial()
        .build()
        .await
        .map_err(Error::internal)?;
    world::copy(from, &app, dry_run).await?;
    Course::new(&app, &clock, &outbox, dry_run).run().await
}

/// When the first thing happens.
fn start_of(dry_run: &DryRun) -> Timestamp {
    dry_run.events.iter().map(|event| event.at).fold(dry_run.at, Timestamp::min)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use messaging_core::ids::Id as _;

    use super::*;
    use crate::app::capacity;

    #[tokio::test]
    async fn a_workspace_that_asks_for_many_leaves_a_turn_for_others() {
        let turns = capacity::dry_runs();
        let [one, other] = [1, 2].map(|number| WorkspaceId::from_bytes([number; 16]));
        let first = turn(&turns, one).await.unwrap();
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(turn(&turns, one))).collect();
        for second in &mut waiting {
            assert!(second.as_mut().now_or_never().is_none());
        }
        let others = turn(&turns, other).now_or_never().unwrap().unwrap();
        drop(first);
        assert!(waiting[0].as_mut().now_or_never().unwrap().is_ok());
        drop(others);
    }
}
