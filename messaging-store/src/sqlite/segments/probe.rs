//! Tests of values while a statement runs.
//!
//! What a value must be is decided here and not in SQL, because core says what case, dates and days mean, and
//! every store shall mean the same. A value is tested where it stands in its JSON; nothing is copied.

use std::collections::HashSet;

use messaging_core::domain::address;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::contact::addresses_in;
use messaging_core::domain::contact::attributes::Attributes;
use messaging_core::domain::segment::filter::{Positive, PropertyTest, Scalar, TagsNeeded, Test, When};
use messaging_core::domain::segment::values::{Dates, fold, read_when};
use messaging_core::time::Timestamp;
use rusqlite::types::ValueRef;
use serde::de::{DeserializeSeed as _, Deserializer as _};

use super::super::fault::Fault;
use super::json::{Elements, Member};

/// When and where it is.
#[derive(Debug, Clone)]
pub(super) struct Present {
    pub(super) now: Timestamp,
    pub(super) zone: jiff::tz::TimeZone,
}

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

/// What a value must be. The members of [`Positive`], prepared.
#[derive(Debug)]
pub(super) enum Rule {
    Exists,
    OneOf(Set),
    Contains(Part),
    StartsWith(String),
    EndsWith(String),
    GreaterThan(f64),
    AtLeast(f64),
    LessThan(f64),
    AtMost(f64),
    Between(f64, f64),
    Date(Dates, jiff::tz::TimeZone),
}

/// What a text or an array must contain.
#[derive(Debug)]
pub(super) struct Part {
    /// Lower case; `None` when it is no text.
    text: Option<String>,
    /// The rule that an element of an array has to follow.
    element: Box<Rule>,
}

impl Part {
    fn of(value: &Scalar) -> Self {
        let text = if let Scalar::Text(text) = value { Some(text.clone()) } else { None };
        Self { text, element: Box::new(Rule::OneOf(Set::of(std::slice::from_ref(value)))) }
    }
}

/// Some values.
#[derive(Debug, Default)]
pub(super) struct Set {
    texts: HashSet<String>,
    /// In order.
    numbers: Vec<f64>,
    booleans: Vec<bool>,
}

impl Set {
    fn of(values: &[Scalar]) -> Self {
        let mut set = Self::default();
        for value in values {
            match value {
                Scalar::Text(text) => drop(set.texts.insert(text.clone())),
                Scalar::Number(number) => set.numbers.push(plain(*number)),
                Scalar::Boolean(boolean) => set.booleans.push(*boolean),
            }
        }
        set.numbers.sort_unstable_by(f64::total_cmp);
        set
    }
}

/// The two zeros are one number.
fn plain(number: f64) -> f64 {
    number + 0.0
}

impl Check {
    fn new(test: &Test, present: &Present) -> Self {
        let rule = match &test.positive {
            Positive::Exists => Rule::Exists,
            Positive::OneOf(values) => Rule::OneOf(Set::of(values)),
            Positive::Contains(value) => Rule::Contains(Part::of(value)),
            Positive::StartsWith(text) => Rule::StartsWith(text.clone()),
            Positive::EndsWith(text) => Rule::EndsWith(text.clone()),
            Positive::GreaterThan(number) => Rule::GreaterThan(*number),
            Positive::AtLeast(number) => Rule::AtLeast(*number),
            Positive::LessThan(number) => Rule::LessThan(*number),
            Positive::AtMost(number) => Rule::AtMost(*number),
            Positive::Between(least, most) => Rule::Between(*least, *most),
            Positive::Date(date) => Rule::Date(Dates::of(*date, present.now, &present.zone), present.zone.clone()),
        };
        Self { negated: test.negated, rule }
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

impl Rule {
    pub(super) fn of_text(&self, text: &str) -> bool {
        match self {
            Self::Date(dates, zone) => read_when(text).is_some_and(|when| dates.contain(when, zone)),
            Self::OneOf(set) if set.texts.is_empty() => false,
            Self::OneOf(_) | Self::Contains(_) | Self::StartsWith(_) | Self::EndsWith(_) => self.of_folded(&fold(text)),
            other => matches!(other, Self::Exists),
        }
    }

    /// The outcome for a text that is spelled as texts are compared.
    fn of_folded(&self, text: &str) -> bool {
        match self {
            Self::Exists => true,
            Self::OneOf(set) => set.texts.contains(text),
            Self::Contains(Part { text: Some(part), .. }) => text.contains(part),
            Self::StartsWith(part) => text.starts_with(part),
            Self::EndsWith(part) => text.ends_with(part),
            _ => false,
        }
    }

    pub(super) fn of_number(&self, number: f64) -> bool {
        match self {
            Self::Exists => true,
            Self::OneOf(set) => set.numbers.binary_search_by(|one| one.total_cmp(&plain(number))).is_ok(),
            Self::GreaterThan(bound) => number > *bound,
            Self::AtLeast(bound) => number >= *bound,
            Self::LessThan(bound) => number < *bound,
            Self::AtMost(bound) => number <= *bound,
            Self::Between(least, most) => (*least..=*most).contains(&number),
            _ => false,
        }
    }

    pub(super) fn of_boolean(&self, boolean: bool) -> bool {
        match self {
            Self::Exists => true,
            Self::OneOf(set) => set.booleans.contains(&boolean),
            _ => false,
        }
    }

    /// What one element of an array has to be; `None` when elements do not matter.
    pub(super) fn element(&self) -> Option<&Self> {
        match self {
            Self::Contains(part) => Some(&part.element),
            _ => None,
        }
    }

    /// The outcome for an array or object, whatever is in it.
    pub(super) const fn of_structure(&self) -> bool {
        matches!(self, Self::Exists)
    }

    fn of_time(&self, millis: i64) -> bool {
        let time = Timestamp::from_millis(millis);
        match self {
            Self::Date(dates, zone) => dates.contain(When::Moment(time), zone),
            other => matches!(other, Self::Exists),
        }
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
        let rule = Rule::Contains(Part::of(&Scalar::Text(part.to_owned())));
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
