//! Holds: reasons why a message is not attempted yet.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Reason why a message is not attempted yet, and the end of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Reason for which the message is held, such as quiet hours.
    pub reason: HoldReason,
    /// When the message is checked again; `None` until somebody acts.
    pub until: Option<Timestamp>,
    /// When it was first held for this reason.
    pub since: Timestamp,
}

impl Hold {
    /// Returns the time until the moment that a message is scheduled for; `None` if that has come, or the message waits
    /// for something else.
    pub fn scheduled_in(self, now: Timestamp) -> Option<Duration> {
        let until = self.until.filter(|until| self.reason == HoldReason::Scheduled && *until > now)?;
        u64::try_from(until.as_millis() - now.as_millis()).ok().map(Duration::from_millis)
    }
}

/// Reason why a message waits (contract section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// The message waits for its time, `send_at`.
    Scheduled,
    /// The message waits for the wall-clock time in the recipient's zone.
    ByTimezone,
    /// The message waits for the end of the quiet hours.
    QuietHours,
    /// The message waits until the frequency cap allows it.
    FrequencyCap,
    /// The message waits for its turn, under the rate limit of the campaign or the limits of the recipient's domain.
    DomainPace,
    /// The campaign is paused, or the part of the queue is suspended, until somebody resumes it.
    Paused,
    /// The server sends nothing until somebody resumes it.
    Held,
    /// The addresses that the message may leave from are warming up, and have sent what they may for now.
    WarmingUp,
    /// Sending is braked, because the recipient's provider wants less mail or none at the moment.
    Braked,
    /// No live node has an address that the message may leave from.
    NoSource,
}

impl HoldReason {
    /// All of them, in the order of the stored numbers.
    pub const ALL: [Self; 10] = [
        Self::Scheduled,
        Self::ByTimezone,
        Self::QuietHours,
        Self::FrequencyCap,
        Self::DomainPace,
        Self::Paused,
        Self::Held,
        Self::WarmingUp,
        Self::Braked,
        Self::NoSource,
    ];

    /// Returns true for the reasons that come from the paths of email.
    pub const fn is_of_path(self) -> bool {
        matches!(self, Self::WarmingUp | Self::Braked | Self::NoSource)
    }
}
