//! Lists of contacts. The members of a list are read with the contacts.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::audience::form::Form;
use crate::domain::audience::list::ContactList;
use crate::domain::audience::subscription::{Subscription, SubscriptionStatus};
use crate::ids::{ContactId, FormId, ListId, WorkspaceId};
use crate::time::Timestamp;

/// Reads of lists.
#[async_trait]
pub trait Lists {
    /// Looks up a list by id.
    async fn list(&self, workspace: WorkspaceId, id: ListId) -> Result<Option<Stored<ContactList>>, StoreError>;
    /// Returns the lists of the workspace, newest first.
    async fn lists(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<ContactList>, StoreError>;
    /// Returns those of the lists that exist, in no particular order.
    async fn lists_among(&self, workspace: WorkspaceId, ids: &[ListId]) -> Result<Vec<ListId>, StoreError>;
    /// Returns the public lists of the workspace, newest first, at most `limit`.
    async fn public_lists(&self, workspace: WorkspaceId, limit: usize) -> Result<Vec<ContactList>, StoreError>;
    /// Returns those of the lists that exist and are public, in no particular order.
    async fn public_lists_among(&self, workspace: WorkspaceId, ids: &[ListId]) -> Result<Vec<ListId>, StoreError>;
    /// Returns those of the contacts that exist, and whether each is on the list, in no particular order.
    async fn memberships(
        &self,
        workspace: WorkspaceId,
        list: ListId,
        contacts: &[ContactId],
    ) -> Result<Vec<(ContactId, bool)>, StoreError>;
    /// Returns the subscriptions of some contacts to some lists, in no particular order.
    async fn subscriptions_among(
        &self,
        workspace: WorkspaceId,
        lists: &[ListId],
        contacts: &[ContactId],
    ) -> Result<Vec<Stored<Subscription>>, StoreError>;
    /// Returns the subscriptions of a contact to lists that exist, at most `limit`, in no particular order.
    async fn subscriptions_of(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
        limit: usize,
    ) -> Result<Vec<Stored<Subscription>>, StoreError>;
    /// Returns the subscriptions to a list with a status, newest contact first.
    async fn subscriptions(
        &self,
        workspace: WorkspaceId,
        list: ListId,
        status: SubscriptionStatus,
        page: PageRequest,
    ) -> Result<Slice<Subscription>, StoreError>;
    /// Returns subscriptions of all workspaces that have been unconfirmed since before `before`, the longest first, at
    /// most `limit`.
    async fn unconfirmed_since_before(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<Stored<Subscription>>, StoreError>;
    /// Looks up a form by id.
    async fn form(&self, workspace: WorkspaceId, id: FormId) -> Result<Option<Stored<Form>>, StoreError>;
    /// Returns the forms of the workspace, newest first.
    async fn forms(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Form>, StoreError>;
    /// Deletes up to `limit` members of deleted lists; returns how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_members(&self, limit: usize) -> Result<u64, StoreError>;
}
