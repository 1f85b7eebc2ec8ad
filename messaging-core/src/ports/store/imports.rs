//! Imports of contacts.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::audience::import::Import;
use crate::domain::audience::import::report::RowErrors;
use crate::ids::{ImportId, WorkspaceId};
use crate::time::Timestamp;

/// Reads of imports.
#[async_trait]
pub trait Imports {
    /// An import by id.
    async fn import(&self, workspace: WorkspaceId, id: ImportId) -> Result<Option<Stored<Import>>, StoreError>;
    /// The imports of the workspace, newest first.
    async fn imports(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Import>, StoreError>;
    /// What was kept of the refused rows of an import, in the order of the rows: as it was appended, from
    /// the first piece that begins after row `after` on, at most `limit` pieces.
    async fn row_errors(
        &self,
        workspace: WorkspaceId,
        id: ImportId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<RowErrors>, StoreError>;
    /// Lets go up to `limit` pieces of refused rows of imports that were asked for before a time; answers
    /// how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_row_errors(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
