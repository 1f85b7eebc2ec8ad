//! Columns of rows that go to the database together: a statement takes each of them as an array.

use crate::sql::{Params, Value};

/// Adds a row to its columns.
pub(super) fn add(columns: &mut Vec<Vec<Value>>, row: Params) {
    if columns.is_empty() {
        columns.resize_with(row.len(), Vec::new);
    }
    for (column, value) in columns.iter_mut().zip(row) {
        column.push(value);
    }
}

/// True if the first values of some row are those of the key.
pub(super) fn has(columns: &[Vec<Value>], key: &[Value]) -> bool {
    (0..rows(columns)).any(|row| columns.iter().zip(key).all(|(column, value)| column.get(row) == Some(value)))
}

/// The number of rows, which is the length of the first column; 0 without columns.
pub(super) fn rows(columns: &[Vec<Value>]) -> usize {
    columns.first().map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::params;

    #[test]
    fn rows_become_columns() {
        let mut columns = Vec::new();
        add(&mut columns, params![1_i64, Some("a")]);
        add(&mut columns, params![-5_i64, None::<&str>]);
        assert_eq!(rows(&columns), 2);
        assert_eq!(columns, [params![1_i64, -5_i64], params!["a", None::<&str>]]);
        for (key, is_there) in [(params![1_i64, "a"], true), (params![1_i64], true), (params![-5_i64, "a"], false)] {
            assert_eq!(has(&columns, &key), is_there, "{key:?}");
        }
        assert!(!has(&[], &[crate::sql::Value::from(1_i64)]));
    }
}
