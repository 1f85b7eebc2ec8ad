//! Lists that stand where an object must.
//!
//! The code that serde derives reads `[1, 2]` as an object with its members in order. Nobody means that, so a body is
//! looked through beside its schema before it is read, if it holds a list at all.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::schema_check::{JUDGED_ALONE, is_object_only, resolved};

/// Whether a JSON text has a list where its schema wants an object. What is no JSON has none.
pub(super) fn has_list_for_object(text: &str, schema: &Value) -> bool {
    let mut found = false;
    let look = Look { root: schema, schema, found: &mut found };
    let _ = look.deserialize(&mut serde_json::Deserializer::from_str(text));
    found
}

/// A look at a value.
struct Look<'s, 'f> {
    root: &'s Value,
    schema: &'s Value,
    found: &'f mut bool,
}

impl<'s> Look<'s, '_> {
    fn at(&mut self, schema: &'s Value) -> Look<'s, '_> {
        Look { root: self.root, schema, found: self.found }
    }
}

impl<'de> DeserializeSeed<'de> for Look<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let schema = resolved(self.root, self.schema);
        let has_members = schema.is_object() && schema[JUDGED_ALONE] != true;
        if has_members {
            deserializer.deserialize_any(Look { schema, ..self })
        } else {
            IgnoredAny::deserialize_in(deserializer)
        }
    }
}

/// Passing by a value.
trait PassBy: Sized {
    fn deserialize_in<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error>;
}

impl PassBy for IgnoredAny {
    fn deserialize_in<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_ignored_any(Self).map(drop)
    }
}

impl<'de> Visitor<'de> for Look<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<std::borrow::Cow<'de, str>>()? {
            let schema = self.schema;
            let member = schema["properties"].get(&*name).unwrap_or(&schema["additionalProperties"]);
            members.next_value_seed(self.at(member))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        if is_object_only(self.root, self.schema) {
            *self.found = true;
            return Err(A::Error::custom("a list where an object must be"));
        }
        let schema = self.schema;
        while items.next_element_seed(self.at(&schema["items"]))?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_found_where_objects_must_be() {
        let schema = json!({
            "type": "object",
            "properties": {
                "tags": {"type": "array", "items": {"type": "string"}},
                "audience": {"anyOf": [{"$ref": "#/$defs/Audience"}, {"type": "null"}]},
                "files": {"type": "array", "items": {"$ref": "#/$defs/Audience"}},
                "trigger": {"oneOf": [
                    {"type": "object", "properties": {"type": {"const": "a"}}},
                    {"type": "object", "properties": {"type": {"const": "b"}}},
                ]},
                "data": true,
                "steps": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Audience"}},
                "items": {"type": "array", "items": {"$ref": "#/$defs/Audience", "x-judged-alone": true}},
            },
            "$defs": {"Audience": {"type": "object", "properties": {"lists": {"type": ["array", "null"]}}}},
        });
        for (text, expected) in [
            (r#"{"tags":["a"],"audience":{"lists":[1,[2]]},"data":[{"x":[]}],"unknown":[[]]}"#, false),
            (r#"{"audience":null,"trigger":{"type":"a","more":[1]},"files":[{"lists":[]}]}"#, false),
            (r#"{"audience":[null,null]}"#, true),
            (r#"{"files":[{"lists":[]},[null]]}"#, true),
            (r#"{"trigger":["a"]}"#, true),
            (r#"{"steps":{"one":{"lists":null},"two":[[]]}}"#, true),
            (r#"{"\u0061udience":[]}"#, true),
            (r#"{"items":[[1]]}"#, false),
            (r#"{"tags":["[]"],"audience":"[]"}"#, false),
            (r#"{"audience":[}"#, true),
            (r#"{"tags":["#, false),
        ] {
            assert_eq!(has_list_for_object(text, &schema), expected, "{text}");
        }
    }
}
