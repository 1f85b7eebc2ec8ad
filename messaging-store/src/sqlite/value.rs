//! Values as parameters of SQLite, and rows of it.

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

use super::fault::Fault;
use crate::row::{Cell, Row};
use crate::sql::Value;

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Bool(is) => ValueRef::Integer((*is).into()),
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::Id(id) => ValueRef::Blob(id),
            Self::List(members) => {
                let json = members.iter().map(to_json).collect::<serde_json::Value>().to_string();
                return Ok(ToSqlOutput::Owned(json.into()));
            }
        }))
    }
}

/// A member of a list.
fn to_json(member: &Value) -> serde_json::Value {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
    match member {
        Value::Null => serde_json::Value::Null,
        Value::Bool(is) => i64::from(*is).into(),
        Value::Int(number) => (*number).into(),
        Value::Real(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Bytes(bytes) => hex(bytes),
        Value::Id(id) => hex(id),
        Value::List(members) => members.iter().map(to_json).collect(),
    }
}

impl Row for rusqlite::Row<'_> {
    fn cell(&self, column: usize) -> Result<Cell<'_>, Fault> {
        Ok(match self.get_ref(column)? {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Int(number),
            ValueRef::Real(number) => Cell::Real(number),
            ValueRef::Text(text) => {
                Cell::Text(std::str::from_utf8(text).map_err(|_| Fault::Malformed("a text is not UTF-8"))?)
            }
            ValueRef::Blob(bytes) => Cell::Bytes(bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::row::get;
    use crate::sql::params;

    #[test]
    fn a_value_comes_back_as_it_was() {
        let connection = Connection::open_in_memory().unwrap();
        let given = params![None::<i64>, true, -7_i64, 0.5, "a\"b", vec![0_u8, 255], [7_u8; 16]];
        let sql = "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7";
        let read = |row: &rusqlite::Row<'_>| {
            let row: &dyn Row = row;
            assert_eq!(get::<Option<i64>>(row, 0).unwrap(), None);
            assert!(get::<bool>(row, 1).unwrap());
            assert_eq!(get::<i64>(row, 2).unwrap(), -7);
            assert!((get::<f64>(row, 3).unwrap() - 0.5).abs() < f64::EPSILON);
            assert_eq!(get::<&str>(row, 4).unwrap(), "a\"b");
            assert_eq!(get::<Vec<u8>>(row, 5).unwrap(), [0, 255]);
            assert_eq!(get::<[u8; 16]>(row, 6).unwrap(), [7; 16]);
            assert!(get::<&str>(row, 2).is_err(), "a number is no text");
            Ok(())
        };
        connection.query_row(sql, rusqlite::params_from_iter(given), read).unwrap();
    }

    #[test]
    fn members_of_a_list_are_found() {
        let connection = Connection::open_in_memory().unwrap();
        let found = |sql: &str, list: Value| connection.query_row(sql, [list], |row| row.get::<_, bool>(0)).unwrap();
        let texts = "SELECT 'b\"' IN (SELECT value FROM json_each(?1))";
        assert!(found(texts, vec!["a", "b\""].into()));
        assert!(!found(texts, vec!["a"].into()));
        let ids = "SELECT x'07070707070707070707070707070707' IN (SELECT unhex(value) FROM json_each(?1))";
        assert!(found(ids, vec![[7; 16]].into()));
        assert!(!found(ids, vec![[8; 16]].into()));
    }
}
