//! Rules of values: the tests of a filter, prepared to be used many times.

use std::collections::HashSet;

use super::super::filter::{Positive, Scalar, Test, When};
use super::super::values::{Dates, Present, fold, read_when};
use crate::time::Timestamp;

/// Rule of a value: the variants of [`Positive`], prepared.
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

/// Part that a text or an array must contain.
#[derive(Debug)]
pub(super) struct Part {
    /// The part in lower case; `None` if it is no text.
    text: Option<String>,
    /// Rule that an element of an array has to follow.
    element: Box<Rule>,
}

impl Part {
    fn of(value: &Scalar) -> Self {
        let text = if let Scalar::Text(text) = value { Some(text.clone()) } else { None };
        Self { text, element: Box::new(Rule::OneOf(Set::of(std::slice::from_ref(value)))) }
    }
}

/// A set of values.
#[derive(Debug, Default)]
pub(super) struct Set {
    texts: HashSet<String>,
    /// In ascending order.
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

/// Makes the two zeros one number.
fn plain(number: f64) -> f64 {
    number + 0.0
}

impl Rule {
    /// Returns the rule of a test, without its negation.
    pub(super) fn of(test: &Test, present: &Present) -> Self {
        match &test.positive {
            Positive::Exists => Self::Exists,
            // Not evaluated before it is replaced; see `Filter::bind`.
            Positive::FromEvent(_) => Self::OneOf(Set::default()),
            Positive::OneOf(values) => Self::OneOf(Set::of(values)),
            Positive::Contains(value) => Self::Contains(Part::of(value)),
            Positive::StartsWith(text) => Self::StartsWith(text.clone()),
            Positive::EndsWith(text) => Self::EndsWith(text.clone()),
            Positive::GreaterThan(number) => Self::GreaterThan(*number),
            Positive::AtLeast(number) => Self::AtLeast(*number),
            Positive::LessThan(number) => Self::LessThan(*number),
            Positive::AtMost(number) => Self::AtMost(*number),
            Positive::Between(least, most) => Self::Between(*least, *most),
            Positive::Date(date) => Self::Date(Dates::of(*date, present.now, &present.zone), present.zone.clone()),
        }
    }

    /// Returns the rule that a text contains another.
    pub(super) fn contains(text: &str) -> Self {
        Self::Contains(Part::of(&Scalar::Text(text.to_owned())))
    }

    pub(super) fn of_text(&self, text: &str) -> bool {
        match self {
            Self::Date(dates, zone) => read_when(text).is_some_and(|when| dates.contain(when, zone)),
            Self::OneOf(set) if set.texts.is_empty() => false,
            Self::OneOf(_) | Self::Contains(_) | Self::StartsWith(_) | Self::EndsWith(_) => self.of_folded(&fold(text)),
            other => matches!(other, Self::Exists),
        }
    }

    /// Returns the outcome for a text that is spelled as texts are compared.
    pub(super) fn of_folded(&self, text: &str) -> bool {
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

    /// Returns the rule for one element of an array; `None` if elements do not matter.
    pub(super) fn element(&self) -> Option<&Self> {
        match self {
            Self::Contains(part) => Some(&part.element),
            _ => None,
        }
    }

    /// Returns the outcome for an array or object with any content.
    pub(super) const fn of_structure(&self) -> bool {
        matches!(self, Self::Exists)
    }

    pub(super) fn of_time(&self, millis: i64) -> bool {
        let time = Timestamp::from_millis(millis);
        match self {
            Self::Date(dates, zone) => dates.contain(When::Moment(time), zone),
            other => matches!(other, Self::Exists),
        }
    }
}
