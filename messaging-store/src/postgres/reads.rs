//! Connections that read.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use futures_util::TryStreamExt as _;
use futures_util::future::join_all;
use messaging_core::ports::store::StoreError;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_postgres::Row;

use super::connection_health::ConnectionHealth;
use super::fault::Fault;
use super::gathered_reads::{GatheredReads, Source};
use super::query::{Queries, as_refs, prepared};
use super::shared_reads::SharedReads;
use crate::row::get;
use crate::sql::Params;

/// Maximum time for a read with all its waits: a statement of this store ends within five seconds.
const LONGEST: Duration = Duration::from_secs(10);

/// Time after which a connection whose read was given up is not used again: the query may have reached nobody.
const SUSPICIOUS: Duration = Duration::from_secs(1);

/// Executes reads. Each takes a connection for as long as it lasts.
#[derive(Debug, Clone)]
pub(super) struct Reads {
    pool: Pool,
    health: Arc<ConnectionHealth>,
    shared: Arc<SharedReads<Arc<Vec<Row>>>>,
    gathered: Arc<GatheredReads<Row>>,
    /// The runtime that opened the store.
    runtime: Handle,
    /// Round trips to the database that reads made.
    round_trips: Arc<AtomicU64>,
}

impl Reads {
    /// Reads over the connections of a pool, on the present runtime.
    pub(super) fn new(pool: Pool, health: Arc<ConnectionHealth>) -> Self {
        let (shared, gathered) = (Arc::default(), Arc::default());
        Self { pool, health, shared, gathered, runtime: Handle::current(), round_trips: Arc::default() }
    }

    async fn connection(&self, since: Instant) -> Result<ReadConnection, Fault> {
        let connection = async { Ok(self.pool.get().await?) };
        let connection = ReadConnection::over(self.health.wait(since, LONGEST, connection).await?);
        self.round_trips.fetch_add(1, Ordering::Relaxed);
        Ok(connection)
    }

    /// Number of round trips to the database for reads: one each, except for snapshots, which count once.
    pub(super) fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::Relaxed)
    }

    /// Returns the rows of some keys, read by one statement for all callers with the same text at the same time. Its
    /// parameters are the columns of the keys, and its last column is the number of the key that a row is of, from 1.
    pub(super) async fn by_keys<T>(
        &self,
        sql: &'static str,
        keys: Vec<Params>,
        read: impl Fn(&Row) -> Result<T, Fault>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.gathered.rows(self, sql, keys).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    /// Returns the rows of several queries that are sent together, each in its own answer.
    pub(super) async fn rows_of_each(&self, queries: Vec<(&'static str, Params)>) -> Result<Vec<Vec<Row>>, Fault> {
        let since = Instant::now();
        let connection = self.connection(since).await?;
        let rows = self.health.answer(since, LONGEST, each(connection.connection.as_ref(), &queries)).await;
        connection.answered(rows)
    }

    /// Returns the first row of a query, if there is one.
    pub(super) async fn one<T>(
        &self,
        sql: &'static str,
        params: Params,
        read: impl FnOnce(&Row) -> Result<T, Fault>,
    ) -> Result<Option<T>, StoreError> {
        Ok(super::query::one(&mut self.clone(), sql, params, read).await?)
    }

    /// Returns all rows of a query.
    pub(super) async fn many<T>(
        &self,
        sql: &'static str,
        params: Params,
        read: impl Fn(&Row) -> Result<T, Fault>,
    ) -> Result<Vec<T>, StoreError> {
        Ok(super::query::many(&mut self.clone(), sql, params, read).await?)
    }

    /// Like [`one`](Self::one), for a query that many callers make at the same time, such as for the settings of a
    /// workspace.
    pub(super) async fn one_shared<T>(
        &self,
        sql: &'static str,
        params: Params,
        read: impl FnOnce(&Row) -> Result<T, Fault>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.shared_rows(sql, params).await?.first().map(read).transpose()?)
    }

    /// Like [`many`](Self::many), for a query that many callers make at the same time.
    pub(super) async fn many_shared<T>(
        &self,
        sql: &'static str,
        params: Params,
        read: impl Fn(&Row) -> Result<T, Fault>,
    ) -> Result<Vec<T>, StoreError> {
        Ok(self.shared_rows(sql, params).await?.iter().map(read).collect::<Result<_, _>>()?)
    }

    async fn shared_rows(&self, sql: &'static str, params: Params) -> Result<Arc<Vec<Row>>, StoreError> {
        let question = (sql, format!("{params:?}"));
        let since = Instant::now();
        let send = |connection: ReadConnection| async move {
            let rows = async { Ok(Arc::new(query(connection.connection.as_ref(), sql, &params).await?)) };
            let rows = self.health.answer(since, LONGEST, rows).await;
            connection.answered(rows)
        };
        self.shared.answer(question, self.connection(since), send).await
    }

    /// Begins a snapshot for several reads of one moment.
    pub(super) async fn snapshot(&self) -> Result<Snapshot, Fault> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let since = Instant::now();
        let connection = self.connection(since).await?;
        let mut snapshot = Snapshot { connection: connection.take(), health: Some(Arc::clone(&self.health)) };
        snapshot.rows(BEGIN, Params::new()).await?;
        Ok(snapshot)
    }

    /// Like [`Self::snapshot`], without a time limit for its reads.
    pub(super) async fn long_snapshot(&self) -> Result<Snapshot, Fault> {
        let mut snapshot = self.snapshot().await?;
        for sql in ["SET LOCAL statement_timeout = 0", "SET LOCAL idle_in_transaction_session_timeout = 0"] {
            snapshot.rows(sql, Params::new()).await?;
        }
        snapshot.health = None;
        Ok(snapshot)
    }

    pub(super) fn close(&self) {
        self.pool.close();
    }
}

