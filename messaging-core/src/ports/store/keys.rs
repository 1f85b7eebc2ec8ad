//! API keys.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::security::api_key::ApiKey;
use crate::domain::security::api_key::usage::OperationUse;
use crate::domain::security::digest::Digest;
use crate::ids::{ApiKeyId, WorkspaceId};
use crate::time::Timestamp;

/// Reads of API keys.
#[async_trait]
pub trait ApiKeys {
    /// A key by its secret and its prefix (`mk_live_…`), revoked or not; in any workspace, since the key tells which.
    /// A secret that no key has is looked for in the same way whether or not a key has the prefix, so that the time
    /// it takes does not tell.
    async fn api_key_by_secret(&self, secret: &Digest, prefix: &str) -> Result<Option<ApiKey>, StoreError>;
    /// A key of the workspace.
    async fn api_key(&self, workspace: WorkspaceId, id: ApiKeyId) -> Result<Option<Stored<ApiKey>>, StoreError>;
    /// A key in any workspace, for the administrator of the installation.
    async fn api_key_anywhere(&self, id: ApiKeyId) -> Result<Option<Stored<ApiKey>>, StoreError>;
    /// The keys of the workspace with the time of their last use, newest first, revoked ones included.
    async fn api_keys(
        &self,
        workspace: WorkspaceId,
        page: PageRequest,
    ) -> Result<Slice<(ApiKey, Option<Timestamp>)>, StoreError>;
    /// When a key of the workspace was last used; `None` when it was not, or is not there.
    async fn api_key_last_used(&self, workspace: WorkspaceId, id: ApiKeyId) -> Result<Option<Timestamp>, StoreError>;
    /// The operations that some keys of the workspace were used for, in any order.
    async fn api_key_uses(&self, workspace: WorkspaceId, keys: &[ApiKeyId]) -> Result<Vec<OperationUse>, StoreError>;
    /// Keys of all workspaces whose next warning
    /// ([`next_warning`](crate::domain::security::api_key::expiry::next_warning)) is due at `now`, and keys of which an
    /// earlier version did not know when that is.
    async fn api_keys_to_warn_of(&self, now: Timestamp, limit: usize) -> Result<Vec<Stored<ApiKey>>, StoreError>;
    /// Keys of all workspaces that end ([`end`](crate::domain::security::api_key::expiry::end)) after `after` and not later
    /// than `until`, those that end first first.
    async fn api_keys_ending(
        &self,
        after: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<ApiKey>, StoreError>;
}
