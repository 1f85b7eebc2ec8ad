//! State of a channel's account or of a recipient's servers that keeps messages from being attempted.
//!
//! Contract section 4.2. An obstacle is no state of a message: an account that refuses us stops all messages that use
//! it, and ends for all of them at once.

use super::cure::{Cure, call};
use crate::domain::security::redaction::Redactor;
use crate::ids::WorkspaceId;
use crate::time::Timestamp;

/// Maximum number of characters of a peer's words that a sentence repeats.
const MAX_WORDS: usize = 200;

/// State that keeps a message from being attempted, whatever the message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Kind of obstacle.
    pub kind: ObstacleKind,
    /// Words of the peer that caused it, with addresses masked for the reader; `None` where nothing was said.
    pub words: Option<String>,
    /// Time of the next attempt; `None` if one is due or under way.
    pub until: Option<Timestamp>,
}

/// Kinds of obstacles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObstacleKind {
    /// The workspace is under deletion: none of its messages are sent.
    WorkspaceEnding,
    /// The provider or relay refuses the account or its settings: one message probes every five minutes.
    ChannelFailing,
    /// The provider asked for a pause of the whole account.
    ChannelThrottled,
    /// The provider said lately that it gets too many messages at a time: they leave one after another.
    ChannelSlowed,
    /// The recipient had as many messages as the provider allows for a time.
    RecipientThrottled,
    /// No mail server of the recipient's domain could be reached: one message probes every some seconds.
    DomainUnreachable,
}

impl ObstacleKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::WorkspaceEnding,
        Self::ChannelFailing,
        Self::ChannelThrottled,
        Self::ChannelSlowed,
        Self::RecipientThrottled,
        Self::DomainUnreachable,
    ];

    /// Returns the code of the explanation.
    pub const fn code(self) -> &'static str {
        match self {
            Self::WorkspaceEnding => "workspace_ending",
            Self::ChannelFailing => "channel_failing",
            Self::ChannelThrottled | Self::ChannelSlowed => "channel_throttled",
            Self::RecipientThrottled => "recipient_throttled",
            Self::DomainUnreachable => "domain_unreachable",
        }
    }

    /// Returns true if all messages on the channel wait.
    pub const fn is_of_channel(self) -> bool {
        matches!(self, Self::WorkspaceEnding | Self::ChannelFailing | Self::ChannelThrottled | Self::ChannelSlowed)
    }
}

/// Returns the words of a peer as a sentence repeats them, with a space before; empty if there are none.
pub(super) fn quoted(words: &str) -> String {
    let words = words.trim();
    if words.is_empty() {
        return String::new();
    }
    let mut shown: String = words.chars().take(MAX_WORDS).collect();
    if shown.len() < words.len() {
        shown.push('…');
    }
    format!(" (“{shown}”)")
}

impl Obstacle {
    /// Returns the obstacle with its words masked for a reader who may not see addresses.
    pub fn shown_to(self, redactor: Redactor) -> Self {
        Self { words: self.words.map(|words| redactor.text(words)), ..self }
    }

    /// Returns the obstacle as a sentence, without a full stop.
    pub fn sentence(&self) -> String {
        let (before, after) = match self.kind {
            ObstacleKind::WorkspaceEnding => {
                ("The workspace is under deletion", "; nothing is sent unless an owner restores it before its end")
            }
            ObstacleKind::ChannelFailing => (
                "The provider of the channel refuses the account or its settings",
                "; everything on the channel waits, and one message tries every five minutes",
            ),
            ObstacleKind::ChannelThrottled => {
                ("The provider of the channel asked for a pause", "; everything on the channel waits until then")
            }
            ObstacleKind::ChannelSlowed => (
                "The provider of the channel gets too many messages at a time",
                "; they leave one after another, as fast as it takes them",
            ),
            ObstacleKind::RecipientThrottled => {
                ("The recipient had as many messages as the provider allows at a time", "; the next one follows soon")
            }
            ObstacleKind::DomainUnreachable => (
                "No mail server of the recipient's domain can be reached",
                "; each message is tried again at its own time",
            ),
        };
        format!("{before}{}{after}", quoted(self.words.as_deref().unwrap_or_default()))
    }

    /// Returns the remedy that a member of the workspace has, if there is one.
    pub fn cure(&self, workspace: WorkspaceId) -> Option<Cure> {
        match self.kind {
            ObstacleKind::WorkspaceEnding => {
                let text = "Restore the workspace; what waits is sent then.";
                Some(call(text, "restoreWorkspace", format!("/workspaces/{workspace}/restore"), None))
            }
            ObstacleKind::ChannelFailing => {
                let text = "Correct the settings of the channel; they are tried at once when they are saved.";
                Some(call(text, "listChannels", format!("/workspaces/{workspace}/channels"), None))
            }
            _ => None,
        }
    }
}
