//! An automation as the API shows it.

use messaging_core::domain::automation::{Automation, AutomationPause, AutomationStatus, Design, ReEntry};
use messaging_core::ids::AutomationId;
use messaging_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An automation as shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Automation")]
#[non_exhaustive]
pub struct AutomationView {
    /// Id of the automation.
    pub id: AutomationId,
    /// Name of the automation.
    pub name: String,
    /// Status of the automation; contacts enter it and proceed in it while it is active.
    pub status: AutomationStatus,
    /// Reason of a pause: `user`, or `restored` where the database came from a copy; else null.
    pub pause_reason: Option<AutomationPause>,
    /// Trigger that makes contacts enter, as it was sent.
    pub trigger: Map<String, Value>,
    /// Rule for entering again.
    pub re_entry: ReEntry,
    /// Path in the event: the rule of re-entry holds for each pair of a contact and the value there.
    pub re_entry_key: Option<String>,
    /// Counts the changes of trigger, graph, `re_entry` and `re_entry_key`, from 1.
    pub version: u32,
    /// Graph of the nodes that a contact passes, as it was sent.
    pub graph: Map<String, Value>,
    /// When it was last activated.
    pub activated_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// An automation in a listing: all but its graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AutomationSummary {
    /// Id of the automation.
    pub id: AutomationId,
    /// Name of the automation.
    pub name: String,
    /// Status of the automation; contacts enter it and proceed in it while it is active.
    pub status: AutomationStatus,
    /// Reason of a pause: `user`, or `restored` where the database came from a copy; else null.
    pub pause_reason: Option<AutomationPause>,
    /// Trigger that makes contacts enter, as it was sent.
    pub trigger: Map<String, Value>,
    /// Rule for entering again.
    pub re_entry: ReEntry,
    /// Path in the event: the rule of re-entry holds for each pair of a contact and the value there.
    pub re_entry_key: Option<String>,
    /// Counts the changes of trigger, graph, `re_entry` and `re_entry_key`, from 1.
    pub version: u32,
    /// When it was last activated.
    pub activated_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl AutomationView {
    pub(super) fn of(automation: Automation) -> Self {
        let Automation {
            id, name, status, pause_reason, design, version, activated_at, created_at, updated_at, ..
        } = automation;
        let Design { trigger, graph, re_entry, re_entry_key, masked: _ } = design;
        Self {
            id,
            name,
            status,
            pause_reason,
            trigger,
            re_entry,
            re_entry_key,
            version,
            graph,
            activated_at,
            created_at,
            updated_at,
        }
    }
}

impl AutomationSummary {
    pub(super) fn of(automation: Automation) -> Self {
        let AutomationView {
            id,
            name,
            status,
            pause_reason,
            trigger,
            re_entry,
            re_entry_key,
            version,
            graph: _,
            activated_at,
            created_at,
            updated_at,
        } = AutomationView::of(automation);
        Self {
            id,
            name,
            status,
            pause_reason,
            trigger,
            re_entry,
            re_entry_key,
            version,
            activated_at,
            created_at,
            updated_at,
        }
    }
}
