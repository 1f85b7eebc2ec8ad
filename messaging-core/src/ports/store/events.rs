//! The events of all messages of a workspace, one after another.

use async_trait::async_trait;

use super::{StoreCursor, StoreError};
use crate::domain::message::{Message, MessageEvent};
use crate::ids::{EventId, MessageId, WorkspaceId};
use crate::time::Timestamp;

/// A place in the log of a workspace's events.
pub type LogPosition = StoreCursor;

/// Reads of the log, which holds the events that [`LogEvent`](crate::changes::LogEvent) entered.
///
/// The order is that of the commits: once something was read at a position, nothing appears before it any
/// more, also when several processes commit at once.
///
/// ```
/// use messaging_core::ids::WorkspaceId;
/// use messaging_core::ports::store::{EventLog, LogPosition, StoreError};
///
/// /// Prints what was logged after a position, and answers the one to go on from.
/// async fn follow(
///     store: &dyn EventLog,
///     workspace: WorkspaceId,
///     mut after: Option<LogPosition>,
/// ) -> Result<Option<LogPosition>, StoreError> {
///     for (position, event, message) in store.events_after(workspace, after, 100).await? {
///         println!("{:?} of {}", event.kind, message.id);
///         after = Some(position);
///     }
///     Ok(after)
/// }
/// ```
#[async_trait]
pub trait EventLog {
    /// An event with its message.
    async fn event(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
        at: Timestamp,
        id: EventId,
    ) -> Result<Option<(MessageEvent, Message)>, StoreError>;
    /// Those of some events that are there, with their messages, in no order; one that is named twice comes twice.
    async fn events_among(
        &self,
        workspace: WorkspaceId,
        keys: &[(MessageId, Timestamp, EventId)],
    ) -> Result<Vec<(MessageEvent, Message)>, StoreError>;
    /// The events after a position with their messages, at most `limit`, each with its own position; `None` for
    /// the oldest that are kept.
    async fn events_after(
        &self,
        workspace: WorkspaceId,
        after: Option<LogPosition>,
        limit: usize,
    ) -> Result<Vec<(LogPosition, MessageEvent, Message)>, StoreError>;
    /// A position before everything that is committed from now on, and that happens at `time` or later.
    async fn log_position(&self, workspace: WorkspaceId, time: Timestamp) -> Result<LogPosition, StoreError>;
    /// Until when the events of a workspace are wanted in the log.
    async fn followed_until(&self, workspace: WorkspaceId) -> Result<Option<Timestamp>, StoreError>;
    /// Removes up to `limit` entries of events that happened before a time; answers how many. The events stay.
    async fn forget_log(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
