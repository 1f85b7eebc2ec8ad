//! One contact on its way through an automation.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::history::{RunStep, StepOutcome};
use crate::domain::message::hold::HoldReason;
use crate::ids::{AutomationId, ContactId, EventId, RunId, WorkspaceId};
use crate::time::Timestamp;

/// How long a run is kept after its end, with what it did.
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
    /// The version of it that the run finishes on.
    pub version: u32,
    /// Contact that goes through the automation in this run.
    pub contact_id: ContactId,
    /// Status of the run, such as waiting or completed.
    pub status: RunStatus,
    /// The node it stands at, the last one once it has ended; `None` before the first.
    pub node_id: Option<String>,
    /// When it goes on by itself: now, at the end of a wait; `None` when something else has to happen, and when it ended.
    pub due_at: Option<Timestamp>,
    /// When the contact entered: the acceptance time of the event that entered it.
    pub entered_at: Timestamp,
    /// When the node was reached that it stands at.
    pub arrived_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why it ended, where that is not the end of the graph.
    pub exit_reason: Option<String>,
    /// How often it arrived at a node.
    pub steps: u32,
    /// How many automations caused one another up to this run; 1 when it was caused from outside.
    pub depth: u8,
    /// Values of `event` in the run: the properties of the event that started it, or the variables of the call.
    pub event: Map<String, Value>,
    /// The event that entered it, which conditions do not count.
    pub entry_event: Option<EventId>,
    /// What the rule of re-entry goes by besides the contact: the value at `re_entry_key`, as JSON.
    pub key: Option<String>,
    /// What it keeps at its node beside the time: see [`Held`].
    pub held: Option<Held>,
}

impl Run {
    /// Whether this is no run but an entry that was refused: it never came to a node.
    pub fn is_refused(&self) -> bool {
        self.status == RunStatus::Failed && self.node_id.is_none()
    }

    /// Ends the run at a moment, where it stands; the step that says so.
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

    /// Ends the run while it is not being walked; the steps that say so. One that has not come to its first node begins
    /// its history with its entry all the same.
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

/// What a run keeps of the node that it waits at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// A call of a web address is under way; its job brings the run on.
    Calling,
    /// The call has ended, and the run is due.
    Called(CallEnd),
    /// A send waits.
    Sending {
        /// For the end of quiet hours, or for a free place under the cap.
        reason: HoldReason,
        /// Since when it does for this reason.
        since: Timestamp,
    },
}

/// What a call of a web address came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// It was answered with this status, of which 2xx is success.
    Answered(u16),
    /// No try brought an answer; the last one's fault, in the words of contract section 15.3.
    Failed(String),
    /// What was to be sent could not be made.
    Broken(String),
}

impl CallEnd {
    /// True if the call was answered with a status from 200 to 299.
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
    /// It reached an end of the graph, or the goal.
    Completed,
    /// It was ended before.
    Exited,
    /// It could not go on, or was refused.
    Failed,
}

impl RunStatus {
    /// All of them, in the order of the stored numbers.
    pub const ALL: [Self; 5] = [Self::Active, Self::Waiting, Self::Completed, Self::Exited, Self::Failed];

    /// Whether the run has not ended.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Active | Self::Waiting)
    }
}

/// What is known of the entries of a contact into an automation, by the value of the re-entry key.
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
    /// How many of its runs are open. Follows from the runs: what a write says here is not kept.
    pub open: u32,
}
