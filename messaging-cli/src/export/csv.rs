//! Items of listings as rows of CSV.

use serde_json::{Map, Value};

/// What stands between the items of a list, as an import reads it.
const BETWEEN: &str = ";";

/// The member that holds a contact's attributes, and the column for those without one of their own.
const ATTRIBUTES: &str = "attributes";

/// Headers, and where their cells are in an item.
const CONTACT: &[(&str, &str)] = &[
    ("id", "/id"),
    ("external_id", "/external_id"),
    ("email", "/email"),
    ("phone", "/phone"),
    ("locale", "/locale"),
    ("timezone", "/timezone"),
    ("tags", "/tags"),
    ("list_ids", "/list_ids"),
    ("consent.marketing_email", "/consent/marketing_email"),
    ("consent.sms", "/consent/sms"),
    ("suppressed_channels", "/suppressed_channels"),
    ("created_at", "/created_at"),
    ("updated_at", "/updated_at"),
];

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

const SUPPRESSION: &[(&str, &str)] = &[
    ("id", "/id"),
    ("channel", "/channel"),
    ("address", "/address"),
    ("reason", "/reason"),
    ("source", "/source"),
    ("detail", "/detail"),
    ("created_at", "/created_at"),
];

/// The columns that an export of contacts has and an import does not take.
pub(crate) const ONLY_EXPORTED: &[&str] = &["id", "suppressed_channels", "created_at", "updated_at", ATTRIBUTES];

/// The columns of an export.
pub(super) struct Columns {
    plain: &'static [(&'static str, &'static str)],
    /// Custom fields of contacts; other attributes stand in a last column. `None` for what has no attributes.
    fields: Option<Vec<String>>,
}

impl Columns {
    pub(super) const fn of_contacts(fields: Vec<String>) -> Self {
        Self { plain: CONTACT, fields: Some(fields) }
    }

    pub(super) const fn of_messages() -> Self {
        Self { plain: MESSAGE, fields: None }
    }

    pub(super) const fn of_suppressions() -> Self {
        Self { plain: SUPPRESSION, fields: None }
    }

    /// The first line.
    pub(super) fn header(&self) -> String {
        let mut cells: Vec<_> = self.plain.iter().map(|(header, _)| (*header).to_owned()).collect();
        if let Some(fields) = &self.fields {
            cells.extend(fields.iter().map(|key| format!("{ATTRIBUTES}.{key}")));
            cells.push(ATTRIBUTES.to_owned());
        }
        line(cells)
    }

    /// The line of an item.
    pub(super) fn line(&self, item: &Value) -> String {
        let mut cells: Vec<_> =
            self.plain.iter().map(|(_, place)| item.pointer(place).map(cell).unwrap_or_default()).collect();
        if let Some(fields) = &self.fields {
            cells.extend(fields.iter().map(|key| cell(&item[ATTRIBUTES][key])));
            cells.push(others(&item[ATTRIBUTES], fields));
        }
        line(cells)
    }
}

/// The attributes without a column, as JSON; nothing where there are none.
fn others(attributes: &Value, fields: &[String]) -> String {
    let members = attributes.as_object().into_iter().flatten();
    let others: Map<_, _> =
        members.filter(|(key, _)| !fields.contains(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
    if others.is_empty() { String::new() } else { Value::Object(others).to_string() }
}

/// A value as the text of a cell.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => disarmed(text),
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            disarmed(&items.iter().map(plain).collect::<Vec<_>>().join(BETWEEN))
        }
        Value::Object(members) if members.is_empty() => String::new(),
        other => other.to_string(),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A text with an apostrophe before what a spreadsheet would take for a formula. Numbers, those of phones too, are none.
fn disarmed(text: &str) -> String {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_formula = match text.strip_prefix(['+', '-']) {
        Some(rest) => !is_number(rest),
        None => text.starts_with(['=', '@', '\t', '\r']),
    };
    if is_formula { format!("'{text}") } else { text.to_owned() }
}

/// Cells as a line, quoted where they have to be.
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
        let columns = Columns::of_contacts(vec!["plan".to_owned()]);
        let contact = json!({"id": "con_1", "external_id": null, "email": "ann@example.com", "phone": "+14155550123",
            "locale": "en", "timezone": null, "tags": ["vip", "a, b"], "list_ids": [], "created_at": "T1", "updated_at": "T2",
            "consent": {"marketing_email": true, "sms": null}, "suppressed_channels": ["sms"],
            "attributes": {"plan": "=cmd()", "age": 31, "pets": ["cat"]}});
        assert!(columns.header().ends_with(",updated_at,attributes.plan,attributes\n"), "{}", columns.header());
        assert_eq!(
            columns.line(&contact),
            "con_1,,ann@example.com,+14155550123,en,,\"vip;a, b\",,true,,sms,T1,T2,'=cmd(),\"{\"\"age\"\":31,\"\"pets\"\":[\"\"cat\"\"]}\"\n"
        );
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
            assert_eq!(disarmed(text), expected);
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
