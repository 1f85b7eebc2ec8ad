//! IP pools, and the addresses that workspaces may name in them.

use std::net::IpAddr;

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::delivery::ip_pool::{IpGrant, IpPool};
use crate::ids::{PoolId, WorkspaceId};

/// Reads of IP pools. A shared pool is there for every workspace.
#[async_trait]
pub trait IpPools {
    /// Looks up a pool by id, of the workspace or shared.
    async fn ip_pool(&self, workspace: WorkspaceId, id: PoolId) -> Result<Option<Stored<IpPool>>, StoreError>;
    /// Looks up a pool by name, of the workspace or, if it has none of that name, shared.
    async fn ip_pool_by_name(&self, workspace: WorkspaceId, name: &str) -> Result<Option<Stored<IpPool>>, StoreError>;
    /// Returns the pools of the workspace and the shared ones together, newest first.
    async fn ip_pools(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<IpPool>, StoreError>;
    /// Returns the shared pools, newest first, at most `limit`.
    async fn shared_ip_pools(&self, limit: usize) -> Result<Vec<Stored<IpPool>>, StoreError>;
    /// Returns the pools of all workspaces and the shared ones, oldest first, those after `after`, at most `limit`, for
    /// finding the pools that reserve an address.
    async fn all_ip_pools(&self, after: Option<PoolId>, limit: usize) -> Result<Vec<IpPool>, StoreError>;
    /// Returns the addresses that the workspace may name, in the order of their texts, those after `after`, at most
    /// `limit`.
    async fn ip_grants(
        &self,
        workspace: WorkspaceId,
        after: Option<IpAddr>,
        limit: usize,
    ) -> Result<Vec<IpGrant>, StoreError>;
    /// Returns those of the addresses that the workspace may name, in no particular order.
    async fn granted_ips(&self, workspace: WorkspaceId, ips: &[IpAddr]) -> Result<Vec<IpGrant>, StoreError>;
}
