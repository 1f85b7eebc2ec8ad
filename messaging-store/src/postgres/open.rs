//! Opening a PostgreSQL database as a store: its connection pools, its schema, its background tasks.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Metrics, Pool, RecyclingMethod, Timeouts,
};
use messaging_core::ports::clock::{Entropy as _, SystemEntropy};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::apply::apply;
use super::commit::{Commits, LANES};
use super::connecting::OnRuntime;
use super::connection_health::ConnectionHealth;
use super::lease_table::LeaseTable;
use super::limits::Limits;
use super::news::ChangeNotifier;
use super::nodes::{Heartbeats, Membership, NodeOptions};
use super::reads::Reads;
use super::url::PostgresUrl;
use super::writes::Writes;
use super::{Postgres, PostgresStore};
use super::{events, schema, tls};
use crate::database::SqlStore;
use crate::observed::Observed;
use crate::open_error::{OpenError, failed};

/// Settings of every connection, in milliseconds: the server ends a statement, an idle transaction or a wait for a lock
/// that takes longer.
const SETTINGS: &str = "-c statement_timeout=5000 -c idle_in_transaction_session_timeout=5000 -c lock_timeout=4000";

/// Further settings of connections whose statements find rows by keys: by an index also while a table is small, because a
/// plan that was made then is used for a while after the table has grown.
const BY_KEYS: &str = "-c enable_seqscan=off -c jit=off";

/// Longest time for each of: waiting for a connection of a pool, making one, and its first statement.
const PATIENCE: Duration = Duration::from_secs(5);

/// [`PATIENCE`] of the pool by which a process sends heartbeats and looks for other processes.
const LOOKING_PATIENCE: Duration = Duration::from_secs(2);

/// Number of transactions that may write at a time: two kinds of commits, for requests and for background work, with
/// [`LANES`] each, and four for upkeep.
const WRITERS: usize = 2 * LANES + 4;

/// Number of connections that claim jobs and read rows by keys, for many callers at once.
const KEYED_READERS: usize = 3;

/// Number of connections by which a process sends heartbeats, looks for other processes and notifies them of changes.
const LOOKING: usize = 2;

/// Options for opening a PostgreSQL database as a store.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// The URL of the database, with its user and password.
    url: PostgresUrl,
    /// True if tables are made in a database that has none of ours; otherwise opening it fails with
    /// [`OpenError::Empty`].
    pub create: bool,
    /// Number of connections that only read; at least two are used.
    pub readers: usize,
    /// Number of commits that may wait before further ones are refused as `Unavailable`.
    pub queue_capacity: usize,
    /// Name of this process in the list of nodes.
    pub name: String,
    /// True if this process claims jobs. A program that runs beside the servers does not.
    pub works: bool,
    /// Intervals and limits of the heartbeats by which the processes know who lives.
    pub heartbeats: Heartbeats,
    /// True if the times of this process follow the database's clock, as they must where several processes write. Set
    /// it to false only for a process that is alone and whose [`Clock`](messaging_core::ports::Clock) is not the
    /// system's, such as a test.
    pub follows_clock: bool,
    /// Bucket that takes the bytes of attachments instead of the database. Those that are in the database stay there.
    #[cfg(feature = "s3")]
    pub bucket: Option<super::Bucket>,
}

impl PostgresOptions {
    /// Default options for a database: it is created if needed, and this process claims jobs.
    pub fn new(url: PostgresUrl) -> Self {
        Self {
            url,
            create: true,
            readers: 8,
            queue_capacity: 4096,
            name: "node".to_owned(),
            works: true,
            heartbeats: Heartbeats::default(),
            follows_clock: true,
            #[cfg(feature = "s3")]
            bucket: None,
        }
    }
}

