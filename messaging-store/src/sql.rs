//! Statements as values: their texts, and the values of their parameters.

use std::fmt;

use bytes::Bytes;
use messaging_core::ids::Id;
use messaging_core::time::Timestamp;

/// The text of a statement, for each database.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
    #[cfg(feature = "postgres")]
    pub(crate) postgres: &'static str,
}

impl Sql {
    pub(crate) const fn of(sqlite: &'static str, postgres: &'static str) -> Self {
        #[cfg(not(feature = "postgres"))]
        let _ = postgres;
        Self {
            sqlite,
            #[cfg(feature = "postgres")]
            postgres,
        }
    }
}

impl fmt::Debug for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sqlite)
    }
}

/// The text of a statement. One text with parameters `$1`, `$2`, … serves both databases; text in braces is for SQLite
/// alone: `{INDEXED BY t_by_a}`. If they differ in more, both texts are given:
/// `sql!(sqlite: "…$1…", postgres: "…$1…")`. An empty text means that there is nothing to do.
macro_rules! sql {
    (sqlite: $sqlite:expr, postgres: $postgres:expr $(,)?) => {{
        const SQLITE: &str = $sqlite;
        const OF_SQLITE: [u8; SQLITE.len()] = $crate::sql::of_sqlite(SQLITE);
        const POSTGRES: &str = $postgres;
        const OF_POSTGRES: [u8; POSTGRES.len()] = $crate::sql::of_postgres(POSTGRES);
        const SQL: $crate::sql::Sql =
            $crate::sql::Sql::of($crate::sql::text(&OF_SQLITE), $crate::sql::text(&OF_POSTGRES));
        SQL
    }};
    ($text:expr) => {
        $crate::sql::sql!(sqlite: $text, postgres: $text)
    };
}

pub(crate) use sql;

/// The text for SQLite, of the same length: `?1` instead of `$1`, which SQLite takes as a name and numbers by its
/// position; braces become spaces.
pub(crate) const fn of_sqlite<const N: usize>(text: &str) -> [u8; N] {
    let text = text.as_bytes();
    let mut made = [0; N];
    let mut at = 0;
    while at < N {
        let is_parameter = text[at] == b'$' && at + 1 < N && text[at + 1].is_ascii_digit();
        made[at] = match text[at] {
            b'$' if is_parameter => b'?',
            b'{' | b'}' => b' ',
            other => other,
        };
        at += 1;
    }
    made
}

/// The text for PostgreSQL, of the same length: text in braces becomes spaces.
pub(crate) const fn of_postgres<const N: usize>(text: &str) -> [u8; N] {
    let text = text.as_bytes();
    let mut made = [b' '; N];
    let mut at = 0;
    let mut is_within = false;
    while at < N {
        match text[at] {
            b'{' => is_within = true,
            b'}' => is_within = false,
            other if !is_within => made[at] = other,
            _ => {}
        }
        at += 1;
    }
    made
}

/// Converts bytes to text.
pub(crate) const fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("one sign of a text was replaced by another"),
    }
}

/// The value of a parameter. Each database takes it as the type of its column: an id is a `uuid` to PostgreSQL and 16
/// bytes to SQLite.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(String),
    Bytes(Bytes),
    Id([u8; 16]),
    /// An array on PostgreSQL. On SQLite it is JSON for `json_each`, with bytes and ids in hexadecimal digits for
    /// `unhex`.
    List(Vec<Value>),
}

/// Values of the parameters of a statement, in the order of their numbers.
pub(crate) type Params = Vec<Value>;

/// Makes parameters of values.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::sql::Value::from($value)),*]
    };
}

pub(crate) use params;

/// An id as a parameter.
pub(crate) fn key(id: impl Id) -> Value {
    Value::Id(id.to_bytes())
}

/// A moment as a parameter.
impl From<Timestamp> for Value {
    fn from(at: Timestamp) -> Self {
        Self::Int(at.as_millis())
    }
}

impl From<[u8; 16]> for Value {
    fn from(id: [u8; 16]) -> Self {
        Self::Id(id)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(Bytes::copy_from_slice(bytes))
    }
}

impl<T> From<Option<T>> for Value
where
    Self: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Self::from)
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident),* $(,)?) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

from!(bool => Bool, u8 => Int, i16 => Int, i32 => Int, u32 => Int, i64 => Int, f64 => Real, String => Text, Vec<u8> => Bytes, Bytes => Bytes);

macro_rules! lists {
    ($($member:ty),* $(,)?) => {$(
        impl From<Vec<$member>> for Value {
            fn from(members: Vec<$member>) -> Self {
                Self::List(members.into_iter().map(Self::from).collect())
            }
        }
    )*};
}

lists!(
    Value,
    bool,
    Option<bool>,
    i16,
    i32,
    i64,
    f64,
    String,
    &str,
    [u8; 16],
    Vec<u8>,
    Option<i64>,
    Option<String>,
    Option<[u8; 16]>,
    Option<Vec<u8>>
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_serves_both() {
        const SQL: Sql =
            sql!("SELECT doc ->> '$.name' FROM t {INDEXED BY t_by_a} WHERE a = $2 AND b = $11 AND c = '$'");
        assert_eq!(
            SQL.sqlite,
            "SELECT doc ->> '$.name' FROM t  INDEXED BY t_by_a  WHERE a = ?2 AND b = ?11 AND c = '$'"
        );
        #[cfg(feature = "postgres")]
        assert_eq!(
            SQL.postgres,
            "SELECT doc ->> '$.name' FROM t                     WHERE a = $2 AND b = $11 AND c = '$'"
        );
    }
}
