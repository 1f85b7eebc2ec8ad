//! Requests that create or change an automation, or let a contact enter.
//!
//! Contract sections 13 and 13.3. Trigger and graph are kept as they were sent; [`Design::read`](super::Design::read)
//! parses them, so that their faults are reported at their places.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Design, ReEntry};
use crate::domain::limits::MAX_NAME;
use crate::input::Input;
use crate::patch::{Patch, Replace};
use crate::validate::{Setters, Validate};
use crate::violation::{FieldCode, Violations};

/// Maximum size of the variables of a call in bytes of JSON, the same as of the properties of a product event
/// (contract section 5).
const MAX_VARIABLES: usize = 32 << 10;

/// An automation to create.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AutomationInput {
    /// 1 to 200 characters; several automations may have one name.
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: String,
    /// Trigger by which contacts enter, `{"kind", "config"}`. A draft may leave it `{}`.
    pub trigger: Map<String, Value>,
    /// Graph of steps, `{"entry", "nodes", "edges", "exit_conditions", "goal"}`. A draft may leave it `{}`.
    pub graph: Map<String, Value>,
    /// Rule for entering again: `never` (the default, except for yearly dates), `after_exit` or `always`.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub re_entry: Patch<ReEntry>,
    /// A path in the event, `event.cart_id`: the rule of re-entry then holds for each contact and value there.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub re_entry_key: Patch<String>,
}

impl Input for AutomationInput {}

/// Changes to an automation. Members that are given replace those of the automation; null clears.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AutomationPatch {
    /// 1 to 200 characters; several automations may have one name.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    #[validate(length(min = 1, max = MAX_NAME))]
    pub name: Replace<String>,
    /// Trigger by which contacts enter, `{"kind", "config"}`.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    pub trigger: Replace<Map<String, Value>>,
    /// Graph of steps, `{"entry", "nodes", "edges", "exit_conditions", "goal"}`. Open runs finish on the version that
    /// they entered with.
    #[serde(default, skip_serializing_if = "Replace::is_absent")]
    pub graph: Replace<Map<String, Value>>,
    /// Rule for entering again: `never` (the default, except for yearly dates), `after_exit` or `always`.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub re_entry: Patch<ReEntry>,
    /// A path in the event, `event.cart_id`: the rule of re-entry then holds for each contact and value there.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub re_entry_key: Patch<String>,
}

impl Input for AutomationPatch {}

/// A contact that is to enter.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TriggerInput {
    /// The contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact_id: Option<String>,
    /// Its external id; beside `contact_id` it names the same contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Values that the run gets as `event`, at most 32 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<Map<String, Value>>,
}

impl Input for TriggerInput {
    fn check(&self, violations: &mut Violations) {
        let is_given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        if !is_given(&self.contact_id) && !is_given(&self.external_id) {
            violations.add("", FieldCode::Required, "give contact_id or external_id");
        }
        let size = |variables: &Map<String, Value>| Value::Object(variables.clone()).to_string().len();
        if self.variables.as_ref().is_some_and(|variables| size(variables) > MAX_VARIABLES) {
            violations.add("/variables", FieldCode::TooLarge, "is at most 32 KiB of JSON");
        }
    }
}

impl AutomationInput {
    /// Returns the name and the design that were sent.
    pub fn into_design(self) -> (String, Design) {
        let Self { name, trigger, graph, re_entry, re_entry_key } = self;
        let re_entry_key = re_entry_key.value();
        let design = Design { trigger, graph, re_entry_key, ..Design::default() };
        let re_entry = re_entry.value().unwrap_or_else(|| design.default_re_entry());
        (name, Design { re_entry, ..design })
    }
}

