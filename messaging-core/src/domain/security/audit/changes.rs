//! Differences between a resource as it was and as it is, for an audit log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::security::secret_members::{HIDDEN, OLD_PASSWORD, hide_secrets, is_secret};

/// Maximum number of changes in an entry; further ones are left out.
pub const MAX_CHANGES: usize = 200;

/// Maximum size, in bytes, of a value as JSON that is kept whole.
const MAX_VALUE: usize = 1024;

/// Maximum number of characters of a longer text that are kept.
const BEGINNING: usize = 200;

/// Maximum nesting depth of objects that are compared member by member; deeper values are compared as a whole.
const MAX_DEPTH: usize = 8;

/// Members of resources that are not recorded, because callers do not set them.
const SILENT: &[&str] = &["id", "created_at", "updated_at", "result", "stats", "last_used_at"];

/// A member of a resource that was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditChange {
    /// RFC 6901 pointer to the member in the resource.
    pub pointer: String,
    /// Value before; null for none, `•••` for a secret.
    pub before: Value,
    /// Value after; null for none, `•••` for a secret.
    pub after: Value,
}

/// Part of a change that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Pointers and values.
    Values,
    /// Pointers alone, because the values belong to a contact.
    Pointers,
}

/// Returns the changes between two states of a resource; `None` for a resource that does not exist.
pub fn between(before: Option<&Value>, after: Option<&Value>, detail: Detail) -> Vec<AuditChange> {
    let mut found = Found { changes: Vec::new(), detail };
    let empty = Map::new();
    let members = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
    let (before, after) = (members(before), members(after));
    found.objects("", before.as_ref().unwrap_or(&empty), after.as_ref().unwrap_or(&empty), 0);
    found.changes.sort_by(|one, other| one.pointer.cmp(&other.pointer));
    found.changes
}

/// Returns the secrets that a request gives, which no state of a resource shows: members with a value that is not
/// `mask`.
pub fn secrets_given(body: &Value, mask: &str) -> Vec<AuditChange> {
    let mut found = Found { changes: Vec::new(), detail: Detail::Values };
    found.secrets("", body, mask, 0);
    found.changes
}

struct Found {
    changes: Vec<AuditChange>,
    detail: Detail,
}

impl Found {
    fn objects(&mut self, at: &str, before: &Map<String, Value>, after: &Map<String, Value>, depth: usize) {
        let gone = before.keys().filter(|name| !after.contains_key(*name));
        for name in after.keys().chain(gone) {
            if depth == 0 && SILENT.contains(&name.as_str()) {
                continue;
            }
            let (before, after) = (before.get(name).unwrap_or(&Value::Null), after.get(name).unwrap_or(&Value::Null));
            if before == after || (says_nothing(before) && says_nothing(after)) {
                continue;
            }
            let pointer = format!("{at}/{}", escaped(name));
            match (before, after) {
                (Value::Object(before), Value::Object(after)) if depth < MAX_DEPTH && !is_secret(name) => {
                    self.objects(&pointer, before, after, depth + 1);
                }
                _ => self.add(pointer, name, before, after),
            }
        }
    }

    fn secrets(&mut self, at: &str, value: &Value, mask: &str, depth: usize) {
        let Value::Object(members) = value else { return };
        for (name, value) in members {
            let pointer = format!("{at}/{}", escaped(name));
            if is_secret(name) {
                let is_given = !says_nothing(value) && !value.is_boolean() && value.as_str() != Some(mask);
                if is_given && name != OLD_PASSWORD {
                    self.add(pointer, name, &Value::from(HIDDEN), &Value::from(HIDDEN));
                }
            } else if depth < MAX_DEPTH {
                self.secrets(&pointer, value, mask, depth + 1);
            }
        }
    }

    fn add(&mut self, pointer: String, name: &str, before: &Value, after: &Value) {
        if self.changes.len() >= MAX_CHANGES {
            return;
        }
        let shown = |value: &Value| match self.detail {
            Detail::Values => shown(name, value),
            Detail::Pointers => Value::Null,
        };
        let (before, after) = (shown(before), shown(after));
        self.changes.push(AuditChange { pointer, before, after });
    }
}

