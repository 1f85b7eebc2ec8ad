//! An automation: a graph that contacts go through, each at its own time.
//!
//! Contract section 13. The row is here; beside it: [`trigger`] says what enters a contact, [`graph`] what happens then,
//! both as typed trees that [`mod@parse`] makes of what was sent, [`run`] is one contact on its way, [`note`] what
//! happened to a contact that an automation has to hear of, [`history`] what a run did and why, [`subscription`] what a
//! design listens for and what it needs. [`input`] is what is sent, [`simulation`] what is sent to try one out, and
//! [`state`] says which move is possible from where. The rules are values in, values out: [`check`] says what an
//! automation needs to be active, [`entering`] who enters, [`step`] how a run goes on, [`time`] when.

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

/// Runs of an automation are worked on in so many jobs, each for a share of the contacts.
pub const SHARDS: u8 = 4;
/// Nodes of a graph.
pub const MAX_NODES: usize = 200;
/// Arrivals at nodes of one run; the next one fails it.
pub const MAX_STEPS: u32 = 1000;
/// How many automations may cause one another in a row.
pub const MAX_DEPTH: u8 = 8;
/// Entries of a contact into one automation within 24 hours.
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
    /// Whether contacts enter it and go on in it.
    pub status: AutomationStatus,
    /// Reason of a pause; `None` unless it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<AutomationPause>,
    /// What contacts go through at the moment; runs finish on the version that they entered with.
    #[serde(flatten)]
    pub design: Design,
    /// Counts the changes of the design, from 1.
    pub version: u32,
    /// When it was last activated.
    pub activated_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What of an automation makes a version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Trigger by which contacts enter, as it was sent; `{}` in a draft that has none yet.
    pub trigger: Map<String, Value>,
    /// Graph of steps, as it was sent; `{}` in a draft that has none yet.
    pub graph: Map<String, Value>,
    /// Whether a contact may enter again.
    pub re_entry: ReEntry,
    /// A path in the event, `event.…`: the rule then holds for each contact and value there.
    pub re_entry_key: Option<String>,
    /// True where whoever wrote it may not see addresses: what it writes to contacts and web addresses has the contact's
    /// masked (contract section 2.4). Messages have them in clear.
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

/// Whether contacts enter an automation and go on in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AutomationStatus {
    /// It is being written.
    Draft,
    /// Contacts enter and go on.
    Active,
    /// Nobody enters, and those who are in it stay where they are.
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
    /// Somebody paused it.
    User,
    /// It was active in a database that came from a copy; it goes on once somebody activates it.
    Restored,
}

/// Whether a contact may enter an automation again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReEntry {
    /// Once only.
    #[default]
    Never,
    /// Again once the earlier run has ended.
    AfterExit,
    /// At any time, also while it is in it.
    Always,
}
