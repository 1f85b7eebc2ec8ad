//! Operators and the values they take.

use serde_json::Value;

use super::members::Members;
use super::reader::{MAX_TEXT, MAX_VALUES, Reader};
use crate::domain::address;
use crate::domain::segment::filter::{DateTest, Positive, Scalar, Test, When};
use crate::domain::segment::values;
use crate::violation::FieldCode;

/// Days between an anniversary and the day that is asked for.
const MAX_OFFSET: i64 = 366;

/// What is known of the values that a test is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// Nothing.
    Any,
    /// They are texts.
    Texts,
    /// They are email addresses, in their one spelling.
    Emails,
    /// They are dates.
    Dates,
}

/// What an operator does, but for its negation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Exists,
    Equal,
    In,
    Contains,
    StartsWith,
    EndsWith,
    GreaterThan,
    AtLeast,
    LessThan,
    AtMost,
    Between,
    Before,
    After,
    On,
    Last,
    Next,
    OlderThan,
    Anniversary,
}

/// The operators: what they do, and whether they turn the outcome around.
const OPS: &[(&str, (Op, bool))] = &[
    ("exists", (Op::Exists, false)),
    ("not_exists", (Op::Exists, true)),
    ("eq", (Op::Equal, false)),
    ("neq", (Op::Equal, true)),
    ("in", (Op::In, false)),
    ("not_in", (Op::In, true)),
    ("contains", (Op::Contains, false)),
    ("not_contains", (Op::Contains, true)),
    ("starts_with", (Op::StartsWith, false)),
    ("ends_with", (Op::EndsWith, false)),
    ("gt", (Op::GreaterThan, false)),
    ("gte", (Op::AtLeast, false)),
    ("lt", (Op::LessThan, false)),
    ("lte", (Op::AtMost, false)),
    ("between", (Op::Between, false)),
    ("before", (Op::Before, false)),
    ("after", (Op::After, false)),
    ("on", (Op::On, false)),
    ("last", (Op::Last, false)),
    ("next", (Op::Next, false)),
    ("older_than", (Op::OlderThan, false)),
    ("anniversary", (Op::Anniversary, false)),
];

