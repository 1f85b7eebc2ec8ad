//! Product events: actions of contacts, as programs of the workspace report them.
//!
//! Contract section 5. [`input`] checks the request; [`event_deduplicator`] decides which contact an event means, and
//! if it is a repetition.

pub mod event_deduplicator;
pub mod input;

use std::borrow::Cow;
use std::time::Duration;

use jiff::ToSpan as _;
use jiff::tz::TimeZone;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::ids::{ContactId, EventId, WorkspaceId};
use crate::time::Timestamp;

/// Maximum length of `unique_id`, in characters.
pub(crate) const MAX_UNIQUE_ID: u64 = 128;
/// Maximum length of an event's name, in characters.
pub(crate) const MAX_NAME_LENGTH: usize = 128;
/// Maximum size of the properties of an event as JSON, in bytes.
pub(crate) const MAX_PROPERTY_BYTES: usize = 32 << 10;
/// Time after the arrival of an event within which another with its `unique_id` is a repetition.
pub const UNIQUE_FOR: Duration = Duration::from_hours(7 * 24);
/// Maximum time by which an event may lie in the future, for clocks of callers that are ahead.
const MAX_AHEAD: Duration = Duration::from_hours(1);
/// Maximum number of calendar years that an event may be old when it arrives.
const MAX_YEARS: i64 = 5;

/// Something that a contact did.
#[derive(Debug, Clone, PartialEq)]
pub struct ProductEvent {
    /// Its id; made when the event arrived.
    pub id: EventId,
    /// Workspace that owns the event.
    pub workspace_id: WorkspaceId,
    /// Contact that did what the event reports.
    pub contact_id: ContactId,
    /// Name of the event, chosen by the workspace.
    pub name: String,
    /// Time of the event as the client reports it, which may be long before its arrival.
    pub occurred_at: Timestamp,
    /// Further data about the event.
    pub properties: Properties,
    /// Id that the caller gave the event (`unique_id`); kept for [`UNIQUE_FOR`] after its arrival.
    pub unique_id: Option<String>,
}

impl ProductEvent {
    /// Time at which the event arrived, read from its id.
    pub fn received_at(&self) -> Timestamp {
        self.id.made_at()
    }
}

/// The earliest and the latest time that an event may have happened at when it arrives now.
pub(crate) fn possible_times(now: Timestamp) -> (Timestamp, Timestamp) {
    let today = now.to_jiff().to_zoned(TimeZone::UTC);
    let earliest = today.checked_sub(MAX_YEARS.years()).map_or(now, |then| then.timestamp().into());
    (earliest, now + MAX_AHEAD)
}

/// The properties of an event: a JSON object.
///
/// Held as the text that is stored; members that were given twice are in it once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties {
    /// Empty when there are none.
    json: String,
}

impl Properties {
    /// Makes properties of a text that [`Properties::json`] returned.
    pub fn from_json(json: String) -> Self {
        if json == "{}" { Self::default() } else { Self { json } }
    }

    /// A JSON object.
    pub fn json(&self) -> &str {
        if self.json.is_empty() { "{}" } else { &self.json }
    }

    /// True if the event has no properties.
    pub const fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    /// The members; none where the text is no object, which [`Properties::json`] never is.
    pub fn members(&self) -> Map<String, Value> {
        serde_json::from_str(self.json()).unwrap_or_default()
    }
}

impl From<Map<String, Value>> for Properties {
    fn from(members: Map<String, Value>) -> Self {
        Self::from_json(Value::Object(members).to_string())
    }
}

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.members().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for Properties {
    fn schema_name() -> Cow<'static, str> {
        Map::<String, Value>::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        Map::<String, Value>::schema_id()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Map::<String, Value>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::entropy::SeededEntropy;
    use crate::ids::IdSource;

    #[test]
    fn the_id_tells_when_an_event_arrived() {
        let arrival: Timestamp = "2026-01-31T09:15:00.123Z".parse().unwrap();
        let event = ProductEvent {
            id: IdSource::default().next(arrival, &SeededEntropy::new(1)),
            workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            contact_id: "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
            name: "order_placed".to_owned(),
            occurred_at: Timestamp::from_millis(1),
            properties: Properties::default(),
            unique_id: None,
        };
        assert_eq!(event.received_at(), arrival);
    }

    #[test]
    fn five_years_are_calendar_years() {
        let times = |now: &str| {
            let (earliest, latest) = possible_times(now.parse().unwrap());
            format!("{earliest} {latest}")
        };
        assert_eq!(times("2026-01-31T09:15:00Z"), "2021-01-31T09:15:00.000Z 2026-01-31T10:15:00.000Z");
        assert_eq!(times("2028-02-29T23:30:00Z"), "2023-02-28T23:30:00.000Z 2028-03-01T00:30:00.000Z");
    }

    #[test]
    fn properties_are_kept_as_text() {
        let read = |text: &str| serde_json::from_str::<Properties>(text).unwrap();
        assert_eq!(read(r#"{ "b": 1.50, "a": [ null ], "b": 2 }"#).json(), r#"{"a":[null],"b":2}"#);
        assert_eq!(read("{ }"), Properties::default());
        assert_eq!((read("{}").json(), read("{}").is_empty()), ("{}", true));
        assert_eq!(serde_json::to_value(read(r#"{"a":{}}"#)).unwrap(), json!({"a": {}}));
        assert!(serde_json::from_str::<Properties>("[]").is_err());
    }
}
