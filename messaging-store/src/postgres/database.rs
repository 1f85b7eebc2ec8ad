//! Execution of statements and queries on PostgreSQL.

use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{RemovedRows, StoreError};
use messaging_core::time::Timestamp;

use super::Postgres;
use super::expected;
use super::fault::Fault;
use super::open_commit::by_columns;
use super::sweep::sweep;
use super::transaction::Transaction;
use super::workspace_end;
use crate::database::{Aged, Database, Query, Statements};
use crate::pages::sql_limit;
use crate::sql::{Params, Sql, params};

impl Statements for Transaction {
    fn run(&mut self, sql: Sql, params: Params) -> Result<(), Fault> {
        if !sql.postgres.is_empty() {
            self.run(sql.postgres, params);
        }
        Ok(())
    }

    fn run_one(&mut self, sql: Sql, params: Params) -> Result<(), Fault> {
        self.run_one(sql.postgres, params);
        Ok(())
    }

    fn expect(&mut self, number: i64, sql: Sql, mut params: Params) -> Result<(), Fault> {
        let sql = expected::expecting_number(sql.postgres, &mut params, number);
        self.run(sql, params);
        Ok(())
    }

    fn gather(&mut self, sql: Sql, row: Params) -> Result<(), Fault> {
        self.add_row(sql.postgres, row);
        Ok(())
    }

    fn gather_one(&mut self, sql: Sql, row: Params) -> Result<(), Fault> {
        self.add_one_row(sql.postgres, row);
        Ok(())
    }

    fn remove(&mut self, one: Sql, many: &'static str, key: Params) -> Result<(), Fault> {
        self.remove_row(one.postgres, many, key);
        Ok(())
    }

    fn change_one(&mut self, one: Sql, many: &'static str, key: usize, row: Params) -> Result<(), Fault> {
        self.change_one_row(one.postgres, many, key, row);
        Ok(())
    }
}

impl Database for Postgres {
    async fn one<T: Send + 'static>(&self, query: Query<T>) -> Result<Option<T>, StoreError> {
        let Query { sql, params, read, is_shared, .. } = query;
        if is_shared {
            self.reads.one_shared(sql.postgres, params, |row| read(row)).await
        } else {
            self.reads.one(sql.postgres, params, |row| read(row)).await
        }
    }

    async fn many<T: Send + 'static>(&self, query: Query<T>) -> Result<Vec<T>, StoreError> {
        let Query { sql, params, read, is_shared, .. } = query;
        if is_shared {
            self.reads.many_shared(sql.postgres, params, |row| read(row)).await
        } else {
            self.reads.many(sql.postgres, params, |row| read(row)).await
        }
    }

    async fn gathered<T: Send + 'static>(&self, query: Query<T>, keys: Vec<Params>) -> Result<Vec<T>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.many(by_columns(query, keys)).await
    }

    async fn by_keys<T: Send + 'static>(&self, query: Query<T>, keys: Vec<Params>) -> Result<Vec<T>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.keyed_reads.by_keys(query.sql.postgres, keys, |row| (query.read)(row)).await
    }

    async fn sweep(&self, sql: Sql, params: Params) -> Result<u64, StoreError> {
        sweep(&self.writes, sql.postgres, params).await
    }

    async fn sweep_aged(&self, aged: &'static Aged, moment: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.sweep(aged.delete, params![moment, sql_limit(limit)]).await
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