impl Queries for Reads {
    async fn rows(&mut self, sql: &'static str, params: Params) -> Result<Vec<Row>, Fault> {
        let since = Instant::now();
        let connection = self.connection(since).await?;
        let rows = self.health.answer(since, LONGEST, query(connection.connection.as_ref(), sql, &params)).await;
        connection.answered(rows)
    }
}

impl Source for Reads {
    type Connection = (Instant, ReadConnection);
    type Row = Row;

    fn runtime(&self) -> &Handle {
        &self.runtime
    }

    async fn connect(&self) -> Result<Self::Connection, Fault> {
        let since = Instant::now();
        Ok((since, self.connection(since).await?))
    }

    async fn ask(
        &self,
        (since, connection): Self::Connection,
        sql: &'static str,
        keys: Params,
    ) -> Result<Vec<(usize, Row)>, Fault> {
        let rows = self.health.answer(since, LONGEST, query(connection.connection.as_ref(), sql, &keys)).await;
        let number = |row: &Row| get::<i64>(row, row.len().saturating_sub(1));
        let rows = connection.answered(rows)?;
        rows.into_iter().map(|row| Ok((usize::try_from(number(&row)?).unwrap_or(0), row))).collect()
    }
}

/// Returns the rows of queries that are sent together.
async fn each(connection: Option<&Object>, queries: &[(&'static str, Params)]) -> Result<Vec<Vec<Row>>, Fault> {
    let connection = connection.ok_or(Fault::Unhealthy)?;
    let prepared = &prepared(connection, queries.iter().map(|(sql, _)| *sql)).await?;
    let sent = queries.iter().map(|(sql, params)| async move {
        let statement = prepared.get(sql).ok_or(Fault::Unhealthy)?;
        Ok::<_, Fault>(connection.query(statement, &as_refs(params)).await?)
    });
    join_all(sent).await.into_iter().collect()
}

async fn query(connection: Option<&Object>, sql: &'static str, params: &Params) -> Result<Vec<Row>, Fault> {
    let connection = connection.ok_or(Fault::Unhealthy)?;
    let statement = connection.prepare_cached(sql).await?;
    Ok(connection.query(&statement, &as_refs(params)).await?)
}

/// A connection in use by a read. If no answer came for long, it is not used again.
#[derive(Debug)]
pub(super) struct ReadConnection {
    connection: Option<Object>,
    since: Instant,
}

impl ReadConnection {
    fn over(connection: Object) -> Self {
        Self { connection: Some(connection), since: Instant::now() }
    }

    /// Takes the connection out of this guard.
    fn take(mut self) -> Option<Object> {
        self.connection.take()
    }

    /// Returns the answer; the connection goes back to the pool, unless none came.
    fn answered<T>(mut self, answer: Result<T, Fault>) -> Result<T, Fault> {
        if !matches!(answer, Err(Fault::NoAnswer)) {
            drop(self.connection.take());
        }
        answer
    }
}

impl Drop for ReadConnection {
    fn drop(&mut self) {
        if self.since.elapsed() >= SUSPICIOUS {
            drop(self.connection.take().map(Object::take));
        }
    }
}

/// The database at one moment. If it is dropped before [`Snapshot::end`], its connection is closed.
#[derive(Debug)]
pub(super) struct Snapshot {
    connection: Option<Object>,
    /// `None` if there is no time limit for answers.
    health: Option<Arc<ConnectionHealth>>,
}

impl Snapshot {
    async fn answer<T>(&self, answer: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        match &self.health {
            Some(health) => health.answer(Instant::now(), LONGEST, answer).await,
            None => answer.await,
        }
    }

    /// Ends the snapshot and returns the connection to the pool.
    pub(super) async fn end(mut self) -> Result<(), Fault> {
        self.rows("COMMIT", Params::new()).await?;
        drop(self.connection.take());
        Ok(())
    }

    /// Returns the rows of several queries, which are sent together.
    pub(super) async fn rows_of_each(&mut self, queries: Vec<(&'static str, Params)>) -> Result<Vec<Vec<Row>>, Fault> {
        self.answer(each(self.connection.as_ref(), &queries)).await
    }

    /// Calls `visit` with each row of a query, of any number: rows are not held in memory.
    pub(super) async fn each_row(
        &mut self,
        sql: &'static str,
        params: Params,
        mut visit: impl FnMut(&Row) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Some(connection) = &self.connection else { return Err(Fault::Unhealthy) };
        let statement = connection.prepare_cached(sql).await?;
        let rows = connection.query_raw(&statement, as_refs(&params)).await?;
        let mut rows = pin!(rows);
        while let Some(row) = rows.try_next().await? {
            visit(&row)?;
        }
        Ok(())
    }
}

impl Queries for Snapshot {
    async fn rows(&mut self, sql: &'static str, params: Params) -> Result<Vec<Row>, Fault> {
        self.answer(query(self.connection.as_ref(), sql, &params)).await
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}
