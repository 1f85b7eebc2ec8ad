//! Reads the objects of another service's body member by member. Members that were not read in the end have no
//! counterpart, and are refused by name.

use messaging_core::violation::{FieldCode, Violations, escape};
use serde_json::{Map, Value};

/// An object of a body while it is read.
pub(super) struct Members {
    /// Pointer of the object in the body.
    at: String,
    rest: Map<String, Value>,
}

/// A person as another service names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) address: String,
    pub(super) name: Option<String>,
}

impl Members {
    /// The members of an object; any other value has none, and is an error.
    pub(super) fn of(value: Value, at: impl Into<String>, faults: &mut Violations) -> Self {
        let at = at.into();
        let rest = if let Value::Object(members) = value {
            members
        } else {
            faults.add(at.clone(), FieldCode::InvalidType, "must be an object");
            Map::new()
        };
        Self { at, rest }
    }

    /// The JSON pointer to a member of this object, from the root of the body.
    pub(super) fn pointer(&self, name: &str) -> String {
        format!("{}/{}", self.at, escape(name))
    }

    /// A member; null counts as none.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.rest.remove(name).filter(|value| !value.is_null())
    }

    /// A text.
    pub(super) fn text(&mut self, name: &str, faults: &mut Violations) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            _ => self.wrong(name, "must be a string", faults),
        }
    }

    /// A yes or no.
    pub(super) fn flag(&mut self, name: &str, faults: &mut Violations) -> Option<bool> {
        match self.take(name)? {
            Value::Bool(flag) => Some(flag),
            _ => self.wrong(name, "must be true or false", faults),
        }
    }

    /// An object, taken unchanged.
    pub(super) fn object(&mut self, name: &str, faults: &mut Violations) -> Option<Map<String, Value>> {
        match self.take(name)? {
            Value::Object(object) => Some(object),
            _ => self.wrong(name, "must be an object", faults),
        }
    }

    /// An object whose members are read in turn.
    pub(super) fn members(&mut self, name: &str, faults: &mut Violations) -> Option<Self> {
        let at = self.pointer(name);
        self.take(name).map(|value| Self::of(value, at, faults))
    }

    /// A list, each item with its pointer.
    pub(super) fn list(&mut self, name: &str, faults: &mut Violations) -> Vec<(String, Value)> {
        let at = self.pointer(name);
        match self.take(name) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                items.into_iter().enumerate().map(|(index, item)| (format!("{at}/{index}"), item)).collect()
            }
            Some(_) => {
                faults.add(at, FieldCode::InvalidType, "must be an array");
                Vec::new()
            }
        }
    }

    /// A list, or one item in its place.
    pub(super) fn one_or_more(&mut self, name: &str, faults: &mut Violations) -> Vec<(String, Value)> {
        match self.rest.get(name) {
            Some(Value::Array(_)) | None => self.list(name, faults),
            Some(_) => self.take(name).map(|one| (self.pointer(name), one)).into_iter().collect(),
        }
    }

    /// Refuses a member by name if it is there, whatever its value.
    pub(super) fn refuse(&mut self, name: &str, why: &str, faults: &mut Violations) {
        if self.take(name).is_some() {
            faults.add(self.pointer(name), FieldCode::NotAllowed, why);
        }
    }

    /// Refuses the members that were not read.
    pub(super) fn finish(self, faults: &mut Violations) {
        for name in self.rest.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name) {
            faults.add(self.pointer(name), FieldCode::UnknownField, "has no counterpart here; leave it out");
        }
    }

    fn wrong<T>(&self, name: &str, rule: &str, faults: &mut Violations) -> Option<T> {
        faults.add(self.pointer(name), FieldCode::InvalidType, rule);
        None
    }
}

impl Person {
    /// Reads `Ann <ann@example.com>` or `ann@example.com`. The address is not checked.
    pub(super) fn of_mailbox(text: &str) -> Self {
        let bare = || Self { address: text.trim().to_owned(), name: None };
        let Some((name, address)) = text.trim_end().strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) else {
            return bare();
        };
        let name = name.trim();
        let name = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(name);
        let name = name.replace("\\\"", "\"").replace("\\\\", "\\");
        Self { address: address.trim().to_owned(), name: Some(name).filter(|name| !name.is_empty()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mailboxes() {
        for (text, address, name) in [
            ("ann@example.com", "ann@example.com", None),
            (" ann@example.com ", "ann@example.com", None),
            ("Ann <ann@example.com>", "ann@example.com", Some("Ann")),
            ("\"Ann, \\\"A\\\"\" <ann@example.com> ", "ann@example.com", Some("Ann, \"A\"")),
            ("<ann@example.com>", "ann@example.com", None),
            ("Ann ann@example.com>", "Ann ann@example.com>", None),
            ("", "", None),
        ] {
            let expected = Person { address: address.to_owned(), name: name.map(ToOwned::to_owned) };
            assert_eq!(Person::of_mailbox(text), expected, "{text}");
        }
    }
}
