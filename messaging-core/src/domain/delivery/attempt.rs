//! What was said on the wire during an attempt: kept for whoever asks why a message did not arrive.
//!
//! `GET /messages/{id}/attempts`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{EventId, MessageId, WorkspaceId};
use crate::time::Timestamp;

/// Of a message only so many last attempts are kept.
pub const KEPT_ATTEMPTS: u32 = 50;

/// The most lines kept of one dialog.
pub const MAX_LINES: usize = 200;

/// The most characters kept of one line.
pub const MAX_LINE: usize = 512;

/// How an attempt at one peer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// At least one recipient was accepted.
    Delivered,
    /// Nobody was accepted, somebody is tried again.
    Deferred,
    /// Everybody was refused for good.
    Bounced,
    /// The content was sent and its reply lost.
    Ambiguous,
}

/// The dialog with one peer: commands and replies, never content or credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialog {
    /// The host that was talked to, or was to be.
    pub mx: Option<String>,
    /// Its address and port, `192.0.2.1:25`; `None` when no connection came about.
    pub remote_addr: Option<String>,
    /// The TLS version, `TLSv1.3`; `None` in plain text.
    pub tls: Option<String>,
    /// Outcome of the attempt at this peer.
    pub outcome: AttemptOutcome,
    /// Lines in order: `> ` before what we said, `< ` before what the peer said, `* ` before what
    /// happened otherwise. At most [`MAX_LINES`] of at most [`MAX_LINE`] characters.
    pub transcript: Vec<String>,
}

/// A dialog as it is kept with its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageAttempt {
    /// Its id; attempts of a message are ordered by it.
    pub id: EventId,
    /// Workspace of the message.
    pub workspace_id: WorkspaceId,
    /// The message.
    pub message_id: MessageId,
    /// Which attempt of the message; counts from 1. One attempt may talk to several peers.
    pub attempt: u32,
    /// When it ended.
    pub at: Timestamp,
    /// The provider that carried it; `None` in rows of versions that did not note it.
    pub provider: Option<String>,
    /// Record of the connection to one peer: its address, the commands and replies, and the outcome.
    pub dialog: Dialog,
}
