//! Runs: each is one contact on its way through an automation.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::history::{RunStep, StepOutcome};
use crate::domain::message::hold::HoldReason;
use crate::ids::{AutomationId, ContactId, EventId, RunId, WorkspaceId};
use crate::time::Timestamp;

/// Time that a run and its history are kept after its end.
pub const KEPT_AFTER_END: Duration = Duration::from_hours(30 * 24);

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub automation_id: AutomationId,
    /// Version of the automation that the run finishes on.
    pub version: u32,
    /// Contact that goes through the automation in this run.
    pub contact_id: ContactId,
    /// Status of the run, such as waiting or completed.
    pub status: RunStatus,
    /// Id of the node that the run stands at, the last one once it has ended; `None` before the first.
    pub node_id: Option<String>,
    /// When the run continues by itself: now, or at the end of a wait; `None` while it waits for something else, and
    /// once it has ended.
    pub due_at: Option<Timestamp>,
    /// When the contact entered: the acceptance time of the event that entered it.
    pub entered_at: Timestamp,
    /// When the run reached the node that it stands at.
    pub arrived_at: Timestamp,
    /// When the run ended.
    pub ended_at: Option<Timestamp>,
    /// Reason of the end; `None` while the run is open, and if it reached an end of the graph.
    pub exit_reason: Option<String>,
    /// Number of arrivals at nodes.
    pub steps: u32,
    /// Number of automations that caused one another up to this run; 1 when the cause came from outside.
    pub depth: u8,
    /// Values of `event` in the run: the properties of the event that started it, or the variables of the call.
    pub event: Map<String, Value>,
    /// Event by which the contact entered; conditions do not count it.
    pub entry_event: Option<EventId>,
    /// Value at `re_entry_key` as JSON; the re-entry rule holds for each pair of contact and this value.
    pub key: Option<String>,
    /// State kept at the present node besides the time: see [`Held`].
    pub held: Option<Held>,
}

impl Run {
    /// Returns true if this is an entry that was refused instead of a run: it never came to a node.
    pub fn is_refused(&self) -> bool {
        self.status == RunStatus::Failed && self.node_id.is_none()
    }

    /// Ends the run at its present node and returns the step that says so.
    pub fn end(
        &mut self,
        status: RunStatus,
        reason: Option<String>,
        detail: Map<String, Value>,
        at: Timestamp,
    ) -> RunStep {
        self.status = status;
        self.due_at = None;
        self.held = None;
        self.ended_at = Some(at);
        self.exit_reason.clone_from(&reason);
        let outcome = match status {
            RunStatus::Completed => StepOutcome::Completed,
            RunStatus::Exited => StepOutcome::Exited,
            RunStatus::Active | RunStatus::Waiting | RunStatus::Failed => StepOutcome::Failed,
        };
        RunStep { at, node_id: self.node_id.clone(), outcome, branch: None, reason, detail }
    }

    /// Ends the run while it is not being walked and returns the steps that say so. The history of a run that has not
    /// come to its first node begins with its entry all the same.
    pub fn end_outside(
        &mut self,
        status: RunStatus,
        reason: &str,
        detail: Map<String, Value>,
        at: Timestamp,
    ) -> Vec<RunStep> {
        let entered = self.node_id.is_none().then(|| RunStep {
            at: self.entered_at,
            node_id: None,
            outcome: StepOutcome::Entered,
            branch: None,
            reason: None,
            detail: Map::new(),
        });
        entered.into_iter().chain([self.end(status, Some(reason.to_owned()), detail, at)]).collect()
    }
}

/// State that a run keeps while it waits at a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// A call of a web address is under way; its job brings the run on.
    Calling,
    /// The call has ended, and the run is due.
    Called(CallEnd),
    /// A send waits.
    Sending {
        /// Reason of the wait: quiet hours or the frequency cap.
        reason: HoldReason,
        /// When the wait for this reason began.
        since: Timestamp,
    },
}

/// Outcome of a call of a web address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// The call was answered with this status, of which 2xx is success.
    Answered(u16),
    /// No attempt was answered; the error of the last one, in the words of contract section 15.3.
    Failed(String),
    /// The request could not be made; the text gives the reason.
    Broken(String),
}

impl CallEnd {
    /// Returns true if the call was answered with a status from 200 to 299.
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Answered(200..=299))
    }
}

/// Status of a run of an automation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The run continues at its next turn.
    Active,
    /// The run waits for a time, an event or a call.
    Waiting,
    /// The run reached an end of the graph, or the goal.
    Completed,
    /// The run was ended before that.
    Exited,
    /// The run could not continue, or its entry was refused.
    Failed,
}

impl RunStatus {
    /// All of them, in the order of the stored numbers.
    pub const ALL: [Self; 5] = [Self::Active, Self::Waiting, Self::Completed, Self::Exited, Self::Failed];

    /// Returns true if the run has not ended.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Active | Self::Waiting)
    }
}

/// Entries of a contact into an automation with one value of the re-entry key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub automation_id: AutomationId,
    /// The contact.
    pub contact_id: ContactId,
    /// The value of the key as JSON; `None` without one.
    pub key: Option<String>,
    /// When it last entered.
    pub entered_at: Timestamp,
    /// Number of open runs. It is counted from the runs, so the value in a write is not kept.
    pub open: u32,
}
