//! Targets of redirected links.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::link_token::UrlKey;
use crate::ids::WorkspaceId;

/// Reads of the targets of redirected links.
///
/// A target is stored once per workspace and kept for good: links in delivered mail lead there for years.
#[async_trait]
pub trait Urls {
    /// The target that a key stands for.
    async fn url(&self, workspace: WorkspaceId, key: UrlKey) -> Result<Option<String>, StoreError>;
}
