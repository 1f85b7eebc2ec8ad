//! Addresses of images, and what is answered there.

use bytes::Bytes;
use messaging_core::domain::image::Image;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::domain::mail::tracking;
use messaging_core::ids::{ImageId, WorkspaceId};
use messaging_core::ports::store::StoreError;

use crate::app::App;

/// Path below which images are served, at the root of the server.
const IMAGE_PATH: &str = "/i/";

impl App {
    /// The address of an image: on the host for links of the first of the workspace's domains with a tracking
    /// sub-domain, else on the server's host.
    pub(crate) async fn image_url(&self, workspace: WorkspaceId, id: ImageId) -> Result<String, StoreError> {
        let domains = self.sending_domains(workspace).await?;
        let public_url = &self.settings().public_url;
        let own = tracking::base(None, public_url);
        let base_of = |domain: &SendingDomain| tracking::base(Some(domain), public_url);
        let base = domains.iter().map(base_of).find(|base| *base != own).unwrap_or(own);
        Ok(format!("{base}{IMAGE_PATH}{}", self.link_key().image(workspace, id)))
    }

    /// The paths of an image, one for each secret key: templates have the one of their time.
    pub(crate) fn image_paths(&self, workspace: WorkspaceId, id: ImageId) -> Vec<String> {
        self.link_key().each().map(|key| format!("{IMAGE_PATH}{}", key.image(workspace, id))).collect()
    }

    /// The image that a token names; `None` of a token that is none of ours, and once the image was deleted.
    pub async fn image_of_token(&self, token: &str) -> Result<Option<Image>, StoreError> {
        let Some((workspace, id)) = self.link_key().read_image(token) else { return Ok(None) };
        self.store().image(workspace, id).await
    }

    /// The octets of an image.
    pub async fn image_bytes(&self, image: &Image) -> Result<Option<Bytes>, StoreError> {
        self.store().image_bytes(image.workspace_id, image.id).await
    }
}
