//! Columns of rows that go to the database together: a statement takes each of them as an array.

use std::error::Error;

use bytes::BytesMut;
use postgres_protocol::types::{ArrayDimension, array_to_sql};
use tokio_postgres::types::{IsNull, Kind, ToSql, Type, to_sql_checked};

use super::query::{Param, Params};

/// The values of one column, a row after the other.
#[derive(Debug, Default)]
pub(super) struct Column(Vec<Param>);

/// Adds a row to its columns.
pub(super) fn add(columns: &mut Vec<Column>, row: Params) {
    if columns.is_empty() {
        columns.resize_with(row.len(), Column::default);
    }
    for (column, value) in columns.iter_mut().zip(row) {
        column.0.push(value);
    }
}

/// How many rows there are.
pub(super) fn rows(columns: &[Column]) -> usize {
    columns.first().map_or(0, |column| column.0.len())
}

impl ToSql for Column {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Kind::Array(member) = ty.kind() else { return Err("a column is an array".into()) };
        let dimension = ArrayDimension { len: i32::try_from(self.0.len())?, lower_bound: 1 };
        let value = |value: &Param, out: &mut BytesMut| {
            Ok(match value.to_sql_checked(member, out)? {
                IsNull::Yes => postgres_protocol::IsNull::Yes,
                IsNull::No => postgres_protocol::IsNull::No,
            })
        };
        array_to_sql(Some(dimension), member.oid(), self.0.iter(), value, out)?;
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        matches!(ty.kind(), Kind::Array(_))
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::super::query::params;
    use super::*;

    #[test]
    fn a_column_is_what_an_array_of_its_values_is() {
        let mut columns = Vec::new();
        add(&mut columns, params![1_i64, Some("a".to_owned()), vec![1_u8, 2]]);
        add(&mut columns, params![-5_i64, None::<String>, Vec::<u8>::new()]);
        assert_eq!((rows(&columns), columns.len()), (2, 3));
        let arrays: [(&dyn ToSql, Type); 3] = [
            (&vec![1_i64, -5], Type::INT8_ARRAY),
            (&vec![Some("a"), None], Type::TEXT_ARRAY),
            (&vec![vec![1_u8, 2], Vec::new()], Type::BYTEA_ARRAY),
        ];
        for (column, (array, ty)) in columns.iter().zip(arrays) {
            let (mut ours, mut theirs) = (BytesMut::new(), BytesMut::new());
            column.to_sql_checked(&ty, &mut ours).unwrap();
            array.to_sql_checked(&ty, &mut theirs).unwrap();
            assert_eq!(ours, theirs, "{ty}");
        }
        assert!(columns[0].to_sql_checked(&Type::TEXT_ARRAY, &mut BytesMut::new()).is_err(), "numbers are no text");
        assert!(columns[0].to_sql_checked(&Type::INT8, &mut BytesMut::new()).is_err(), "one number is no array");
    }
}
