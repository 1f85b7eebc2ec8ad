//! Between rows and core's types.

use messaging_core::ids::Id;
use messaging_core::ports::store::Stored;
use messaging_core::time::Timestamp;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fault::Fault;

pub(super) use crate::pages::{below, first_id_of, number, numbered_place, one_more, place_number, slice, sql_limit};

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
