//! Answers of resolvers, and the times for which they are awaited and kept.

use std::time::Duration;

use hickory_resolver::proto::rr::{Name, RData};

/// Time limit of one query to one server. A resolver that has to walk the tree needs seconds.
pub(super) const TIMEOUT: Duration = Duration::from_secs(4);

/// Number of times a query is repeated when there was no usable answer.
pub(super) const REPEATS: usize = 1;

/// Maximum time for which a negative answer is kept, whatever the zone says: a bounce for want of a domain suppresses
/// the address.
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

/// Result of a look-up, with `is_secure` true if DNSSEC proves that it comes from the owner of the zone.
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

/// Returns the name in lower case, without the final dot.
pub(super) fn plain(name: &Name) -> String {
    let mut text = name.to_ascii().to_ascii_lowercase();
    if text.ends_with('.') {
        text.pop();
    }
    text
}
