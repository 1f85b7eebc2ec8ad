//! Contacts, messages and suppressions as rows of CSV, for `export`. An import can read the file of contacts.

use messaging_core::domain::audience::contact::fields::CONTACT_FIELDS;
use messaging_core::domain::audience::custom_field::FieldType;
use serde_json::{Map, Value};

/// Separator of the items of a list within a cell; an import splits cells at it.
const BETWEEN: &str = ";";

/// The member that holds a contact's attributes.
const ATTRIBUTES: &str = "attributes";

/// Headers of the columns that hold, as JSON, the attributes and tags that a plain cell would not keep, such as a tag
/// with a `;` in it.
pub(crate) const ATTRIBUTES_AS_JSON: &str = ATTRIBUTES;
pub(crate) const TAGS_AS_JSON: &str = "tags_json";

/// The member that holds a contact's tags, and the JSON pointer to it.
const TAGS: &str = "tags";
const TAGS_PLACE: &str = "/tags";

/// Columns of an export of contacts: each header with the JSON pointer to its value in an item.
const CONTACT: &[(&str, &str)] = &{
    let mut columns = [("id", "/id"); 1 + CONTACT_FIELDS.len() + OF_CONTACTS.len()];
    let mut at = 0;
    while at < CONTACT_FIELDS.len() {
        columns[1 + at] = (CONTACT_FIELDS[at].name(), CONTACT_FIELDS[at].pointer());
        at += 1;
    }
    while at < CONTACT_FIELDS.len() + OF_CONTACTS.len() {
        columns[1 + at] = OF_CONTACTS[at - CONTACT_FIELDS.len()];
        at += 1;
    }
    columns
};

/// The columns of contacts that follow the id and [`CONTACT_FIELDS`].
const OF_CONTACTS: [(&str, &str); 7] = [
    ("tags", TAGS_PLACE),
    ("list_ids", "/list_ids"),
    ("consent.marketing_email", "/consent/marketing_email"),
    ("consent.sms", "/consent/sms"),
    ("suppressed_channels", "/suppressed_channels"),
    ("created_at", "/created_at"),
    ("updated_at", "/updated_at"),
];

/// Columns of an export of messages.
const MESSAGE: &[(&str, &str)] = &[
    ("message_id", "/message_id"),
    ("status", "/status"),
    ("reason", "/explanation/code"),
    ("explanation", "/explanation/text"),
    ("channel", "/channel"),
    ("to", "/to"),
    ("subject", "/subject"),
    ("created_at", "/created_at"),
    ("updated_at", "/updated_at"),
    ("contact_id", "/contact_id"),
    ("campaign_id", "/campaign_id"),
    ("automation_id", "/automation_id"),
    ("template_id", "/template_id"),
    ("tags", "/tags"),
    ("metadata", "/metadata"),
    ("provider", "/provider"),
    ("provider_message_id", "/provider_message_id"),
    ("fallback_of", "/fallback_of"),
    ("variant", "/variant"),
    ("segments", "/segments"),
    ("encoding", "/encoding"),
    ("scheduled_for", "/scheduled_for"),
];

/// Columns of an export of suppressions.
const SUPPRESSION: &[(&str, &str)] = &[
    ("id", "/id"),
    ("channel", "/channel"),
    ("address", "/address"),
    ("reason", "/reason"),
    ("source", "/source"),
    ("detail", "/detail"),
    ("created_at", "/created_at"),
];

/// Columns that mark a file as an export of contacts: if it has all of them, an import reads the attributes as JSON,
/// and makes none of the others an attribute unless the options name it.
pub(crate) const ONLY_EXPORTED: &[&str] =
    &["id", "suppressed_channels", "created_at", "updated_at", ATTRIBUTES_AS_JSON];

/// The columns of an export.
pub(super) struct Columns {
    /// Columns that every export of this kind of item has: headers with JSON pointers.
    plain: &'static [(&'static str, &'static str)],
    /// Custom fields of contacts, each with a column of its own; the two columns of JSON come after them. `None` for
    /// messages and suppressions.
    fields: Option<Vec<(String, FieldType)>>,
    /// True if cells that a spreadsheet would evaluate as formulas get an apostrophe in front.
    disarms: bool,
}

impl Columns {
    pub(super) const fn of_contacts(fields: Vec<(String, FieldType)>, disarms: bool) -> Self {
        Self { plain: CONTACT, fields: Some(fields), disarms }
    }

    pub(super) const fn of_messages(disarms: bool) -> Self {
        Self { plain: MESSAGE, fields: None, disarms }
    }

    pub(super) const fn of_suppressions(disarms: bool) -> Self {
        Self { plain: SUPPRESSION, fields: None, disarms }
    }

    /// Returns the header line.
    pub(super) fn header(&self) -> String {
        let mut cells: Vec<_> = self.plain.iter().map(|(header, _)| (*header).to_owned()).collect();
        if let Some(fields) = &self.fields {
            cells.extend(fields.iter().map(|(key, _)| format!("{ATTRIBUTES}.{key}")));
            cells.extend([TAGS_AS_JSON, ATTRIBUTES_AS_JSON].map(ToOwned::to_owned));
        }
        line(cells)
    }

    /// Returns the line of an item.
    pub(super) fn line(&self, item: &Value) -> String {
        let mut cells: Vec<_> = self.plain.iter().map(|(_, place)| self.plain_cell(item, place)).collect();
        if let Some(fields) = &self.fields {
            let attributes = &item[ATTRIBUTES];
            cells.extend(fields.iter().map(|(key, kind)| {
                let kept = attributes.get(key).filter(|value| is_kept(value, *kind));
                kept.map(cell).unwrap_or_default()
            }));
            cells.push(if has_kept_tags(item) { String::new() } else { item[TAGS].to_string() });
            cells.push(others(attributes, fields));
        }
        if self.disarms {
            cells = cells.into_iter().map(disarmed).collect();
        }
        line(cells)
    }

