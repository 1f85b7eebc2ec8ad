//! Product events in a request, and the rules for them.
//!
//! Contract section 5. Where the contract leaves a choice: the length of a name is counted after trimming; an
//! identifier of the contact keeps the rules of contacts (section 6.1), and `null` counts as left out.

use crate::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_NAME_LENGTH, MAX_PROPERTY_BYTES, MAX_UNIQUE_ID, Properties};
use crate::domain::audience::contact::Identifier;
use crate::domain::channel::Channel;
use crate::domain::channel::address;
use crate::domain::limits::MAX_EXTERNAL_ID;
use crate::ids::ContactId;
use crate::input::Input;
use crate::time::Timestamp;
use crate::violation::{FieldCode, Violations};

/// First character of names that are reserved for the product's own events.
const RESERVED: char = '$';

/// Something that a contact did.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ProductEventInput {
    /// Name of the event, 1 to 128 characters, not beginning with `$`; space around it is removed.
    #[validate(length(min = 1))]
    pub name: String,
    /// Contact whose event it is. An unknown contact is created, without consent.
    // An option only so that a missing contact does not keep the rest from being judged.
    #[validate(required, nested)]
    pub contact: Option<ContactReference>,
    /// When it happened: from five years ago to an hour ahead. Now, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<Timestamp>,
    /// More about it, up to 32 KiB of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<Properties>,
    /// Your own name of this event, 1 to 128 characters: repeated within 7 days, it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = MAX_UNIQUE_ID))]
    pub unique_id: Option<String>,
}

/// A contact by what names it, looked for in the order of the members.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct ContactReference {
    /// Its id, which must be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Your own name of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = MAX_EXTERNAL_ID))]
    pub external_id: Option<String>,
    /// Its email address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

impl Input for ProductEventInput {
    fn check(&self, violations: &mut Violations) {
        let name = self.name.trim();
        if name.is_empty() {
            violations.add("/name", FieldCode::Required, "is required");
        } else if name.starts_with(RESERVED) {
            violations.add("/name", FieldCode::InvalidFormat, "must not begin with $");
        } else if name.chars().count() > MAX_NAME_LENGTH {
            violations.add("/name", FieldCode::TooLong, "must have at most 128 characters");
        }
        if let Some(contact) = &self.contact {
            contact.check(violations);
        }
        if self.properties.as_ref().is_some_and(|properties| properties.json().len() > MAX_PROPERTY_BYTES) {
            violations.add("/properties", FieldCode::TooLarge, "all properties together are at most 32 KiB of JSON");
        }
    }
}

impl ContactReference {
    fn check(&self, violations: &mut Violations) {
        if let Some(email) = &self.email {
            address::check_sent(Channel::Email, email, "/contact/email", "not an email address", violations);
        }
        if self.id.is_none() && self.external_id.is_none() && self.email.is_none() {
            violations.add("/contact", FieldCode::Required, "one of id, external_id, email is required");
        }
    }

    /// Returns the id, if it has the form of one.
    pub fn id(&self) -> Option<ContactId> {
        self.id.as_ref()?.parse().ok()
    }

    /// Returns the given identifiers, in the order in which a contact is looked up.
    pub fn identifiers(&self) -> impl Iterator<Item = Identifier> + '_ {
        let external_id = self.external_id.clone().map(Identifier::ExternalId);
        let email = self.email.as_ref().map(|text| Identifier::Email(address::normalize(Channel::Email, text)));
        external_id.into_iter().chain(email)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::input;