impl Op {
    /// Whether it can be asked of such values.
    const fn is_for(self, values: Values) -> bool {
        match values {
            Values::Any => true,
            Values::Texts | Values::Emails => matches!(
                self,
                Self::Exists | Self::Equal | Self::In | Self::Contains | Self::StartsWith | Self::EndsWith
            ),
            Values::Dates => matches!(
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

impl Op {
    /// A text as values of the field are spelled.
    ///
    /// Of an email address the domain stands in A-labels, in which no part of a label of other letters is found: so
    /// what names a domain is spelled like one. That is what follows an `@`, what an address ends with, and what it
    /// contains if that ends in `.` and a label of ASCII letters.
    fn spelled(self, values: Values, text: &str) -> String {
        if values != Values::Emails {
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
    /// The members `op` and `value`.
    pub(super) fn test(&mut self, members: &Members<'_>, values: Values) -> Option<Test> {
        let (op, negated) = self.one_of(members, "op", OPS)?;
        if !op.is_for(values) {
            let rule = match values {
                Values::Dates => "this field is a time; operators of dates apply",
                Values::Any | Values::Texts | Values::Emails => "this field is a text; operators of texts apply",
            };
            self.fault(members.at("op"), FieldCode::NotAllowed, rule);
            return None;
        }
        if op == Op::Exists {
            if members.optional("value").is_some() {
                self.fault(members.at("value"), FieldCode::NotAllowed, "this operator takes no value");
            }
            return Some(Test { negated, positive: Positive::Exists });
        }
        let value = self.required(members, "value")?;
        let positive = self.positive(op, value, &members.at("value"), values)?;
        Some(Test { negated, positive })
    }

    fn positive(&mut self, op: Op, value: &Value, at: &str, values: Values) -> Option<Positive> {
        let date = |test| Positive::Date(test);
        Some(match op {
            Op::Exists => Positive::Exists,
            Op::Equal => Positive::OneOf(vec![self.scalar(op, value, at, values)?]),
            Op::In => Positive::OneOf(self.scalars(op, value, at, values)?),
            Op::Contains => Positive::Contains(self.scalar(op, value, at, values)?),
            Op::StartsWith => Positive::StartsWith(op.spelled(values, self.string(value, at, MAX_TEXT)?)),
            Op::EndsWith => Positive::EndsWith(op.spelled(values, self.string(value, at, MAX_TEXT)?)),
            Op::GreaterThan => Positive::GreaterThan(self.number(value, at)?),
            Op::AtLeast => Positive::AtLeast(self.number(value, at)?),
            Op::LessThan => Positive::LessThan(self.number(value, at)?),
            Op::AtMost => Positive::AtMost(self.number(value, at)?),
            Op::Between => self.between(value, at, values)?,
            Op::Before => date(DateTest::Before(self.when(value, at)?)),
            Op::After => date(DateTest::After(self.when(value, at)?)),
            Op::On => date(DateTest::On(self.when(value, at)?)),
            Op::Last => date(DateTest::Last(self.span(value, at)?)),
            Op::Next => date(DateTest::Next(self.span(value, at)?)),
            Op::OlderThan => date(DateTest::OlderThan(self.span(value, at)?)),
            Op::Anniversary => {
                let members = self.object(value, at, &["offset_days"])?;
                let offset = self.integer(&members, "offset_days", -MAX_OFFSET, MAX_OFFSET)?;
                date(DateTest::Anniversary(i32::try_from(offset).ok()?))
            }
        })
    }

    fn scalar(&mut self, op: Op, value: &Value, at: &str, values: Values) -> Option<Scalar> {
        match value {
            Value::String(_) => Some(Scalar::Text(op.spelled(values, self.string(value, at, MAX_TEXT)?))),
            Value::Number(_) if values == Values::Any => Some(Scalar::Number(self.number(value, at)?)),
            Value::Bool(value) if values == Values::Any => Some(Scalar::Boolean(*value)),
            _ => {
                let rule =
                    if values == Values::Any { "must be a string, a number or a boolean" } else { "must be a string" };
                self.fault(at, FieldCode::InvalidType, rule);
                None
            }
        }
    }

    /// Texts and numbers, mixed as they come.
    fn scalars(&mut self, op: Op, value: &Value, at: &str, values: Values) -> Option<Vec<Scalar>> {
        let items = self.items(value, at, 1, MAX_VALUES)?;
        let mut scalars = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let at = format!("{at}/{index}");
            scalars.extend(match item {
                Value::Number(_) if values == Values::Any => self.number(item, &at).map(Scalar::Number),
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

    fn between(&mut self, value: &Value, at: &str, values: Values) -> Option<Positive> {
        let [first, last] = self.items(value, at, 2, 2)? else { return None };
        if first.is_number() && values == Values::Any {
            let (first, last) = (self.number(first, at)?, self.number(last, &format!("{at}/1"))?);
            if first > last {
                self.fault(at, FieldCode::OutOfRange, "the first must not be greater than the second");
            }
            return Some(Positive::Between(first, last));
        }
        self.whens(first, last, at).map(|(first, last)| Positive::Date(DateTest::Between(first, last)))
    }

    /// Two dates, the earlier one first.
    pub(super) fn whens(&mut self, first: &Value, last: &Value, at: &str) -> Option<(When, When)> {
        let (first, last) = (self.when(first, &format!("{at}/0")), self.when(last, &format!("{at}/1")));
        let (first, last) = (first?, last?);
        let is_reversed = match (first, last) {
            (When::Moment(first), When::Moment(last)) => first > last,
            (When::Day(first), When::Day(last)) => first > last,
            // Which of them is earlier depends on the time zone.
            _ => false,
        };
        if is_reversed {
            self.fault(at, FieldCode::OutOfRange, "the first must not be later than the second");
        }
        Some((first, last))
    }

    /// A date.
    pub(super) fn when(&mut self, value: &Value, at: &str) -> Option<When> {
        let text = self.string(value, at, MAX_TEXT)?;
        let when = values::read_when(text);
        if when.is_none() {
            self.fault(at, FieldCode::InvalidFormat, "must be an RFC 3339 time with an offset, or YYYY-MM-DD");
        }
        when
    }
}
