//! Holds: reasons why a message is not attempted yet.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Why a message is not attempted yet, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Reason for which the message is held, such as quiet hours.
    pub reason: HoldReason,
    /// When it is looked at again; `None` until somebody acts.
    pub until: Option<Timestamp>,
    /// When it was first held for this reason.
    pub since: Timestamp,
}

impl Hold {
    /// How long it is until the time that a message was scheduled for; `None` when that has come, or it waits for
    /// something else.
    pub fn scheduled_in(self, now: Timestamp) -> Option<Duration> {
        let until = self.until.filter(|until| self.reason == HoldReason::Scheduled && *until > now)?;
        u64::try_from(until.as_millis() - now.as_millis()).ok().map(Duration::from_millis)
    }
}

/// What a message waits for (contract section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// Its time, `send_at`.
    Scheduled,
    /// The wall-clock time in the recipient's zone.
    ByTimezone,
    /// The end of the quiet hours.
    QuietHours,
    /// A free place under the frequency cap.
    FrequencyCap,
    /// Its turn: the rate limit of the campaign, or what the recipient's domain takes.
    DomainPace,
    /// Somebody who lets the campaign, or a suspended part of the queue, go on.
    Paused,
    /// Somebody who lets the server send again.
    Held,
    /// The warm-up of the addresses that it may leave from: they have sent what they may for now.
    WarmingUp,
    /// The end of a brake, because the recipient's provider wants less or nothing at the moment.
    Braked,
    /// A node with an address that the message may leave from.
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

    /// True for the reasons that the paths of email give.
    pub const fn is_of_path(self) -> bool {
        matches!(self, Self::WarmingUp | Self::Braked | Self::NoSource)
    }
}