    #[track_caller]
    fn check(body: Value, expected: &str) {
        let violations = match input::body_with_faults::<ProductEventInput>(
            body.to_string().as_bytes(),
            input::UnknownMembers::default(),
        ) {
            Ok((_, violations)) | Err(crate::DomainError::Invalid(violations)) => violations,
            Err(error) => panic!("{body}: {error}"),
        };
        let text = |one: &crate::violation::Violation| {
            let one = serde_json::to_value(one).unwrap();
            format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap())
        };
        let mut texts: Vec<_> = violations.as_slice().iter().map(text).collect();
        texts.sort();
        assert_eq!(texts.join(", "), expected, "{body}");
    }

    fn with(member: &str, value: Value) -> Value {
        let mut body = json!({"name": "order_placed", "contact": {"external_id": "u-1"}});
        body[member] = value;
        body
    }

    #[test]
    fn names_at_their_limits() {
        for good in ["x", "Order placed", " padded ", "a$", &"ü".repeat(128), &format!(" {} ", "n".repeat(128))] {
            check(with("name", json!(good)), "");
        }
        check(with("name", json!("")), "/name required");
        check(with("name", json!(" \t\n")), "/name required");
        check(with("name", Value::Null), "/name required");
        check(with("name", json!(7)), "/name invalid_type");
        check(with("name", json!("$open")), "/name invalid_format");
        check(with("name", json!("  $open")), "/name invalid_format");
        check(with("name", json!("n".repeat(129))), "/name too_long");
        check(with("name", json!("a\u{0}b")), "/name invalid_format");
        check(json!({}), "/contact required, /name required");
    }

    #[test]
    fn a_contact_is_named_by_something() {
        check(with("contact", Value::Null), "/contact required");
        check(with("contact", json!({})), "/contact required");
        check(with("contact", json!({"phone": "+14155550123"})), "/contact/phone unknown_field");
        check(with("contact", json!({"id": null, "external_id": null, "email": null})), "/contact required");
        check(with("contact", json!("u-1")), "/contact invalid_type");
        check(with("contact", json!({"id": "con_x"})), "");
        check(with("contact", json!({"email": "Ann@Example.com"})), "");
        check(with("contact", json!({"email": "ann"})), "/contact/email invalid_format");
        check(with("contact", json!({"email": "a***@example.com"})), "/contact/email not_allowed");
        check(with("contact", json!({"email": ""})), "/contact/email invalid_format");
        check(with("contact", json!({"email": 5})), "/contact/email invalid_type");
        check(with("contact", json!({"external_id": ""})), "/contact/external_id too_short");
        check(with("contact", json!({"external_id": "x".repeat(255)})), "");
        check(with("contact", json!({"external_id": "x".repeat(256)})), "/contact/external_id too_long");
        check(
            with("contact", json!({"external_id": "a\u{0}", "email": "ann"})),
            "/contact/email invalid_format, /contact/external_id invalid_format",
        );
    }

    #[test]
    fn other_members_at_their_limits() {
        check(with("occurred_at", json!("2026-01-31T09:15:00+01:00")), "");
        check(with("occurred_at", Value::Null), "");
        check(with("occurred_at", json!("2026-01-31")), "/occurred_at invalid_format");
        check(with("occurred_at", json!(1_769_850_900)), "/occurred_at invalid_type");
        check(with("unique_id", json!("x".repeat(128))), "");
        check(with("unique_id", json!("x".repeat(129))), "/unique_id too_long");
        check(with("unique_id", json!("")), "/unique_id too_short");
        check(with("unique_id", json!(17)), "/unique_id invalid_type");
        check(with("properties", json!({})), "");
        check(with("properties", json!([])), "/properties invalid_type");
        check(with("properties", json!({"a": {"b": "\u{0}"}})), "/properties/a/b invalid_format");
        // {"a":"…"}
        check(with("properties", json!({"a": "x".repeat(MAX_PROPERTY_BYTES - 8)})), "");
        check(with("properties", json!({"a": "x".repeat(MAX_PROPERTY_BYTES - 7)})), "/properties too_large");
    }

    #[test]
    fn all_faults_are_found_at_once() {
        check(
            json!({"name": "$x", "contact": {"email": "ann"}, "occurred_at": "now", "properties": 1, "unique_id": ""}),
            "/contact/email invalid_format, /name invalid_format, /occurred_at invalid_format, \
             /properties invalid_type, /unique_id too_short",
        );
    }
}
