//! Queries of a transaction while its writes are queued, and notes for those that follow changes.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::time::Timestamp;

use super::fault::Fault;
use super::query::{self, Queries};
use super::transaction::Transaction;
use super::verification::recount;
use super::{column, listeners, outbox, reads, segments};
use crate::comparing::Recount;
use crate::counter_deltas::CounterDeltas;
use crate::database::open_commit::{Answers, OpenCommit, Snapshot};
use crate::database::{Query, Statements};
use crate::happened::Happened;
use crate::row::Row;
use crate::sql::{Params, Sql, Value};

impl<Q: Queries> Answers for Q {
    async fn one<T>(&mut self, query: Query<T>) -> Result<Option<T>, Fault> {
        query::one(self, query.sql.postgres, query.params, |row| (query.read)(row)).await
    }

    async fn many<T>(&mut self, query: Query<T>) -> Result<Vec<T>, Fault> {
        query::many(self, query.sql.postgres, query.params, |row| (query.read)(row)).await
    }

    async fn gathered<T>(&mut self, query: Query<T>, keys: Vec<Params>) -> Result<Vec<T>, Fault> {
        self.many(by_columns(query, keys)).await
    }
}

/// Turns a query into the same one for columns of keys.
pub(super) fn by_columns<T>(mut query: Query<T>, keys: Vec<Params>) -> Query<T> {
    let mut columns = Vec::new();
    for key in keys {
        column::add(&mut columns, key);
    }
    query.params.extend(columns.into_iter().map(Value::List));
    query
}

impl Snapshot for reads::Snapshot {
    async fn each(
        &mut self,
        sql: Sql,
        params: Params,
        mut visit: impl FnMut(&dyn Row) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.each_row(sql.postgres, params, |row| visit(row)).await
    }

    async fn recount(&mut self, workspace: WorkspaceId) -> Result<Recount, Fault> {
        recount(self, workspace).await
    }
}

impl OpenCommit for Transaction {
    fn statements(&mut self) -> &mut dyn Statements {
        self
    }

    async fn execute(&mut self, sql: Sql, params: Params) -> Result<u64, Fault> {
        self.execute(sql.postgres, params).await
    }

    async fn is_followed(&mut self, workspace: WorkspaceId, mask: ReadMask) -> Result<bool, Fault> {
        Ok(outbox::read_mask_in(self, workspace, mask).await?.is_some())
    }

    async fn note(&mut self, workspace: WorkspaceId, contact: ContactId, mask: ReadMask) -> Result<(), Fault> {
        outbox::note_contact(self, workspace, contact, mask).await
    }

    async fn note_numbered(&mut self, workspace: WorkspaceId, contact: i64, mask: ReadMask) -> Result<(), Fault> {
        if let Some(read_mask) = outbox::read_mask(self, workspace).await? {
            outbox::note(self, read_mask, contact, mask);
        }
        Ok(())
    }

    async fn is_heard(&mut self, workspace: WorkspaceId) -> Result<bool, Fault> {
        listeners::is_any(self, workspace).await
    }

    async fn hear(
        &mut self,
        workspace: WorkspaceId,
        contact: i64,
        accepted_at: Timestamp,
        happened: Happened<'_>,
    ) -> Result<(), Fault> {
        listeners::hear(self, workspace, contact, accepted_at, happened).await
    }

    async fn tell_of_address(
        &mut self,
        workspace: WorkspaceId,
        address: (Channel, &str),
        at: Timestamp,
    ) -> Result<(), Fault> {
        segments::tell_of_address(self, workspace, address, at).await
    }

    fn deltas(&mut self) -> &mut CounterDeltas {
        &mut self.deltas
    }

    fn depth(&self) -> u8 {
        self.depth
    }

    fn caused_at(&mut self, depth: u8) {
        self.depth = depth;
    }
}
