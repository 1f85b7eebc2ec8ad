//! Replaces `value_from` in filters by values of the event that entered a contact into an automation.
//!
//! Contract sections 9.1 and 13.4, "Entry". Only filters of automations have it. It is replaced before a store is
//! asked, so stores never see it.

use serde_json::{Map, Value};

use super::event::value_at;
use super::filter::{Condition, EventLeaf, Filter, Leaf, Positive, PropertyTest, Test};
use super::parse::test_with;

impl Filter {
    /// The filter with every `value_from` replaced by the value of `event`. Where the value is missing, or has a type
    /// that the operator does not accept, the test matches nothing; a negated operator such as `neq` then matches
    /// everything.
    pub fn bind(&self, event: &Map<String, Value>) -> Self {
        match self {
            Self::Everyone => Self::Everyone,
            Self::Where(condition) => Self::Where(condition.bind(event)),
        }
    }

    /// The leaves of the filter in order, each with its JSON pointer. `pointer` is that of the filter itself.
    pub fn leaves_at(&self, pointer: &str) -> Vec<(String, &Leaf)> {
        let mut found = Vec::new();
        if let Self::Where(condition) = self {
            condition.leaves_at(pointer.to_owned(), &mut found);
        }
        found
    }
}

impl Condition {
    fn bind(&self, event: &Map<String, Value>) -> Self {
        let bind_all = |parts: &[Self]| parts.iter().map(|part| part.bind(event)).collect();
        match self {
            Self::And(parts) => Self::And(bind_all(parts)),
            Self::Or(parts) => Self::Or(bind_all(parts)),
            Self::Not(part) => Self::Not(Box::new(part.bind(event))),
            Self::Leaf(leaf) => Self::Leaf(leaf.bind(event)),
        }
    }

    fn leaves_at<'c>(&'c self, pointer: String, found: &mut Vec<(String, &'c Leaf)>) {
        let mut all = |parts: &'c [Self], name: &str| {
            for (index, part) in parts.iter().enumerate() {
                part.leaves_at(format!("{pointer}/{name}/{index}"), found);
            }
        };
        match self {
            Self::And(parts) => all(parts, "and"),
            Self::Or(parts) => all(parts, "or"),
            Self::Not(part) => part.leaves_at(format!("{pointer}/not"), found),
            Self::Leaf(leaf) => found.push((pointer, leaf)),
        }
    }
}

impl Leaf {
    /// See [`Filter::bind`].
    pub fn bind(&self, event: &Map<String, Value>) -> Self {
        match self {
            Self::Field(field, test) => Self::Field(*field, test.bind(event)),
            Self::Attribute(path, test) => Self::Attribute(path.clone(), test.bind(event)),
            Self::Event(leaf) => Self::Event(leaf.bind(event)),
            other => other.clone(),
        }
    }
}

impl EventLeaf {
    /// See [`Filter::bind`].
    pub fn bind(&self, event: &Map<String, Value>) -> Self {
        let properties = self.properties.iter().map(|test| test.bind(event)).collect();
        Self { name: self.name.clone(), properties, ..*self }
    }
}

impl PropertyTest {
    /// See [`Filter::bind`].
    pub fn bind(&self, event: &Map<String, Value>) -> Self {
        Self { path: self.path.clone(), test: self.test.bind(event) }
    }
}

impl Test {
    /// See [`Filter::bind`].
    pub fn bind(&self, event: &Map<String, Value>) -> Self {
        let Positive::FromEvent(from) = &self.positive else { return self.clone() };
        let positive = value_at(event, &from.path).and_then(|value| test_with(from, value));
        Self { negated: self.negated, positive: positive.unwrap_or(Positive::NEVER) }
    }
}

#[cfg(test)]
mod tests;
