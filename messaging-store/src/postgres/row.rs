//! Between rows and core's types.
//!
//! Ids are `uuid`, times, counts and revisions `bigint`, documents `text` (`jsonb` changes numbers and the order of
//! members, and refuses U+0000), bytes `bytea`.

use messaging_core::ids::Id;
use messaging_core::ports::store::Stored;
use messaging_core::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use super::fault::Fault;

pub(super) use crate::pages::{below, first_id_of, number, numbered_place, one_more, place_number, slice, sql_limit};

/// An id as a parameter.
pub(super) fn uuid(id: impl Id) -> Uuid {
    Uuid::from_bytes(id.to_bytes())
}

/// The key below which a page begins, as a parameter.
pub(super) fn below_id(page: &messaging_core::ports::store::PageRequest) -> Uuid {
    Uuid::from_bytes(below(page))
}

/// The least id with a time, as a parameter: ids begin with theirs.
pub(super) fn first_id(time: Timestamp) -> Uuid {
    Uuid::from_u128(u128::try_from(time.as_millis()).unwrap_or(0) << 80)
}

/// A revision as a parameter.
pub(super) fn revision_param(revision: u32) -> i64 {
    i64::from(revision)
}

/// A column of a type that PostgreSQL has too.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, Fault> {
    Ok(row.try_get(column)?)
}

pub(super) fn id<I: Id>(row: &Row, column: usize) -> Result<I, Fault> {
    Ok(I::from_bytes(get::<Uuid>(row, column)?.into_bytes()))
}

pub(super) fn maybe_id<I: Id>(row: &Row, column: usize) -> Result<Option<I>, Fault> {
    Ok(get::<Option<Uuid>>(row, column)?.map(|id| I::from_bytes(id.into_bytes())))
}

pub(super) fn time(row: &Row, column: usize) -> Result<Timestamp, Fault> {
    Ok(Timestamp::from_millis(get(row, column)?))
}

pub(super) fn maybe_time(row: &Row, column: usize) -> Result<Option<Timestamp>, Fault> {
    Ok(get::<Option<i64>>(row, column)?.map(Timestamp::from_millis))
}

/// A count.
pub(super) fn count(row: &Row, column: usize) -> Result<u64, Fault> {
    u64::try_from(get::<i64>(row, column)?).map_err(|_| Fault::Malformed("a count is negative"))
}

/// A small number that is never negative.
pub(super) fn small<T: TryFrom<i64>>(row: &Row, column: usize) -> Result<T, Fault> {
    T::try_from(get::<i64>(row, column)?).map_err(|_| Fault::Malformed("a number is out of range"))
}

/// The record in a document column.
pub(super) fn record<T: DeserializeOwned>(row: &Row, column: usize) -> Result<T, Fault> {
    Ok(serde_json::from_str(get(row, column)?)?)
}

/// A document column in which NULL stands for an empty document.
pub(super) fn or_empty<T: DeserializeOwned + Default>(row: &Row, column: usize) -> Result<T, Fault> {
    match get::<Option<&str>>(row, column)? {
        Some(text) => Ok(serde_json::from_str(text)?),
        None => Ok(T::default()),
    }
}

/// The record in column 1 at the revision in column 0.
pub(super) fn stored<T: DeserializeOwned>(row: &Row) -> Result<Stored<T>, Fault> {
    Ok(Stored { revision: small(row, 0)?, record: record(row, 1)? })
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
