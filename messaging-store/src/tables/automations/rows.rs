//! What each database does with automations in its own way.

use async_trait::async_trait;
use jiff::tz::TimeZone;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{Ask, StoreError};
use messaging_core::time::Timestamp;

/// What each database does in its own way.
#[async_trait]
pub(crate) trait AutomationRows {
    /// The number up to which no transaction that is still open has made notes in a workspace; `None` while it is not
    /// known.
    async fn settled_notes(&self, workspace: WorkspaceId) -> Result<Option<i64>, StoreError>;

    /// See [`Automations::answers`](messaging_core::ports::store::Automations::answers).
    async fn answer(&self, workspace: WorkspaceId, asks: &[Ask], zone: &TimeZone) -> Result<Vec<bool>, StoreError>;

    /// Lets at most so many runs go that ended before a time, with all that is kept of them; answers how many went. They
    /// stay counted.
    async fn forget_ended_runs(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
