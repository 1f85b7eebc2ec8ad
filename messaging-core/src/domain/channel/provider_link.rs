//! Which message a provider means by its own name for it.

use std::time::Duration;

use crate::domain::channel::Channel;
use crate::ids::{MessageId, WorkspaceId};
use crate::time::Timestamp;

/// How long a provider's name for a message is remembered: receipts are repeated for a week at most.
pub const KEPT: Duration = Duration::from_hours(30 * 24);

/// A message and its name at the provider that took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderLink {
    /// Workspace that owns the account at the provider.
    pub workspace_id: WorkspaceId,
    /// The channel of the account.
    pub channel: Channel,
    /// The provider.
    pub provider: String,
    /// Its name for the message, unique within the account.
    pub provider_message_id: String,
    /// The message.
    pub message_id: MessageId,
    /// When it was sent.
    pub at: Timestamp,
}
