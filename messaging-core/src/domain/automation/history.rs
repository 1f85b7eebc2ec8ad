//! Steps of a run and their reasons (contract section 13.4, "History and simulation").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::time::Timestamp;

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStep {
    /// Moment as of which the step counts; the server may have done it later.
    pub at: Timestamp,
    /// Id of the node; `None` for the entry.
    pub node_id: Option<String>,
    /// Outcome of the step, such as sent, skipped or waiting.
    pub outcome: StepOutcome,
    /// The branch that was taken.
    pub branch: Option<String>,
    /// Reason, if the outcome alone does not tell it.
    pub reason: Option<String>,
    /// Details by kind of node; empty where there are none.
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
