//! Between rows and core's types.

use messaging_core::ids::Id;
use messaging_core::ports::store::{PageRequest, Slice, StoreCursor, Stored};
use messaging_core::time::Timestamp;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fault::Fault;

/// Larger than every id: where a listing that counts downwards starts.
const TOP: [u8; 16] = [0xFF; 16];

pub(super) fn id<I: Id>(row: &Row<'_>, column: usize) -> Result<I, Fault> {
    Ok(I::from_bytes(row.get(column)?))
}

pub(super) fn maybe_id<I: Id>(row: &Row<'_>, column: usize) -> Result<Option<I>, Fault> {
    Ok(row.get::<_, Option<[u8; 16]>>(column)?.map(I::from_bytes))
}

pub(super) fn time(row: &Row<'_>, column: usize) -> Result<Timestamp, Fault> {
    Ok(Timestamp::from_millis(row.get(column)?))
}

pub(super) fn maybe_time(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, Fault> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

/// A count.
pub(super) fn count(row: &Row<'_>, column: usize) -> Result<u64, Fault> {
    u64::try_from(row.get::<_, i64>(column)?).map_err(|_| Fault::Malformed("a count is negative"))
}

/// The record in a document column.
pub(super) fn record<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T, Fault> {
    let text = row.get_ref(column)?.as_str().map_err(|_| Fault::Malformed("a document is not text"))?;
    Ok(serde_json::from_str(text)?)
}

/// A document column in which NULL stands for an empty document.
pub(super) fn or_empty<T: DeserializeOwned + Default>(row: &Row<'_>, column: usize) -> Result<T, Fault> {
    if row.get_ref(column)? == ValueRef::Null { Ok(T::default()) } else { record(row, column) }
}

/// The record in column 1 at the revision in column 0.
pub(super) fn stored<T: DeserializeOwned>(row: &Row<'_>) -> Result<Stored<T>, Fault> {
    Ok(Stored { revision: row.get(0)?, record: record(row, 1)? })
}

/// The text of a document column.
pub(super) fn document<T: Serialize>(record: &T) -> Result<String, Fault> {
    Ok(serde_json::to_string(record)?)
}

/// The member of `all` with a stored number.
pub(super) fn numbered<T: Copy>(all: &[T], number: i64) -> Result<T, Fault> {
    let known = usize::try_from(number).ok().and_then(|number| all.get(number));
    known.copied().ok_or(Fault::Malformed("a number stands for nothing"))
}

/// The stored number of a member of `all`.
pub(super) fn number<T: PartialEq>(all: &[T], member: &T) -> i64 {
    let position = all.iter().position(|candidate| candidate == member);
    position.and_then(|position| i64::try_from(position).ok()).expect("ALL lists every variant")
}

/// The key below which a page begins.
pub(super) fn below(page: &PageRequest) -> [u8; 16] {
    page.after.map_or(TOP, StoreCursor::to_bytes)
}

/// A limit as SQLite takes it.
pub(super) fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// How many rows to ask for: one more than wanted tells whether there is a rest.
pub(super) fn one_more(page: &PageRequest) -> i64 {
    sql_limit(page.limit).saturating_add(1)
}

/// Cuts off the one row too many and names the key after which the rest begins.
pub(super) fn slice<T>(mut items: Vec<T>, limit: usize, key: impl Fn(&T) -> [u8; 16]) -> Slice<T> {
    let more = items.len() > limit;
    items.truncate(limit);
    Slice { next: if more { items.last().map(|item| StoreCursor::from_bytes(key(item))) } else { None }, items }
}

/// A place that is a number.
pub(super) fn numbered_place(number: i64) -> StoreCursor {
    let mut place = [0; 16];
    place[8..].copy_from_slice(&number.to_be_bytes());
    StoreCursor::from_bytes(place)
}

/// The number that is a place; of a foreign place, some number.
pub(super) fn place_number(place: StoreCursor) -> i64 {
    place.to_bytes().last_chunk().map_or(0, |last| i64::from_be_bytes(*last))
}
