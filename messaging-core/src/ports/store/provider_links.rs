//! Ids that providers give to sent messages and to inbound events.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::channel::Channel;
use crate::domain::channel::inbound_message::InboundKey;
use crate::domain::channel::provider_link::ProviderLink;
use crate::ids::{MessageId, WorkspaceId};

/// Reads of providers' ids of messages.
#[async_trait]
pub trait ProviderLinks {
    /// Returns the message that a provider means; `None` if there is no such id, or it is older than
    /// [`KEPT`](crate::domain::channel::provider_link::KEPT) and was deleted.
    async fn message_of_provider(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        provider_message_id: &str,
    ) -> Result<Option<MessageId>, StoreError>;
    /// Returns the messages that a provider may mean by any of these ids, each once, in no order.
    async fn messages_of_provider(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        names: &[String],
    ) -> Result<Vec<MessageId>, StoreError>;
    /// Returns the newest of the providers' ids for a message; `None` if no provider gave one, or it was deleted.
    async fn provider_of_message(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
    ) -> Result<Option<ProviderLink>, StoreError>;
    /// True if an inbound event has had its effect already; see
    /// [`Write::NoteInbound`](crate::changes::Write::NoteInbound).
    async fn is_inbound_noted(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        key: InboundKey,
    ) -> Result<bool, StoreError>;
}
