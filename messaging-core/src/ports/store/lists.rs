//! Lists of contacts. Who is on a list is read with the contacts.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::audience::list::ContactList;
use crate::ids::{ContactId, ListId, WorkspaceId};

/// Reads of lists.
#[async_trait]
pub trait Lists {
    /// A list by id.
    async fn list(&self, workspace: WorkspaceId, id: ListId) -> Result<Option<Stored<ContactList>>, StoreError>;
    /// The lists of the workspace, newest first.
    async fn lists(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<ContactList>, StoreError>;
    /// Those of the lists that exist, in no particular order.
    async fn lists_among(&self, workspace: WorkspaceId, ids: &[ListId]) -> Result<Vec<ListId>, StoreError>;
    /// Those of the contacts that exist, and whether each is on the list, in no particular order.
    async fn memberships(
        &self,
        workspace: WorkspaceId,
        list: ListId,
        contacts: &[ContactId],
    ) -> Result<Vec<(ContactId, bool)>, StoreError>;
    /// Lets go up to `limit` members of lists that were removed; answers how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_members(&self, limit: usize) -> Result<u64, StoreError>;
}