/// Returns a value as the log shows it: without secrets, and cut to the length that the log keeps.
fn shown(name: &str, value: &Value) -> Value {
    if value.is_null() || value.is_boolean() {
        return value.clone();
    }
    if is_secret(name) {
        return HIDDEN.into();
    }
    let mut value = value.clone();
    hide_secrets(&mut value);
    let length = serde_json::to_string(&value).map_or(0, |text| text.len());
    if length <= MAX_VALUE {
        return value;
    }
    match value {
        Value::String(text) => {
            let beginning: String = text.chars().take(BEGINNING).collect();
            format!("{beginning}… ({} bytes)", text.len()).into()
        }
        _ => format!("({length} bytes)").into(),
    }
}

/// True for an empty value.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Escapes a member's name for a pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: Value, after: Value, expected: Value) {
        let option = |value: Value| Some(value).filter(|value| !value.is_null());
        let found = between(option(before).as_ref(), option(after).as_ref(), Detail::Values);
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
    }

    #[test]
    fn members_that_differ_are_named_with_both_values() {
        check(json!({"name": "A", "tags": []}), json!({"name": "A"}), json!([]));
        check(
            json!({"id": "x", "name": "A", "limit": 1, "updated_at": 1}),
            json!({"id": "y", "name": "B", "limit": 1, "updated_at": 2}),
            json!([{"pointer": "/name", "before": "A", "after": "B"}]),
        );
        check(
            json!({"a/b": {"~": [1, 2], "same": 0}}),
            json!({"a/b": {"~": [1], "same": 0, "new": true}}),
            json!([
                {"pointer": "/a~1b/new", "before": null, "after": true},
                {"pointer": "/a~1b/~0", "before": [1, 2], "after": [1]},
            ]),
        );
    }

    #[test]
    fn what_is_created_or_deleted_is_all_of_it() {
        check(
            Value::Null,
            json!({"id": "x", "name": "A", "label": null, "scopes": ["*"]}),
            json!([
                {"pointer": "/name", "before": null, "after": "A"},
                {"pointer": "/scopes", "before": null, "after": ["*"]},
            ]),
        );
        check(json!({"name": "A"}), Value::Null, json!([{"pointer": "/name", "before": "A", "after": null}]));
        check(Value::Null, Value::Null, json!([]));
    }

    #[test]
    fn secrets_are_crossed_out() {
        check(
            json!({"secret": "a", "config": {"password": "b", "host": "x"}}),
            json!({"secret": "c", "config": {"password": "d", "host": "x"}, "key": "mk_live_ab12cd34ef56.0123456789abc"}),
            json!([
                {"pointer": "/config/password", "before": HIDDEN, "after": HIDDEN},
                {"pointer": "/key", "before": null, "after": HIDDEN},
                {"pointer": "/secret", "before": HIDDEN, "after": HIDDEN},
            ]),
        );
    }

    #[test]
    fn secrets_of_a_request_are_named() {
        let body = json!({"provider": "smtp", "config": {"password": "x", "auth_token": "***", "host": "mx"}});
        let found: Vec<_> = secrets_given(&body, "***").into_iter().map(|change| change.pointer).collect();
        assert_eq!(found, ["/config/password"]);
        let body = json!({"current": "old one", "password": "new one"});
        let found: Vec<_> = secrets_given(&body, "***").into_iter().map(|change| change.pointer).collect();
        assert_eq!(found, ["/password"], "the old password is not changed");
    }

    #[test]
    fn of_contacts_only_pointers_are_kept() {
        let before = json!({"email": "ann@example.com"});
        let found = between(Some(&before), None, Detail::Pointers);
        assert_eq!(found, [AuditChange { pointer: "/email".to_owned(), before: Value::Null, after: Value::Null }]);
    }

    #[test]
    fn long_values_and_long_lists_are_cut() {
        let html = "ä".repeat(5000);
        let found = between(None, Some(&json!({"html": html, "list": vec![0; 2000]})), Detail::Values);
        assert_eq!(found[0].after, json!(format!("{}… (10000 bytes)", "ä".repeat(BEGINNING))));
        assert_eq!(found[1].after, json!("(4001 bytes)"));

        let many: Map<String, Value> = (0..MAX_CHANGES + 9).map(|n| (format!("m{n}"), n.into())).collect();
        assert_eq!(between(None, Some(&many.into()), Detail::Values).len(), MAX_CHANGES);
    }
}
