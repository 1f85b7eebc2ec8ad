//! Numeric and binary formats of stored audiences.

use messaging_core::domain::campaign::audience::{AudienceSet, AudienceVerdict};
use messaging_core::domain::segment::filter::{Condition, Filter};
use messaging_core::time::Timestamp;

use crate::pages::number;

/// Stored kind of recipients who are due at some time; verdicts are stored as their own numbers.
const RECIPIENTS: i64 = 5;
/// Stored kind of the test group.
const TEST_GROUP: i64 = 6;

/// Length of an entry for an address that is left out: place and digest, in bytes.
const ENTRY: usize = 10;

/// Key of a set in its row: kind and due time, which is 0 if there is none.
pub(crate) fn set_key(set: AudienceSet) -> (i64, i64) {
    match set {
        AudienceSet::Left(verdict) => (number(&AudienceVerdict::ALL, &verdict), 0),
        AudienceSet::Recipients(due_at) => (RECIPIENTS, due_at.as_millis()),
        AudienceSet::TestGroup => (TEST_GROUP, 0),
    }
}

/// Returns the set with a key; `None` for other values.
pub(crate) fn set_of_key((kind, due_at): (i64, i64)) -> Option<AudienceSet> {
    Some(match kind {
        RECIPIENTS => AudienceSet::Recipients(Timestamp::from_millis(due_at)),
        TEST_GROUP => AudienceSet::TestGroup,
        verdict => AudienceSet::Left(*AudienceVerdict::ALL.get(usize::try_from(verdict).ok()?)?),
    })
}

/// Places and digests of addresses that are left out, as bytes.
pub(crate) fn left_out_bytes(entries: &[(u16, u64)]) -> Vec<u8> {
    let entry = |(place, digest): &(u16, u64)| [&place.to_le_bytes()[..], &digest.to_le_bytes()].concat();
    entries.iter().flat_map(entry).collect()
}

/// Reads places and digests from bytes; `None` if the length is wrong.
pub(crate) fn left_out_entries(bytes: &[u8]) -> Option<impl Iterator<Item = (u16, u64)>> {
    let (entries, []) = bytes.as_chunks::<ENTRY>() else { return None };
    let entry = |[a, b, digest @ ..]: &[u8; ENTRY]| (u16::from_le_bytes([*a, *b]), u64::from_le_bytes(*digest));
    Some(entries.iter().map(entry))
}

/// Ascending digests of addresses, as bytes.
pub(crate) fn digest_bytes(digests: &[u64]) -> Vec<u8> {
    let mut digests = digests.to_vec();
    digests.sort_unstable();
    digests.iter().flat_map(|digest| digest.to_le_bytes()).collect()
}

/// Adds those of the ascending digests `asked` that are in `bytes`. Returns false if the bytes are no digests.
pub(crate) fn common(asked: &[u64], bytes: &[u8], found: &mut Vec<u64>) -> bool {
    let (digests, []) = bytes.as_chunks::<8>() else { return false };
    let mut asked = asked.iter().copied().peekable();
    for digest in digests.iter().map(|digest| u64::from_le_bytes(*digest)) {
        while asked.next_if(|asked| *asked < digest).is_some() {}
        found.extend(asked.next_if_eq(&digest));
    }
    true
}

/// Returns a filter that matches if any of the filters does; `None` if there are none.
pub(crate) fn any_of(filters: &[Filter]) -> Option<Filter> {
    let conditions: Vec<Condition> = filters
        .iter()
        .filter_map(|filter| match filter {
            Filter::Everyone => None,
            Filter::Where(condition) => Some(condition.clone()),
        })
        .collect();
    match filters {
        [] => None,
        _ if conditions.len() < filters.len() => Some(Filter::Everyone),
        _ => Some(Filter::Where(Condition::Or(conditions))),
    }
}
