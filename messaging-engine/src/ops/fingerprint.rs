//! The fingerprint of a request with an Idempotency-Key: query string and canonical JSON body.
//!
//! Contract section 1.7: member order and white space do not matter. The body is hashed while it is
//! parsed: members of an object are hashed alone and added up, so their order disappears without
//! sorting, and no tree is built.

use std::fmt;
use std::hash::Hasher as _;

use messaging_core::error::JsonFault;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use siphasher::sip128::{Hasher128 as _, SipHasher13};

use crate::error::Error;

/// Fingerprints a query string and a body that must be a JSON object, or empty where none is needed.
pub(super) fn fingerprint(query: &str, body: &[u8], body_needed: bool) -> Result<u128, Error> {
    let mut hasher = SipHasher13::new();
    hasher.write(query.as_bytes());
    hasher.write_u8(0xFF);
    let trimmed = body.trim_ascii_start();
    if trimmed.is_empty() && !body_needed {
        return Ok(hasher.finish128().as_u128());
    }
    if trimmed.first() != Some(&b'{') {
        serde_json::from_slice::<IgnoredAny>(body).map_err(not_json)?;
        return Err(Error::InvalidJson(None));
    }
    // All at once: string by string takes longer.
    let text = std::str::from_utf8(body).map_err(|_| Error::InvalidJson(None))?;
    let mut parser = serde_json::Deserializer::from_str(text);
    let object = Fingerprint.deserialize(&mut parser).map_err(not_json)?;
    parser.end().map_err(not_json)?;
    hasher.write_u128(object);
    Ok(hasher.finish128().as_u128())
}

/// Fingerprints a query string and a body that is a file.
pub(super) fn fingerprint_file(query: &str, body: &[u8]) -> u128 {
    let mut hasher = SipHasher13::new();
    hasher.write(query.as_bytes());
    hasher.write_u8(0xFF);
    hasher.write(body);
    hasher.finish128().as_u128()
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn not_json(error: serde_json::Error) -> Error {
    Error::InvalidJson(JsonFault::of(&error))
}

/// Hashes one JSON value.
struct Fingerprint;

fn hash(kind: u8, bytes: &[u8]) -> u128 {
    let mut hasher = SipHasher13::new();
    hasher.write_u8(kind);
    hasher.write(bytes);
    hasher.finish128().as_u128()
}

impl<'de> DeserializeSeed<'de> for Fingerprint {
    type Value = u128;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u128, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fingerprint {
    type Value = u128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<u128, E> {
        Ok(hash(b'n', b""))
    }

    fn visit_bool<E>(self, value: bool) -> Result<u128, E> {
        Ok(hash(b'b', &[u8::from(value)]))
    }

    fn visit_i64<E>(self, value: i64) -> Result<u128, E> {
        Ok(hash(b'i', &i128::from(value).to_le_bytes()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<u128, E> {
        Ok(hash(b'i', &i128::from(value).to_le_bytes()))
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the range is checked")]
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<u128, E> {
        // 1.0 and 1 are the same JSON number.
        if value.fract() == 0.0 && value.abs() < i64::MAX as f64 {
            return self.visit_i64(value as i64);
        }
        Ok(hash(b'f', &value.to_bits().to_le_bytes()))
    }

    fn visit_str<E>(self, value: &str) -> Result<u128, E> {
        Ok(hash(b's', value.as_bytes()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u128, A::Error> {
        let mut hasher = SipHasher13::new();
        hasher.write_u8(b'a');
        while let Some(item) = items.next_element_seed(Self)? {
            hasher.write_u128(item);
        }
        Ok(hasher.finish128().as_u128())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u128, A::Error> {
        let mut sum = 0_u128;
        let mut count = 0_u64;
        while let Some(name) = members.next_key_seed(Self)? {
            let value = members.next_value_seed(Self)?;
            let mut hasher = SipHasher13::new();
            hasher.write_u128(name);
            hasher.write_u128(value);
            sum = sum.wrapping_add(hasher.finish128().as_u128());
            count = count.checked_add(1).ok_or_else(|| A::Error::custom("too many members"))?;
        }
        let mut hasher = SipHasher13::new();
        hasher.write_u8(b'o');
        hasher.write_u64(count);
        hasher.write_u128(sum);
        Ok(hasher.finish128().as_u128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(left: &str, right: &str, same: bool) {
        let of = |text: &str| fingerprint("", text.as_bytes(), true).unwrap();
        assert_eq!(of(left) == of(right), same, "{left} / {right}");
    }

    #[test]
    fn order_and_white_space_of_members_do_not_matter() {
        check(r#"{"a":1,"b":[1,2]}"#, "{ \"b\" : [1, 2],\n \"a\":1 }", true);
        check(r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#, true);
        check(r#"{"a":"\u0041"}"#, r#"{"a":"A"}"#, true);
        check(r#"{"a":1}"#, r#"{"a":1.0}"#, true);
    }

    #[test]
    fn values_types_and_order_of_items_do() {
        check(r#"{"a":1}"#, r#"{"a":2}"#, false);
        check(r#"{"a":1}"#, r#"{"b":1}"#, false);
        check(r#"{"a":"1"}"#, r#"{"a":1}"#, false);
        check(r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#, false);
        check(r#"{"a":null}"#, "{}", false);
        check(r#"{"a":"x","b":"y"}"#, r#"{"a":"y","b":"x"}"#, false);
        check(r#"{"a":{"b":1}}"#, r#"{"a":{},"b":1}"#, false);
    }

    #[test]
    fn the_body_must_be_an_object() {
        assert!(matches!(fingerprint("", b"{\"a\":\"\xff\"}", true), Err(Error::InvalidJson(_))));
        for bad in ["", "[]", "1", "{", "{} {}", "null", "\"{}\""] {
            assert!(matches!(fingerprint("", bad.as_bytes(), true), Err(Error::InvalidJson(_))), "{bad}");
        }
        assert_eq!(fingerprint("a=1", b"", false).unwrap(), fingerprint("a=1", b"", false).unwrap());
        assert_ne!(fingerprint("a=1", b"", false).unwrap(), fingerprint("a=2", b"", false).unwrap());
    }
}
