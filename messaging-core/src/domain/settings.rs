//! A workspace's settings of one channel, as stored.
//!
//! Contract section 16. Secrets inside `config` are sealed before they get here by the vault.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::channel::Channel;
use crate::ids::WorkspaceId;

/// Which provider carries a channel, and with what settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChannelSettings {
    /// Workspace that the settings are for.
    pub workspace_id: WorkspaceId,
    /// The channel.
    pub channel: Channel,
    /// The provider's name.
    pub provider: String,
    /// Its settings, secrets sealed.
    pub config: Map<String, Value>,
}
