//! Templates and their versions.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::channel::Channel;
use crate::domain::template::Template;
use crate::ids::{TemplateId, WorkspaceId};
use crate::time::Timestamp;

/// Reads of templates. What is called a head is a template without its bodies, which may be long
/// ([`Template::head`]).
#[async_trait]
pub trait Templates {
    /// The current version of a template.
    async fn template(&self, workspace: WorkspaceId, id: TemplateId) -> Result<Option<Stored<Template>>, StoreError>;
    /// The head of the current version.
    async fn template_head(&self, workspace: WorkspaceId, id: TemplateId) -> Result<Option<Template>, StoreError>;
    /// A version, also of a template that was removed not long ago.
    async fn template_version(
        &self,
        workspace: WorkspaceId,
        id: TemplateId,
        version: u32,
    ) -> Result<Option<Template>, StoreError>;
    /// The heads of the workspace's templates, newest template first.
    async fn templates(
        &self,
        workspace: WorkspaceId,
        channel: Option<Channel>,
        page: PageRequest,
    ) -> Result<Slice<Template>, StoreError>;
    /// The heads of a template's versions, newest first. The key of a version is its number in big-endian.
    async fn template_versions(
        &self,
        workspace: WorkspaceId,
        id: TemplateId,
        page: PageRequest,
    ) -> Result<Slice<Template>, StoreError>;
    /// Removes up to `limit` versions of templates that were removed before a time; answers how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_templates(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
