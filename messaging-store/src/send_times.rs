//! Times of marketing messages to a contact, as stored: four bytes each, seconds since 1970.

use messaging_core::time::Timestamp;

/// Seconds since 1970, rounded up: a cap opens a moment later, never earlier.
pub(crate) fn seconds(time: Timestamp) -> u32 {
    let millis = time.as_millis();
    let up = i64::from(millis.rem_euclid(1000) != 0);
    u32::try_from(millis.div_euclid(1000) + up).unwrap_or(if millis < 0 { 0 } else { u32::MAX })
}

/// Seconds as stored.
pub(crate) fn to_bytes(seconds: &[u32]) -> Vec<u8> {
    seconds.iter().flat_map(|time| time.to_be_bytes()).collect()
}

/// The times in stored bytes, in their order; `None` of what is none.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Vec<Timestamp>> {
    let (times, rest) = bytes.as_chunks();
    let time = |bytes: &[u8; 4]| Timestamp::from_millis(i64::from(u32::from_be_bytes(*bytes)) * 1000);
    rest.is_empty().then(|| times.iter().map(time).collect())
}
