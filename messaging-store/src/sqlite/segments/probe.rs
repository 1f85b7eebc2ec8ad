//! Tests of values while a statement runs.
//!
//! What a value must be is decided here and not in SQL, because core says what case, dates and days mean, and
//! every store shall mean the same. A value is tested where it stands in its JSON; nothing is copied.

use std::collections::HashSet;

use messaging_core::domain::address;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::contact::addresses_in;
use messaging_core::domain::contact::attributes::Attributes;
use messaging_core::domain::segment::filter::{PropertyTest, TagsNeeded, Test};
use rusqlite::types::ValueRef;
use serde::de::{DeserializeSeed as _, Deserializer as _};

use super::super::fault::Fault;
use super::json::{Elements, Member};
use super::rule::{Present, Rule};

/// The tests of a statement, by the numbers that it calls them by.
#[derive(Debug)]
pub(super) struct Probes(pub(super) Vec<Probe>);

/// A test of a column.
#[derive(Debug)]
pub(super) enum Probe {
    /// Of a text.
    Text(Check),
    /// Of an email address, which is stored in its one spelling.
    Email(Check),
    /// Of a time in milliseconds.
    Time(Check),
    /// Of members of a JSON object: the keys from the outside in. All have to pass.
    Members(Vec<(Vec<String>, Check)>),
    /// Of a JSON array of texts.
    Tags(TagsNeeded, HashSet<String>),
}

/// A test that is ready to be used many times.
#[derive(Debug)]
pub(super) struct Check {
    negated: bool,
    rule: Rule,
}

impl Check {
    fn new(test: &Test, present: &Present) -> Self {
        Self { negated: test.negated, rule: Rule::of(test, present) }
    }

    /// The outcome for a value that is missing or null.
    const fn of_nothing(&self) -> bool {
        self.negated
    }

    fn of_member(&self, json: &str, path: &[String]) -> Result<bool, Fault> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let passes = Member { path, rule: &self.rule }.deserialize(&mut deserializer)?;
        Ok(passes != self.negated)
    }
}

impl Probe {
    /// A test of a text column.
    pub(super) fn text(test: &Test, present: &Present) -> Self {
        Self::Text(Check::new(test, present))
    }

    /// A test of the column of email addresses.
    pub(super) fn email(test: &Test, present: &Present) -> Self {
        Self::Email(Check::new(test, present))
    }

    /// A test of a column of times.
    pub(super) fn time(test: &Test, present: &Present) -> Self {
        Self::Time(Check::new(test, present))
    }

    /// A test of a member of an object.
    pub(super) fn member(path: &[String], test: &Test, present: &Present) -> Self {
        Self::Members(vec![(path.to_vec(), Check::new(test, present))])
    }

    /// Tests of members of one object.
    pub(super) fn properties(tests: &[PropertyTest], present: &Present) -> Self {
        Self::Members(tests.iter().map(|one| (one.path.clone(), Check::new(&one.test, present))).collect())
    }

    /// A test of the URL of a click.
    pub(super) fn url(part: &str) -> Self {
        let rule = Rule::contains(part);
        Self::Members(vec![(vec!["url".to_owned()], Check { negated: false, rule })])
    }

    /// A test of tags.
    pub(super) fn tags(needs: TagsNeeded, values: &[String]) -> Self {
        Self::Tags(needs, values.iter().cloned().collect())
    }
}

impl Probes {
    /// Whether a column passes the test with a number.
    pub(super) fn pass(&self, number: usize, value: ValueRef<'_>) -> Result<bool, Fault> {
        const WRONG_COLUMN: Fault = Fault::Malformed("a column is not of the type that is tested");
        let probe = self.0.get(number).ok_or(Fault::Malformed("a test is not there"))?;
        let text = || value.as_str_or_null().map_err(|_| WRONG_COLUMN);
        Ok(match probe {
            Probe::Text(check) => match text()? {
                Some(text) => check.rule.of_text(text) != check.negated,
                None => check.of_nothing(),
            },
            Probe::Email(check) => match text()? {
                Some(text) => check.rule.of_folded(text) != check.negated,
                None => check.of_nothing(),
            },
            Probe::Time(check) => {
                let millis = value.as_i64().map_err(|_| WRONG_COLUMN)?;
                check.rule.of_time(millis) != check.negated
            }
            Probe::Members(members) => {
                let json = text()?;
                for (path, check) in members {
                    let passes = match json {
                        Some(json) => check.of_member(json, path)?,
                        None => check.of_nothing(),
                    };
                    if !passes {
                        return Ok(false);
                    }
                }
                true
            }
            Probe::Tags(needs, wanted) => {
                let held = match text()? {
                    Some(json) => {
                        let mut deserializer = serde_json::Deserializer::from_str(json);
                        deserializer.deserialize_seq(Elements(|tag: &str| wanted.contains(tag)))?
                    }
                    None => 0,
                };
                match needs {
                    TagsNeeded::Any => held > 0,
                    // A contact has each tag once.
                    TagsNeeded::All => held == wanted.len(),
                    TagsNeeded::None => held == 0,
                }
            }
        })
    }
}

/// The addresses that a contact's attributes hold for a channel, as the suppression list spells them.
pub(super) fn addresses(channel: Channel, attributes: ValueRef<'_>) -> Result<Vec<String>, Fault> {
    let json = attributes.as_str_or_null().map_err(|_| Fault::Malformed("attributes are not text"))?;
    let Some(json) = json else { return Ok(Vec::new()) };
    let addresses = addresses_in(&Attributes::parse(json)?, channel);
    Ok(addresses.iter().map(|address| address::normalize(channel, address)).collect())
}
