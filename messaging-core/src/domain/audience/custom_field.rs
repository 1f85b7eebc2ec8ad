//! Custom fields: attributes whose type is declared.
//!
//! Contract section 8.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{FieldId, WorkspaceId};
use crate::time::Timestamp;
use crate::violation::FieldCode;

/// Custom fields of a workspace. The contract is silent; a contact has at most 200 attributes.
pub const MAX_FIELDS: usize = 1000;

/// Type of the values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    /// A text.
    String,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// `2026-01-31`
    Date,
    /// An RFC 3339 time with `Z` or an offset.
    Datetime,
    /// Texts.
    StringArray,
}

impl FieldType {
    /// Error of a value that does not have the type; `None` if it does.
    pub fn fault(self, value: &Value) -> Option<(FieldCode, &'static str)> {
        let wrong = |message| Some((FieldCode::InvalidType, message));
        match self {
            Self::String if !value.is_string() => wrong("this custom field is a text"),
            Self::Number if !value.is_number() => wrong("this custom field is a number"),
            Self::Boolean if !value.is_boolean() => wrong("this custom field is true or false"),
            Self::StringArray if !value.as_array().is_some_and(|items| items.iter().all(Value::is_string)) => {
                wrong("this custom field is an array of texts")
            }
            Self::Date | Self::Datetime => match (value.as_str(), self) {
                (None, _) => wrong("this custom field is a text with a date or time"),
                (Some(text), Self::Date) if !is_date(text) => {
                    Some((FieldCode::InvalidFormat, "this custom field is a date, YYYY-MM-DD"))
                }
                (Some(text), Self::Datetime) if text.parse::<Timestamp>().is_err() => {
                    Some((FieldCode::InvalidFormat, "this custom field is an RFC 3339 time with an offset"))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// `YYYY-MM-DD`, a day that exists.
fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// The declared types of a workspace by key.
pub type FieldTypes = HashMap<String, FieldType>;

/// A declared attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomField {
    /// Its id.
    pub id: FieldId,
    /// Workspace that declared the field.
    pub workspace_id: WorkspaceId,
    /// The key of the attribute; unique in the workspace.
    pub key: String,
    /// Type that values of the attribute must have.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Label of the field, for people.
    pub label: Option<String>,
    /// Time at which it was declared.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_against_types() {
        let values = [
            json!("text"),
            json!(17),
            json!(1.5),
            json!(true),
            json!("2026-01-31"),
            json!("2026-02-31"),
            json!("2026-01-31T09:15:00Z"),
            json!("2026-01-31T09:15:00"),
            json!(["a", "b"]),
            json!([]),
            json!(["a", 1]),
            json!({}),
        ];
        let types = [
            FieldType::String,
            FieldType::Number,
            FieldType::Boolean,
            FieldType::Date,
            FieldType::Datetime,
            FieldType::StringArray,
        ];
        let row = |value: &Value| {
            let cell = |kind: &FieldType| match kind.fault(value) {
                None => "yes",
                Some((FieldCode::InvalidType, _)) => "type",
                Some(_) => "format",
            };
            format!("{value}: {}\n", types.iter().map(cell).collect::<Vec<_>>().join(" "))
        };
        insta::assert_snapshot!(values.iter().map(row).collect::<String>(), @r#"
        "text": yes type type format format type
        17: type yes type type type type
        1.5: type yes type type type type
        true: type type yes type type type
        "2026-01-31": yes type type yes format type
        "2026-02-31": yes type type format format type
        "2026-01-31T09:15:00Z": yes type type format yes type
        "2026-01-31T09:15:00": yes type type format format type
        ["a","b"]: type type type type type yes
        []: type type type type type yes
        ["a",1]: type type type type type type
        {}: type type type type type type
        "#);
    }
}
