//! Connections that read.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Object, Pool, Timeouts};
use futures_util::TryStreamExt as _;
use futures_util::future::join_all;
use messaging_core::ports::store::StoreError;
use tokio_postgres::Row;

use super::fault::Fault;
use super::query::{Params, Queries, as_refs};
use super::shared_reads::SharedReads;

/// How long a read waits for a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers reads. Each takes a connection for as long as it lasts.
#[derive(Debug, Clone)]
pub(super) struct Reads {
    pool: Pool,
    shared: Arc<SharedReads<Arc<Vec<Row>>>>,
}

impl Reads {
    pub(super) fn new(pool: Pool) -> Self {
        Self { pool, shared: Arc::default() }
    }

    pub(super) async fn connection(&self) -> Result<Object, Fault> {
        let timeouts = Timeouts { wait: Some(PATIENCE), create: Some(PATIENCE), recycle: Some(PATIENCE) };
        Ok(self.pool.timeout_get(&timeouts).await?)
    }

    /// The first row of a query, if there is one.
    pub(super) async fn one<T>(
        &self,
        sql: &'static str,
        params: Params,
        read: impl FnOnce(&Row) -> Result<T, Fault>,
    ) -> Result<Option<T>, StoreError> {
        Ok(super::query::one(&mut self.clone(), sql, params, read).await?)
    }

    /// All rows of a query.
    pub(super) async fn many<T>(
        &self,
        sql: &'static str,
        params: Params,
        read: impl Fn(&Row) -> Result<T, Fault>,
    ) -> Result<Vec<T>, StoreError> {
        Ok(super::query::many(&mut self.clone(), sql, params, read).await?)
    }

    /// The same as [`one`](Self::one) for what many ask for at the same time, such as the settings of a workspace.
    pub(super) async fn one_shared<T>(
        &self,
        sql: &'static str,
        params: Params,
        read: impl FnOnce(&Row) -> Result<T, Fault>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.shared_rows(sql, params).await?.first().map(read).transpose()?)
    }

    /// The same as [`many`](Self::many) for what many ask for at the same time.
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
        let send = |connection: Object| async move {
            let statement = connection.prepare_cached(sql).await?;
            Ok(Arc::new(connection.query(&statement, &as_refs(&params)).await?))
        };
        self.shared.answer(question, self.connection(), send).await
    }

    /// Several reads of one moment.
    pub(super) async fn snapshot(&self) -> Result<Snapshot, Fault> {
        let connection = self.connection().await?;
        let begin = connection.prepare_cached("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let snapshot = Snapshot(Some(connection));
        if let Some(connection) = &snapshot.0 {
            connection.execute(&begin, &[]).await?;
        }
        Ok(snapshot)
    }

    /// The same for reads that take as long as they take.
    pub(super) async fn long_snapshot(&self) -> Result<Snapshot, Fault> {
        let mut snapshot = self.snapshot().await?;
        for sql in ["SET LOCAL statement_timeout = 0", "SET LOCAL idle_in_transaction_session_timeout = 0"] {
            snapshot.rows(sql, Params::new()).await?;
        }
        Ok(snapshot)
    }

    pub(super) fn close(&self) {
        self.pool.close();
    }
}

impl Queries for Reads {
    async fn rows(&mut self, sql: &'static str, params: Params) -> Result<Vec<Row>, Fault> {
        let connection = self.connection().await?;
        let statement = connection.prepare_cached(sql).await?;
        Ok(connection.query(&statement, &as_refs(&params)).await?)
    }
}

/// The database at one moment. One that is dropped before [`Snapshot::end`] takes its connection with it.
#[derive(Debug)]
pub(super) struct Snapshot(Option<Object>);

impl Snapshot {
    /// Does something with each row of a query, however many they are: they are not held in memory.
    pub(super) async fn each(
        &self,
        sql: &'static str,
        params: Params,
        mut work: impl FnMut(&Row) -> Result<(), Fault> + Send,
    ) -> Result<(), Fault> {
        let Some(connection) = &self.0 else { return Err(Fault::Unhealthy) };
        let statement = connection.prepare_cached(sql).await?;
        let mut rows = pin!(connection.query_raw(&statement, as_refs(&params)).await?);
        while let Some(row) = rows.try_next().await? {
            work(&row)?;
        }
        Ok(())
    }

    /// Gives the connection back.
    pub(super) async fn end(mut self) -> Result<(), Fault> {
        if let Some(connection) = &self.0 {
            let commit = connection.prepare_cached("COMMIT").await?;
            connection.execute(&commit, &[]).await?;
        }
        drop(self.0.take());
        Ok(())
    }

    /// The rows of several queries, which are sent together.
    pub(super) async fn rows_of_each(&mut self, queries: Vec<(&'static str, Params)>) -> Result<Vec<Vec<Row>>, Fault> {
        let Some(connection) = &self.0 else { return Err(Fault::Unhealthy) };
        let mut prepared = Vec::with_capacity(queries.len());
        for (sql, params) in queries {
            prepared.push((connection.prepare_cached(sql).await?, params));
        }
        let sent = prepared.iter().map(|(statement, params)| async move {
            let params = as_refs(params);
            connection.query(statement, &params).await
        });
        Ok(join_all(sent).await.into_iter().collect::<Result<_, _>>()?)
    }

    /// Looks at the rows of a query one by one, however many there are.
    pub(super) async fn each_row(
        &mut self,
        sql: &'static str,
        params: Params,
        mut visit: impl FnMut(&Row) -> Result<(), Fault> + Send,
    ) -> Result<(), Fault> {
        let Some(connection) = &self.0 else { return Err(Fault::Unhealthy) };
        let statement = connection.prepare_cached(sql).await?;
        let rows = connection.query_raw(&statement, as_refs(&params)).await?;
        let mut rows = std::pin::pin!(rows);
        while let Some(row) = rows.try_next().await? {
            visit(&row)?;
        }
        Ok(())
    }
}

impl Queries for Snapshot {
    async fn rows(&mut self, sql: &'static str, params: Params) -> Result<Vec<Row>, Fault> {
        let Some(connection) = &self.0 else { return Err(Fault::Unhealthy) };
        let statement = connection.prepare_cached(sql).await?;
        Ok(connection.query(&statement, &as_refs(&params)).await?)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            drop(Object::take(connection));
        }
    }
}
