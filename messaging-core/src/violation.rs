//! Field errors of a request, collected so that all are reported at once.
//!
//! Contract section 1.4: a pointer into the body (RFC 6901) or the name of a query parameter, path parameter or header;
//! a code; a sentence that names the rule and never the rejected value.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

/// Maximum number of violations that are reported (contract section 1.4).
pub const MAX_REPORTED: usize = 100;

/// Unknown members of a request for which the nearest known name is looked up.
pub const MAX_SUGGESTIONS: usize = 10;

/// Maximum length of a pointer, in bytes. A deeper place is reported by the place around it.
pub(crate) const MAX_POINTER: usize = 1024;

/// The field codes of contract section 1.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the documentation; they are those of the contract")]
pub enum FieldCode {
    Required,
    InvalidType,
    InvalidFormat,
    TooShort,
    TooLong,
    OutOfRange,
    TooManyItems,
    TooLarge,
    UnknownValue,
    UnknownField,
    NotFound,
    NotAllowed,
    Duplicate,
    Immutable,
    Conflict,
    Syntax,
}

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The member or parameter.
    #[serde(flatten)]
    pub at: At,
    /// Code of the rule, for programs.
    pub code: FieldCode,
    /// Sentence that names the rule, for people.
    pub message: String,
    /// Place of the error in a text of several lines.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

/// A place in a source, for people: both count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character within the line.
    pub column: usize,
}

impl Position {
    /// Returns the position of a byte offset.
    pub fn of(source: &str, offset: usize) -> Self {
        let mut offset = offset.min(source.len());
        while !source.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &source[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

/// The place in a request where a rule was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// An RFC 6901 pointer into the body; empty for the body itself.
    Pointer(String),
    /// The name of a query parameter, path parameter or header.
    Parameter(String),
}

/// The broken rules of one request, in the order they were found, one per place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Returns an empty collection.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a violation of the body. A place that has one already keeps its first.
    pub fn add(&mut self, pointer: impl Into<String>, code: FieldCode, message: impl Display) {
        self.push(At::Pointer(pointer.into()), code, message, None);
    }

    /// Adds a member that is not among the `known` ones. The first of these are told the nearest known name.
    pub fn add_unknown<'a>(&mut self, pointer: impl Into<String>, known: impl Iterator<Item = &'a str>, name: &str) {
        if self.is_full() {
            return;
        }
        let others = self.0.iter().filter(|other| other.code == FieldCode::UnknownField).count();
        if others < MAX_SUGGESTIONS {
            self.add(pointer, FieldCode::UnknownField, unknown_member(known, name));
        } else {
            self.add(pointer, FieldCode::UnknownField, NO_MEMBER);
        }
    }

    /// Adds a violation at a position in a text of the body.
    pub fn add_at(&mut self, pointer: &str, code: FieldCode, message: impl Display, position: Option<Position>) {
        self.push(At::Pointer(pointer.to_owned()), code, message, position);
    }

    /// Adds a violation of a parameter.
    pub fn add_parameter(&mut self, name: impl Into<String>, code: FieldCode, message: impl Display) {
        self.push(At::Parameter(name.into()), code, message, None);
    }

    fn push(&mut self, mut at: At, code: FieldCode, message: impl Display, position: Option<Position>) {
        if self.is_full() {
            return;
        }
        if let At::Pointer(pointer) = &mut at
            && pointer.len() > MAX_POINTER
        {
            let end = pointer.floor_char_boundary(MAX_POINTER);
            pointer.truncate(pointer[..end].rfind('/').unwrap_or_default());
        }
        if !self.0.iter().any(|known| known.at == at) {
            self.0.push(Violation { at, code, message: message.to_string(), position });
        }
    }

    /// Adds the violations of `other` unless their place, a place above it or one inside it has one already: a member
    /// that is broken in part is not also broken as a whole.
    pub fn merge(&mut self, other: Self) {
        for violation in other.0 {
            let covered = match &violation.at {
                At::Pointer(pointer) => self.0.iter().any(|known| match &known.at {
                    At::Pointer(known) => is_within(pointer, known) || is_within(known, pointer),
                    At::Parameter(_) => false,
                }),
                At::Parameter(_) => false,
            };
            if !covered {
                self.push(violation.at, violation.code, violation.message, violation.position);
            }
        }
    }

    /// Returns the violations with their pointers below `outer`, for a body that is part of another.
    #[must_use]
    pub fn below(self, outer: &str) -> Self {
        let mut moved = Self::new();
        for violation in self.0 {
            let at = match violation.at {
                At::Pointer(pointer) => At::Pointer(format!("{outer}{pointer}")),
                parameter @ At::Parameter(_) => parameter,
            };
            moved.push(at, violation.code, violation.message, violation.position);
        }
        moved
    }

