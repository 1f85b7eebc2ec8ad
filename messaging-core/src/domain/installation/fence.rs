//! The fence of an installation: a fenced one accepts requests, but sends nothing.
//!
//! Contract section 22. A server that detects that its database is a copy does not know what the other one has sent
//! since the copy was taken, so it waits for a person who does.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Meaning of a fence, for readers of a log, a terminal or a check.
pub const MEANING: &str = "nothing is sent: the database is a copy (restored, copied, or an older one put back), and nobody knows what was sent \
     since it was taken";

/// Fence of an installation, with its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// When the copy was restored, or detected.
    pub since: Timestamp,
    /// Action that is under way.
    pub state: FenceState,
}

/// Action that ends a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FenceState {
    /// None: the fence waits for `admin resume`.
    Held,
    /// Waiting messages are being cancelled; then the fence ends.
    Cancelling,
}

impl FenceState {
    /// Returns advice that names the command which ends the fence.
    pub const fn cure(self) -> &'static str {
        match self {
            Self::Held => {
                "nobody knows what was sent since the copy was taken: run `messaging admin resume --queued cancel` to \
                 cancel what waits, or `--queued send` to send it"
            }
            Self::Cancelling => "waiting messages are being cancelled; then the server sends again by itself",
        }
    }
}

impl Fence {
    /// Returns a fence that waits for `admin resume`.
    pub const fn held(since: Timestamp) -> Self {
        Self { since, state: FenceState::Held }
    }

    /// Returns the fence while waiting messages are being cancelled.
    pub const fn cancelling(self) -> Self {
        Self { state: FenceState::Cancelling, ..self }
    }

    /// Returns the text form, which stores keep: `held 1767312000000`, with milliseconds since 1970.
    pub fn to_text(self) -> String {
        let word = match self.state {
            FenceState::Held => "held",
            FenceState::Cancelling => "cancelling",
        };
        format!("{word} {}", self.since.as_millis())
    }

    /// Parses the text form. A text of another form is a fence too: better that nothing leaves than that everything
    /// leaves twice.
    pub fn parse(text: &str) -> Self {
        let (word, since) = text.split_once(' ').unwrap_or((text, "0"));
        let fence = Self::held(Timestamp::from_millis(since.parse().unwrap_or(0)));
        if word == "cancelling" { fence.cancelling() } else { fence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_round_trip_and_other_texts_are_fences_as_well() {
        let held = Fence::held(Timestamp::from_millis(1_700_000_000_000));
        for fence in [held, held.cancelling()] {
            assert_eq!(Fence::parse(&fence.to_text()), fence);
        }
        for text in ["", "held", "open 5", "held x"] {
            assert_eq!(Fence::parse(text).state, FenceState::Held, "{text}");
        }
    }
}
