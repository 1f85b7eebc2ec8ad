//! Execution of statements and queries on SQLite.

use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{RemovedRows, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params_from_iter};

use super::Sqlite;
use super::due_rows::Dated;
use super::fault::{Fault, expect_one};
use super::query::{execute, many, one};
use super::workspace_end;
use crate::database::at_once;
use crate::database::open_commit::Answers as _;
use crate::database::{Aged, Database, Query, Statements};
use crate::pages::sql_limit;
use crate::sql::{Params, Sql};

impl Statements for &Connection {
    fn run(&mut self, sql: Sql, params: Params) -> Result<(), Fault> {
        execute(self, sql, params).map(drop)
    }

    fn run_one(&mut self, sql: Sql, params: Params) -> Result<(), Fault> {
        expect_one(execute(self, sql, params)?)
    }

    fn expect(&mut self, number: i64, sql: Sql, params: Params) -> Result<(), Fault> {
        let found = one(self, sql.sqlite, params_from_iter(params), |row| Ok(row.get::<_, i64>(0)?))?;
        if found == Some(number) { Ok(()) } else { Err(Fault::Conflict) }
    }

    fn gather(&mut self, sql: Sql, row: Params) -> Result<(), Fault> {
        self.run(sql, row)
    }

    fn gather_one(&mut self, sql: Sql, row: Params) -> Result<(), Fault> {
        self.run_one(sql, row)
    }

    fn remove(&mut self, sql: Sql, _: &str, key: Params) -> Result<(), Fault> {
        self.run(sql, key)
    }

    fn change_one(&mut self, sql: Sql, _: &str, _: usize, row: Params) -> Result<(), Fault> {
        self.run_one(sql, row)
    }
}

impl Sqlite {
    /// Runs a query on the thread for its kind.
    async fn answer<T, A: Send + 'static>(
        &self,
        query: Query<T>,
        answer: impl FnOnce(&Connection, Query<T>) -> Result<A, Fault> + Send + 'static,
    ) -> Result<A, StoreError>
    where
        T: 'static,
    {
        let Query { is_point, is_scan, .. } = query;
        let answer = move |connection: &Connection| answer(connection, query);
        if is_point {
            self.readers.point_read(answer).await
        } else if is_scan {
            self.scans.read(answer).await
        } else {
            self.readers.read(answer).await
        }
    }
}

impl Database for Sqlite {
    async fn one<T: Send + 'static>(&self, query: Query<T>) -> Result<Option<T>, StoreError> {
        self.answer(query, |mut connection, query| at_once(connection.one(query))).await
    }

    async fn many<T: Send + 'static>(&self, query: Query<T>) -> Result<Vec<T>, StoreError> {
        self.answer(query, |mut connection, query| at_once(connection.many(query))).await
    }

    async fn gathered<T: Send + 'static>(&self, query: Query<T>, keys: Vec<Params>) -> Result<Vec<T>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.answer(query, move |mut connection, query| {
            // One lock instead of one for every look-up.
            let of_one_moment = if keys.len() > 1 { Some(connection.unchecked_transaction()?) } else { None };
            let found = at_once(connection.gathered(query, keys));
            drop(of_one_moment);
            found
        })
        .await
    }

    async fn sweep(&self, sql: Sql, params: Params) -> Result<u64, StoreError> {
        self.writer.undurably(move |connection| Ok(execute(connection, sql, params)? as u64)).await
    }

    async fn sweep_aged(&self, aged: &'static Aged, moment: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let rows = self.due.of(aged.table);
        let find = move |connection: &Connection| {
            rows.find(aged.window, limit, |after| {
                many(connection, aged.find, (after, sql_limit(aged.window), moment.as_millis()), |row| {
                    let n = row.get(0)?;
                    Ok(Dated { n, due: row.get::<_, bool>(1)?.then_some(n) })
                })
            })
        };
        let mut forgotten = 0;
        for slice in self.readers.read(find).await?.chunks(aged.slice) {
            let slice = slice.to_vec();
            let delete = move |connection: &Connection| {
                let mut statement = connection.prepare_cached(aged.delete.sqlite)?;
                let mut gone = 0;
                for n in slice {
                    gone += statement.execute((n, moment.as_millis()))? as u64;
                }
                Ok(gone)
            };
            forgotten += self.writer.undurably(delete).await?;
        }
        Ok(forgotten)
    }

    async fn remove_rows(
        &self,
        workspace: WorkspaceId,
        step: usize,
        limit: usize,
    ) -> Result<Option<RemovedRows>, StoreError> {
        workspace_end::remove_rows(self, workspace, step, limit).await
    }
}
