//! Images of workspaces.

use async_trait::async_trait;
use bytes::Bytes;

use super::{PageRequest, Slice, StoreError};
use crate::domain::image::{Image, ImageUsage};
use crate::ids::{ImageId, TemplateId, WorkspaceId};

/// Reads of images. The octets of one never change.
#[async_trait]
pub trait Images {
    /// An image.
    async fn image(&self, workspace: WorkspaceId, id: ImageId) -> Result<Option<Image>, StoreError>;
    /// The image with this SHA-256 digest, in lower-case hexadecimal digits.
    async fn image_by_digest(&self, workspace: WorkspaceId, sha256: &str) -> Result<Option<Image>, StoreError>;
    /// The images of the workspace, newest first.
    async fn images(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Image>, StoreError>;
    /// The octets of an image.
    async fn image_bytes(&self, workspace: WorkspaceId, id: ImageId) -> Result<Option<Bytes>, StoreError>;
    /// Room that the images of the workspace take.
    async fn image_usage(&self, workspace: WorkspaceId) -> Result<ImageUsage, StoreError>;
    /// The templates whose current version has a text somewhere, by which an address of an image is found; at most
    /// `limit`, newest first. The text has no character that JSON escapes.
    async fn templates_with_text(
        &self,
        workspace: WorkspaceId,
        text: &str,
        limit: usize,
    ) -> Result<Vec<TemplateId>, StoreError>;
}
