//! Port for reading imports of contacts.

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
    /// Recorded errors of the refused rows of an import, in the order of the rows. They are stored in pieces of several
    /// rows; answers at most `limit` pieces, from the first that begins after row `after`.
    async fn row_errors(
        &self,
        workspace: WorkspaceId,
        id: ImportId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<RowErrors>, StoreError>;
    /// Deletes up to `limit` pieces of errors of imports that were created before a time; answers how many.
    ///
    /// The write is not part of [`Changes`](crate::changes::Changes), because it may stop anywhere without harm.
    async fn forget_row_errors(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
