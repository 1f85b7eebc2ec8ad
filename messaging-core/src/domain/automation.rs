//! Automations: graphs of steps that contacts go through, each at its own pace.
//!
//! Contract section 13. The stored row is defined here. [`mod@parse`] builds the typed trees [`trigger`] and [`graph`]
//! from the JSON that was sent. [`run`] is one contact's way through an automation, [`history`] its steps with their
//! reasons, [`note`] something that happened to a contact and that an automation has to hear of, [`subscription`] the
//! events that a design listens for and the objects that it needs. [`input`] and [`simulation`] are request bodies,
//! [`state`] has the permitted changes of state. The rules are pure functions: [`check`] finds the faults that keep an
//! automation from being active, [`entering`] decides who enters, [`step`] how a run continues, [`time`] when.

pub mod check;
pub mod entering;
mod fits;
pub mod graph;
pub mod history;
pub mod input;
pub mod note;
pub mod parse;
pub mod run;
pub mod simulation;
pub mod state;
pub mod step;
pub mod subscription;
pub mod time;
pub mod trigger;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{AutomationId, WorkspaceId};
use crate::time::Timestamp;

/// Number of jobs that work on the runs of an automation, each for a share of its contacts.
pub const SHARDS: u8 = 4;
/// Maximum number of nodes of a graph.
pub const MAX_NODES: usize = 200;
/// Maximum number of arrivals at nodes in one run; the next arrival fails the run.
pub const MAX_STEPS: u32 = 1000;
/// Maximum number of automations that may cause one another in a row.
pub const MAX_DEPTH: u8 = 8;
/// Maximum number of entries of a contact into one automation within 24 hours.
pub const MAX_ENTRIES_A_DAY: u32 = 100;

/// An automation as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Automation {
    /// Its id.
    pub id: AutomationId,
    /// The workspace that owns it.
    pub workspace_id: WorkspaceId,
    /// Its name; several automations may have one.
    pub name: String,
    /// Status: draft, active or paused.
    pub status: AutomationStatus,
    /// Reason of a pause; `None` unless it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<AutomationPause>,
    /// Current trigger, graph and re-entry rule; a run finishes on the version that it began with.
    #[serde(flatten)]
    pub design: Design,
    /// Number of the current version of the design, counted from 1.
    pub version: u32,
    /// When the automation was last activated.
    pub activated_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Trigger, graph and re-entry rule of an automation: the part of it that has versions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Trigger by which contacts enter, as it was sent; `{}` in a draft that has none yet.
    pub trigger: Map<String, Value>,
    /// Graph of steps, as it was sent; `{}` in a draft that has none yet.
    pub graph: Map<String, Value>,
    /// Rule for contacts that have entered before.
    pub re_entry: ReEntry,
    /// Path in the event, `event.…`; the re-entry rule then holds for each pair of contact and value at this path.
    pub re_entry_key: Option<String>,
    /// True if the last editor of the design may not see addresses: the contact's are then masked in what the
    /// automation writes to contacts and sends to web addresses (contract section 2.4). Messages have them in clear.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}

/// A version of an automation, which never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AutomationVersion {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The automation.
    pub automation_id: AutomationId,
    /// Number of the version, counted from 1.
    pub version: u32,
    /// Design of this version: trigger, graph and rule of re-entry.
    pub design: Design,
}

/// Status of an automation, which decides whether contacts enter it and continue in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AutomationStatus {
    /// The automation is being written.
    Draft,
    /// Contacts enter and go on.
    Active,
    /// No contact enters, and those inside stay at their nodes.
    Paused,
}

impl AutomationStatus {
    /// All of them, in the order of the stored numbers.
    pub const ALL: [Self; 3] = [Self::Draft, Self::Active, Self::Paused];
}

/// Reason of a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AutomationPause {
    /// Somebody paused the automation.
    User,
    /// The automation was active in a database that was restored from a copy; it continues once somebody activates it.
    Restored,
}

/// Rule that decides whether a contact may enter an automation again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReEntry {
    /// Once only.
    #[default]
    Never,
    /// Again once the earlier run has ended.
    AfterExit,
    /// At any time, also during an earlier run.
    Always,
}
