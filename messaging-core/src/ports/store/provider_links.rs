//! Providers' names: for messages that we sent, and for what came in.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::channel::Channel;
use crate::domain::channel::inbound_message::InboundKey;
use crate::domain::channel::provider_link::ProviderLink;
use crate::ids::{MessageId, WorkspaceId};

/// Reads of providers' names for messages.
#[async_trait]
pub trait ProviderLinks {
    /// The message that a provider means; `None` when there is no such name, or it is older than
    /// [`KEPT`](crate::domain::channel::provider_link::KEPT) and was forgotten.
    async fn message_of_provider(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        provider_message_id: &str,
    ) -> Result<Option<MessageId>, StoreError>;
    /// The messages that a provider may mean by any of these names, each once, in no order.
    async fn messages_of_provider(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        names: &[String],
    ) -> Result<Vec<MessageId>, StoreError>;
    /// The newest of the providers' names for a message; `None` when no provider gave one, or it was forgotten.
    async fn provider_of_message(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
    ) -> Result<Option<ProviderLink>, StoreError>;
    /// Whether something that came in has had its effect already; see
    /// [`Write::NoteInbound`](crate::changes::Write::NoteInbound).
    async fn is_inbound_noted(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        key: InboundKey,
    ) -> Result<bool, StoreError>;
}
