//! Reading a contact from a row of an import file.
//!
//! An empty cell says nothing: what the contact has stays. Spaces around a cell do not count, except in
//! texts of attributes. Everything else follows the rules of a contact that is sent as JSON.

use crate::validate::Validate as _;
use csv::ByteRecord;
use serde_json::{Map, Number, Value};

use super::columns::{ColumnTarget, Header};
use crate::domain::audience::contact::input::{ConsentInput, ContactInput};
use crate::domain::audience::custom_field::{FieldType, FieldTypes};
use crate::error::DomainError;
use crate::input::{Input as _, UnknownMembers, body_with_faults};
use crate::patch::Patch;
use crate::violation::{FieldCode, Violations};

/// Result of reading a row: the contact as far as it could be read, with the violations; or the violations alone.
pub type ReadRow = Result<(ContactInput, Violations), Violations>;

/// Reads a row. `types` are the declared custom fields; they decide the types of attributes. Cells beyond the header
/// are a violation unless they are empty.
pub fn read(record: &ByteRecord, header: &Header, types: &FieldTypes) -> ReadRow {
    let mut input = ContactInput::default();
    let mut faults = Violations::new();
    let mut attributes = Map::new();
    let mut consent = ConsentInput::default();
    for column in &header.columns {
        let Some(cell) = record.get(column.index) else { continue };
        let whole = String::from_utf8_lossy(cell);
        let text = whole.trim();
        if text.is_empty() {
            continue;
        }
        let mut yes_or_no = || {
            let read = boolean(text);
            if read.is_none() {
                faults.add(&*column.pointer, FieldCode::InvalidType, "must be true, false, 1, 0, yes or no");
            }
            read
        };
        match &column.target {
            ColumnTarget::Field(field) => set_if_absent(input.field_mut(*field), || text.to_owned()),
            ColumnTarget::Tags => add_items(&mut input.tags, text),
            ColumnTarget::ListIds => add_items(&mut input.list_ids, text),
            ColumnTarget::MarketingEmail => set_consent(&mut consent.marketing_email, yes_or_no()),
            ColumnTarget::Sms => set_consent(&mut consent.sms, yes_or_no()),
            ColumnTarget::Attribute(key) if attributes.contains_key(key) => {}
            ColumnTarget::Attribute(key) => match value(&whole, types.get(key)) {
                Ok(value) => {
                    attributes.insert(key.clone(), value);
                }
                Err(rule) => faults.add(&*column.pointer, FieldCode::InvalidType, rule),
            },
        }
    }
    if consent != ConsentInput::default() {
        input.consent = Patch::Set(consent);
    }
    if !attributes.is_empty() {
        input.attributes = Patch::Set(attributes);
    }
    let is_too_wide = record.iter().skip(header.width).any(|cell| !cell.trim_ascii().is_empty());
    if is_too_wide {
        faults.add("", FieldCode::Syntax, "has more cells than the header; quote cells that hold the delimiter");
    }
    judge(input, faults, record.as_slice().contains(&0))
}

/// Violations of the last row of a file when it opens a quotation mark that is not closed.
pub fn unclosed_quote_violations() -> Violations {
    let mut faults = Violations::new();
    faults.add("", FieldCode::Syntax, "a quotation mark is not closed; what follows it counts as part of this row");
    faults
}

/// Checks the input as if it had been sent as JSON. An input with faults is written as JSON and read again, so that the
/// decoder of request bodies reports them with their pointers.
fn judge(input: ContactInput, mut faults: Violations, has_nul: bool) -> ReadRow {
    if !has_nul && input.is_valid() {
        input.check(&mut faults);
        return Ok((input, faults));
    }
    let body = serde_json::to_vec(&input).expect("plain data serializes");
    match body_with_faults(&body, UnknownMembers::default()) {
        Ok((input, found)) => {
            faults.merge(found);
            Ok((input, faults))
        }
        Err(DomainError::Invalid(found)) => {
            faults.merge(found);
            Err(faults)
        }
        Err(_) => {
            faults.add("", FieldCode::Syntax, "cannot be read");
            Err(faults)
        }
    }
}

/// Sets a member that has no value yet: of several columns for it, the first with something in it counts.
fn set_if_absent<T>(member: &mut Patch<T>, value: impl FnOnce() -> T) {
    if member.is_absent() {
        *member = Patch::Set(value());
    }
}

/// Adds the items in a cell to a list.
fn add_items(member: &mut Patch<Vec<String>>, text: &str) {
    let items = items(text).map(ToOwned::to_owned);
    match member {
        Patch::Set(held) => held.extend(items),
        Patch::Absent | Patch::Null => *member = Patch::Set(items.collect()),
    }
}

/// The items in a cell, which are separated by `;` or `|`; empty ones are left out.
fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split([';', '|']).map(str::trim).filter(|item| !item.is_empty())
}

/// Sets a consent, unless its cell could not be read.
fn set_consent(member: &mut Patch<bool>, agreed: Option<bool>) {
    if let Some(agreed) = agreed {
        set_if_absent(member, || agreed);
    }
}

/// Reads one of six words, in any case, as a boolean.
fn boolean(text: &str) -> Option<bool> {
    const WORDS: [(&str, bool); 6] =
        [("true", true), ("false", false), ("1", true), ("0", false), ("yes", true), ("no", false)];
    WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, value)| *value)
}

