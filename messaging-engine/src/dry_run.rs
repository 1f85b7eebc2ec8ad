//! Trying an automation out: the engine itself on a store of its own, with a clock that jumps to whatever is next.
//!
//! Contract section 13.4, "Simulate". No rule is written down a second time: contacts, events, activation, entries,
//! nodes and deliveries are the services and jobs of the product. Only their surroundings differ: the store holds
//! nothing but what `world` copies, transports and receivers of webhooks are stand-ins from `peers` that send nothing,
//! ids come from a seed, and `course` moves the clock. The workspace is only read.

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

/// Longest time that a dry run may take, by the machine's clock.
const TIME_LIMIT: Duration = Duration::from_mins(1);
/// Longest time that a dry run through the past of a workspace may take, which only the command line asks for.
const REPLAY_LIMIT: Duration = Duration::from_hours(6);
/// Longest time that a dry run waits for its turn; then it is refused with [`Error::Unavailable`].
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Interval after which an idle job of an automation looks for work without being woken: so long that it never does in
/// a dry run.
const IDLE_INTERVAL: Duration = Duration::from_hours(24 * 366 * 20);
impl App {
    /// Makes a dry run. The design must be complete ([`App::automation_faults`]). Fails with [`Error::NotImplemented`]
    /// where there are no temporary stores, with [`Error::Unavailable`] when others do not end, and with a violation
    /// when the dry run takes too long.
    pub(crate) fn dry_run(&self, dry_run: DryRun) -> BoxFuture<'_, Result<DryRunOutcome, Error>> {
        Box::pin(async move {
            let stores = self.temporary_stores().ok_or(Error::NotImplemented)?;
            let busy = Error::Unavailable { retry_after: 5 };
            let turn = turn(self.dry_runs(), dry_run.workspace);
            let Ok(Ok(_turn)) = tokio::time::timeout(MAX_WAIT, turn).await else {
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

/// Waits for a workspace's turn to make a dry run. A workspace holds at most half of the turns, so that others get one
/// however many dry runs it asks for.
fn turn(turns: &FairSemaphore, workspace: WorkspaceId) -> impl Future<Output = Result<Permit, Overloaded>> {
    turns.acquire(vec![Share { owner: Owner::Workspace(workspace), cap: Cap::AsMuchAsIsLeft }], 1)
}

/// Builds an application like `from` over `store`, which is empty, copies what the dry run needs into it, and carries
/// the dry run out there. The secret key is a constant, because nothing that it seals outlives the store.
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
        .idle_interval(IDLE_INTERVAL)
        .without_log()
        .build()
        .await
        .map_err(Error::internal)?;
    world::copy(from, &app, dry_run).await?;
    Course::new(&app, &clock, &outbox, dry_run).run().await
}

/// Time at which a dry run begins: that of the activation, or of the first event if it is earlier.
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
