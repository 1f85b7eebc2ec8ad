//! Parser of the operators and values of conditions.

use serde_json::Value;

use super::members::Members;
use super::reader::{MAX_TEXT, MAX_VALUES, Reader};
use crate::domain::channel::address;
use crate::domain::segment::filter::{DateTest, FromEvent, Operator, Positive, Scalar, Test, ValueKind, When};
use crate::domain::segment::parse::reader::Purpose;
use crate::domain::segment::{event, values};
use crate::violation::FieldCode;

/// Maximum number of days between an anniversary and the requested day.
const MAX_OFFSET: i64 = 366;

/// Operators by name: the meaning, and true if the outcome is inverted.
const OPS: &[(&str, (Operator, bool))] = &[
    ("exists", (Operator::Exists, false)),
    ("not_exists", (Operator::Exists, true)),
    ("eq", (Operator::Equal, false)),
    ("neq", (Operator::Equal, true)),
    ("in", (Operator::In, false)),
    ("not_in", (Operator::In, true)),
    ("contains", (Operator::Contains, false)),
    ("not_contains", (Operator::Contains, true)),
    ("starts_with", (Operator::StartsWith, false)),
    ("ends_with", (Operator::EndsWith, false)),
    ("gt", (Operator::GreaterThan, false)),
    ("gte", (Operator::AtLeast, false)),
    ("lt", (Operator::LessThan, false)),
    ("lte", (Operator::AtMost, false)),
    ("between", (Operator::Between, false)),
    ("before", (Operator::Before, false)),
    ("after", (Operator::After, false)),
    ("on", (Operator::On, false)),
    ("last", (Operator::Last, false)),
    ("next", (Operator::Next, false)),
    ("older_than", (Operator::OlderThan, false)),
    ("anniversary", (Operator::Anniversary, false)),
];

/// Returns true for every operator but `eq`, `in` and `exists`: most others reveal more about an address than whether
/// it equals a given one.
pub(super) fn takes_parts(op: &Value) -> bool {
    OPS.iter().any(|(name, _)| op == name) && !["eq", "in", "exists"].iter().any(|name| op == name)
}

impl Operator {
    /// Returns true if the operator applies to values of this kind.
    const fn is_for(self, values: ValueKind) -> bool {
        match values {
            ValueKind::Any => true,
            ValueKind::Texts | ValueKind::Emails => matches!(
                self,
                Self::Exists | Self::Equal | Self::In | Self::Contains | Self::StartsWith | Self::EndsWith
            ),
            ValueKind::Dates => matches!(
                self,
                Self::Exists
                    | Self::Between
                    | Self::Before
                    | Self::After
                    | Self::On
                    | Self::Last
                    | Self::Next
                    | Self::OlderThan
                    | Self::Anniversary
            ),
        }
    }
}

impl Operator {
    /// Returns a text in the spelling in which values of the field are stored.
    ///
    /// Stored email addresses have their domain in A-labels, which do not contain the other letters of a label as such.
    /// So a text that names a domain is converted to A-labels too: the text after an `@`, the text of `ends_with`, and
    /// the text of `contains` if it ends in `.` and a label of ASCII characters.
    fn spelled(self, values: ValueKind, text: &str) -> String {
        if values != ValueKind::Emails {
            return values::fold(text).into_owned();
        }
        if matches!(self, Self::Equal | Self::In) {
            return address::normalize_email(text);
        }
        if let Some((local, domain)) = text.rsplit_once('@') {
            return format!("{}@{}", local.to_ascii_lowercase(), address::normalize_labels(domain));
        }
        let is_domain = match self {
            Self::EndsWith => true,
            Self::Contains => text.rsplit_once('.').is_some_and(|(_, last)| !last.is_empty() && last.is_ascii()),
            _ => false,
        };
        if is_domain { address::normalize_labels(text) } else { text.to_ascii_lowercase() }
    }
}

