//! One database behind two handles, as two processes have them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::changes::{Changes, JobWrite, Write};
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ports::Store;
use messaging_core::ports::store::{
    Claim, ClaimedJob, CommitObserver, Jobs, News, Priority, Queues, StoreGauges, StoreHealth, StoredJob,
};
use messaging_core::time::Monotonic;
use tokio::sync::watch;

use super::every_call::prelude::*;
use crate::{failure_of_call, for_every_file_call, for_every_read};

/// A store whose calls alternate between two handles: commits and upkeep take turns, and reads go to the handle that
/// did not write last, so that they see what the other has done. Jobs are claimed and ended through the first.
#[derive(Debug, Clone)]
pub struct TwoHandles(Arc<Handles>);

#[derive(Debug)]
struct Handles {
    handles: [Arc<dyn Store>; 2],
    writes: AtomicUsize,
}

impl TwoHandles {
    /// Over the handle that claims jobs, and another one.
    pub fn new(first: Arc<dyn Store>, second: Arc<dyn Store>) -> Self {
        Self(Arc::new(Handles { handles: [first, second], writes: AtomicUsize::new(0) }))
    }

    fn first(&self) -> &dyn Store {
        &*self.0.handles[0]
    }

    /// The handle whose turn it is to write.
    fn writer(&self) -> &dyn Store {
        &*self.0.handles[self.0.writes.fetch_add(1, Ordering::Relaxed) % 2]
    }

    /// The handle for a call: the one that is to write next did not write last.
    fn of_call(&self, call: &str) -> &dyn Store {
        const UPKEEP: [&str; 5] = ["forget", "trim", "expire", "append", "announce"];
        // Under the claim of a job.
        if ["calculate", "follow_changes"].iter().any(|word| call.starts_with(word)) {
            return self.first();
        }
        if UPKEEP.iter().any(|word| call.starts_with(word)) {
            return self.writer();
        }
        &*self.0.handles[self.0.writes.load(Ordering::Relaxed) % 2]
    }
}

/// Implements traits of the port by handing every call on.
macro_rules! hand_on {
    ($store:ident => $target:expr; $(impl $trait:ident { $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty $(, $error:ty)?;)* })*) => {$(
        #[async_trait]
        impl $trait for TwoHandles {
            $(
                async fn $name(&self, $($argument: $type),*) -> Result<$answer, failure_of_call!($($error)?)> {
                    let $store = self.of_call(stringify!($name));
                    $target.$name($($argument),*).await
                }
            )*
        }
    )*};
}

macro_rules! hand_on_reads {
    ($($list:tt)*) => { hand_on! { store => store; $($list)* } };
}

macro_rules! hand_on_files {
    (impl BlobStore { $($blobs:tt)* } impl Uploads { $($uploads:tt)* }) => {
        hand_on! { store => store.blobs(); impl BlobStore { $($blobs)* } }
        hand_on! { store => store.uploads(); impl Uploads { $($uploads)* } }
    };
}

for_every_read!(hand_on_reads);
for_every_file_call!(hand_on_files);

#[async_trait]
impl Jobs for TwoHandles {
    async fn claim(&self, claim: Claim) -> Result<Vec<ClaimedJob>, StoreError> {
        self.first().claim(claim).await
    }

    async fn next_due(&self, now: Timestamp, monotonic: Monotonic) -> Result<Option<Duration>, StoreError> {
        self.first().next_due(now, monotonic).await
    }

    async fn job_count(&self) -> Result<u64, StoreError> {
        self.of_call("job_count").job_count().await
    }

    async fn jobs_of(&self, kinds: &[&'static str], limit: usize) -> Result<Vec<StoredJob>, StoreError> {
        self.of_call("jobs_of").jobs_of(kinds, limit).await
    }

    async fn queues(&self, limit: usize) -> Result<Queues, StoreError> {
        self.of_call("queues").queues(limit).await
    }

    async fn lane_lengths(&self, lanes: &[Lane], due_by: Timestamp, most: usize) -> Result<Vec<u64>, StoreError> {
        self.of_call("lane_lengths").lane_lengths(lanes, due_by, most).await
    }
}

#[async_trait]
impl Store for TwoHandles {
    async fn commit(&self, changes: Changes, priority: Priority) -> Result<(), CommitError> {
        let is_of_a_job = changes
            .writes()
            .iter()
            .any(|write| write.claim().is_some() || matches!(write, Write::Job(JobWrite::Remove(..))));
        let store = if is_of_a_job { self.first() } else { self.writer() };
        store.commit(changes, priority).await
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        Arc::new(self.clone())
    }

    fn uploads(&self) -> Arc<dyn Uploads> {
        Arc::new(self.clone())
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.of_call("ping").ping().await
    }

    fn health(&self) -> StoreHealth {
        self.first().health()
    }

    fn watch_health(&self) -> watch::Receiver<StoreHealth> {
        self.first().watch_health()
    }

    fn news(&self) -> watch::Receiver<News> {
        self.first().news()
    }

    fn clock_offset_ms(&self) -> i64 {
        self.first().clock_offset_ms()
    }

    fn observe(&self, observer: Arc<dyn CommitObserver>) {
        for handle in &self.0.handles {
            handle.observe(Arc::clone(&observer));
        }
    }

    fn gauges(&self) -> StoreGauges {
        self.first().gauges()
    }

    fn hand_over(&self) {
        for handle in &self.0.handles {
            handle.hand_over();
        }
    }

    async fn close(&self) {
        for handle in &self.0.handles {
            handle.close().await;
        }
    }
}
