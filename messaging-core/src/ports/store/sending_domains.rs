//! Sending domains.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::sending_domain::SendingDomain;
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
    /// The domains of this name, lower case A-labels, of all workspaces, at most `limit`: for what comes
    /// from outside and names no workspace.
    async fn domains_named(&self, name: &str, limit: usize) -> Result<Vec<SendingDomain>, StoreError>;
    /// The domains of all workspaces by name, at most `limit`: for checks of the whole installation.
    async fn all_domains(&self, limit: usize) -> Result<Vec<SendingDomain>, StoreError>;
    /// The domains of the workspace, newest first.
    async fn domains(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<SendingDomain>, StoreError>;
}
