//! Tests of single values, prepared for stores that test very many.
//!
//! The meaning of conditions on values (case, numbers, days and their zone, elements of arrays) is defined here and in
//! [`values`](super::values), and nowhere in a store: a store passes the value as it keeps it, a text, a time or JSON.
//! The same tables of cases are run against these tests and against [`matching`](super::matching). A value is tested
//! where it stands in its JSON; nothing of it is copied.

mod json;
mod rule;

use std::collections::HashSet;

use serde::de::{DeserializeSeed as _, Deserializer as _};

use self::json::{Elements, Member};
use self::rule::Rule;
use super::filter::{TagsNeeded, Test};
use super::values::Present;

/// A test of a value that is ready to be used many times.
#[derive(Debug)]
pub struct ValueTest {
    negated: bool,
    rule: Rule,
}

impl ValueTest {
    /// Prepares the test of a filter for a time and a zone.
    #[must_use]
    pub fn new(test: &Test, present: &Present) -> Self {
        Self { negated: test.negated, rule: Rule::of(test, present) }
    }

    /// Returns the test that a text contains a part, which is spelled as texts are compared
    /// ([`fold`](super::values::fold)).
    #[must_use]
    pub fn contains(part: &str) -> Self {
        Self { negated: false, rule: Rule::contains(part) }
    }

    /// True if a text passes; `None` is a missing text.
    #[must_use]
    pub fn of_text(&self, text: Option<&str>) -> bool {
        text.is_some_and(|text| self.rule.of_text(text)) != self.negated
    }

    /// True if an email address in its one spelling passes; it is case-sensitive outside of ASCII.
    #[must_use]
    pub fn of_email(&self, address: Option<&str>) -> bool {
        address.is_some_and(|address| self.rule.of_folded(address)) != self.negated
    }

    /// True if a time passes, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn of_time(&self, millis: i64) -> bool {
        self.rule.of_time(millis) != self.negated
    }

    /// True if the member of a JSON object at a path passes, with its keys from the outside in. Without an object, or
    /// without the member, the value is missing. Fails on text that is no JSON.
    pub fn of_member(&self, json: Option<&str>, path: &[String]) -> serde_json::Result<bool> {
        let Some(json) = json else { return Ok(self.negated) };
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let passes = Member { path, rule: &self.rule }.deserialize(&mut deserializer)?;
        Ok(passes != self.negated)
    }
}

/// A test of tags that is ready to be used many times.
#[derive(Debug)]
pub struct TagsTest {
    needs: TagsNeeded,
    wanted: HashSet<String>,
}

impl TagsTest {
    /// Prepares the test of a filter.
    #[must_use]
    pub fn new(needs: TagsNeeded, values: &[String]) -> Self {
        Self { needs, wanted: values.iter().cloned().collect() }
    }

    /// True if tags pass, as a JSON array of different texts; `None` is no tag. Fails on text that is no such array.
    pub fn of_tags(&self, json: Option<&str>) -> serde_json::Result<bool> {
        let held = match json {
            Some(json) => {
                let mut deserializer = serde_json::Deserializer::from_str(json);
                deserializer.deserialize_seq(Elements(|tag: &str| self.wanted.contains(tag)))?
            }
            None => 0,
        };
        Ok(match self.needs {
            TagsNeeded::Any => held > 0,
            // A contact has each tag once.
            TagsNeeded::All => held == self.wanted.len(),
            TagsNeeded::None => held == 0,
        })
    }
}
