//! Connections that read.

use std::pin::pin;
use std::time::Duration;

use deadpool_postgres::{Object, Pool, Timeouts};
use futures_util::TryStreamExt as _;
use futures_util::future::join_all;
use messaging_core::ports::store::StoreError;
use tokio_postgres::Row;

use super::fault::Fault;
use super::query::{Params, Queries, as_refs};

/// How long a read waits for a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers reads. Each takes a connection for as long as it lasts.
#[derive(Debug, Clone)]
pub(super) struct Reads(Pool);

impl Reads {
    pub(super) const fn new(pool: Pool) -> Self {
        Self(pool)
    }

    pub(super) async fn connection(&self) -> Result<Object, Fault> {
        let timeouts = Timeouts { wait: Some(PATIENCE), create: Some(PATIENCE), recycle: Some(PATIENCE) };
        Ok(self.0.timeout_get(&timeouts).await?)
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
        self.0.close();
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
