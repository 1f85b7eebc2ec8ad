//! Between rows and core's types: what only PostgreSQL's tables need.
//!
//! Ids are `uuid`, times, counts and revisions `bigint`, documents `text`, bytes `bytea`.

use messaging_core::ids::Id;
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Fault;

pub(super) use crate::pages::{number, numbered_place, place_number, sql_limit};
pub(super) use crate::row::{count, get, id, maybe_time, numbered, time};

/// An id as a parameter.
pub(super) fn uuid(id: impl Id) -> Uuid {
    Uuid::from_bytes(id.to_bytes())
}

/// A small number that is never negative.
pub(super) fn small<T: TryFrom<i64>>(row: &Row, column: usize) -> Result<T, Fault> {
    T::try_from(get::<i64>(row, column)?).map_err(|_| Fault::Malformed("a number is out of range"))
}
