//! Queries of the writer while it applies a write, and notes of changes for segments and automations.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params_from_iter};

use super::change_subscribers::ChangeSubscribers;
use super::fault::Fault;
use super::query;
use super::segments;
use super::verification::recount;
use crate::comparing::Recount;
use crate::counter_deltas::CounterDeltas;
use crate::database::open_commit::{Answers, OpenCommit, Snapshot};
use crate::database::{Query, Statements};
use crate::happened::Happened;
use crate::row::Row;
use crate::sql::{Params, Sql};

impl Answers for &Connection {
    async fn one<T>(&mut self, query: Query<T>) -> Result<Option<T>, Fault> {
        query::one(self, query.sql.sqlite, params_from_iter(query.params), |row| (query.read)(row))
    }

    async fn many<T>(&mut self, query: Query<T>) -> Result<Vec<T>, Fault> {
        query::many(self, query.sql.sqlite, params_from_iter(query.params), |row| (query.read)(row))
    }

    async fn gathered<T>(&mut self, query: Query<T>, keys: Vec<Params>) -> Result<Vec<T>, Fault> {
        let mut found = Vec::new();
        for key in keys {
            let params = query.params.iter().cloned().chain(key);
            found.extend(query::many(self, query.sql.sqlite, params_from_iter(params), |row| (query.read)(row))?);
        }
        Ok(found)
    }
}

impl Snapshot for &Connection {
    async fn each(
        &mut self,
        sql: Sql,
        params: Params,
        mut visit: impl FnMut(&dyn Row) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut statement = self.prepare_cached(sql.sqlite)?;
        let mut rows = statement.query(params_from_iter(params))?;
        while let Some(row) = rows.next()? {
            visit(row)?;
        }
        Ok(())
    }

    async fn recount(&mut self, workspace: WorkspaceId) -> Result<Recount, Fault> {
        recount(self, workspace)
    }
}

/// A write that is being applied.
pub(super) struct Applying<'a> {
    pub(super) connection: &'a Connection,
    pub(super) deltas: &'a mut CounterDeltas,
    pub(super) subscribers: &'a mut ChangeSubscribers,
}

impl Answers for Applying<'_> {
    async fn one<T>(&mut self, query: Query<T>) -> Result<Option<T>, Fault> {
        self.connection.one(query).await
    }

    async fn many<T>(&mut self, query: Query<T>) -> Result<Vec<T>, Fault> {
        self.connection.many(query).await
    }

    async fn gathered<T>(&mut self, query: Query<T>, keys: Vec<Params>) -> Result<Vec<T>, Fault> {
        self.connection.gathered(query, keys).await
    }
}

impl OpenCommit for Applying<'_> {
    fn statements(&mut self) -> &mut dyn Statements {
        &mut self.connection
    }

    async fn execute(&mut self, sql: Sql, params: Params) -> Result<u64, Fault> {
        Ok(query::execute(self.connection, sql, params)? as u64)
    }

    async fn is_followed(&mut self, workspace: WorkspaceId, mask: ReadMask) -> Result<bool, Fault> {
        Ok(self.subscribers.read_masks.in_mask(self.connection, workspace, mask)?.is_some())
    }

    async fn note(&mut self, workspace: WorkspaceId, contact: ContactId, mask: ReadMask) -> Result<(), Fault> {
        self.subscribers.read_masks.note(self.connection, workspace, contact, mask)
    }

    async fn note_numbered(&mut self, workspace: WorkspaceId, contact: i64, mask: ReadMask) -> Result<(), Fault> {
        match self.subscribers.read_masks.of(self.connection, workspace)? {
            Some(read_mask) => segments::note(self.connection, read_mask, contact, mask),
            None => Ok(()),
        }
    }

    async fn is_heard(&mut self, workspace: WorkspaceId) -> Result<bool, Fault> {
        self.subscribers.listeners.is_any(self.connection, workspace)
    }

    async fn hear(
        &mut self,
        workspace: WorkspaceId,
        contact: i64,
        accepted_at: Timestamp,
        happened: Happened<'_>,
    ) -> Result<(), Fault> {
        self.subscribers.listeners.hear(self.connection, workspace, contact, accepted_at, happened)
    }

    async fn tell_of_address(
        &mut self,
        workspace: WorkspaceId,
        address: (Channel, &str),
        at: Timestamp,
    ) -> Result<(), Fault> {
        segments::tell_of_address(self.connection, self.subscribers, workspace, address, at)
    }

    fn deltas(&mut self) -> &mut CounterDeltas {
        self.deltas
    }

    fn depth(&self) -> u8 {
        self.subscribers.depth()
    }

    fn caused_at(&mut self, depth: u8) {
        self.subscribers.caused_at(depth);
    }
}
