//! Contacts.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::audience::contact::{Contact, ContactFilter, Identifier};
use crate::ids::{ContactId, WorkspaceId};

/// Reads of contacts. Every contact comes with its lists.
///
/// ```
/// use messaging_core::domain::channel::Channel;
/// use messaging_core::domain::audience::contact::{Contact, Identifier};
/// use messaging_core::ids::WorkspaceId;
/// use messaging_core::ports::store::{Contacts, StoreError, Stored};
///
/// async fn by_email(
///     store: &dyn Contacts,
///     workspace: WorkspaceId,
///     email: &str,
/// ) -> Result<Option<Stored<Contact>>, StoreError> {
///     let Some(identifier) = Identifier::of_address(Channel::Email, email) else { return Ok(None) };
///     Ok(store.contacts_identified(workspace, vec![identifier]).await?.pop())
/// }
/// ```
#[async_trait]
pub trait Contacts {
    /// Looks up a contact by id.
    async fn contact(&self, workspace: WorkspaceId, id: ContactId) -> Result<Option<Stored<Contact>>, StoreError>;
    /// Returns the contacts that have any of the identifiers, each once, in no particular order.
    async fn contacts_identified(
        &self,
        workspace: WorkspaceId,
        identifiers: Vec<Identifier>,
    ) -> Result<Vec<Stored<Contact>>, StoreError>;
    /// Returns the id of the contact that has an identifier.
    async fn contact_identified(
        &self,
        workspace: WorkspaceId,
        identifier: &Identifier,
    ) -> Result<Option<ContactId>, StoreError>;
    /// Returns the contacts that match, in the order of their creation, newest first.
    async fn contacts(
        &self,
        workspace: WorkspaceId,
        filter: &ContactFilter,
        page: PageRequest,
    ) -> Result<Slice<Contact>, StoreError>;
    /// Counts the contacts of the workspace.
    async fn contact_count(&self, workspace: WorkspaceId) -> Result<u64, StoreError>;
}
