//! Lists in places where an object is required.
//!
//! The code that serde derives reads `[1, 2]` as an object with its members in order. Nobody means that, so a body is
//! compared with its schema before it is read, if it holds a list at all.

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::schema_check::{JUDGED_ALONE, is_object_only, resolved};

/// Places of a value that must be objects, computed from a JSON Schema: a body is checked for each request, and looking
/// up names in the schema would take longer than reading the body.
#[derive(Debug)]
pub(super) struct ObjectPlaces {
    /// Places, the outermost value first.
    places: Vec<Place>,
}

/// Rules for a place of a value. Indices refer to other places, and only to those that have to be checked.
#[derive(Debug, Default)]
struct Place {
    /// True if nothing but an object may stand here.
    is_object: bool,
    /// Members by name.
    members: HashMap<String, Option<usize>>,
    /// Members of any other name.
    others: Option<usize>,
    /// Items of a list.
    items: Option<usize>,
}

impl Place {
    fn member(&self, name: &str) -> Option<usize> {
        self.members.get(name).copied().unwrap_or(self.others)
    }

    /// Returns the places below this one.
    fn below(&mut self) -> impl Iterator<Item = &mut Option<usize>> {
        self.members.values_mut().chain([&mut self.others, &mut self.items])
    }
}

impl ObjectPlaces {
    /// Returns the places of the values that a schema describes.
    pub(super) fn of(schema: &Value) -> Self {
        let mut found = Found { root: schema, places: Vec::new(), known: HashMap::new() };
        found.add(schema);
        let mut places = found.places;
        loop {
            let leads: Vec<_> =
                places.iter_mut().map(|place| place.is_object || place.below().any(|at| at.is_some())).collect();
            let dropped = places.iter_mut().flat_map(Place::below).filter(|at| at.is_some_and(|at| !leads[at]));
            if dropped.map(Option::take).count() == 0 {
                return Self { places };
            }
        }
    }

    /// True if a JSON text has a list where an object must be. False for text that is no JSON.
    pub(super) fn has_list(&self, text: &str) -> bool {
        let mut found = false;
        let look = Look { places: &self.places, at: Some(0), found: &mut found };
        let _ = look.deserialize(&mut serde_json::Deserializer::from_str(text));
        found
    }
}

/// Places of a schema that are found so far.
struct Found<'s> {
    root: &'s Value,
    places: Vec<Place>,
    /// Indices of places by the schema that describes them, since schemas refer to themselves.
    known: HashMap<*const Value, usize>,
}

impl<'s> Found<'s> {
    /// Adds the place that a schema describes, with those below it. `None` if there is no rule for it.
    fn add(&mut self, schema: &'s Value) -> Option<usize> {
        let schema = resolved(self.root, schema);
        if !schema.is_object() || schema[JUDGED_ALONE] == true {
            return None;
        }
        if let Some(at) = self.known.get(&std::ptr::from_ref(schema)) {
            return Some(*at);
        }
        let at = self.places.len();
        self.known.insert(schema, at);
        self.places.push(Place::default());
        let members = schema["properties"].as_object().into_iter().flatten();
        let members = members.map(|(name, schema)| (name.clone(), self.add(schema))).collect();
        self.places[at] = Place {
            is_object: is_object_only(self.root, schema),
            members,
            others: self.add(&schema["additionalProperties"]),
            items: self.add(&schema["items"]),
        };
        Some(at)
    }
}

/// Checks a value, at its place if there is a rule for it.
struct Look<'p, 'f> {
    places: &'p [Place],
    at: Option<usize>,
    found: &'f mut bool,
}

impl Look<'_, '_> {
    fn at(&mut self, at: Option<usize>) -> Look<'_, '_> {
        Look { places: self.places, at, found: self.found }
    }
}

impl<'de> DeserializeSeed<'de> for Look<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.at.and_then(|at| self.places.get(at)) {
            Some(place) => deserializer.deserialize_any(LookAt { look: self, place }),
            None => deserializer.deserialize_ignored_any(IgnoredAny).map(drop),
        }
    }
}

/// Reads the name of a member and returns its place.
struct Name<'p>(&'p Place);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.member(name))
    }
}

/// Checks a value at a place with a rule.
struct LookAt<'p, 'f> {
    look: Look<'p, 'f>,
    place: &'p Place,
}

impl<'de> Visitor<'de> for LookAt<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(at) = members.next_key_seed(Name(self.place))? {
            members.next_value_seed(self.look.at(at))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        if self.place.is_object {
            *self.look.found = true;
            return Err(A::Error::custom("a list where an object must be"));
        }
        while items.next_element_seed(self.look.at(self.place.items))?.is_some() {}
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
        let places = ObjectPlaces::of(&schema);
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
            assert_eq!(places.has_list(text), expected, "{text}");
        }
    }
}
