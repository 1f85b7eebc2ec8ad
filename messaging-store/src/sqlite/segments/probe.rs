//! Tests of values while a statement runs.
//!
//! Conditions on values are decided by core and not in SQL, so that they mean the same in every store. This module
//! finds the test that a statement calls by number, and reads the column.

use messaging_core::domain::segment::filter::{PropertyTest, TagsNeeded, Test};
use messaging_core::domain::segment::value_test::{TagsTest, ValueTest};
use messaging_core::domain::segment::values::Present;
use rusqlite::types::ValueRef;

use super::super::fault::Fault;

/// The tests of a statement, in the order of the numbers by which it calls them.
#[derive(Debug)]
pub(super) struct Probes(pub(super) Vec<Probe>);

/// A test of a column.
#[derive(Debug)]
pub(super) enum Probe {
    /// Of a text.
    Text(ValueTest),
    /// Of an email address, which is stored in its one spelling.
    Email(ValueTest),
    /// Of a time in milliseconds.
    Time(ValueTest),
    /// Of members of a JSON object: the keys from the outside in. All have to pass.
    Members(Vec<(Vec<String>, ValueTest)>),
    /// Of a JSON array of texts.
    Tags(TagsTest),
}

impl Probe {
    /// Creates a test of a text column.
    pub(super) fn text(test: &Test, present: &Present) -> Self {
        Self::Text(ValueTest::new(test, present))
    }

    /// Creates a test of the column of email addresses.
    pub(super) fn email(test: &Test, present: &Present) -> Self {
        Self::Email(ValueTest::new(test, present))
    }

    /// Creates a test of a column of times.
    pub(super) fn time(test: &Test, present: &Present) -> Self {
        Self::Time(ValueTest::new(test, present))
    }

    /// Creates a test of a member of an object.
    pub(super) fn member(path: &[String], test: &Test, present: &Present) -> Self {
        Self::Members(vec![(path.to_vec(), ValueTest::new(test, present))])
    }

    /// Creates tests of members of one object.
    pub(super) fn properties(tests: &[PropertyTest], present: &Present) -> Self {
        Self::Members(tests.iter().map(|one| (one.path.clone(), ValueTest::new(&one.test, present))).collect())
    }

    /// Creates a test of the URL of a click.
    pub(super) fn url(part: &str) -> Self {
        Self::Members(vec![(vec!["url".to_owned()], ValueTest::contains(part))])
    }

    /// Creates a test of tags.
    pub(super) fn tags(needs: TagsNeeded, values: &[String]) -> Self {
        Self::Tags(TagsTest::new(needs, values))
    }
}

impl Probes {
    /// Returns true if a column passes the test with a number.
    pub(super) fn pass(&self, number: usize, value: ValueRef<'_>) -> Result<bool, Fault> {
        const WRONG_COLUMN: Fault = Fault::Malformed("a column is not of the type that is tested");
        let probe = self.0.get(number).ok_or(Fault::Malformed("a test is not there"))?;
        let text = || value.as_str_or_null().map_err(|_| WRONG_COLUMN);
        Ok(match probe {
            Probe::Text(test) => test.of_text(text()?),
            Probe::Email(test) => test.of_email(text()?),
            Probe::Time(test) => test.of_time(value.as_i64().map_err(|_| WRONG_COLUMN)?),
            Probe::Members(members) => {
                let json = text()?;
                for (path, test) in members {
                    if !test.of_member(json, path)? {
                        return Ok(false);
                    }
                }
                true
            }
            Probe::Tags(test) => test.of_tags(text()?)?,
        })
    }
}
