//! Members of triggers and graphs in JSON, with their JSON types.
//!
//! Contract sections 13.1, 13.2. The files beside this one read the meaning of the members; filters, and all that only
//! their grammar describes, are any JSON here. A draft may lack members that an active automation needs, so these are
//! optional here and required by [`Reader::need`](super::reader::Reader::need).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::domain::automation::graph::Delay;
use crate::domain::automation::trigger::{Repeat, TriggerEvent};
use crate::domain::campaign::settings::{FrequencyCap, HourMinute, QuietHours, Weight};
use crate::domain::channel::Channel;
use crate::domain::limits::{MAX_DISPLAY_NAME, MAX_NAME, MAX_SUBJECT, MAX_URL};

/// Maximum number of edges of a graph: more than its nodes can have branches.
const MAX_EDGES: u64 = 2000;
/// Maximum number of nodes of a graph; [`MAX_NODES`](crate::domain::automation::MAX_NODES).
const MAX_NODES: u64 = 200;
/// Maximum number of exit conditions. The contract is silent; all of them are asked before each node.
const MAX_EXIT_CONDITIONS: u64 = 20;
/// Maximum number of tags that a node gives or takes.
const MAX_TAGS: u64 = 100;
/// Maximum number of characters of a text that may be a template.
const MAX_TEMPLATE: u64 = 1024;

/// Trigger of an automation: the event, change, date or call by which a contact enters and its run begins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TriggerForm {
    pub(super) kind: Option<TriggerName>,
    pub(super) config: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum TriggerName {
    Event,
    SegmentEnter,
    SegmentExit,
    ListAdded,
    ContactCreated,
    Date,
    MessageEvent,
    Manual,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the names of the members: they are read by the grammar of filters")]
pub(super) struct EventConfig {
    name: Option<Value>,
    r#where: Option<Value>,
    filter: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SegmentEnterConfig {
    pub(super) segment_id: Option<String>,
    pub(super) include_existing: Option<bool>,
    #[expect(dead_code, reason = "read by the grammar of filters")]
    filter: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SegmentExitConfig {
    pub(super) segment_id: Option<String>,
    #[expect(dead_code, reason = "read by the grammar of filters")]
    filter: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListAddedConfig {
    pub(super) list_id: Option<String>,
    #[expect(dead_code, reason = "read by the grammar of filters")]
    filter: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DateConfig {
    pub(super) attribute: Option<String>,
    #[validate(range(min = -365, max = 365))]
    pub(super) offset_days: Option<i32>,
    pub(super) time: Option<HourMinute>,
    pub(super) repeat: Option<Repeat>,
    #[expect(dead_code, reason = "read by the grammar of filters")]
    filter: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageEventConfig {
    pub(super) event: Option<TriggerEvent>,
    pub(super) campaign_id: Option<String>,
    pub(super) template_id: Option<String>,
    #[expect(dead_code, reason = "read by the grammar of filters")]
    filter: Option<Value>,
}

/// Config of a trigger that has no settings but its filter.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OnlyFilterConfig {
    #[expect(dead_code, reason = "read by the grammar of filters")]
    filter: Option<Value>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphForm {
    pub(super) entry: Option<String>,
    #[validate(length(max = MAX_NODES))]
    pub(super) nodes: Option<Vec<Value>>,
    #[validate(length(max = MAX_EDGES))]
    pub(super) edges: Option<Vec<Value>>,
    #[validate(length(max = MAX_EXIT_CONDITIONS))]
    pub(super) exit_conditions: Option<Vec<Value>>,
    pub(super) goal: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeForm {
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    pub(super) id: Option<String>,
    pub(super) kind: NodeName,
    pub(super) config: Option<Map<String, Value>>,
    #[validate(length(max = MAX_NAME))]
    #[expect(dead_code, reason = "for people")]
    name: Option<String>,
    #[expect(dead_code, reason = "for whoever draws the graph")]
    position: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum NodeName {
    Send,
    Wait,
    WaitEvent,
    Condition,
    Split,
    UpdateContact,
    AddToList,
    RemoveFromList,
    AddTag,
    RemoveTag,
    Webhook,
    Exit,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EdgeForm {
    pub(super) from: String,
    pub(super) to: String,
    #[validate(length(min = 1, max = MAX_BRANCH))]
    pub(super) branch: Option<String>,
}

/// Maximum number of characters of the name of a branch.
const MAX_BRANCH: u64 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Category {
    Marketing,
    Transactional,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendConfig {
    pub(super) template_id: Option<String>,
    pub(super) channel: Option<Channel>,
    pub(super) from_email: Option<String>,
    #[validate(length(max = MAX_DISPLAY_NAME))]
    pub(super) from_name: Option<String>,
    pub(super) reply_to: Option<String>,
    #[validate(length(min = 1, max = MAX_SUBJECT))]
    pub(super) subject_override: Option<String>,
    pub(super) category: Option<Category>,
    pub(super) quiet_hours: Option<QuietHours>,
    pub(super) frequency_cap: Option<FrequencyCap>,
    pub(super) variables: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitConfig {
    pub(super) duration: Option<Delay>,
    pub(super) until: Option<UntilForm>,
    pub(super) until_attribute: Option<UntilAttributeForm>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UntilForm {
    pub(super) time: Option<HourMinute>,
    #[validate(length(max = 7))]
    pub(super) weekdays: Option<Vec<Weekday>>,
    pub(super) timezone: Option<String>,
}

/// A day of the week, Monday is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(super) struct Weekday(pub(super) i8);

impl JsonSchema for Weekday {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Weekday".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "integer", "minimum": 1, "maximum": 7})
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UntilAttributeForm {
    pub(super) key: Option<String>,
    pub(super) offset: Option<Delay>,
    pub(super) direction: Option<Direction>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Direction {
    Before,
    After,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitEventConfig {
    #[expect(dead_code, reason = "read by the grammar of filters")]
    on: Option<Value>,
    pub(super) timeout: Option<Delay>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConditionConfig {
    #[expect(dead_code, reason = "read by the grammar of filters")]
    filter: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SplitConfig {
    #[validate(length(min = 2, max = 10))]
    pub(super) branches: Option<Vec<ShareForm>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShareForm {
    #[validate(length(max = MAX_BRANCH))]
    pub(super) name: String,
    pub(super) weight: Weight,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateContactConfig {
    pub(super) attributes: Option<Map<String, Value>>,
    #[validate(length(min = 1, max = MAX_TEMPLATE))]
    pub(super) locale: Option<String>,
    #[validate(length(min = 1, max = MAX_TEMPLATE))]
    pub(super) timezone: Option<String>,
    #[validate(length(max = MAX_TAGS))]
    pub(super) tags_add: Option<Vec<String>>,
    #[validate(length(max = MAX_TAGS))]
    pub(super) tags_remove: Option<Vec<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListConfig {
    pub(super) list_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TagConfig {
    pub(super) tag: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub(super) enum Method {
    #[serde(rename = "POST")]
    Post,
    #[serde(rename = "PUT")]
    Put,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhookConfig {
    #[validate(length(max = MAX_URL))]
    pub(super) url: Option<String>,
    pub(super) method: Option<Method>,
    pub(super) headers: Option<BTreeMap<String, String>>,
    pub(super) body: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExitConfig {
    #[validate(length(max = MAX_NAME))]
    pub(super) reason: Option<String>,
}
