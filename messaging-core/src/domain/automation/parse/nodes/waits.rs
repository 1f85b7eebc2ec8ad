//! Parsers of the nodes that wait.

use serde_json::Value;

use super::super::forms::{Direction, UntilAttributeForm, UntilForm, WaitConfig};
use super::super::reader::{LocatedObject, Reader};
use crate::domain::automation::graph::{Awaited, Wait};
use crate::domain::segment::filter::{Condition, Filter, Leaf};
use crate::time::zone;
use crate::violation::{FieldCode, escape};

/// Name in a config for the contact's time zone.
const OF_CONTACT: &str = "contact";
/// Members whose presence makes a condition a group.
const GROUPS: [&str; 3] = ["and", "or", "not"];
/// The forms of a wait.
const FORMS: [&str; 3] = ["duration", "until", "until_attribute"];

/// Reads the config of a wait.
pub(super) fn wait(reader: &mut Reader, config: LocatedObject<'_>, form: WaitConfig) -> Option<Wait> {
    let WaitConfig { duration, until, until_attribute } = form;
    let until = until.and_then(|form| read_until(reader, config, form));
    let until_attribute = until_attribute.and_then(|form| read_until_attribute(reader, config, form));
    match FORMS.iter().filter(|name| config.get(name).is_some()).count() {
        0 => reader.gap(config.pointer, FieldCode::Required, "give one of duration, until, until_attribute"),
        1 => {}
        _ => reader.fault(config.pointer, FieldCode::Conflict, "give only one of duration, until, until_attribute"),
    }
    duration.map(Wait::Duration).or(until).or(until_attribute)
}

fn member<'a>(config: LocatedObject<'a>, name: &str) -> Option<&'a serde_json::Map<String, Value>> {
    config.get(name).and_then(Value::as_object)
}

fn read_until(reader: &mut Reader, config: LocatedObject<'_>, form: UntilForm) -> Option<Wait> {
    let pointer = config.at("until");
    let object = LocatedObject { members: member(config, "until")?, pointer: &pointer };
    let mut weekdays = Vec::new();
    for (index, day) in form.weekdays.unwrap_or_default().into_iter().enumerate() {
        if weekdays.contains(&day.0) {
            reader.fault(format!("{pointer}/weekdays/{index}"), FieldCode::Duplicate, "is there already");
        }
        weekdays.push(day.0);
    }
    let time = reader.need(object, "time", form.time);
    let timezone = match form.timezone.as_deref() {
        None | Some(OF_CONTACT) => None,
        Some(name) => {
            let Some((_, spelled)) = zone(name) else {
                let rule = "is neither contact nor an IANA time zone name";
                reader.fault(object.at("timezone"), FieldCode::InvalidFormat, rule);
                return None;
            };
            Some(spelled)
        }
    };
    Some(Wait::Until { time: time?.time(), weekdays, timezone })
}

fn read_until_attribute(reader: &mut Reader, config: LocatedObject<'_>, form: UntilAttributeForm) -> Option<Wait> {
    let pointer = config.at("until_attribute");
    let object = LocatedObject { members: member(config, "until_attribute")?, pointer: &pointer };
    let key = reader.need_text(object, "key", form.key)?;
    let key = reader.attribute_path(&key, object.at("key"))?;
    Some(Wait::UntilAttribute { key, offset: form.offset, is_before: form.direction == Some(Direction::Before) })
}

/// Reads the event that a run waits for: one condition on product events or on events of messages, without `within` and
/// `count`.
pub(super) fn awaited(reader: &mut Reader, config: LocatedObject<'_>) -> Option<Awaited> {
    let sent = config.get("on");
    let sent = reader.need(config, "on", sent)?;
    let pointer = config.at("on");
    let Value::Object(members) = sent else {
        reader.fault(pointer, FieldCode::InvalidType, "a condition is an object");
        return None;
    };
    let on = LocatedObject { members, pointer: &pointer };
    for name in GROUPS.into_iter().filter(|name| members.contains_key(*name)) {
        reader.fault(on.at(name), FieldCode::UnknownField, "must be one condition, not a group");
    }
    match on.get("type") {
        None => {
            reader.gap(on.at("type"), FieldCode::Required, "is required");
            return None;
        }
        Some(Value::String(kind)) if kind == "event" || kind == "message" => {}
        Some(Value::String(kind)) if kind.is_empty() => {
            reader.gap(on.at("type"), FieldCode::Required, "is required");
            return None;
        }
        Some(Value::String(_)) => {
            reader.fault(on.at("type"), FieldCode::UnknownValue, "must be one of event, message");
            return None;
        }
        Some(_) => {
            reader.fault(on.at("type"), FieldCode::InvalidType, "must be a string");
            return None;
        }
    }
    let mut leaf = members.clone();
    for name in GROUPS {
        leaf.remove(name);
    }
    for (name, rule) in
        [("within", "what is waited for happens from now on"), ("count", "what is waited for happens once")]
    {
        if leaf.remove(name).is_some_and(|value| !value.is_null()) {
            reader.fault(format!("{pointer}/{}", escape(name)), FieldCode::NotAllowed, rule);
        }
    }
    match reader.filter(&Value::Object(leaf), &pointer)? {
        Filter::Where(Condition::Leaf(Leaf::Event(leaf))) => Some(Awaited::Event(leaf)),
        Filter::Where(Condition::Leaf(Leaf::Message(leaf))) => Some(Awaited::Message(leaf)),
        _ => {
            reader.fault(pointer, FieldCode::UnknownField, "must be one condition, not a group");
            None
        }
    }
}
