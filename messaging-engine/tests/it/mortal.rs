//! A store whose process ends at a commit: from then on no call returns. It can also hang for a while, refuse some
//! commits for good, or hold some back while others proceed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use messaging_conformance::every_call::prelude::*;
use messaging_conformance::{failure_of_call, for_every_read};
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ports::Store;
use messaging_core::ports::store::{
    Claim, ClaimedJob, CommitObserver, Jobs, News, Priority, Queues, StoreGauges, StoreHealth, StoredJob,
};
use messaging_core::time::Monotonic;
use tokio::sync::watch;

#[derive(Debug, Clone)]
pub(crate) struct MortalStore(Arc<Life>);

/// The writes that make a commit refused, paused at, or held.
struct Commits {
    refused: fn(&Write) -> bool,
    pauses_at: fn(&Write) -> bool,
    held: fn(&Write) -> bool,
}

impl Default for Commits {
    fn default() -> Self {
        let none = |_: &Write| false;
        Self { refused: none, pauses_at: none, held: none }
    }
}

#[derive(Debug)]
struct Life {
    inner: Arc<dyn Store>,
    /// Commits so far.
    commits: AtomicUsize,
    /// Number of the last commit, at which the process ends.
    last: usize,
    /// True if the last commit is stored.
    is_kept: bool,
    is_dead: watch::Sender<bool>,
    /// Commits with such a write are refused for good.
    refused: fn(&Write) -> bool,
    /// The store hangs before the first commit with such a write.
    pauses_at: fn(&Write) -> bool,
    has_paused: AtomicBool,
    /// Commits with such a write are held back while `holds` is set.
    held: fn(&Write) -> bool,
    holds: watch::Sender<bool>,
    /// Commits that were held back.
    held_back: watch::Sender<usize>,
    /// Every read fails while this is set.
    is_cut_off: AtomicBool,
    /// If set, the next claim of jobs sets `is_cut_off`.
    cuts_off: AtomicBool,
    /// True if the store reports that the connection was lost; otherwise reads fail without a known reason.
    tells_of_cut: AtomicBool,
    /// Reads left until the store hangs.
    reads_left: AtomicUsize,
    /// Reads so far.
    reads: AtomicUsize,
}

impl MortalStore {
    pub(crate) fn new(inner: Arc<dyn Store>, last: usize, is_kept: bool) -> Self {
        Self::build(inner, last, is_kept, Commits::default())
    }

    /// A store that refuses commits with such a write for good.
    pub(crate) fn refusing(inner: Arc<dyn Store>, refused: fn(&Write) -> bool) -> Self {
        Self::build(inner, usize::MAX, false, Commits { refused, ..Commits::default() })
    }

    /// A store that hangs before the first commit with such a write, until [`Self::go_on`].
    pub(crate) fn pausing_at(inner: Arc<dyn Store>, pauses_at: fn(&Write) -> bool) -> Self {
        Self::build(inner, usize::MAX, false, Commits { pauses_at, ..Commits::default() })
    }

    /// A store that holds commits with such a write back until [`Self::let_go`]; all others proceed meanwhile.
    pub(crate) fn holding(inner: Arc<dyn Store>, held: fn(&Write) -> bool) -> Self {
        Self::build(inner, usize::MAX, false, Commits { held, ..Commits::default() })
    }

    fn build(inner: Arc<dyn Store>, last: usize, is_kept: bool, commits_with: Commits) -> Self {
        let Commits { refused, pauses_at, held } = commits_with;
        let (commits, is_dead) = (AtomicUsize::new(0), watch::Sender::new(false));
        Self(Arc::new(Life {
            inner,
            commits,
            last,
            is_kept,
            is_dead,
            refused,
            pauses_at,
            has_paused: AtomicBool::new(false),
            held,
            holds: watch::Sender::new(true),
            held_back: watch::Sender::new(0),
            is_cut_off: AtomicBool::new(false),
            cuts_off: AtomicBool::new(false),
            tells_of_cut: AtomicBool::new(true),
            reads_left: AtomicUsize::new(usize::MAX),
            reads: AtomicUsize::new(0),
        }))
    }

    /// Returns when a commit is held back.
    pub(crate) async fn holds_back(&self) {
        self.0.held_back.subscribe().wait_for(|commits| *commits > 0).await.unwrap();
    }

    /// Lets the held commits proceed, and holds none back any more.
    pub(crate) fn let_go(&self) {
        self.0.holds.send_replace(false);
    }

    /// Returns when the process has ended, or the store hangs.
    pub(crate) async fn died(&self) {
        self.0.is_dead.subscribe().wait_for(|is_dead| *is_dead).await.unwrap();
    }

    pub(crate) fn is_dead(&self) -> bool {
        *self.0.is_dead.borrow()
    }

    /// A store whose process does not end, but may hang with [`Self::hang`].
    pub(crate) fn immortal(inner: Arc<dyn Store>) -> Self {
        Self::new(inner, usize::MAX, false)
    }

    /// From now on no call returns before [`Self::go_on`].
    pub(crate) fn hang(&self) {
        self.0.is_dead.send_replace(true);
    }

    /// Lets the hanging calls proceed.
    pub(crate) fn go_on(&self) {
        self.0.is_dead.send_replace(false);
    }

