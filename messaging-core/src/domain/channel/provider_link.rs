//! Links between messages and the ids that providers give them.

use std::time::Duration;

use crate::domain::channel::Channel;
use crate::ids::{MessageId, WorkspaceId};
use crate::time::Timestamp;

/// Retention of provider message ids, well above the week for which providers repeat delivery receipts at most.
pub const KEPT: Duration = Duration::from_hours(30 * 24);

/// A message and its id at the provider that accepted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderLink {
    /// Workspace that owns the account at the provider.
    pub workspace_id: WorkspaceId,
    /// The channel of the account.
    pub channel: Channel,
    /// The provider.
    pub provider: String,
    /// The provider's id of the message, unique within the account.
    pub provider_message_id: String,
    /// The message.
    pub message_id: MessageId,
    /// Time at which the message was sent.
    pub at: Timestamp,
}