    fn plain_cell(&self, item: &Value, place: &str) -> String {
        if self.fields.is_some() && place == TAGS_PLACE && !has_kept_tags(item) {
            return String::new();
        }
        item.pointer(place).map(cell).unwrap_or_default()
    }
}

/// Returns the attributes that have no column or for which [`is_kept`] is false, as a JSON object; empty if there are
/// none.
fn others(attributes: &Value, fields: &[(String, FieldType)]) -> String {
    let is_other =
        |key: &String, value: &Value| !fields.iter().any(|(known, kind)| known == key && is_kept(value, *kind));
    let members = attributes.as_object().into_iter().flatten();
    let others: Map<_, _> =
        members.filter(|(key, value)| is_other(key, value)).map(|(k, v)| (k.clone(), v.clone())).collect();
    if others.is_empty() { String::new() } else { Value::Object(others).to_string() }
}

/// Returns true if an import would read the same value from the cell of an attribute.
fn is_kept(value: &Value, kind: FieldType) -> bool {
    match (kind, value) {
        (FieldType::String, Value::String(text)) => !text.trim().is_empty(),
        (FieldType::Date | FieldType::Datetime, Value::String(text)) => !text.is_empty() && text.trim() == text,
        (FieldType::Number, Value::Number(number)) => number.is_i64() || number.is_f64(),
        (FieldType::Boolean, Value::Bool(_)) => true,
        (FieldType::StringArray, Value::Array(items)) => !items.is_empty() && items.iter().all(is_kept_in_list),
        _ => false,
    }
}

/// Returns true if an import would read the same item from the cell of a list.
fn is_kept_in_list(item: &Value) -> bool {
    item.as_str().is_some_and(|text| !text.is_empty() && text.trim() == text && !text.contains([';', '|']))
}

fn has_kept_tags(item: &Value) -> bool {
    item[TAGS].as_array().is_none_or(|tags| tags.iter().all(is_kept_in_list))
}

/// Returns a value as the text of a cell: a list of scalars with separators, an object or other list as JSON.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            items.iter().map(plain).collect::<Vec<_>>().join(BETWEEN)
        }
        Value::Object(members) if members.is_empty() => String::new(),
        other => other.to_string(),
    }
}

/// Returns a scalar as text: a string without quotes, any other value as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Puts an apostrophe before a text that a spreadsheet would evaluate as a formula. A number with a sign, such as a
/// phone number, is no formula.
fn disarmed(text: String) -> String {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_formula = match text.strip_prefix(['+', '-']) {
        Some(rest) => !is_number(rest),
        None => text.starts_with(['=', '@', '\t', '\r']),
    };
    if is_formula { format!("'{text}") } else { text }
}

/// Joins cells to a line and quotes those that need it (RFC 4180).
fn line(cells: Vec<String>) -> String {
    let quoted = cells.into_iter().map(|cell| {
        let is_plain = !cell.contains([',', '"', '\n', '\r']) && cell.trim() == cell;
        if is_plain { cell } else { format!("\"{}\"", cell.replace('"', "\"\"")) }
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_contact_is_a_row_that_an_import_takes() {
        let fields = || vec![("plan".to_owned(), FieldType::String), ("on".to_owned(), FieldType::StringArray)];
        let columns = Columns::of_contacts(fields(), false);
        let contact = json!({"id": "con_1", "external_id": null, "email": "ann@example.com", "phone": "+14155550123",
            "locale": "en", "timezone": null, "tags": ["vip", "a, b"], "list_ids": [], "created_at": "T1", "updated_at": "T2",
            "consent": {"marketing_email": true, "sms": null}, "suppressed_channels": ["sms"],
            "attributes": {"plan": "=cmd()", "on": ["a", "b"], "age": 31}});
        let header = columns.header();
        assert!(header.ends_with(",updated_at,attributes.plan,attributes.on,tags_json,attributes\n"), "{header}");
        assert_eq!(
            columns.line(&contact),
            "con_1,,ann@example.com,+14155550123,en,,\"vip;a, b\",,true,,sms,T1,T2,=cmd(),a;b,,\"{\"\"age\"\":31}\"\n"
        );
        let disarmed = Columns::of_contacts(fields(), true).line(&contact);
        assert!(disarmed.contains(",+14155550123,") && disarmed.contains(",'=cmd(),"), "{disarmed}");
        // Values that a cell would change are written as JSON.
        let odd = json!({"id": "con_2", "tags": ["a;b"], "attributes": {"plan": "", "on": ["a|b"]}});
        let line = columns.line(&odd);
        let expected = r#","[""a;b""]","{""on"":[""a|b""],""plan"":""""}""#;
        assert!(line.trim_end().ends_with(expected) && !line.contains(",a;b,"), "{line}");
    }

    #[test]
    fn formulas_are_disarmed_and_numbers_are_not() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("@a", "'@a"),
            ("+1 or more", "'+1 or more"),
            ("-1", "-1"),
            ("-", "'-"),
            ("+491701234567", "+491701234567"),
            ("a=b", "a=b"),
            ("", ""),
        ] {
            assert_eq!(disarmed(text.to_owned()), expected);
        }
    }

    #[test]
    fn every_column_is_a_member_of_the_api() {
        let document = include_str!("../../../docs/openapi.json");
        for (_, place) in [CONTACT, MESSAGE, SUPPRESSION].concat() {
            let member = place.rsplit('/').next().unwrap();
            assert!(document.contains(&format!("\"{member}\": {{")), "{place}");
        }
    }
}
