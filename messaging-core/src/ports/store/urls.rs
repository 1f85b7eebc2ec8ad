//! Targets of redirected links.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError};
use crate::domain::audience::contact::erasure::Names;
use crate::domain::mail::link_token::UrlKey;
use crate::ids::WorkspaceId;

/// Reads of the targets of redirected links.
///
/// A target is stored once per workspace and kept permanently, unless it names an erased person: links in delivered
/// mail lead there for years.
#[async_trait]
pub trait Urls {
    /// Returns the target of a key.
    async fn url(&self, workspace: WorkspaceId, key: UrlKey) -> Result<Option<String>, StoreError>;
    /// Returns the keys of the targets that name a person, in the order of the keys.
    async fn urls_naming(
        &self,
        workspace: WorkspaceId,
        names: &Names,
        page: PageRequest,
    ) -> Result<Slice<UrlKey>, StoreError>;
}
