//! Opening a database: its connections, its schema, its tasks.

use std::sync::Arc;

use deadpool_postgres::{ClientWrapper, Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod};
use tokio::sync::watch;
use tokio_postgres::{Config, NoTls};

use super::PostgresStore;
use super::commit::{Commits, LANES};
use super::reads::Reads;
use super::{events, schema};
use crate::observed::Observed;
use crate::open_error::{OpenError, failed};

/// What every connection is told: no statement of ours takes longer, and none of our transactions waits for us.
const SETTINGS: &str = "-c statement_timeout=5000 -c idle_in_transaction_session_timeout=5000 -c lock_timeout=4000";

/// What to open, and how.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Where the database is.
    config: Config,
    /// How many connections read.
    pub readers: usize,
    /// How many commits may wait before further ones are refused as `Unavailable`.
    pub queue_capacity: usize,
}

impl PostgresOptions {
    /// The database of a URL: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, as libpq takes it.
    pub fn parse(url: &str) -> Result<Self, OpenError> {
        let config = url.parse::<Config>().map_err(failed("read the URL of the database"))?;
        Ok(Self { config, readers: 8, queue_capacity: 4096 })
    }
}

impl PostgresStore {
    /// Opens a database, and brings its schema up to date.
    pub async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let PostgresOptions { mut config, readers, queue_capacity } = options;
        config.application_name("messaging").options(SETTINGS);
        // What is written after a failover, or to a database that came from elsewhere, is another era of the log.
        let begin_era = || {
            Hook::async_fn(|connection: &mut ClientWrapper, _| {
                Box::pin(async move { events::begin_era(connection).await.map_err(HookError::Backend) })
            })
        };
        let pool = |size: usize| {
            let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
            let manager = Manager::from_config(config.clone(), NoTls, recycling);
            Pool::builder(manager)
                .max_size(size)
                .post_create(begin_era())
                .runtime(deadpool_postgres::Runtime::Tokio1)
                .build()
                .map_err(failed("prepare the connections to the database"))
        };
        let (reads, writes) = (pool(readers.max(2))?, pool(2 * LANES)?);
        schema::migrate(&writes).await?;
        // The connection that made the schema was there before it.
        let first = writes.get().await.map_err(failed("connect to the database"))?;
        events::begin_era(&first).await.map_err(failed("begin an era of the log"))?;
        drop(first);
        let observed = Arc::<Observed>::default();
        let commits = Commits::start(&writes, queue_capacity, &observed);
        Ok(Self {
            reads: Reads::new(reads),
            commits,
            observed,
            health: watch::Sender::default(),
            news: watch::Sender::default(),
        })
    }
}
