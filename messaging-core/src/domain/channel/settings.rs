//! A workspace's settings of one channel, as stored.
//!
//! Contract section 16. Secrets inside `config` were sealed by the vault.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::channel::Channel;
use crate::domain::security::digest::Digest;
use crate::ids::{JobId, WorkspaceId};

/// Provider of a channel, with its settings.
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
    /// Registration of the callback address with the provider, if this server makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<CallbackRegistration>,
}

/// State of registering the callback address with a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallbackRegistration {
    /// Job that registers the address under these settings; one of earlier settings ends when it finds another id here.
    pub job: JobId,
    /// Digest of the address that the provider has.
    pub address: Option<Digest>,
    /// Reason why the provider does not have the present address, in words for people.
    pub error: Option<String>,
}
