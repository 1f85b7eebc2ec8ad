//! Messages and their events.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError};
use crate::domain::channel::Channel;
use crate::domain::mail::link_token::CopyKey;
use crate::domain::message::{EventKind, Message, MessageContent, MessageEvent, MessageFilter};
use crate::ids::{MessageId, WorkspaceId};
use crate::time::Timestamp;

/// Reads of messages.
///
/// ```
/// use messaging_core::domain::message::MessageFilter;
/// use messaging_core::ids::WorkspaceId;
/// use messaging_core::ports::store::{Messages, PageRequest, StoreError};
///
/// /// A listing is read in slices: one may be short, even empty, and still have a rest.
/// async fn count(store: &dyn Messages, workspace: WorkspaceId) -> Result<usize, StoreError> {
///     let (mut count, mut after) = (0, None);
///     loop {
///         let page = PageRequest { after, limit: 100 };
///         let slice = store.messages(workspace, &MessageFilter::default(), page).await?;
///         count += slice.items.len();
///         after = slice.next;
///         if after.is_none() {
///             return Ok(count);
///         }
///     }
/// }
/// ```
#[async_trait]
pub trait Messages {
    /// A message.
    async fn message(&self, workspace: WorkspaceId, id: MessageId) -> Result<Option<Message>, StoreError>;
    /// A message with the length of its content in bytes, without reading that; `None` once it was removed.
    async fn message_with_length(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
    ) -> Result<Option<(Message, Option<u64>)>, StoreError>;
    /// A message with its content; the content is `None` once it was removed.
    async fn message_with_content(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
    ) -> Result<Option<(Message, Option<MessageContent>)>, StoreError>;
    /// The events of a message ordered by time, at most `limit`.
    async fn message_events(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
        limit: usize,
    ) -> Result<Vec<MessageEvent>, StoreError>;
    /// The events of one kind of a message ordered by time, at most `limit`.
    async fn message_events_of_kind(
        &self,
        workspace: WorkspaceId,
        id: MessageId,
        kind: EventKind,
        limit: usize,
    ) -> Result<Vec<MessageEvent>, StoreError>;
    /// Messages that match, newest first.
    async fn messages(
        &self,
        workspace: WorkspaceId,
        filter: &MessageFilter,
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError>;
    /// Messages whose recipient is one of the addresses (normalised), newest first.
    async fn messages_to(
        &self,
        workspace: WorkspaceId,
        addresses: &[(Channel, String)],
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError>;
    /// Messages that copy somebody, as [`Write::ListCopies`](crate::changes::Write::ListCopies) noted; at most
    /// `limit`, in no particular order.
    async fn messages_copying(
        &self,
        workspace: WorkspaceId,
        key: CopyKey,
        limit: usize,
    ) -> Result<Vec<MessageId>, StoreError>;
    /// Removes the content of up to `limit` settled messages accepted before a time; answers how many.
    ///
    /// A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_contents(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