impl Reader<'_> {
    /// Parses the members `op` and `value`, or `value_from` in place of `value`.
    pub(super) fn test(&mut self, members: &Members<'_>, values: ValueKind) -> Option<Test> {
        let from = members.optional("value_from");
        if from.is_some() && self.purpose == Purpose::Segment {
            let rule = "only automations have an event that a value could come from";
            self.fault(members.at("value_from"), FieldCode::NotAllowed, rule);
        }
        let (op, negated) = self.one_of(members, "op", OPS)?;
        if !op.is_for(values) {
            let rule = match values {
                ValueKind::Dates => "this field is a time; operators of dates apply",
                ValueKind::Any | ValueKind::Texts | ValueKind::Emails => {
                    "this field is a text; operators of texts apply"
                }
            };
            self.fault(members.at("op"), FieldCode::NotAllowed, rule);
            return None;
        }
        if op == Operator::Exists {
            for name in ["value", "value_from"] {
                if members.optional(name).is_some() {
                    self.fault(members.at(name), FieldCode::NotAllowed, "this operator takes no value");
                }
            }
            return Some(Test { negated, positive: Positive::Exists });
        }
        if let Some(from) = from {
            if members.optional("value").is_some() {
                let rule = "stands in place of value; give only one of them";
                self.fault(members.at("value_from"), FieldCode::Conflict, rule);
            }
            let path = self.event_path(from, &members.at("value_from"))?;
            return Some(Test { negated, positive: Positive::FromEvent(Box::new(FromEvent { path, op, values })) });
        }
        let value = self.required(members, "value")?;
        let positive = self.positive(op, value, &members.at("value"), values)?;
        Some(Test { negated, positive })
    }

    /// Parses the path of a value in an event.
    fn event_path(&mut self, value: &Value, at: &str) -> Option<Vec<String>> {
        let path = event::path(self.string(value, at, MAX_TEXT)?);
        if path.is_none() {
            self.fault(at, FieldCode::InvalidFormat, event::PATH_RULE);
        }
        path
    }

    /// Parses the value of an operator, and returns the test of both.
    pub(super) fn positive(&mut self, op: Operator, value: &Value, at: &str, values: ValueKind) -> Option<Positive> {
        let date = |test| Positive::Date(test);
        Some(match op {
            Operator::Exists => Positive::Exists,
            Operator::Equal => Positive::OneOf(vec![self.scalar(op, value, at, values)?]),
            Operator::In => Positive::OneOf(self.scalars(op, value, at, values)?),
            Operator::Contains => Positive::Contains(self.scalar(op, value, at, values)?),
            Operator::StartsWith => Positive::StartsWith(op.spelled(values, self.string(value, at, MAX_TEXT)?)),
            Operator::EndsWith => Positive::EndsWith(op.spelled(values, self.string(value, at, MAX_TEXT)?)),
            Operator::GreaterThan => Positive::GreaterThan(self.number(value, at)?),
            Operator::AtLeast => Positive::AtLeast(self.number(value, at)?),
            Operator::LessThan => Positive::LessThan(self.number(value, at)?),
            Operator::AtMost => Positive::AtMost(self.number(value, at)?),
            Operator::Between => self.between(value, at, values)?,
            Operator::Before => date(DateTest::Before(self.when(value, at)?)),
            Operator::After => date(DateTest::After(self.when(value, at)?)),
            Operator::On => date(DateTest::On(self.when(value, at)?)),
            Operator::Last => date(DateTest::Last(self.span(value, at)?)),
            Operator::Next => date(DateTest::Next(self.span(value, at)?)),
            Operator::OlderThan => date(DateTest::OlderThan(self.span(value, at)?)),
            Operator::Anniversary => {
                let members = self.object(value, at, &["offset_days"])?;
                let offset = self.integer(&members, "offset_days", -MAX_OFFSET, MAX_OFFSET)?;
                date(DateTest::Anniversary(i32::try_from(offset).ok()?))
            }
        })
    }

    fn scalar(&mut self, op: Operator, value: &Value, at: &str, values: ValueKind) -> Option<Scalar> {
        match value {
            Value::String(_) => Some(Scalar::Text(op.spelled(values, self.string(value, at, MAX_TEXT)?))),
            Value::Number(_) if values == ValueKind::Any => Some(Scalar::Number(self.number(value, at)?)),
            Value::Bool(value) if values == ValueKind::Any => Some(Scalar::Boolean(*value)),
            _ => {
                let rule = if values == ValueKind::Any {
                    "must be a string, a number or a boolean"
                } else {
                    "must be a string"
                };
                self.fault(at, FieldCode::InvalidType, rule);
                None
            }
        }
    }

    /// Parses a list of texts and numbers, mixed in any order.
    fn scalars(&mut self, op: Operator, value: &Value, at: &str, values: ValueKind) -> Option<Vec<Scalar>> {
        let items = self.items(value, at, 1, MAX_VALUES)?;
        let mut scalars = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let at = format!("{at}/{index}");
            scalars.extend(match item {
                Value::Number(_) if values == ValueKind::Any => self.number(item, &at).map(Scalar::Number),
                Value::String(_) => {
                    self.any_string(item, &at, MAX_TEXT).map(|text| Scalar::Text(op.spelled(values, text)))
                }
                _ => {
                    self.fault(at, FieldCode::InvalidType, "must be a string or a number");
                    None
                }
            });
        }
        Some(scalars)
    }

    fn number(&mut self, value: &Value, at: &str) -> Option<f64> {
        let number = value.as_f64();
        if number.is_none() {
            self.fault(at, FieldCode::InvalidType, "must be a number");
        }
        number
    }

    fn between(&mut self, value: &Value, at: &str, values: ValueKind) -> Option<Positive> {
        let [first, last] = self.items(value, at, 2, 2)? else { return None };
        if first.is_number() && values == ValueKind::Any {
            let (first, last) = (self.number(first, at)?, self.number(last, &format!("{at}/1"))?);
            if first > last {
                self.fault(at, FieldCode::OutOfRange, "the first must not be greater than the second");
            }
            return Some(Positive::Between(first, last));
        }
        self.whens(first, last, at).map(|(first, last)| Positive::Date(DateTest::Between(first, last)))
    }

    /// Parses two dates, and reports a fault if the first is later than the second.
    pub(super) fn whens(&mut self, first: &Value, last: &Value, at: &str) -> Option<(When, When)> {
        let (first, last) = (self.when(first, &format!("{at}/0")), self.when(last, &format!("{at}/1")));
        let (first, last) = (first?, last?);
        let is_reversed = match (first, last) {
            (When::Moment(first), When::Moment(last)) => first > last,
            (When::Day(first), When::Day(last)) => first > last,
            // The order of the two depends on the time zone.
            _ => false,
        };
        if is_reversed {
            self.fault(at, FieldCode::OutOfRange, "the first must not be later than the second");
        }
        Some((first, last))
    }

    /// Parses a time with an offset, or a day.
    pub(super) fn when(&mut self, value: &Value, at: &str) -> Option<When> {
        let text = self.string(value, at, MAX_TEXT)?;
        let when = values::read_when(text);
        if when.is_none() {
            self.fault(at, FieldCode::InvalidFormat, "must be an RFC 3339 time with an offset, or YYYY-MM-DD");
        }
        when
    }
}
