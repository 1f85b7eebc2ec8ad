//! Pages of listings and stored numbers, shared by all backends.

use messaging_core::ports::store::{PageRequest, Slice, StoreCursor};
use messaging_core::time::Timestamp;

/// Larger than every id: the start of a descending listing.
const TOP: [u8; 16] = [0xFF; 16];

/// The stored number of a member of `all`.
pub(crate) fn number<T: PartialEq>(all: &[T], member: &T) -> i64 {
    let position = all.iter().position(|candidate| candidate == member);
    position.and_then(|position| i64::try_from(position).ok()).expect("ALL lists every variant")
}

/// Returns the key below which a page begins.
pub(crate) fn below(page: &PageRequest) -> [u8; 16] {
    page.after.map_or(TOP, StoreCursor::to_bytes)
}

/// Returns the smallest id for a time: ids begin with 48 bits of milliseconds.
pub(crate) fn first_id_of(time: Timestamp) -> [u8; 16] {
    let millis = u128::try_from(time.as_millis()).unwrap_or_default();
    (millis.min((1 << 48) - 1) << 80).to_be_bytes()
}

/// A limit as a number of SQL.
pub(crate) fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Number of rows to read: one more than wanted shows if there is a rest.
pub(crate) fn one_more(page: &PageRequest) -> i64 {
    sql_limit(page.limit).saturating_add(1)
}

/// Cuts off the surplus row and returns the key after which the rest begins.
pub(crate) fn slice<T>(mut items: Vec<T>, limit: usize, key: impl Fn(&T) -> [u8; 16]) -> Slice<T> {
    let more = items.len() > limit;
    items.truncate(limit);
    Slice { next: if more { items.last().map(|item| StoreCursor::from_bytes(key(item))) } else { None }, items }
}

/// A position that is a number.
pub(crate) fn numbered_place(number: i64) -> StoreCursor {
    let mut place = [0; 16];
    place[8..].copy_from_slice(&number.to_be_bytes());
    StoreCursor::from_bytes(place)
}

/// The number of a position; of a foreign position, any number.
pub(crate) fn place_number(place: StoreCursor) -> i64 {
    place.to_bytes().last_chunk().map_or(0, |last| i64::from_be_bytes(*last))
}
