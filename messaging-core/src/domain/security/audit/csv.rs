//! Entries of an audit log as CSV (RFC 4180).

use std::borrow::Cow;
use std::fmt::Write as _;

use super::AuditEntry;

/// Names of the columns.
const COLUMNS: &str = "id,at,actor_kind,actor_id,actor_name,operation,resource_kind,resource_id,resource_name,changes,ip,\
                       request_id\r\n";

/// The text of entries with a line of names first. Changes are JSON. A value that a spreadsheet would take for a formula
/// gets an apostrophe in front.
pub fn text(entries: &[AuditEntry]) -> String {
    let mut text = COLUMNS.to_owned();
    for entry in entries {
        let changes = serde_json::to_string(&entry.changes).unwrap_or_default();
        let maybe = |value: &Option<String>| value.clone().unwrap_or_default();
        let cells = [
            entry.id.to_string(),
            entry.at.to_string(),
            entry.actor.kind.as_str().to_owned(),
            maybe(&entry.actor.id),
            maybe(&entry.actor.name),
            entry.operation.clone(),
            entry.resource.kind.clone(),
            maybe(&entry.resource.id),
            maybe(&entry.resource.name),
            changes,
            entry.ip.map(|ip| ip.to_string()).unwrap_or_default(),
            maybe(&entry.request_id),
        ];
        for (place, value) in cells.iter().enumerate() {
            let separator = if place == 0 { "" } else { "," };
            write!(text, "{separator}{}", cell(value)).expect("texts take all");
        }
        text.push_str("\r\n");
    }
    text
}

/// A value as a cell.
fn cell(value: &str) -> Cow<'_, str> {
    let is_formula = value.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if !is_formula && !value.contains(['"', ',', '\r', '\n']) {
        return Cow::Borrowed(value);
    }
    let apostrophe = if is_formula { "'" } else { "" };
    Cow::Owned(format!("\"{apostrophe}{}\"", value.replace('"', "\"\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        for (value, expected) in [
            ("plain", "plain"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "\"'=1+1\""),
            ("two\nlines", "\"two\nlines\""),
        ] {
            assert_eq!(cell(value), expected);
        }
    }

    #[test]
    fn an_entry_is_a_line() {
        let entry: AuditEntry = serde_json::from_value(super::super::sample()).unwrap();
        let text = text(&[entry]);
        let lines: Vec<_> = text.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].split(',').count(), 12);
        assert!(lines[1].starts_with("aud_01JB3Q8Z5N6W7X8Y9ZABCDEFGH,2026-01-31T09:15:00.000Z,user,usr_"), "{text}");
        assert!(lines[1].ends_with(",192.0.2.1,req_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"), "{text}");
    }
}