impl PostgresStore {
    /// Opens a database, brings its schema up to date, and joins the installation as a node. The background tasks run
    /// on the present Tokio runtime.
    pub async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        #[cfg(feature = "s3")]
        let objects = options.bucket.clone().map(|bucket| Arc::new(bucket) as _);
        #[cfg(not(feature = "s3"))]
        let objects = None;
        let PostgresOptions { url, create, readers, queue_capacity, name, works, heartbeats, follows_clock, .. } =
            options;
        let tls = tls::connector(&url)?;
        let mut config = url.config().clone();
        let connections = format!("messaging {}", instance());
        config.application_name(&connections).options(SETTINGS);
        // After a failover, or in a database that was restored elsewhere, what is written belongs to another era of the
        // event log. So every new connection looks first.
        let begin_era = || {
            Hook::async_fn(|connection: &mut ClientWrapper, _| {
                Box::pin(async move {
                    let begun = tokio::time::timeout(PATIENCE, events::begin_era(connection)).await;
                    begun.map_err(|_| HookError::message("the database does not answer"))?.map_err(HookError::Backend)
                })
            })
        };
        let health = Arc::<ConnectionHealth>::default();
        // A connection that was in use before the database fell silent is not used again.
        let is_usable = || {
            let health = Arc::clone(&health);
            Hook::sync_fn(move |_: &mut ClientWrapper, metrics: &Metrics| {
                let taken_at = metrics.recycled.unwrap_or(metrics.created);
                if health.is_usable(taken_at) {
                    Ok(())
                } else {
                    Err(HookError::message("it leads to where nobody answers"))
                }
            })
        };
        let connect = OnRuntime::present(&config, tls);
        let connect_by_keys = connect.with_options(&format!("{SETTINGS} {BY_KEYS}"));
        let pool = |connect: &OnRuntime, size: usize, patience: Duration| {
            let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
            let manager = Manager::from_connect(config.clone(), connect.clone(), recycling);
            let timeouts = Timeouts { wait: Some(patience), create: Some(patience), recycle: Some(patience) };
            Pool::builder(manager)
                .max_size(size)
                .timeouts(timeouts)
                .post_create(begin_era())
                .pre_recycle(is_usable())
                .runtime(deadpool_postgres::Runtime::Tokio1)
                .build()
                .map_err(failed("prepare the connections to the database"))
        };
        let (reads, looking) = (pool(&connect, readers.max(2), PATIENCE)?, pool(&connect, LOOKING, LOOKING_PATIENCE)?);
        let keyed_reads = pool(&connect_by_keys, KEYED_READERS, PATIENCE)?;
        let writes = pool(&connect_by_keys, WRITERS, PATIENCE)?;
        schema::bring_up_to_date(&writes, create).await?;
        // The connection that made the schema could not begin an era when it was opened: the table for it was missing.
        let first = writes.get().await.map_err(failed("connect to the database"))?;
        events::begin_era(&first).await.map_err(failed("begin an era of the log"))?;
        drop(first);
        let observed = Arc::<Observed>::default();
        let lease_table = Arc::<LeaseTable>::default();
        let notifier = Arc::new(ChangeNotifier::new(connections.clone(), Arc::clone(&health)));
        let writes = Writes::new(writes, WRITERS, Arc::clone(&lease_table), Arc::clone(&notifier), Arc::clone(&health));
        let node = NodeOptions { name, works, connections, slots: WRITERS, heartbeats, follows_clock };
        let membership = Arc::new(Membership::new(looking.clone(), writes.clone(), node));
        membership.join().await.map_err(schema::not_joined)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&membership).keep());
        tasks.spawn(Arc::clone(&notifier).tell(looking));
        tasks.spawn(Arc::clone(&notifier).listen(connect));
        let commits = Commits::start(&writes, &membership, queue_capacity, &observed, |transaction, all| {
            Box::pin(apply(transaction, all))
        });
        let tasks = std::sync::Mutex::new(tasks);
        let (reads, keyed_reads) = (Reads::new(reads, Arc::clone(&health)), Reads::new(keyed_reads, health));
        let limits = Arc::new(Limits::new(reads.clone()));
        Ok(SqlStore(Postgres {
            reads,
            keyed_reads,
            writes,
            commits,
            observed,
            limits,
            lease_table,
            membership,
            notifier,
            objects,
            tasks,
        }))
    }
}

/// A random name, unique to this process, by which others recognize its connections (`application_name`).
fn instance() -> String {
    let mut bytes = [0; 16];
    SystemEntropy::default().fill(&mut bytes);
    Uuid::from_bytes(bytes).simple().to_string()
}
