//! Data of a contact that a filter reads: they tell which segments a change may affect.

use std::ops::{BitAnd, BitOr};

use super::filter::{Condition, DateTest, Filter, FilterField, Leaf, Positive, Test, When, Within};

/// Kinds of data that can change about a contact, as a small set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ReadMask(u32);

impl ReadMask {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Existence of the contact: every filter reads it, because a new contact may match any.
    pub const EXISTENCE: Self = Self(1);
    /// Identifiers, locale and time zone.
    pub const FIELDS: Self = Self(1 << 1);
    /// Time of the last change. Apart from the other fields, because any change of the contact changes it.
    pub const UPDATED_AT: Self = Self(1 << 2);
    /// Its attributes.
    pub const ATTRIBUTES: Self = Self(1 << 3);
    /// Its tags.
    pub const TAGS: Self = Self(1 << 4);
    /// Lists that contain the contact.
    pub const LISTS: Self = Self(1 << 5);
    /// Its consent to marketing, by kind.
    pub const CONSENT: Self = Self(1 << 6);
    /// Suppressions of the contact's addresses.
    pub const SUPPRESSIONS: Self = Self(1 << 7);
    /// Its product events.
    pub const EVENTS: Self = Self(1 << 8);
    /// Events of messages to the contact.
    pub const MESSAGES: Self = Self(1 << 9);
    /// Suppressions of addresses that no index finds: no filter reads them, but automations that follow every change of
    /// a contact do. Not part of [`ReadMask::ALL`].
    pub const TRACED_SUPPRESSIONS: Self = Self(1 << 10);
    /// Everything that filters read.
    pub const ALL: Self = Self((1 << 10) - 1);

    /// Returns the set as a number, for storing it.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns the set of a number; unknown bits are left out.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// True if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if both sets have a member in common.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for ReadMask {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for ReadMask {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Everything that the outcome of a filter depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads {
    /// Data of the contact that the outcome depends on.
    pub mask: ReadMask,
    /// True if it depends on the present: a contact may come to match because time passes.
    pub present: bool,
    /// True if it depends on the workspace's time zone.
    pub zone: bool,
}

impl BitOr for Reads {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self { mask: self.mask | other.mask, present: self.present || other.present, zone: self.zone || other.zone }
    }
}

impl Filter {
    /// Returns everything that the filter's outcome depends on, without the filters of dynamic segments that it names:
    /// resolve these first.
    pub fn reads(&self) -> Reads {
        let everyone = Reads { mask: ReadMask::EXISTENCE, ..Reads::default() };
        self.leaves().fold(everyone, |reads, leaf| reads | of_leaf(leaf))
    }

    /// Returns the leaves, in the order in which they stand.
    pub fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        let mut waiting = match self {
            Self::Everyone => Vec::new(),
            Self::Where(condition) => vec![condition],
        };
        std::iter::from_fn(move || {
            loop {
                match waiting.pop()? {
                    Condition::And(parts) | Condition::Or(parts) => waiting.extend(parts.iter().rev()),
                    Condition::Not(part) => waiting.push(part),
                    Condition::Leaf(leaf) => return Some(leaf),
                }
            }
        })
    }
}

fn of_leaf(leaf: &Leaf) -> Reads {
    let of = |mask| Reads { mask, ..Reads::default() };
    match leaf {
        Leaf::Field(FilterField::CreatedAt, test) => of_test(test),
        Leaf::Field(FilterField::UpdatedAt, test) => of(ReadMask::UPDATED_AT) | of_test(test),
        Leaf::Field(_, test) => of(ReadMask::FIELDS) | of_test(test),
        Leaf::Attribute(_, test) => of(ReadMask::ATTRIBUTES) | of_test(test),
        Leaf::Tags { .. } => of(ReadMask::TAGS),
        Leaf::List { .. } => of(ReadMask::LISTS),
        // The members of a static segment change only as a whole; segments that name it are then calculated anew.
        Leaf::Segment { .. } => Reads::default(),
        Leaf::Consent(..) => of(ReadMask::CONSENT),
        Leaf::Suppression(..) => of(ReadMask::SUPPRESSIONS),
        Leaf::Event(event) => {
            let tests = event.properties.iter().map(|property| of_test(&property.test));
            tests.fold(of(ReadMask::EVENTS) | of_within(event.within), BitOr::bitor)
        }
        Leaf::Message(message) => of(ReadMask::MESSAGES) | of_within(message.within),
    }
}

