//! Request that tries an automation out (contract section 13.4, "Simulate").

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::input::AutomationPatch;
use super::{Design, ReEntry};
use crate::domain::audience::contact::input::ContactInput;
use crate::domain::audience::product_event::Properties;
use crate::domain::audience::product_event::input::{ContactReference, ProductEventInput};
use crate::domain::limits::MAX_BULK;
use crate::input::Input;
use crate::patch::{Patch, Replace};
use crate::time::Timestamp;
use crate::validate::{Setters, Validate};
use crate::violation::{FieldCode, Violations};

/// Maximum length of a simulation, in years of the calendar.
pub const MAX_YEARS: i64 = 5;
/// Time from sending to delivery of a message in a simulation.
pub const DELIVERED_AFTER: Duration = Duration::from_secs(1);

/// A contact's way through an automation, to be tried out: nothing of it happens.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SimulationInput {
    /// Trigger in place of the automation's.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    pub trigger: Replace<Map<String, Value>>,
    /// Graph in place of the automation's.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    pub graph: Replace<Map<String, Value>>,
    /// Rule for entering again, in place of the automation's.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub re_entry: Patch<ReEntry>,
    /// Path in the event whose value the rule of re-entry goes by, in place of the automation's.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub re_entry_key: Patch<String>,
    /// An imagined contact, with the members of `POST /contacts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(nested)]
    pub contact: Option<ContactInput>,
    /// A contact of the workspace, as it is now; its events before `at` count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<String>,
    /// At most 1000 things that happen to the contact, in any order. Those before `at` are history, those after `until`
    /// do not happen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[validate(length(max = MAX_BULK), nested)]
    pub events: Vec<SimulatedEvent>,
    /// When the automation becomes active. Now, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// When the simulation ends: later than `at`, at most five years.
    #[validate(required)]
    pub until: Option<Timestamp>,
}

/// Something that happens in a simulation: a product event (`name`), or an event of a message (`message`).
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SimulatedEvent {
    /// The product event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When the product event happens, and is accepted; `at` of the simulation if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<Timestamp>,
    /// Properties of the product event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<Properties>,
    /// Your own id of the product event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_id: Option<String>,
    /// Event of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageMove>,
    /// Id of the send node whose last message before `at` has the event; where there is none nothing happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// When the message has the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// Event of a message in a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are those of the contract")]
pub enum MessageMove {
    Delivered,
    Open,
    Click,
    Bounce,
    Complaint,
    Unsubscribe,
}

impl Input for SimulationInput {
    fn check(&self, violations: &mut Violations) {
        if let Some(contact) = &self.contact {
            let mut faults = Violations::new();
            contact.check(&mut faults);
            violations.merge(faults.below("/contact"));
        }
        match (&self.contact, &self.contact_id) {
            (None, None) => violations.add("", FieldCode::Required, "give contact or contact_id"),
            (Some(_), Some(_)) => {
                violations.add("/contact_id", FieldCode::Conflict, "give either contact or contact_id");
            }
            _ => {}
        }
        for (index, event) in self.events.iter().enumerate() {
            let mut faults = Violations::new();
            event.check(&mut faults);
            violations.merge(faults.below(&format!("/events/{index}")));
        }
    }
}

impl SimulationInput {
    /// Returns the design to simulate: the automation's, with the members that were given in its place.
    pub fn apply(&self, design: Design) -> Design {
        let patch = AutomationPatch {
            trigger: self.trigger.clone(),
            graph: self.graph.clone(),
            re_entry: self.re_entry.clone(),
            re_entry_key: self.re_entry_key.clone(),
            ..AutomationPatch::default()
        };
        patch.apply(String::new(), design).1
    }
}

impl SimulatedEvent {
    fn check(&self, violations: &mut Violations) {
        let given = [
            ("occurred_at", self.occurred_at.is_some(), true),
            ("properties", self.properties.is_some(), true),
            ("unique_id", self.unique_id.is_some(), true),
            ("node_id", self.node_id.is_some(), false),
            ("at", self.at.is_some(), false),
        ];
        let is_product = match (&self.name, self.message) {
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(_), Some(_)) => {
                let rule = "is either a product event with name or something done with a message";
                return violations.add("/message", FieldCode::Conflict, rule);
            }
            (None, None) => return violations.add("/name", FieldCode::Required, "give name or message"),
        };
        for (name, is_given, of_product) in given {
            if is_given && of_product != is_product {
                let kind = if is_product { "a product event" } else { "what is done with a message" };
                violations.add(format!("/{name}"), FieldCode::NotAllowed, format_args!("is no member of {kind}"));
            } else if !is_given && !of_product && !is_product {
                violations.add(format!("/{name}"), FieldCode::Required, "is required");
            }
        }
        if let Some(event) = self.product() {
            event.check(violations);
        }
    }

    /// Returns the product event, without its contact; `None` if this is an event of a message.
    pub fn product(&self) -> Option<ProductEventInput> {
        // The contact follows from the simulation.
        let anybody = ContactReference { external_id: Some("-".to_owned()), ..ContactReference::default() };
        let mut event = ProductEventInput::new(self.name.clone()?, anybody);
        event.occurred_at = self.occurred_at;
        event.properties.clone_from(&self.properties);
        event.unique_id.clone_from(&self.unique_id);
        Some(event)
    }
}
