//! Port for reading the settings of channels.

use async_trait::async_trait;

use super::{StoreError, Stored};
use crate::domain::channel::Channel;
use crate::domain::channel::settings::ChannelSettings;
use crate::ids::WorkspaceId;

/// Reads of channel settings.
#[async_trait]
pub trait Channels {
    /// The settings of one channel; `None` if the workspace has set none.
    async fn channel(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
    ) -> Result<Option<Stored<ChannelSettings>>, StoreError>;
    /// The settings of all channels for which the workspace has set any, in no particular order.
    async fn channels(&self, workspace: WorkspaceId) -> Result<Vec<ChannelSettings>, StoreError>;
}
