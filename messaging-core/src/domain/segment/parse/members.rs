//! Members of a condition: which there are, and what JSON type they have.

use serde_json::{Map, Value};

use super::reader::{GROUPS, MAX_VALUES, Reader};
use crate::violation::{FieldCode, escape};

/// An object and where it stands.
pub(super) struct Members<'a> {
    pub(super) object: &'a Map<String, Value>,
    pub(super) pointer: &'a str,
}

impl<'a> Members<'a> {
    /// The pointer of a member.
    pub(super) fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.pointer)
    }

    /// The pointer of an item of a member.
    pub(super) fn item(&self, name: &str, index: usize) -> String {
        format!("{}/{name}/{index}", self.pointer)
    }

    /// A member that may be left out; null is as good as that.
    pub(super) fn optional(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }
}

impl Reader<'_> {
    /// Refuses members that are not known, or notes them where they are ignored.
    pub(super) fn no_members_but(&mut self, object: &Map<String, Value>, pointer: &str, known: &[&str]) {
        for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
            let at = format!("{pointer}/{}", escape(name));
            match &mut self.ignored {
                Some(ignored) if !GROUPS.contains(&name.as_str()) => ignored.push(at),
                _ => {
                    self.is_broken = true;
                    self.violations.add_unknown(at, known.iter().copied(), name);
                }
            }
        }
    }

    /// A member that is needed.
    pub(super) fn required<'v>(&mut self, members: &Members<'v>, name: &str) -> Option<&'v Value> {
        let value = members.optional(name);
        if value.is_none() {
            self.fault(members.at(name), FieldCode::Required, "is required");
        }
        value
    }

    /// A member that is needed, a text.
    pub(super) fn text<'v>(&mut self, members: &Members<'v>, name: &str, longest: usize) -> Option<&'v str> {
        let value = self.required(members, name)?;
        self.string(value, &members.at(name), longest)
    }

    /// A text that is not empty.
    pub(super) fn string<'v>(&mut self, value: &'v Value, pointer: &str, longest: usize) -> Option<&'v str> {
        let text = self.any_string(value, pointer, longest)?;
        if text.is_empty() {
            self.fault(pointer, FieldCode::Required, "must not be empty");
            return None;
        }
        Some(text)
    }

    /// A text, empty or not.
    pub(super) fn any_string<'v>(&mut self, value: &'v Value, pointer: &str, longest: usize) -> Option<&'v str> {
        let Value::String(text) = value else {
            self.fault(pointer, FieldCode::InvalidType, "must be a string");
            return None;
        };
        if text.contains('\0') {
            self.fault(pointer, FieldCode::InvalidFormat, "must not contain U+0000");
        } else if text.chars().count() > longest {
            self.fault(pointer, FieldCode::TooLong, &format!("must have at most {longest} characters"));
        } else {
            return Some(text);
        }
        None
    }

    /// A member that is needed, one of some words.
    pub(super) fn one_of<T: Copy>(&mut self, members: &Members<'_>, name: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(members, name, usize::MAX)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let rule = format!("must be one of {}", words.join(", "));
            self.fault(members.at(name), FieldCode::UnknownValue, &rule);
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// A member that is needed, an array of one to `most` items.
    pub(super) fn array<'v>(&mut self, members: &Members<'v>, name: &str, most: usize) -> Option<&'v [Value]> {
        let value = self.required(members, name)?;
        self.items(value, &members.at(name), 1, most)
    }

    /// An array of `least` to `most` items.
    pub(super) fn items<'v>(
        &mut self,
        value: &'v Value,
        pointer: &str,
        least: usize,
        most: usize,
    ) -> Option<&'v [Value]> {
        let Value::Array(items) = value else {
            self.fault(pointer, FieldCode::InvalidType, "must be an array");
            return None;
        };
        if items.len() < least {
            self.fault(pointer, FieldCode::TooShort, &format!("must have at least {least} items"));
        } else if items.len() > most.min(MAX_VALUES) {
            self.fault(pointer, FieldCode::TooManyItems, &format!("must have at most {most} items"));
        } else {
            return Some(items);
        }
        None
    }

    /// An object that is a value, with no members but these.
    pub(super) fn object<'v>(&mut self, value: &'v Value, pointer: &'v str, known: &[&str]) -> Option<Members<'v>> {
        let Value::Object(object) = value else {
            self.fault(pointer, FieldCode::InvalidType, "must be an object");
            return None;
        };
        self.no_members_but(object, pointer, known);
        Some(Members { object, pointer })
    }

    /// A member that is needed, a whole number from `least` to `most`. `2.0` is one.
    pub(super) fn integer(&mut self, members: &Members<'_>, name: &str, least: i64, most: i64) -> Option<i64> {
        let value = self.required(members, name)?;
        let Some(number) = value.as_f64().filter(|number| number.fract() == 0.0) else {
            self.fault(members.at(name), FieldCode::InvalidType, "must be a whole number");
            return None;
        };
        // Casting stops at the ends of the type, which are out of range as well.
        #[expect(clippy::cast_possible_truncation, reason = "the number is whole")]
        let number = value.as_i64().unwrap_or(number as i64);
        if !(least..=most).contains(&number) {
            self.fault(members.at(name), FieldCode::OutOfRange, &format!("must be from {least} to {most}"));
            return None;
        }
        Some(number)
    }
}
