//! The store on PostgreSQL.
//!
//! Reads use a pool of connections ([`reads`]); writes are gathered and sent together over a few others ([`commit`],
//! [`transaction`]). The tables are described in [`tables`](crate::tables); the files per aggregate here hold the parts
//! that are special to PostgreSQL.

mod apply;
mod audiences;
mod automations;
mod blob_rows;
#[cfg(feature = "s3")]
mod bucket;
mod campaigns;
mod claim;
mod cluster;
mod column;
mod commit;
mod connecting;
mod connection_health;
mod contacts;
mod counts;
mod cursors;
mod database;
mod due_jobs;
mod events;
mod expected;
pub(crate) mod fault;
mod gathered_reads;
mod installation;
mod installation_values;
mod jobs;
mod known_subscriptions;
mod lease_table;
mod limits;
mod listeners;
mod lists;
mod messages;
pub(crate) mod moved;
mod news;
mod nodes;
mod numbers;
mod open;
mod open_commit;
mod outbox;
mod pieces;
mod places;
mod product_events;
mod query;
mod reads;
mod redating;
mod row;
mod sandbox;
mod schema;
mod segments;
mod shared_reads;
mod slots;
mod subscriptions;
mod sweep;
mod tls;
mod transaction;
mod upload_rows;
mod url;
mod value;
mod verification;
mod waking;
mod workspace_end;
mod writes;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use messaging_core::changes::{Changes, JobHandle, JobWrite, Write};
use messaging_core::ports::store::{
    ClusterView, CommitError, CommitObserver, News, Priority, SharedLimits, Store, StoreError, StoreGauges,
    StoreHealth, Topics,
};
use messaging_core::ports::{BlobStore, Uploads};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::blob_rows::{Objects, RowBlobs};
use self::commit::Commits;
use self::lease_table::{Effect, JobUses, LeaseTable};
use self::limits::Limits;
use self::news::ChangeNotifier;
use self::nodes::Membership;
use self::query::params;
use self::reads::Reads;
use self::upload_rows::RowUploads;
use self::writes::Writes;
use crate::database::SqlStore;
use crate::observed::Observed;

#[cfg(feature = "s3")]
pub use self::bucket::{Bucket, BucketError, BucketUrl, MalformedBucketUrl};
pub use self::nodes::Heartbeats;
pub use self::open::PostgresOptions;
pub use self::url::{MalformedPostgresUrl, PostgresUrl};

/// A database on a PostgreSQL server.
pub type PostgresStore = SqlStore<Postgres>;

/// The PostgreSQL backend of a [`PostgresStore`]: its connections, its view of other processes, and its tasks.
#[derive(Debug)]
pub struct Postgres {
    reads: Reads,
    /// Connections that claim jobs, and read rows by keys for many callers at once.
    keyed_reads: Reads,
    /// Begins transactions that write, also for maintenance.
    writes: Writes,
    commits: Commits,
    observed: Arc<Observed>,
    limits: Arc<Limits>,
    lease_table: Arc<LeaseTable>,
    membership: Arc<Membership>,
    notifier: Arc<ChangeNotifier>,
    /// Store for the bytes of attachments, used instead of the database.
    objects: Option<Arc<dyn Objects>>,
    /// Background tasks, which end with the store.
    tasks: Mutex<JoinSet<()>>,
}

#[async_trait]
impl Store for PostgresStore {
    async fn commit(&self, changes: Changes, priority: Priority) -> Result<(), CommitError> {
        if changes.is_empty() {
            return Ok(());
        }
        if changes.writes().iter().all(|write| matches!(write, Write::Job(JobWrite::Hold(_)))) {
            return self.hold(changes.writes().iter().filter_map(Write::claim)).await;
        }
        if changes.writes().iter().any(|write| matches!(write, Write::Job(JobWrite::Hold(_)))) {
            // Data must not leave the process after this commit if another process may have the job.
            self.membership.require_voice().map_err(StoreError::from)?;
        }
        let (topics, work) = (Topics::of(&changes), news::work_of(&changes));
        self.commits.commit(changes, priority).await?;
        self.notifier.tell_here(topics);
        self.notifier.tell_others(topics);
        self.notifier.tell_others(work);
        Ok(())
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        Arc::new(RowBlobs::new(self.reads.clone(), self.writes.clone(), self.objects.clone()))
    }

    fn uploads(&self) -> Arc<dyn Uploads> {
        Arc::new(RowUploads::new(self.reads.clone(), self.writes.clone()))
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.reads.one("SELECT 1", params![], |_| Ok(())).await.map(drop)
    }

    fn health(&self) -> StoreHealth {
        self.membership.tell_health();
        *self.membership.health().borrow()
    }

    fn watch_health(&self) -> watch::Receiver<StoreHealth> {
        self.membership.health().subscribe()
    }

    fn has_lost_connection(&self) -> bool {
        self.writes.0.health.was_lost_lately()
    }

    fn news(&self) -> watch::Receiver<News> {
        self.notifier.subscribe()
    }

    fn clock_offset_ms(&self) -> i64 {
        self.membership.offset_ms()
    }

    async fn cluster(&self) -> Result<Option<ClusterView>, StoreError> {
        self.cluster_view().await.map(Some)
    }

    fn shared_limits(&self) -> Option<Arc<dyn SharedLimits>> {
        Some(Arc::clone(&self.limits) as _)
    }

    fn observe(&self, observer: Arc<dyn CommitObserver>) {
        self.observed.set(observer);
    }

    fn gauges(&self) -> StoreGauges {
        StoreGauges { database_bytes: self.membership.database_bytes(), ..StoreGauges::default() }
    }

    fn hand_over(&self) {
        self.membership.hand_over();
    }

    async fn close(&self) {
        self.commits.close().await;
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        if !tasks.is_empty() {
            drop(tasks);
            self.membership.part().await;
        }
        self.reads.close();
        self.keyed_reads.close();
        self.membership.health().send_replace(StoreHealth::Closed);
    }
}

impl Postgres {
    /// Number of round trips to the database that this process made for reads and for transactions. A statement that a
    /// connection does not know yet takes one more, once, which is not counted.
    pub fn round_trips(&self) -> u64 {
        let transactions = self.writes.0.counters.round_trips.load(Ordering::Relaxed);
        self.reads.round_trips() + self.keyed_reads.round_trips() + transactions
    }

    /// Fails unless all claims are held, and this process is still heard.
    async fn hold(&self, jobs: impl Iterator<Item = &JobHandle> + Send) -> Result<(), CommitError> {
        const SQL: &str = "SELECT EXISTS (SELECT 1 FROM writers WHERE term = $1)";
        self.membership.require_voice()?;
        let term = self.writes.term();
        let mut uses = JobUses::new(Arc::clone(&self.lease_table));
        for job in jobs {
            uses.claim(term, job, Effect::Keeps)?;
        }
        // Many webhook deliveries ask at the same time.
        let lives = self.reads.one_shared(SQL, params![term], |row| row::get(row, 0)).await?;
        if lives == Some(true) {
            return Ok(());
        }
        drop(uses);
        self.membership.renew(term).await?;
        Err(CommitError::LeaseLost)
    }
}
