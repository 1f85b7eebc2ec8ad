//! Sending domains.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::mail::sending_domain::SendingDomain;
use crate::ids::{DomainId, WorkspaceId};

/// Reads of sending domains.
#[async_trait]
pub trait SendingDomains {
    /// A domain by id.
    async fn domain(&self, workspace: WorkspaceId, id: DomainId) -> Result<Option<Stored<SendingDomain>>, StoreError>;
    /// A domain by name, lower case A-labels.
    async fn domain_by_name(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Stored<SendingDomain>>, StoreError>;
    /// A domain by id, whichever workspace has it: for what comes from outside and names no workspace.
    async fn domain_anywhere(&self, id: DomainId) -> Result<Option<SendingDomain>, StoreError>;
    /// The domains of this name, lower case A-labels, that were verified at some time, by their workspaces and of those
    /// beyond `after`, at most `limit`: for what comes from outside and names no workspace. Nobody has sent from a domain
    /// that never was verified, so that those who merely claim a name stand in nobody's way.
    async fn domains_named(
        &self,
        name: &str,
        after: Option<WorkspaceId>,
        limit: usize,
    ) -> Result<Vec<SendingDomain>, StoreError>;
    /// The domains of all workspaces by name, at most `limit`: for checks of the whole installation.
    async fn all_domains(&self, limit: usize) -> Result<Vec<SendingDomain>, StoreError>;
    /// The domains of the workspace, newest first.
    async fn domains(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<SendingDomain>, StoreError>;
}
