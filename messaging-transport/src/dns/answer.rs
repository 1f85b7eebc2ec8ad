//! Answers of resolvers, and how long they are waited for and believed.

use std::time::Duration;

use hickory_resolver::proto::rr::{Name, RData};

/// How long one question to one server may take. A resolver that has to walk the tree needs seconds.
pub(super) const TIMEOUT: Duration = Duration::from_secs(4);

/// How often a question is repeated when there was no usable answer.
pub(super) const REPEATS: usize = 1;

/// That something is not there is believed no longer than this, whatever the zone says: a bounce for
/// want of a domain suppresses the address.
pub(super) const ABSENCE_KEPT: Duration = Duration::from_mins(5);

/// The reason why a lookup gave no records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupFailure {
    /// The name does not exist (NXDOMAIN).
    #[error("the name does not exist")]
    NoSuchDomain,
    /// The name exists without records of this type.
    #[error("the name has no such records")]
    NoRecords,
    /// No usable answer: SERVFAIL, REFUSED, a time-out. Says nothing about the name.
    #[error("the name could not be looked up: {0}")]
    Temporary(String),
}

/// What was found, and whether that is known to be what the owner of the zone says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered<T> {
    pub(crate) found: Result<T, LookupFailure>,
    pub(crate) is_secure: bool,
}

pub(super) fn mail_exchangers(records: Vec<RData>) -> Vec<(u16, String)> {
    let mut exchangers: Vec<_> = records
        .into_iter()
        .filter_map(|data| match data {
            RData::MX(mx) => Some((mx.preference, plain(&mx.exchange))),
            _ => None,
        })
        .collect();
    exchangers.sort();
    exchangers
}

/// Lower case, without the final dot.
pub(super) fn plain(name: &Name) -> String {
    let mut text = name.to_ascii().to_ascii_lowercase();
    if text.ends_with('.') {
        text.pop();
    }
    text
}
