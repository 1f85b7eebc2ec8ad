//! A workspace's settings of one channel, as stored.
//!
//! Contract section 16. Secrets inside `config` are sealed before they get here by the vault.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::channel::Channel;
use crate::domain::security::digest::Digest;
use crate::ids::{JobId, WorkspaceId};

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
    /// Whether the provider knows where to call, where we tell it ourselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<CallbackRegistration>,
}

/// How far telling a provider where to call has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallbackRegistration {
    /// The job that sees to it under these settings; that of earlier settings ends when it finds another one here.
    pub job: JobId,
    /// The digest of the address that the provider knows.
    pub address: Option<Digest>,
    /// Why it does not know the present one, in words for people.
    pub error: Option<String>,
}