fn of_test(test: &Test) -> Reads {
    let Positive::Date(date) = &test.positive else { return Reads::default() };
    // A stored day begins at midnight of the time zone, whatever it is compared to.
    let (present, zone) = match date {
        DateTest::Before(_) | DateTest::After(_) | DateTest::On(_) | DateTest::Between(..) => (false, true),
        DateTest::Last(_) | DateTest::Next(_) | DateTest::OlderThan(_) | DateTest::Anniversary(_) => (true, true),
    };
    Reads { mask: ReadMask::NONE, present, zone }
}

fn of_within(within: Option<Within>) -> Reads {
    let is_day = |when: When| matches!(when, When::Day(_));
    let (present, zone) = match within {
        None | Some(Within::SinceEntry) => (false, false),
        Some(Within::Last(_)) => (true, true),
        Some(Within::After(when) | Within::Before(when)) => (false, is_day(when)),
        Some(Within::Between(first, last)) => (false, is_day(first) || is_day(last)),
    };
    Reads { mask: ReadMask::NONE, present, zone }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::segment::parse::{Purpose, parse};
    use crate::violation::Violations;

    #[track_caller]
    fn check(filter: Value, mask: ReadMask, present: bool, zone: bool) {
        let tree = parse(&filter, "", Purpose::Segment, &mut Violations::new()).filter.unwrap();
        let expected = Reads { mask: mask | ReadMask::EXISTENCE, present, zone };
        assert_eq!(tree.reads(), expected, "{filter}");
    }

    #[test]
    fn each_condition_reads_what_it_asks_for() {
        let field =
            |field: &str, op: &str, value: Value| json!({"type": "contact", "field": field, "op": op, "value": value});
        check(json!({}), ReadMask::NONE, false, false);
        check(field("email", "eq", json!("x")), ReadMask::FIELDS, false, false);
        check(field("created_at", "before", json!("2026-01-31")), ReadMask::NONE, false, true);
        check(field("updated_at", "exists", Value::Null), ReadMask::UPDATED_AT, false, false);
        check(field("created_at", "last", json!({"value": 1, "unit": "hours"})), ReadMask::NONE, true, true);
        let attribute = |op: &str, value: Value| json!({"type": "attribute", "key": "a", "op": op, "value": value});
        check(attribute("gt", json!(5)), ReadMask::ATTRIBUTES, false, false);
        check(attribute("anniversary", json!({"offset_days": 1})), ReadMask::ATTRIBUTES, true, true);
        check(json!({"type": "tag", "op": "has_none", "values": ["a"]}), ReadMask::TAGS, false, false);
        let id = "01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
        check(json!({"type": "list", "op": "member", "id": format!("lst_{id}")}), ReadMask::LISTS, false, false);
        check(json!({"type": "segment", "op": "member", "id": format!("seg_{id}")}), ReadMask::NONE, false, false);
        check(json!({"type": "consent", "channel": "sms", "value": null}), ReadMask::CONSENT, false, false);
        check(json!({"type": "suppression", "channel": "sms", "value": true}), ReadMask::SUPPRESSIONS, false, false);
        let event = |more: Value| {
            let mut event = json!({"type": "event", "name": "e"});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        check(event(json!({})), ReadMask::EVENTS, false, false);
        check(event(json!({"within": {"last": {"value": 1, "unit": "days"}}})), ReadMask::EVENTS, true, true);
        check(event(json!({"within": {"after": "2026-01-31T09:15:00Z"}})), ReadMask::EVENTS, false, false);
        check(event(json!({"within": {"after": "2026-01-31"}})), ReadMask::EVENTS, false, true);
        let property = json!({"property": "p", "op": "older_than", "value": {"value": 1, "unit": "days"}});
        check(event(json!({"where": [property]})), ReadMask::EVENTS, true, true);
        let message = json!({"type": "message", "event": "open", "within": {"before": "2026-01-31"}});
        check(message.clone(), ReadMask::MESSAGES, false, true);
        let both = ReadMask::MESSAGES | ReadMask::ATTRIBUTES;
        check(json!({"or": [message, {"not": attribute("eq", json!("x"))}]}), both, false, true);
    }

    #[test]
    fn sets_are_numbers() {
        let set = ReadMask::TAGS | ReadMask::EVENTS;
        assert_eq!(ReadMask::from_bits(set.bits()), set);
        assert_eq!(ReadMask::from_bits(u32::MAX), ReadMask::ALL);
        assert!(set.intersects(ReadMask::ALL) && !set.intersects(ReadMask::LISTS) && ReadMask::NONE.is_empty());
    }
}
