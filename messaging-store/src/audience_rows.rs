//! What stores keep of audiences, as numbers and bytes.

use messaging_core::domain::campaign::audience::{AudienceSet, AudienceVerdict};
use messaging_core::domain::segment::filter::{Condition, Filter};
use messaging_core::time::Timestamp;

use crate::pages::number;

/// The stored kind of recipients who are due at some time; verdicts stand for themselves.
const RECIPIENTS: i64 = 5;
/// The stored kind of the test group.
const TEST_GROUP: i64 = 6;

/// Bytes of an address that is left out: place and digest.
const ENTRY: usize = 10;

/// How a set is named in its row: kind and due time, which is 0 where there is none.
pub(crate) fn set_key(set: AudienceSet) -> (i64, i64) {
    match set {
        AudienceSet::Left(verdict) => (number(&AudienceVerdict::ALL, &verdict), 0),
        AudienceSet::Recipients(due_at) => (RECIPIENTS, due_at.as_millis()),
        AudienceSet::TestGroup => (TEST_GROUP, 0),
    }
}

/// The set that is named so; `None` when none is.
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

/// The places and digests in some bytes; `None` when they are no such thing.
pub(crate) fn left_out_entries(bytes: &[u8]) -> Option<impl Iterator<Item = (u16, u64)>> {
    let (entries, []) = bytes.as_chunks::<ENTRY>() else { return None };
    let entry = |[a, b, digest @ ..]: &[u8; ENTRY]| (u16::from_le_bytes([*a, *b]), u64::from_le_bytes(*digest));
    Some(entries.iter().map(entry))
}

/// Digests of addresses as bytes, rising.
pub(crate) fn digest_bytes(digests: &[u64]) -> Vec<u8> {
    let mut digests = digests.to_vec();
    digests.sort_unstable();
    digests.iter().flat_map(|digest| digest.to_le_bytes()).collect()
}

/// Adds those of some digests, which rise, that are in some bytes. Answers whether these are digests.
pub(crate) fn common(asked: &[u64], bytes: &[u8], found: &mut Vec<u64>) -> bool {
    let (digests, []) = bytes.as_chunks::<8>() else { return false };
    let mut asked = asked.iter().copied().peekable();
    for digest in digests.iter().map(|digest| u64::from_le_bytes(*digest)) {
        while asked.next_if(|asked| *asked < digest).is_some() {}
        found.extend(asked.next_if_eq(&digest));
    }
    true
}

/// Whoever any of some filters matches; `None` when there are none.
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
