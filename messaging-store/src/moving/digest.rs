//! Rows in PostgreSQL's encoding, and the digest of their content.

use std::error::Error;

use bytes::{BufMut as _, BytesMut};
use ring::digest::{Context, SHA256};
use rusqlite::types::Value;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

/// Number of rows and the sum of their digests, which does not depend on their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Digested {
    /// Number of rows.
    pub rows: u64,
    sum: u128,
}

impl Digested {
    /// Adds a row: the columns in their encoding on the wire.
    pub(crate) fn add<'a>(&mut self, columns: impl Iterator<Item = Option<&'a [u8]>>) {
        let mut context = Context::new(&SHA256);
        for column in columns {
            match column {
                Some(bytes) => {
                    context.update(&(bytes.len() as u64 + 1).to_be_bytes());
                    context.update(bytes);
                }
                None => context.update(&0_u64.to_be_bytes()),
            }
        }
        let digest = context.finish();
        let (first, _) = digest.as_ref().split_first_chunk::<16>().expect("SHA-256 has 32 bytes");
        self.sum = self.sum.wrapping_add(u128::from_be_bytes(*first));
        self.rows += 1;
    }
}

/// A value as it is sent, or NULL.
#[derive(Debug)]
pub(crate) struct Sent(pub Option<Vec<u8>>);

impl Sent {
    /// Encodes the value of a column of a type; fails with a description of what is wrong with the value.
    pub(crate) fn of(value: Value, kind: &Type) -> Result<Self, &'static str> {
        const RANGE: &str = "holds a number that is out of range";
        let bytes = match value {
            Value::Null => return Ok(Self(None)),
            Value::Blob(bytes) if *kind == Type::BYTEA => bytes,
            Value::Blob(bytes) if *kind == Type::UUID && bytes.len() == 16 => bytes,
            Value::Blob(_) if *kind == Type::UUID => return Err("holds an id that is not of 16 bytes"),
            Value::Text(text) if *kind == Type::TEXT && text.contains('\0') => {
                return Err("holds a text with the character U+0000, which PostgreSQL does not take");
            }
            Value::Text(text) if *kind == Type::TEXT => text.into_bytes(),
            Value::Integer(number) if *kind == Type::INT8 => number.to_be_bytes().to_vec(),
            Value::Integer(number) if *kind == Type::INT4 => {
                i32::try_from(number).map_err(|_| RANGE)?.to_be_bytes().to_vec()
            }
            Value::Integer(number) if *kind == Type::INT2 => {
                i16::try_from(number).map_err(|_| RANGE)?.to_be_bytes().to_vec()
            }
            Value::Integer(number @ (0 | 1)) if *kind == Type::BOOL => vec![u8::from(number == 1)],
            Value::Real(number) if *kind == Type::FLOAT8 => number.to_be_bytes().to_vec(),
            _ => return Err("holds a value of another type"),
        };
        Ok(Self(Some(bytes)))
    }
}

impl ToSql for Sent {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Some(bytes) = &self.0 else { return Ok(IsNull::Yes) };
        out.put_slice(bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

/// A value as it is received.
#[derive(Debug)]
pub(crate) struct Received<'a>(pub &'a [u8]);

impl<'a> FromSql<'a> for Received<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_rows_makes_no_difference_and_every_value_does() {
        let sum = |rows: &[&[Option<&[u8]>]]| {
            let mut digested = Digested::default();
            for row in rows {
                digested.add(row.iter().copied());
            }
            digested
        };
        let a: [Option<&[u8]>; 2] = [Some(b"a"), None];
        let b: [Option<&[u8]>; 2] = [Some(b"b"), Some(b"")];
        assert_eq!(sum(&[&a, &b]), sum(&[&b, &a]));
        assert_ne!(sum(&[&a, &a]), sum(&[&b, &b]));
        assert_ne!(sum(&[&[None, Some(b"a")]]), sum(&[&a]));
        assert_ne!(sum(&[&[Some(b""), None]]), sum(&[&[None, Some(b"")]]));
        assert_ne!(sum(&[&[Some(b"ab"), Some(b"c")]]), sum(&[&[Some(b"a"), Some(b"bc")]]));
    }

    #[test]
    fn what_a_column_cannot_hold_is_refused() {
        let is_sent = |value, kind| Sent::of(value, &kind).is_ok();
        assert!(is_sent(Value::Null, Type::UUID));
        assert!(is_sent(Value::Blob(vec![0; 16]), Type::UUID));
        assert!(!is_sent(Value::Blob(vec![0; 15]), Type::UUID));
        assert!(!is_sent(Value::Text("a\0".to_owned()), Type::TEXT));
        assert!(!is_sent(Value::Integer(1 << 40), Type::INT4));
        assert!(!is_sent(Value::Integer(1 << 20), Type::INT2));
        assert!(!is_sent(Value::Integer(2), Type::BOOL));
        assert!(!is_sent(Value::Integer(2), Type::TEXT));
    }
}
