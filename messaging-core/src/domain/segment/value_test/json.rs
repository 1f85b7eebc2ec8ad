//! Tests of values inside JSON, without copying any of it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::rule::Rule;

/// Finds a member by its keys, from the outside in, and tests it. A missing member passes no test.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) path: &'a [String],
    pub(super) rule: &'a Rule,
}

impl<'de> DeserializeSeed<'de> for Member<'_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Member<'_> {
    fn scalar(self, test: impl FnOnce(&Rule) -> bool) -> bool {
        self.path.is_empty() && test(self.rule)
    }

    fn number(self, number: f64) -> bool {
        self.scalar(|rule| rule.of_number(number))
    }
}

impl<'de> Visitor<'de> for Member<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<bool, E> {
        Ok(self.scalar(|rule| rule.of_boolean(value)))
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers are compared as floating point")]
    fn visit_i64<E: Error>(self, value: i64) -> Result<bool, E> {
        Ok(self.number(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers are compared as floating point")]
    fn visit_u64<E: Error>(self, value: u64) -> Result<bool, E> {
        Ok(self.number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<bool, E> {
        Ok(self.number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<bool, E> {
        Ok(self.scalar(|rule| rule.of_text(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut found = self.scalar(Rule::of_structure);
        let wanted = self.rule.element().filter(|_| self.path.is_empty());
        while let Some(equal) = match wanted {
            Some(rule) if !found => items.next_element_seed(Member { path: &[], rule })?,
            _ => items.next_element::<IgnoredAny>()?.map(|_| false),
        } {
            found |= equal;
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        let Some((key, path)) = self.path.split_first() else {
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(self.rule.of_structure());
        };
        let mut found = false;
        while let Some(is_it) = members.next_key_seed(Key(key))? {
            if is_it {
                found = members.next_value_seed(Member { path, rule: self.rule })?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Compares a key with this one.
struct Key<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<bool, E> {
        Ok(value == self.0)
    }
}

/// Counts the wanted texts of an array.
pub(super) struct Elements<W>(pub(super) W);

impl<'de, W: Fn(&str) -> bool> Visitor<'de> for Elements<W> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of texts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<usize, A::Error> {
        let mut count = 0;
        while let Some(wanted) = items.next_element_seed(Text(&self.0))? {
            count += usize::from(wanted);
        }
        Ok(count)
    }
}

/// Reads a JSON text and returns whether the function accepts it.
struct Text<'a, W>(&'a W);

impl<'de, W: Fn(&str) -> bool> DeserializeSeed<'de> for Text<'_, W> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<W: Fn(&str) -> bool> Visitor<'_> for Text<'_, W> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<bool, E> {
        Ok((self.0)(value))
    }
}
