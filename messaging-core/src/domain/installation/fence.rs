//! Whether an installation is fenced: it takes requests, and nothing leaves it.
//!
//! Contract section 22. A server that finds itself on a copy of a database does not know what the other one has sent
//! since the copy was taken, so it waits for a person who does.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// What a fence means, for whoever reads a log, a terminal or a check.
pub const MEANING: &str = "nothing is sent: the database is a copy (restored, copied, or an older one put back), and nobody knows what was sent \
     since it was taken";

/// Why nothing leaves, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// When the copy was restored, or found to be one.
    pub since: Timestamp,
    /// What is being done about it.
    pub state: FenceState,
}

/// What is being done about a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FenceState {
    /// Nothing: it waits for `admin resume`.
    Held,
    /// What waits is being cancelled; then it ends.
    Cancelling,
}

impl FenceState {
    /// Advice that names the command which ends the fence.
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
    /// A fence that waits for somebody.
    pub const fn held(since: Timestamp) -> Self {
        Self { since, state: FenceState::Held }
    }

    /// The same while what waits is being cancelled.
    pub const fn cancelling(self) -> Self {
        Self { state: FenceState::Cancelling, ..self }
    }

    /// The text form, which stores keep: `held 1767312000000`, with milliseconds since 1970.
    pub fn to_text(self) -> String {
        let word = match self.state {
            FenceState::Held => "held",
            FenceState::Cancelling => "cancelling",
        };
        format!("{word} {}", self.since.as_millis())
    }

    /// The fence of a text form. A text of another form is a fence too: better that nothing leaves than
    /// that everything leaves twice.
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
