//! What changes of messages, their copies and their events.

use serde_json::{Map, Value};

use crate::domain::attempt::Dialog;
use crate::domain::message::{Capture, MessageContent, MessageStatus};
use crate::ids::{ContactId, EventId, MessageId, WorkspaceId};
use crate::time::Timestamp;

/// A change of a message's narrow row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveMessage {
    /// The workspace that owns it.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// The revision that was read; any other is a conflict.
    pub revision: u32,
    /// The new state.
    pub status: MessageStatus,
    /// The time of the change.
    pub at: Timestamp,
}

/// Names an event in the log of its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEvent {
    /// The workspace that owns it.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// When it happened.
    pub at: Timestamp,
    /// The event.
    pub event_id: EventId,
}

/// A change of the contact that a message is attributed to; its revision stays. Nothing happens when it
/// is not attributed to `from` any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeMessage {
    /// The workspace that owns it.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// The contact it is attributed to.
    pub from: ContactId,
    /// The contact it shall be attributed to.
    pub to: ContactId,
}

/// What is left of a message whose recipient was erased. It loses address, contact, metadata, content,
/// attempts and capture.
#[derive(Debug, Clone, PartialEq)]
pub struct RedactMessage {
    /// Workspace of the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// The revision that was read; any other is a conflict.
    pub revision: u32,
    /// The state it is in from now on.
    pub status: MessageStatus,
    /// When it came into that state.
    pub updated_at: Timestamp,
    /// The tags it keeps.
    pub tags: Vec<String>,
    /// The events that change: when, which, and what is left of their meta.
    pub events: Vec<(Timestamp, EventId, Map<String, Value>)>,
}

/// What changes of a message when somebody who was copied on it is erased.
#[derive(Debug, Clone, PartialEq)]
pub struct EraseCopy {
    /// Workspace that owns the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// The revision that was read; any other is a conflict.
    pub revision: u32,
    /// The tags it keeps.
    pub tags: Vec<String>,
    /// The metadata it keeps.
    pub metadata: Map<String, Value>,
    /// Replaces the stored request, unless that stays or is not kept any more.
    pub content: Option<MessageContent>,
    /// The events that change: when, which, and what is left of their meta.
    pub events: Vec<(Timestamp, EventId, Map<String, Value>)>,
    /// The attempts that change, and what is left of what was said.
    pub attempts: Vec<(EventId, Dialog)>,
    /// Replaces what the sandbox captured, unless that stays or there is nothing.
    pub capture: Option<Capture>,
}
