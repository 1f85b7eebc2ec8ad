//! What a run did and why (contract section 13.4, "History and simulation").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::time::Timestamp;

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStep {
    /// The moment that the step counts as, which the server may come to later.
    pub at: Timestamp,
    /// At which node; `None` for the entry.
    pub node_id: Option<String>,
    /// Outcome of the step, such as sent, skipped or waiting.
    pub outcome: StepOutcome,
    /// The branch that was taken.
    pub branch: Option<String>,
    /// Why, where the outcome leaves that open.
    pub reason: Option<String>,
    /// More, by kind of node; empty where there is nothing to say.
    pub detail: Map<String, Value>,
}

/// Outcome of one step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum StepOutcome {
    Entered,
    Refused,
    Sent,
    Skipped,
    Waiting,
    Continued,
    Branched,
    Changed,
    Called,
    Completed,
    Exited,
    Failed,
}

impl StepOutcome {
    /// All of them, in the order of the stored numbers.
    pub const ALL: [Self; 12] = [
        Self::Entered,
        Self::Refused,
        Self::Sent,
        Self::Skipped,
        Self::Waiting,
        Self::Continued,
        Self::Branched,
        Self::Changed,
        Self::Called,
        Self::Completed,
        Self::Exited,
        Self::Failed,
    ];
}