    /// Returns the violations as those of a query, whose members are parameters.
    pub(crate) fn of_parameters(self) -> Self {
        let mut renamed = Self::new();
        for violation in self.0 {
            let at = match violation.at {
                At::Pointer(pointer) => {
                    At::Parameter(pointer.split('/').nth(1).unwrap_or_default().replace("~1", "/").replace("~0", "~"))
                }
                parameter @ At::Parameter(_) => parameter,
            };
            renamed.push(at, violation.code, violation.message, violation.position);
        }
        renamed
    }

    /// True if there is a violation at a pointer or inside it.
    pub(crate) fn is_at(&self, pointer: &str) -> bool {
        self.0.iter().any(|known| matches!(&known.at, At::Pointer(place) if is_within(place, pointer)))
    }

    /// True if as many were found as are reported.
    pub(crate) const fn is_full(&self) -> bool {
        self.0.len() >= MAX_REPORTED
    }

    /// True if no rule was broken.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the violations, in the order in which they were found.
    pub fn as_slice(&self) -> &[Violation] {
        &self.0
    }

    /// Returns `Ok` if there is no violation.
    pub fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }

    /// Returns a summary, such as `2 fields are invalid`.
    pub fn summary(&self) -> String {
        match self.0.len() {
            1 => "1 field is invalid".to_owned(),
            count => format!("{count} fields are invalid"),
        }
    }
}

/// True if a pointer names the place `outer` or one inside it. The whole body does not count as a place.
fn is_within(pointer: &str, outer: &str) -> bool {
    !outer.is_empty() && pointer.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the violations of a request that breaks exactly one rule.
pub fn refuse(pointer: &str, code: FieldCode, message: impl Display) -> Violations {
    let mut violations = Violations::new();
    violations.add(pointer, code, message);
    violations
}

/// Escapes a member name for use in a pointer (RFC 6901 section 3).
pub fn escape(member: &str) -> String {
    member.replace('~', "~0").replace('/', "~1")
}

/// Returns the name of a member from its part of a JSON pointer: the argument of [`escape`].
pub fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Message for an unknown member.
pub(crate) const NO_MEMBER: &str = "is not a member of this";

/// Returns the message for a member that is not among the `known` ones: it names the nearest one by edit distance,
/// never the name that was sent.
fn unknown_member<'a>(known: impl Iterator<Item = &'a str>, name: &str) -> String {
    /// Number of characters of a name that are compared; the rest is ignored.
    const COMPARED: usize = 64;
    /// Least similarity of a name and its misspelling.
    const ALIKE: f64 = 0.5;
    let given: String = name.chars().take(COMPARED).flat_map(char::to_lowercase).collect();
    // Of two equally near names the one with the longer common beginning wins: `ccc` is rather `cc` than `bcc`.
    let likeness = |known: &str| {
        let common = known.chars().zip(given.chars()).take_while(|(known, given)| known == given).count();
        (strsim::normalized_damerau_levenshtein(known, &given), common)
    };
    let nearest = known
        .map(|known| (known, likeness(known)))
        .max_by(|(_, one), (_, other)| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    match nearest {
        Some((nearest, (likeness, _))) if likeness >= ALIKE => {
            format!("is not a member of this; did you mean {nearest}?")
        }
        Some((nearest, _)) => format!("is not a member of this; the nearest known name is {nearest}"),
        None => "is not a member of this, which has none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_far_down_is_reported_by_what_is_around_it() {
        let long = "x".repeat(MAX_POINTER);
        for (pointer, expected) in [
            (format!("/a/{}", "b".repeat(MAX_POINTER - 3)), format!("/a/{}", "b".repeat(MAX_POINTER - 3))),
            (format!("/a/{long}"), "/a".to_owned()),
            (format!("/{long}/a"), String::new()),
            (format!("/a/b/{}", "ü".repeat(MAX_POINTER)), "/a/b".to_owned()),
        ] {
            let found = refuse(&pointer, FieldCode::InvalidType, "is wrong");
            assert_eq!(found.as_slice()[0].at, At::Pointer(expected));
        }
    }

    #[test]
    fn a_hundred_are_kept_and_the_first_unknown_names_get_suggestions() {
        let mut found = Violations::new();
        for index in 0..200 {
            found.add_unknown(format!("/{index}"), ["subject"].into_iter(), "subjekt");
        }
        assert_eq!(found.as_slice().len(), MAX_REPORTED);
        let suggested = found.as_slice().iter().filter(|one| one.message.contains("did you mean subject?")).count();
        assert_eq!(suggested, MAX_SUGGESTIONS);
    }
}
