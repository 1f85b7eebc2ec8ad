//! Writes that look before they write, or tell others of what they change.

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

/// What answers one query after the other, such as an open transaction, each with what was written before it. SQLite answers
/// at once, PostgreSQL after a round trip.
pub(crate) trait Answers {
    /// The first row of a query, if there is one.
    async fn one<T>(&mut self, query: Query<T>) -> Result<Option<T>, Fault>;

    /// All rows of a query.
    async fn many<T>(&mut self, query: Query<T>) -> Result<Vec<T>, Fault>;

    /// The rows of a query for each of several keys, see [`Database::gathered`](super::Database::gathered).
    async fn gathered<T>(&mut self, query: Query<T>, keys: Vec<Params>) -> Result<Vec<T>, Fault>;
}

/// What answers of one moment, for as long as it takes.
pub(crate) trait Snapshot: Answers {
    /// Does something with each row of a query, however many they are: they are not held in memory.
    async fn each(
        &mut self,
        sql: Sql,
        params: Params,
        visit: impl FnMut(&dyn Row) -> Result<(), Fault>,
    ) -> Result<(), Fault>;

    /// Counts the messages of a workspace anew.
    async fn recount(&mut self, workspace: WorkspaceId) -> Result<Recount, Fault>;
}

/// The open transaction of a commit, with what it remembers of those who want to hear of changes: dynamic segments and
/// automations.
pub(crate) trait OpenCommit: Answers {
    /// Takes statements that need no look.
    fn statements(&mut self) -> &mut dyn Statements;

    /// Carries out a statement now; answers how many rows it touched.
    async fn execute(&mut self, sql: Sql, params: Params) -> Result<u64, Fault>;

    /// Whether a dynamic segment of a workspace reads any of this.
    async fn is_followed(&mut self, workspace: WorkspaceId, mask: ReadMask) -> Result<bool, Fault>;

    /// Notes a change of a contact, if a dynamic segment reads any of it.
    async fn note(&mut self, workspace: WorkspaceId, contact: ContactId, mask: ReadMask) -> Result<(), Fault>;

    /// Like [`Self::note`], for a contact by its number.
    async fn note_numbered(&mut self, workspace: WorkspaceId, contact: i64, mask: ReadMask) -> Result<(), Fault>;

    /// Whether an automation of a workspace listens.
    async fn is_heard(&mut self, workspace: WorkspaceId) -> Result<bool, Fault>;

    /// Tells automations what happened to a contact, which is named by its number.
    async fn hear(
        &mut self,
        workspace: WorkspaceId,
        contact: i64,
        accepted_at: Timestamp,
        happened: Happened<'_>,
    ) -> Result<(), Fault>;

    /// Tells segments and automations that an address came onto the suppression list or off it.
    async fn tell_of_address(
        &mut self,
        workspace: WorkspaceId,
        address: (Channel, &str),
        at: Timestamp,
    ) -> Result<(), Fault>;

    /// The changes of counters that this transaction has gathered and not yet written.
    fn deltas(&mut self) -> &mut CounterDeltas;

    /// By how many automations in a row the present changes were caused.
    fn depth(&self) -> u8;

    /// What follows was caused by so many automations in a row.
    fn caused_at(&mut self, depth: u8);
}