    /// After this many more reads the store hangs once, before the next one.
    pub(crate) fn pause_after_reads(&self, reads: usize) {
        self.0.reads_left.store(reads, Ordering::Relaxed);
    }

    /// Number of commits so far.
    pub(crate) fn commits(&self) -> usize {
        self.0.commits.load(Ordering::Relaxed)
    }

    /// Number of reads so far.
    pub(crate) fn reads(&self) -> usize {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// Lets reads fail after the next claim of jobs, as after a lost connection.
    pub(crate) fn cut_off_after_claim(&self) {
        self.0.cuts_off.store(true, Ordering::Relaxed);
    }

    /// Lets reads fail after the next claim of jobs, while the store counts as connected.
    pub(crate) fn read_nothing_after_claim(&self) {
        self.0.tells_of_cut.store(false, Ordering::Relaxed);
        self.cut_off_after_claim();
    }

    /// Lets reads succeed again.
    pub(crate) fn connect_again(&self) {
        self.0.is_cut_off.store(false, Ordering::Relaxed);
    }

    /// The real store, for reads: waits while the store hangs, and fails while it is cut off.
    async fn readable(&self) -> Result<&dyn Store, StoreError> {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        if self.0.reads_left.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.hang();
        }
        let inner = self.inner().await;
        if self.0.is_cut_off.load(Ordering::Relaxed) { Err(StoreError::Unavailable) } else { Ok(inner) }
    }

    /// The real store: waits while the store hangs.
    async fn inner(&self) -> &dyn Store {
        let _ = self.0.is_dead.subscribe().wait_for(|is_dead| !is_dead).await;
        &*self.0.inner
    }
}

macro_rules! hand_on {
    ($(impl $trait:ident { $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty $(, $error:ty)?;)* })*) => {$(
        #[async_trait]
        impl $trait for MortalStore {
            $(
                async fn $name(&self, $($argument: $type),*) -> Result<$answer, failure_of_call!($($error)?)> {
                    $trait::$name(self.readable().await?, $($argument),*).await
                }
            )*
        }
    )*};
}

for_every_read!(hand_on);

#[async_trait]
impl Jobs for MortalStore {
    async fn claim(&self, claim: Claim) -> Result<Vec<ClaimedJob>, StoreError> {
        let claimed = self.inner().await.claim(claim).await?;
        if !claimed.is_empty() && self.0.cuts_off.swap(false, Ordering::Relaxed) {
            self.0.is_cut_off.store(true, Ordering::Relaxed);
        }
        Ok(claimed)
    }

    async fn next_due(&self, now: Timestamp, monotonic: Monotonic) -> Result<Option<Duration>, StoreError> {
        self.inner().await.next_due(now, monotonic).await
    }

    async fn job_count(&self) -> Result<u64, StoreError> {
        self.inner().await.job_count().await
    }

    async fn jobs_of(&self, kinds: &[&'static str], limit: usize) -> Result<Vec<StoredJob>, StoreError> {
        self.inner().await.jobs_of(kinds, limit).await
    }

    async fn queues(&self, limit: usize) -> Result<Queues, StoreError> {
        self.inner().await.queues(limit).await
    }

    async fn lane_lengths(&self, lanes: &[Lane], due_by: Timestamp, most: usize) -> Result<Vec<u64>, StoreError> {
        self.inner().await.lane_lengths(lanes, due_by, most).await
    }
}

#[async_trait]
impl Store for MortalStore {
    async fn commit(&self, changes: Changes, priority: Priority) -> Result<(), CommitError> {
        if changes.writes().iter().any(self.0.held) {
            self.0.held_back.send_modify(|commits| *commits += 1);
            let _ = self.0.holds.subscribe().wait_for(|holds| !holds).await;
        }
        let pauses = changes.writes().iter().any(self.0.pauses_at);
        if pauses && !self.0.has_paused.swap(true, Ordering::Relaxed) {
            self.hang();
        }
        let inner = self.inner().await;
        if changes.writes().iter().any(self.0.refused) {
            return Err(CommitError::Refused("a value is too large".into()));
        }
        let number = self.0.commits.fetch_add(1, Ordering::Relaxed);
        if number < self.0.last {
            return inner.commit(changes, priority).await;
        }
        if number == self.0.last && self.0.is_kept {
            let _ = inner.commit(changes, priority).await;
        }
        self.0.is_dead.send_replace(true);
        std::future::pending().await
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        self.0.inner.blobs()
    }

    fn uploads(&self) -> Arc<dyn Uploads> {
        self.0.inner.uploads()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.inner().await.ping().await
    }

    fn health(&self) -> StoreHealth {
        self.0.inner.health()
    }

    fn watch_health(&self) -> watch::Receiver<StoreHealth> {
        self.0.inner.watch_health()
    }

    fn has_lost_connection(&self) -> bool {
        self.0.is_cut_off.load(Ordering::Relaxed) && self.0.tells_of_cut.load(Ordering::Relaxed)
    }

    fn news(&self) -> watch::Receiver<News> {
        self.0.inner.news()
    }

    fn observe(&self, observer: Arc<dyn CommitObserver>) {
        self.0.inner.observe(observer);
    }

    fn clock_offset_ms(&self) -> i64 {
        self.0.inner.clock_offset_ms()
    }

    fn gauges(&self) -> StoreGauges {
        self.0.inner.gauges()
    }

    async fn close(&self) {}
}
