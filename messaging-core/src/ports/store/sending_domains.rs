//! Sending domains.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::mail::sending_domain::SendingDomain;
use crate::ids::{DomainId, WorkspaceId};

/// Reads of sending domains.
#[async_trait]
pub trait SendingDomains {
    /// Looks up a domain by id.
    async fn domain(&self, workspace: WorkspaceId, id: DomainId) -> Result<Option<Stored<SendingDomain>>, StoreError>;
    /// Looks up a domain by name, lower case A-labels.
    async fn domain_by_name(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Stored<SendingDomain>>, StoreError>;
    /// Looks up a domain by id in any workspace: for requests from outside that name no workspace.
    async fn domain_anywhere(&self, id: DomainId) -> Result<Option<SendingDomain>, StoreError>;
    /// Returns the domains of this name, lower case A-labels, that were ever verified, by their workspaces after
    /// `after`, at most `limit`: for requests from outside that name no workspace. A domain that was never verified has
    /// sent nothing, so a workspace that merely claims a name affects no other.
    async fn domains_named(
        &self,
        name: &str,
        after: Option<WorkspaceId>,
        limit: usize,
    ) -> Result<Vec<SendingDomain>, StoreError>;
    /// Returns the domains of all workspaces by name, at most `limit`: for checks of the whole installation.
    async fn all_domains(&self, limit: usize) -> Result<Vec<SendingDomain>, StoreError>;
    /// Returns the domains of the workspace, newest first.
    async fn domains(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<SendingDomain>, StoreError>;
}