impl AutomationPatch {
    /// Returns the name and the design after the change.
    pub fn apply(self, mut name: String, mut design: Design) -> (String, Design) {
        if let Some(given) = self.name.value() {
            name = given;
        }
        if let Some(trigger) = self.trigger.value() {
            design.trigger = trigger;
        }
        if let Some(graph) = self.graph.value() {
            design.graph = graph;
        }
        self.re_entry_key.apply(&mut design.re_entry_key);
        match self.re_entry {
            Patch::Absent => {}
            Patch::Null => design.re_entry = design.default_re_entry(),
            Patch::Set(rule) => design.re_entry = rule,
        }
        (name, design)
    }
}

impl Design {
    /// Returns the design as edited over `before`. A changed one is masked unless its editor may see addresses; an
    /// equal one is returned as it is.
    pub fn edited(self, before: &Self, sees_addresses: bool) -> Self {
        if self == *before { self } else { Self { masked: !sees_addresses, ..self } }
    }

    /// Returns the rule of re-entry where none is given: contacts that enter by a yearly date may enter again.
    fn default_re_entry(&self) -> ReEntry {
        let is_once = self.trigger.get("config").is_some_and(|config| config["repeat"] == "once");
        let is_yearly = self.trigger.get("kind").is_some_and(|kind| kind == "date") && !is_once;
        if is_yearly { ReEntry::AfterExit } else { ReEntry::Never }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn input(more: Value) -> Design {
        let mut body = json!({"name": "A", "trigger": {}, "graph": {}});
        body.as_object_mut().unwrap().extend(object(more));
        serde_json::from_value::<AutomationInput>(body).unwrap().into_design().1
    }

    #[test]
    fn who_enters_by_a_yearly_date_may_enter_again_unless_something_else_is_said() {
        let date = |config: Value| json!({"trigger": {"kind": "date", "config": config}});
        assert_eq!(input(json!({})).re_entry, ReEntry::Never);
        assert_eq!(input(json!({"re_entry": null})).re_entry, ReEntry::Never);
        assert_eq!(input(json!({"re_entry": "always"})).re_entry, ReEntry::Always);
        assert_eq!(input(date(json!({"attribute": "birthday"}))).re_entry, ReEntry::AfterExit);
        assert_eq!(input(date(json!({"attribute": "birthday", "repeat": "once"}))).re_entry, ReEntry::Never);
        let never = json!({"trigger": {"kind": "date"}, "re_entry": "never"});
        assert_eq!(input(never).re_entry, ReEntry::Never);
    }

    #[test]
    fn a_change_replaces_what_it_gives() {
        let design = input(json!({"trigger": {"kind": "manual"}, "re_entry": "always", "re_entry_key": "event.id"}));
        let change = |patch: Value| {
            let patch: AutomationPatch = serde_json::from_value(patch).unwrap();
            patch.apply("A".to_owned(), design.clone())
        };
        assert_eq!(change(json!({})), ("A".to_owned(), design.clone()));
        assert_eq!(change(json!({"name": "B"})), ("B".to_owned(), design.clone()));
        let (_, cleared) = change(json!({"re_entry": null, "re_entry_key": null}));
        assert_eq!((cleared.re_entry, cleared.re_entry_key), (ReEntry::Never, None));
        let (_, dated) = change(json!({"trigger": {"kind": "date", "config": {}}, "re_entry": null}));
        assert_eq!(dated.re_entry, ReEntry::AfterExit);
        let (_, kept) = change(json!({"trigger": {"kind": "date"}}));
        assert_eq!(kept.re_entry, ReEntry::Always);
    }

    #[test]
    fn a_call_names_a_contact() {
        let faults = |body: Value| {
            let mut violations = Violations::new();
            serde_json::from_value::<TriggerInput>(body).unwrap().check(&mut violations);
            violations.as_slice().iter().map(|fault| fault.code).collect::<Vec<_>>()
        };
        assert_eq!(faults(json!({})), [FieldCode::Required]);
        assert_eq!(faults(json!({"contact_id": "", "external_id": null})), [FieldCode::Required]);
        assert_eq!(faults(json!({"external_id": "u-1"})), []);
        let long = json!({"external_id": "u-1", "variables": {"a": "x".repeat(33 << 10)}});
        assert_eq!(faults(long), [FieldCode::TooLarge]);
    }
}
