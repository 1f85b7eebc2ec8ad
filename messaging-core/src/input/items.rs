//! A list in a body whose items are validated one by one: an invalid item does not refuse the request.

use std::borrow::Cow;
use std::marker::PhantomData;

use crate::validate::Length;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::DomainError;
use crate::input::schema_check::JUDGED_ALONE;
use crate::input::{self, Input, UnknownMembers};
use crate::violation::{FieldCode, MAX_SUGGESTIONS, Violations};

/// The items of a list as they were sent.
#[derive(Debug, Clone)]
pub struct Items<T> {
    raw: Vec<Box<RawValue>>,
    unknown: UnknownMembers,
    kind: PhantomData<fn() -> T>,
}

impl<T: Input> Items<T> {
    /// The items, with the rule for unknown members that the body around them has.
    #[must_use]
    pub fn reading(self, unknown: UnknownMembers) -> Self {
        Self { unknown, ..self }
    }

    /// The number of items in the list.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// True if the list has no items.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Length of an item as JSON, in bytes.
    pub fn length_of(&self, index: usize) -> usize {
        self.text_of(index).len()
    }

    /// An item as it was sent; empty where there is none.
    pub fn text_of(&self, index: usize) -> &str {
        self.raw.get(index).map_or("", |raw| raw.get())
    }

    /// Reads an item, with its violations. `Err` when it cannot be read at all. Pointers are relative to the item.
    pub fn judge(&self, index: usize) -> Result<(T, Violations), Violations> {
        let text = self.raw.get(index).map_or("null", |raw| raw.get());
        let unknown = UnknownMembers { without_suggestions: index >= MAX_SUGGESTIONS, ..self.unknown };
        match input::body_with_faults(text.as_bytes(), unknown) {
            Ok(read) => Ok(read),
            Err(DomainError::Invalid(violations)) => Err(violations),
            Err(_) => {
                let mut violations = Violations::new();
                violations.add("", FieldCode::InvalidType, "must be an object");
                Err(violations)
            }
        }
    }
}

impl<T: Serialize> TryFrom<Vec<T>> for Items<T> {
    type Error = serde_json::Error;
    fn try_from(items: Vec<T>) -> Result<Self, serde_json::Error> {
        let raw = items.iter().map(serde_json::value::to_raw_value).collect::<Result<_, _>>()?;
        Ok(Self { raw, unknown: UnknownMembers::default(), kind: PhantomData })
    }
}

impl<T> Serialize for Items<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { raw: Vec::deserialize(deserializer)?, unknown: UnknownMembers::default(), kind: PhantomData })
    }
}

impl<T: JsonSchema> JsonSchema for Items<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("ItemsOf{}", T::schema_name()).into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut item = generator.subschema_for::<T>();
        item.insert(JUDGED_ALONE.to_owned(), true.into());
        json_schema!({"type": "array", "items": item})
    }
}

impl<T> Length for Items<T> {
    fn length(&self) -> Option<u64> {
        Some(self.raw.len() as u64)
    }
}