/// The value of an attribute, by the type of its custom field. Without a declared one it is a text, with the spaces
/// around it. Fails with a rule for people.
fn value(whole: &str, kind: Option<&FieldType>) -> Result<Value, &'static str> {
    let text = whole.trim();
    match kind {
        None | Some(FieldType::String) => Ok(Value::String(whole.to_owned())),
        Some(FieldType::Date | FieldType::Datetime) => Ok(Value::String(text.to_owned())),
        Some(FieldType::Number) => number(text).map(Value::Number).ok_or("this custom field is a number"),
        Some(FieldType::Boolean) => boolean(text).map(Value::Bool).ok_or("this custom field is true or false"),
        Some(FieldType::StringArray) => {
            Ok(Value::Array(items(text).map(|item| Value::String(item.to_owned())).collect()))
        }
    }
}

/// Reads a JSON number: an integer where the text is one.
fn number(text: &str) -> Option<Number> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    // `parse` also takes `inf` and `NaN`, and makes infinity of a number that is too large; JSON has none of these.
    text.parse::<f64>().ok().filter(|_| is_plain).and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::columns::Mapping;
    use super::*;

    /// The contact that a row is read as, in JSON, or a text of its violations.
    fn read_text(header: &str, row: &str) -> Value {
        let types = FieldTypes::from([
            ("n".to_owned(), FieldType::Number),
            ("b".to_owned(), FieldType::Boolean),
            ("d".to_owned(), FieldType::Date),
            ("l".to_owned(), FieldType::StringArray),
            ("s".to_owned(), FieldType::String),
        ]);
        let header = Header::read(header.as_bytes(), true, &Mapping::new()).unwrap();
        let record = ByteRecord::from(row.split(',').collect::<Vec<_>>());
        match read(&record, &header, &types) {
            Ok((input, faults)) if faults.is_empty() => serde_json::to_value(input).unwrap(),
            Ok((_, faults)) | Err(faults) => {
                let faults = serde_json::to_value(faults.as_slice()).unwrap();
                let one = |fault: &Value| {
                    format!("{} {}", fault["pointer"].as_str().unwrap(), fault["code"].as_str().unwrap())
                };
                faults.as_array().unwrap().iter().map(one).collect::<Vec<_>>().join(" ").into()
            }
        }
    }

    #[track_caller]
    fn check(header: &str, row: &str, expected: Value) {
        assert_eq!(read_text(header, row), expected, "{header} {row}");
    }

    #[test]
    fn cells_become_members() {
        check(
            "email,phone,external_id",
            " Ann@example.com ,+14155550123,u 1",
            json!({"email": "Ann@example.com", "phone": "+14155550123", "external_id": "u 1"}),
        );
        check(
            "email,locale,timezone",
            "a@b.c,en-US,Europe/Berlin",
            json!({"email": "a@b.c", "locale": "en-US", "timezone": "Europe/Berlin"}),
        );
        check(
            "email,tags,list_ids",
            "a@b.c,x; y|;z,lst_1|lst_2",
            json!({"email": "a@b.c", "tags": ["x", "y", "z"], "list_ids": ["lst_1", "lst_2"]}),
        );
        check("email,tags,TAGS,Email", "a@b.c,x,y,other", json!({"email": "a@b.c", "tags": ["x", "y"]}));
        check("email,Email", ",a@b.c", json!({"email": "a@b.c"}));
        check(
            "email,attributes.free,attributes.s",
            "a@b.c, 1 ,true",
            json!({"email": "a@b.c", "attributes": {"free": " 1 ", "s": "true"}}),
        );
        check("email,tags,attributes.n,consent.sms", "a@b.c,,  ,", json!({"email": "a@b.c"}));
        check("email,tags,locale", "a@b.c", json!({"email": "a@b.c"}));
        check("email", "a@b.c,, ", json!({"email": "a@b.c"}));
    }

    #[test]
    fn booleans_have_six_words() {
        for (word, value) in [("true", true), ("FALSE", false), ("1", true), ("0", false), ("Yes", true), ("no", false)]
        {
            check(
                "email,consent.marketing_email,attributes.b",
                &format!("a@b.c,{word},{word}"),
                json!({"email": "a@b.c", "consent": {"marketing_email": value}, "attributes": {"b": value}}),
            );
        }
        check(
            "email,consent.sms,attributes.b",
            "a@b.c,maybe,2",
            json!("/consent/sms invalid_type /attributes/b invalid_type"),
        );
    }

    #[test]
    fn numbers_only_where_they_are_declared() {
        for (text, number) in [
            ("17", json!(17)),
            ("-3", json!(-3)),
            ("+5", json!(5)),
            ("1.50", json!(1.5)),
            ("1e3", json!(1000.0)),
            ("007", json!(7)),
            ("9223372036854775807", json!(i64::MAX)),
        ] {
            check(
                "email,attributes.n",
                &format!("a@b.c,{text}"),
                json!({"email": "a@b.c", "attributes": {"n": number}}),
            );
        }
        for text in ["1;5", "x", "inf", "NaN", "0x10", "1e999", "1 000"] {
            check("email,attributes.n", &format!("a@b.c,{text}"), json!("/attributes/n invalid_type"));
        }
        check(
            "email,attributes.l,attributes.d",
            "a@b.c,x;y, 2026-01-31 ",
            json!({"email": "a@b.c", "attributes": {"l": ["x", "y"], "d": "2026-01-31"}}),
        );
    }

    #[test]
    fn what_is_wrong_is_said_at_once() {
        check(
            "email,phone,locale,timezone,tags,attributes.n",
            "nobody,5,?,Mars,a,x",
            json!(
                "/attributes/n invalid_type /email invalid_format /phone invalid_format /locale invalid_format /timezone invalid_format"
            ),
        );
        check("email", "a@b.c,more", json!(" syntax"));
        check("email,external_id", "a@b.c,a\0b", json!("/external_id invalid_format"));
        let long = "x".repeat(256);
        check("email,external_id", &format!("a@b.c,{long}"), json!("/external_id too_long"));
    }
}
