//! A member of a PATCH body: left out, `null`, or a value.
//!
//! Contract section 1.1: absent is not touched, `null` clears.

use std::borrow::Cow;

use crate::validate::{Length, Validate};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Value of one member in a PATCH. Use with `#[serde(default, skip_serializing_if = "Patch::is_absent")]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// The member was left out: keep what is there.
    #[default]
    Absent,
    /// The member was `null`: clear it.
    Null,
    /// The member has a value: replace.
    Set(T),
}

impl<T> Patch<T> {
    /// True if the member was left out.
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Applies the patch to an optional field.
    pub fn apply(self, field: &mut Option<T>) {
        match self {
            Self::Absent => {}
            Self::Null => *field = None,
            Self::Set(value) => *field = Some(value),
        }
    }

    /// Returns the value after the patch of a field that is `kept` now; `cleared` if the patch clears it.
    pub fn or(self, kept: T, cleared: T) -> T {
        match self {
            Self::Absent => kept,
            Self::Null => cleared,
            Self::Set(value) => value,
        }
    }

    /// Returns the new value, if there is one.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    /// Returns the new value by reference, if there is one.
    pub const fn as_value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_value().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Null, Self::Set))
    }
}

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        Option::<T>::schema_id()
    }
    fn inline_schema() -> bool {
        Option::<T>::inline_schema()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

/// `validate(length(…))` concerns the value only.
impl<T: Length> Length for Patch<T> {
    fn length(&self) -> Option<u64> {
        self.as_value().and_then(Length::length)
    }
}

impl<T: Validate> Validate for Patch<T> {
    fn broken_member(&self) -> Option<&'static str> {
        self.as_value().and_then(T::broken_member)
    }
}

/// Value of a member in a PATCH that cannot be cleared: left out, or a value; `null` is refused. Use with
/// `#[serde(default, skip_serializing_if = "Replace::is_absent")]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replace<T>(Option<T>);

impl<T> Replace<T> {
    /// Returns a patch that replaces the value.
    pub const fn with(value: T) -> Self {
        Self(Some(value))
    }

    /// True if the member was left out.
    pub const fn is_absent(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the new value, if there is one.
    pub fn value(self) -> Option<T> {
        self.0
    }

    /// Returns the new value by reference, if there is one.
    pub const fn as_value(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T> Default for Replace<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Serialize> Serialize for Replace<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Replace<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::with)
    }
}

impl<T: JsonSchema> JsonSchema for Replace<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T: Length> Length for Replace<T> {
    fn length(&self) -> Option<u64> {
        self.0.length()
    }
}

impl<T: Validate> Validate for Replace<T> {
    fn broken_member(&self) -> Option<&'static str> {
        self.0.broken_member()
    }
}
