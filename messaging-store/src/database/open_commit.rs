//! Writes that read before they write, or notify others of their changes.

use messaging_core::domain::channel::Channel;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, WorkspaceId};
use messaging_core::time::Timestamp;

use super::{Query, Statements};
use crate::comparing::Recount;
use crate::counter_deltas::CounterDeltas;
use crate::fault::Fault;
use crate::happened::Happened;
use crate::row::Row;
use crate::sql::{Params, Sql};

/// Executor of one query after the other, such as an open transaction, each of which sees the earlier writes. SQLite
/// answers at once, PostgreSQL after a round trip.
pub(crate) trait Answers {
    /// The first row of a query, if there is one.
    async fn one<T>(&mut self, query: Query<T>) -> Result<Option<T>, Fault>;

    /// All rows of a query.
    async fn many<T>(&mut self, query: Query<T>) -> Result<Vec<T>, Fault>;

    /// The rows of a query for each of several keys, see [`Database::gathered`](super::Database::gathered).
    async fn gathered<T>(&mut self, query: Query<T>, keys: Vec<Params>) -> Result<Vec<T>, Fault>;
}

/// Queries that all see the database at one moment, however long they take.
pub(crate) trait Snapshot: Answers {
    /// Calls `visit` with each row of a query, of any number: rows are not held in memory.
    async fn each(
        &mut self,
        sql: Sql,
        params: Params,
        visit: impl FnMut(&dyn Row) -> Result<(), Fault>,
    ) -> Result<(), Fault>;

    /// Counts the messages of a workspace anew.
    async fn recount(&mut self, workspace: WorkspaceId) -> Result<Recount, Fault>;
}

/// The open transaction of a commit, with its state for those that follow changes: dynamic segments and automations.
pub(crate) trait OpenCommit: Answers {
    /// Queue for statements that need no answer.
    fn statements(&mut self) -> &mut dyn Statements;

    /// Executes a statement now; returns the number of rows it touched.
    async fn execute(&mut self, sql: Sql, params: Params) -> Result<u64, Fault>;

    /// Returns true if a dynamic segment of a workspace reads any data of the mask.
    async fn is_followed(&mut self, workspace: WorkspaceId, mask: ReadMask) -> Result<bool, Fault>;

    /// Notes a change of a contact, if a dynamic segment reads any of the changed data.
    async fn note(&mut self, workspace: WorkspaceId, contact: ContactId, mask: ReadMask) -> Result<(), Fault>;

    /// Like [`Self::note`], for a contact by its number.
    async fn note_numbered(&mut self, workspace: WorkspaceId, contact: i64, mask: ReadMask) -> Result<(), Fault>;

    /// Returns true if an automation of a workspace listens.
    async fn is_heard(&mut self, workspace: WorkspaceId) -> Result<bool, Fault>;

    /// Notes an event of a contact, given by its number, for automations.
    async fn hear(
        &mut self,
        workspace: WorkspaceId,
        contact: i64,
        accepted_at: Timestamp,
        happened: Happened<'_>,
    ) -> Result<(), Fault>;

    /// Notes for segments and automations that an address was added to the suppression list or removed from it.
    async fn tell_of_address(
        &mut self,
        workspace: WorkspaceId,
        address: (Channel, &str),
        at: Timestamp,
    ) -> Result<(), Fault>;

    /// The changes of counters that this transaction has gathered and not yet written.
    fn deltas(&mut self) -> &mut CounterDeltas;

    /// Number of automations in a row that led to the present changes.
    fn depth(&self) -> u8;

    /// Sets that number for the changes that follow.
    fn caused_at(&mut self, depth: u8);
}
