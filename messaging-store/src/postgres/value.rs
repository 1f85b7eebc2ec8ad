//! Values as parameters of PostgreSQL, and rows from it.

use std::error::Error;

use bytes::BytesMut;
use postgres_protocol::types::{ArrayDimension, array_to_sql};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};
use uuid::Uuid;

use super::fault::Fault;
use crate::row::{self, Cell, FromCell};
use crate::sql::Value;

type Outcome = Result<IsNull, Box<dyn Error + Sync + Send>>;

impl ToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Outcome {
        match (self, ty) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Bool(is), &Type::BOOL) => is.to_sql(ty, out),
            (Self::Int(number), &Type::INT8) => number.to_sql(ty, out),
            (Self::Int(number), &Type::INT4) => i32::try_from(*number)?.to_sql(ty, out),
            (Self::Int(number), &Type::INT2) => i16::try_from(*number)?.to_sql(ty, out),
            (Self::Real(number), &Type::FLOAT8) => number.to_sql(ty, out),
            (Self::Text(text), _) if <&str as ToSql>::accepts(ty) => text.to_sql(ty, out),
            (Self::Bytes(bytes), &Type::BYTEA) => bytes.as_ref().to_sql(ty, out),
            (Self::Id(id), &Type::UUID) => Uuid::from_bytes(*id).to_sql(ty, out),
            // Digests and other bytes that have the length of an id by chance.
            (Self::Id(id), &Type::BYTEA) => id.as_slice().to_sql(ty, out),
            (Self::List(members), _) => list_to_sql(members, ty, out),
            _ => Err(format!("a parameter of type {ty} is not {self:?}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Encodes an array, whose members have the type of its elements.
fn list_to_sql(members: &[Value], ty: &Type, out: &mut BytesMut) -> Outcome {
    let Kind::Array(member) = ty.kind() else { return Err(format!("{ty} is no array").into()) };
    let dimension = ArrayDimension { len: i32::try_from(members.len())?, lower_bound: 1 };
    let write = |value: &Value, out: &mut BytesMut| {
        Ok(match value.to_sql(member, out)? {
            IsNull::Yes => postgres_protocol::IsNull::Yes,
            IsNull::No => postgres_protocol::IsNull::No,
        })
    };
    array_to_sql((!members.is_empty()).then_some(dimension), member.oid(), members.iter(), write, out)?;
    Ok(IsNull::No)
}

impl From<Uuid> for Value {
    fn from(id: Uuid) -> Self {
        Self::Id(id.into_bytes())
    }
}

impl From<Vec<Uuid>> for Value {
    fn from(members: Vec<Uuid>) -> Self {
        Self::List(members.into_iter().map(Self::from).collect())
    }
}

impl From<Vec<Option<Uuid>>> for Value {
    fn from(members: Vec<Option<Uuid>>) -> Self {
        Self::List(members.into_iter().map(Self::from).collect())
    }
}

impl FromCell<'_> for Uuid {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        FromCell::from_cell(cell).map(Self::from_bytes)
    }
}

impl row::Row for Row {
    fn cell(&self, column: usize) -> Result<Cell<'_>, Fault> {
        Ok(self.try_get::<_, PostgresCell<'_>>(column)?.0)
    }
}

/// A cell of any type.
struct PostgresCell<'a>(Cell<'a>);

impl<'a> FromSql<'a> for PostgresCell<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *ty {
            Type::BOOL => Cell::Bool(bool::from_sql(ty, raw)?),
            Type::INT8 => Cell::Int(i64::from_sql(ty, raw)?),
            Type::INT4 => Cell::Int(i32::from_sql(ty, raw)?.into()),
            Type::INT2 => Cell::Int(i16::from_sql(ty, raw)?.into()),
            Type::FLOAT8 => Cell::Real(f64::from_sql(ty, raw)?),
            // An id is its 16 bytes.
            Type::BYTEA | Type::UUID => Cell::Bytes(raw),
            _ if <&str as FromSql<'_>>::accepts(ty) => Cell::Text(<&str>::from_sql(ty, raw)?),
            _ => return Err(format!("a column of type {ty} is not read as a cell").into()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Cell::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encoding of a value on the wire.
    fn wire(value: &dyn ToSql, ty: &Type) -> (BytesMut, bool) {
        let mut out = BytesMut::new();
        let is_null = matches!(value.to_sql_checked(ty, &mut out).unwrap(), IsNull::Yes);
        (out, is_null)
    }

    #[test]
    fn a_value_is_what_the_library_makes_of_its_type() {
        let id = Uuid::from_u128(7);
        let cases: [(Value, &dyn ToSql, Type); 9] = [
            (Value::from(5_i64), &5_i64, Type::INT8),
            (Value::from(-5_i64), &-5_i32, Type::INT4),
            (Value::from(5_i64), &5_i16, Type::INT2),
            (Value::from(true), &true, Type::BOOL),
            (Value::from("a"), &"a", Type::TEXT),
            (Value::from(vec![1_u8]), &vec![1_u8], Type::BYTEA),
            (Value::from(id), &id, Type::UUID),
            (Value::from(None::<i64>), &None::<i64>, Type::INT8),
            (Value::from(vec![Some(1_i64), None]), &vec![Some(1_i64), None], Type::INT8_ARRAY),
        ];
        for (ours, theirs, ty) in cases {
            assert_eq!(wire(&ours, &ty), wire(theirs, &ty), "{ty}");
        }
        for (wrong, ty) in [
            (Value::from("a"), Type::INT8),
            (Value::from(1_i64 << 40), Type::INT4),
            (Value::from(1_i64), Type::INT8_ARRAY),
        ] {
            assert!(wrong.to_sql_checked(&ty, &mut BytesMut::new()).is_err(), "{wrong:?} {ty}");
        }
    }
}
