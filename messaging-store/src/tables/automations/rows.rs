//! Queries about automations that SQLite and PostgreSQL each write their own way.

use async_trait::async_trait;
use jiff::tz::TimeZone;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{FilterQuery, StoreError};
use messaging_core::time::Timestamp;

/// Queries that each database implements itself; the others are in `tables/automations.rs`.
#[async_trait]
pub(crate) trait AutomationRows {
    /// The largest number up to which the notes of a workspace are complete: no open transaction can commit one with
    /// such a number. `None` while a transaction is making notes.
    async fn settled_notes(&self, workspace: WorkspaceId) -> Result<Option<i64>, StoreError>;

    /// See [`Automations::answers`](messaging_core::ports::store::Automations::answers).
    async fn answer(
        &self,
        workspace: WorkspaceId,
        queries: &[FilterQuery],
        zone: &TimeZone,
    ) -> Result<Vec<bool>, StoreError>;

    /// Deletes at most `limit` runs that ended before a time, with everything stored for them, and answers the number
    /// deleted. The counts of the automation stay.
    async fn forget_ended_runs(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
