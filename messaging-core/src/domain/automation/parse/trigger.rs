//! Parser of triggers (contract section 13.1).

use jiff::civil::Time;
use serde_json::{Map, Value, json};

use super::forms::{
    DateConfig, EventConfig, ListAddedConfig, MessageEventConfig, OnlyFilterConfig, SegmentEnterConfig,
    SegmentExitConfig, TriggerForm, TriggerName,
};
use super::reader::{InDrafts, LocatedObject, Reader};
use crate::domain::automation::trigger::{DateTrigger, Trigger, TriggerKind};
use crate::domain::campaign::settings::HourMinute;
use crate::domain::segment::filter::{Condition, Filter, Leaf};
use crate::domain::segment::parse::Reference;
use crate::violation::FieldCode;

/// Default time of day at which contacts enter by a date.
const MORNING: Time = Time::constant(9, 0, 0, 0);

/// Reads a trigger.
pub(super) fn read(reader: &mut Reader, sent: &Map<String, Value>) -> Option<Trigger> {
    let form = reader.form::<TriggerForm>(Value::Object(sent.clone()), "/trigger", InDrafts::Optional)?;
    let whole = LocatedObject { members: sent, pointer: "/trigger" };
    let kind = reader.need(whole, "kind", form.kind);
    let members = form.config.unwrap_or_default();
    let config = LocatedObject { members: &members, pointer: "/trigger/config" };
    let kind = kind.and_then(|kind| read_kind(reader, kind, config));
    let filter = match config.get("filter") {
        Some(filter) => reader.filter(filter, "/trigger/config/filter"),
        None => Some(Filter::Everyone),
    };
    Some(Trigger { kind: kind?, filter: filter? })
}

fn read_kind(reader: &mut Reader, kind: TriggerName, config: LocatedObject<'_>) -> Option<TriggerKind> {
    Some(match kind {
        TriggerName::Event => {
            reader.config::<EventConfig>(config)?;
            return read_event(reader, config);
        }
        TriggerName::SegmentEnter => {
            let form = reader.config::<SegmentEnterConfig>(config)?;
            let segment_id = reader.need_id(config, "segment_id", form.segment_id, Reference::Segment)?;
            TriggerKind::SegmentEnter { segment_id, include_existing: form.include_existing.unwrap_or_default() }
        }
        TriggerName::SegmentExit => {
            let form = reader.config::<SegmentExitConfig>(config)?;
            TriggerKind::SegmentExit(reader.need_id(config, "segment_id", form.segment_id, Reference::Segment)?)
        }
        TriggerName::ListAdded => {
            let form = reader.config::<ListAddedConfig>(config)?;
            TriggerKind::ListAdded(reader.need_id(config, "list_id", form.list_id, Reference::List)?)
        }
        TriggerName::ContactCreated => {
            reader.config::<OnlyFilterConfig>(config)?;
            TriggerKind::ContactCreated
        }
        TriggerName::Manual => {
            reader.config::<OnlyFilterConfig>(config)?;
            TriggerKind::Manual
        }
        TriggerName::Date => {
            let form = reader.config::<DateConfig>(config)?;
            let attribute = reader.need_text(config, "attribute", form.attribute)?;
            TriggerKind::Date(DateTrigger {
                attribute: reader.attribute_path(&attribute, config.at("attribute"))?,
                offset_days: form.offset_days.unwrap_or_default(),
                time: form.time.map_or(MORNING, HourMinute::time),
                repeats: form.repeat.unwrap_or_default(),
            })
        }
        TriggerName::MessageEvent => {
            let form = reader.config::<MessageEventConfig>(config)?;
            let event = reader.need(config, "event", form.event);
            let optional = |name: &str, text: Option<String>| text.map(|text| (text, config.at(name)));
            let campaign = optional("campaign_id", form.campaign_id);
            let template = optional("template_id", form.template_id);
            TriggerKind::MessageEvent {
                campaign_id: campaign.and_then(|(text, at)| reader.id(&text, at, Reference::Campaign)),
                template_id: template.and_then(|(text, at)| reader.id(&text, at, Reference::Template)),
                event: event?,
            }
        }
    })
}

/// Reads an event trigger: `name` and `where` are those of a condition on events, at the same places.
fn read_event(reader: &mut Reader, config: LocatedObject<'_>) -> Option<TriggerKind> {
    let mut leaf = json!({"type": "event"});
    for name in ["name", "where"] {
        if let Some(value) = config.get(name) {
            leaf[name] = value.clone();
        }
    }
    let Filter::Where(Condition::Leaf(Leaf::Event(leaf))) = reader.filter(&leaf, config.pointer)? else {
        reader.fault(config.pointer, FieldCode::InvalidFormat, "cannot be read");
        return None;
    };
    let conditions = config.get("where").and_then(Value::as_array).cloned().unwrap_or_default();
    Some(TriggerKind::Event { name: leaf.name, properties: leaf.properties, conditions })
}
