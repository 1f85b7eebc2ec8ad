//! Reading back: whether the DNS shows the records that a zone was given.
//!
//! Contract section 14.5. The authoritative name servers of the zone count, because a resolver may remember for minutes
//! that a new record was not there. A resolver is asked only where none of them answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of reading back the records of one type at one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DnsReadBackStatus")]
pub enum ReadBackStatus {
    /// Every server that answered has exactly these records.
    Verified,
    /// A server has other records or none.
    Differs,
    /// Neither a name server nor a resolver answered.
    Unanswered,
}

/// Servers that records were read back from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DnsReadBackSource")]
pub enum ReadBackSource {
    /// The authoritative name servers of the zone.
    NameServers,
    /// A resolver, because no name server answered. It may show older records until it forgets them.
    Resolver,
}

/// A server that has other records than those that the zone was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DnsReadBackDifference")]
#[non_exhaustive]
pub struct ReadBackDifference {
    /// Name of the server; null for the resolver.
    pub server: Option<String>,
    /// Values that it has instead.
    pub values: Vec<String>,
}

/// The records of one type at one name in the DNS, compared with those that the zone was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DnsReadBack")]
#[non_exhaustive]
pub struct ReadBack {
    /// Result of the comparison.
    pub status: ReadBackStatus,
    /// Servers that were asked last.
    pub asked: ReadBackSource,
    /// Servers that have other records; empty unless the status is `differs`.
    pub differences: Vec<ReadBackDifference>,
    /// Sentence on why no name server answered; null where one did.
    pub detail: Option<String>,
}

impl ReadBack {
    /// Compares `wanted` with the answers of name servers: the name of each that answered, and its values. `None` when
    /// none did.
    pub fn by_name_servers<'a>(
        wanted: &[String],
        answers: impl IntoIterator<Item = (&'a str, &'a [String])>,
    ) -> Option<Self> {
        let (mut has_answer, mut differences) = (false, Vec::new());
        for (server, values) in answers {
            has_answer = true;
            if !are_same(wanted, values) {
                differences.push(ReadBackDifference { server: Some(server.to_owned()), values: values.to_vec() });
            }
        }
        has_answer.then(|| Self::of(ReadBackSource::NameServers, differences, None))
    }

    /// Compares `wanted` with the answer of a resolver, or the reason why it gave none. `why` says why no name server
    /// answered.
    pub fn by_resolver(wanted: &[String], found: Result<Vec<String>, String>, why: &str) -> Self {
        match found {
            Ok(values) => {
                let is_same = are_same(wanted, &values);
                let differences = if is_same { Vec::new() } else { vec![ReadBackDifference { server: None, values }] };
                let detail = format!(
                    "No authoritative name server answered ({why}). A resolver was asked, which may show older records for \
                     minutes."
                );
                Self::of(ReadBackSource::Resolver, differences, Some(detail))
            }
            Err(reason) => Self {
                status: ReadBackStatus::Unanswered,
                asked: ReadBackSource::Resolver,
                differences: Vec::new(),
                detail: Some(format!(
                    "Neither an authoritative name server ({why}) nor a resolver ({reason}) answered."
                )),
            },
        }
    }

    fn of(asked: ReadBackSource, differences: Vec<ReadBackDifference>, detail: Option<String>) -> Self {
        let status = if differences.is_empty() { ReadBackStatus::Verified } else { ReadBackStatus::Differs };
        Self { status, asked, differences, detail }
    }
}

/// Returns true if two lists have the same values, in whatever order.
fn are_same(one: &[String], other: &[String]) -> bool {
    let sorted = |values: &[String]| {
        let mut values = values.to_vec();
        values.sort_unstable();
        values
    };
    one.len() == other.len() && sorted(one) == sorted(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(values: &[&str]) -> Vec<String> {
        values.iter().map(|&value| value.to_owned()).collect()
    }

    /// `Differs ns2: a, b`.
    fn said(read: &ReadBack) -> String {
        let difference = |one: &ReadBackDifference| {
            format!(" {}: {}", one.server.as_deref().unwrap_or("resolver"), one.values.join(", "))
        };
        format!("{:?}{}", read.status, read.differences.iter().map(difference).collect::<String>())
    }

    #[track_caller]
    fn check_servers(answers: &[(&str, &[&str])], expected: Option<&str>) {
        let answers: Vec<_> = answers.iter().map(|(server, values)| (*server, list(values))).collect();
        let answers = answers.iter().map(|(server, values)| (*server, values.as_slice()));
        let read = ReadBack::by_name_servers(&list(&["a", "b"]), answers);
        assert_eq!(read.as_ref().map(said).as_deref(), expected);
        assert!(read.is_none_or(|read| read.asked == ReadBackSource::NameServers && read.detail.is_none()));
    }

    #[test]
    fn every_name_server_that_answers_must_have_the_records() {
        check_servers(&[], None);
        check_servers(&[("ns1", &["a", "b"])], Some("Verified"));
        check_servers(&[("ns1", &["b", "a"]), ("ns2", &["a", "b"])], Some("Verified"));
        check_servers(&[("ns1", &["a", "b"]), ("ns2", &[])], Some("Differs ns2: "));
        check_servers(&[("ns1", &["a"]), ("ns2", &["a", "b", "c"])], Some("Differs ns1: a ns2: a, b, c"));
        check_servers(&[("ns1", &["a", "a"])], Some("Differs ns1: a, a"));
        check_servers(&[("ns1", &["A", "b"])], Some("Differs ns1: A, b"));
    }

    #[track_caller]
    fn check_resolver(found: Result<&[&str], &str>, expected: &str, detail: &str) {
        let found = found.map(list).map_err(str::to_owned);
        let read = ReadBack::by_resolver(&list(&["a"]), found, "ns1: no answer in time");
        assert_eq!((said(&read).as_str(), read.asked), (expected, ReadBackSource::Resolver));
        let said = read.detail.unwrap();
        assert!(said.contains("(ns1: no answer in time)") && said.contains(detail), "{said}");
    }

    #[test]
    fn the_answer_of_a_resolver_is_told_as_one() {
        check_resolver(Ok(&["a"]), "Verified", "A resolver was asked");
        check_resolver(Ok(&[]), "Differs resolver: ", "A resolver was asked");
        check_resolver(Err("SERVFAIL"), "Unanswered", "nor a resolver (SERVFAIL)");
    }
}
