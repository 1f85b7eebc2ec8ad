//! Conversion between rows and core's types, for both databases.
//!
//! Times, counts and revisions are integers, documents text (`jsonb` changes numbers and the order of members, and
//! refuses U+0000).

use messaging_core::ids::Id;
use messaging_core::ports::store::Stored;
use messaging_core::time::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::Fault;

/// A row of the answer to a query.
pub(crate) trait Row {
    fn cell(&self, column: usize) -> Result<Cell<'_>, Fault>;
}

/// A value in a row. PostgreSQL says which bytes are an id and which numbers are true or false, SQLite does not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "SQLite has no such type"))]
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// A type that can be read from a cell.
pub(crate) trait FromCell<'a>: Sized {
    /// `None` if the cell has another type.
    fn from_cell(cell: Cell<'a>) -> Option<Self>;
}

/// Reads a column of a type that both databases have.
pub(crate) fn get<'a, T: FromCell<'a>>(row: &'a dyn Row, column: usize) -> Result<T, Fault> {
    T::from_cell(row.cell(column)?).ok_or(Fault::Malformed("a column has another type"))
}

impl<'a, T: FromCell<'a>> FromCell<'a> for Option<T> {
    fn from_cell(cell: Cell<'a>) -> Option<Self> {
        if cell == Cell::Null { Some(None) } else { T::from_cell(cell).map(Some) }
    }
}

impl FromCell<'_> for bool {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Bool(is) => Some(is),
            Cell::Int(0) => Some(false),
            Cell::Int(1) => Some(true),
            _ => None,
        }
    }
}

impl FromCell<'_> for i64 {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Int(number) = cell { Some(number) } else { None }
    }
}

impl FromCell<'_> for f64 {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Real(number) = cell { Some(number) } else { None }
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl FromCell<'_> for $type {
            fn from_cell(cell: Cell<'_>) -> Option<Self> {
                i64::from_cell(cell)?.try_into().ok()
            }
        }
    )*};
}

integers!(u8, i16, u16, i32, u32, usize);

impl<'a> FromCell<'a> for &'a str {
    fn from_cell(cell: Cell<'a>) -> Option<Self> {
        if let Cell::Text(text) = cell { Some(text) } else { None }
    }
}

impl FromCell<'_> for String {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Text(text) = cell { Some(text.to_owned()) } else { None }
    }
}

impl<'a> FromCell<'a> for &'a [u8] {
    fn from_cell(cell: Cell<'a>) -> Option<Self> {
        if let Cell::Bytes(bytes) = cell { Some(bytes) } else { None }
    }
}

impl FromCell<'_> for Vec<u8> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Bytes(bytes) = cell { Some(bytes.to_vec()) } else { None }
    }
}

impl<const N: usize> FromCell<'_> for [u8; N] {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Bytes(bytes) = cell { bytes.try_into().ok() } else { None }
    }
}

pub(crate) fn id<I: Id>(row: &dyn Row, column: usize) -> Result<I, Fault> {
    Ok(I::from_bytes(get(row, column)?))
}

pub(crate) fn maybe_id<I: Id>(row: &dyn Row, column: usize) -> Result<Option<I>, Fault> {
    Ok(get::<Option<_>>(row, column)?.map(I::from_bytes))
}

pub(crate) fn time(row: &dyn Row, column: usize) -> Result<Timestamp, Fault> {
    Ok(Timestamp::from_millis(get(row, column)?))
}

pub(crate) fn maybe_time(row: &dyn Row, column: usize) -> Result<Option<Timestamp>, Fault> {
    Ok(get::<Option<_>>(row, column)?.map(Timestamp::from_millis))
}

/// Reads a count.
pub(crate) fn count(row: &dyn Row, column: usize) -> Result<u64, Fault> {
    u64::try_from(get::<i64>(row, column)?).map_err(|_| Fault::Malformed("a count is negative"))
}

/// Reads the record in a document column.
pub(crate) fn record<T: DeserializeOwned>(row: &dyn Row, column: usize) -> Result<T, Fault> {
    Ok(serde_json::from_str(get(row, column)?)?)
}

/// Reads a document column in which NULL stands for an empty document.
pub(crate) fn or_empty<T: DeserializeOwned + Default>(row: &dyn Row, column: usize) -> Result<T, Fault> {
    match get::<Option<&str>>(row, column)? {
        Some(text) => Ok(serde_json::from_str(text)?),
        None => Ok(T::default()),
    }
}

/// Reads the record in column 1 at the revision in column 0.
pub(crate) fn stored<T: DeserializeOwned>(row: &dyn Row) -> Result<Stored<T>, Fault> {
    Ok(Stored { revision: get(row, 0)?, record: record(row, 1)? })
}

/// The text of a document column.
pub(crate) fn document<T: Serialize>(record: &T) -> Result<String, Fault> {
    Ok(serde_json::to_string(record)?)
}

/// The member of `all` with a stored number.
pub(crate) fn numbered<T: Copy>(all: &[T], number: i64) -> Result<T, Fault> {
    let known = usize::try_from(number).ok().and_then(|number| all.get(number));
    known.copied().ok_or(Fault::Malformed("a number stands for nothing"))
}
