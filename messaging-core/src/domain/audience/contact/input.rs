//! Data of a contact in a request, and the rules for them.
//!
//! Contract sections 6.1 and 6.2. The same members create, update and change a contact; the operations differ in the
//! meaning of `list_ids` and in whether an identifier is required.

use crate::validate::{Setters, Validate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fields::{CONTACT_FIELDS, ContactField};
use super::{Contact, Identifier, attributes};
use crate::domain::audience::custom_field::FieldTypes;
use crate::domain::limits::{MAX_BULK, MAX_CONTACT_TAGS, MAX_EXTERNAL_ID, MAX_TAG};
use crate::input::Input;
use crate::patch::Patch;
use crate::violation::{FieldCode, Violations};

/// Maximum length of a locale, in characters.
const MAX_LOCALE: u64 = 64;

/// Data of a contact. A member that is left out stays as it is; null clears it.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ContactInput {
    /// Your own name of the contact, 1 to 255 characters.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(min = 1, max = MAX_EXTERNAL_ID))]
    pub external_id: Patch<String>,
    /// An email address without display name; kept in lower case.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub email: Patch<String>,
    /// A phone number in E.164, `+14155550123`.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub phone: Patch<String>,
    /// Your own data: texts, numbers, booleans, arrays of these, objects. Merged key by key; null deletes a key.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub attributes: Patch<Map<String, Value>>,
    /// Tags, 1 to 64 characters each; they replace those the contact has.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_CONTACT_TAGS))]
    pub tags: Patch<Vec<String>>,
    /// A language tag, `en-US`.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_LOCALE))]
    pub locale: Patch<String>,
    /// An IANA time zone name, `Europe/Berlin`.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub timezone: Patch<String>,
    /// Lists: when a contact is created or updated they are added to those it is on, when one is changed
    /// they replace them.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    #[validate(length(max = MAX_BULK))]
    pub list_ids: Patch<Vec<String>>,
    /// True takes the contact back into public lists that it has left; without it that is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resubscribe: Option<bool>,
    /// Consent of the contact; merged member by member.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub consent: Patch<ConsentInput>,
}

/// Consent of a contact. A member that is left out stays as it is; null means never asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Setters)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ConsentInput {
    /// Marketing by email.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub marketing_email: Patch<bool>,
    /// Marketing by sms, WhatsApp and Viber.
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    pub sms: Patch<bool>,
}

impl Input for ContactInput {
    fn check(&self, violations: &mut Violations) {
        for field in CONTACT_FIELDS {
            if let Some(text) = self.field(field).as_value() {
                field.check(text, violations);
            }
        }
        if let Some(sent) = self.attributes.as_value() {
            attributes::check(sent, violations);
        }
        for (index, tag) in self.tags.as_value().into_iter().flatten().enumerate() {
            // A tag has at most as many characters as bytes, so only long ones are counted.
            if tag.is_empty() {
                violations.add(format!("/tags/{index}"), FieldCode::TooShort, "must have at least 1 character");
            } else if tag.len() > MAX_TAG && tag.chars().count() > MAX_TAG {
                violations.add(format!("/tags/{index}"), FieldCode::TooLong, "must have at most 64 characters");
            }
        }
    }
}

impl ContactInput {
    /// Returns the value sent for a field of the contact; absent if the request does not name it.
    pub(super) const fn field(&self, field: ContactField) -> &Patch<String> {
        match field {
            ContactField::ExternalId => &self.external_id,
            ContactField::Email => &self.email,
            ContactField::Phone => &self.phone,
            ContactField::Locale => &self.locale,
            ContactField::Timezone => &self.timezone,
        }
    }

    /// Returns the value sent for a field, to be changed.
    pub(crate) const fn field_mut(&mut self, field: ContactField) -> &mut Patch<String> {
        match field {
            ContactField::ExternalId => &mut self.external_id,
            ContactField::Email => &mut self.email,
            ContactField::Phone => &mut self.phone,
            ContactField::Locale => &mut self.locale,
            ContactField::Timezone => &mut self.timezone,
        }
    }

    /// Returns the given identifiers, in the order in which a contact is looked up. A malformed one names nobody.
    pub fn identifiers(&self) -> impl Iterator<Item = Identifier> + '_ {
        let named = |field: ContactField| field.identifier_of(field.normalize(self.field(field).as_value()?.clone()));
        CONTACT_FIELDS.into_iter().filter_map(named)
    }

    /// Requires at least one identifier for creating or updating a contact (section 6.2). A malformed one counts as
    /// given: it has a violation of its own.
    pub(crate) fn require_identifier(&self, violations: &mut Violations) {
        let mut identifiers = CONTACT_FIELDS.into_iter().filter(|field| field.identifier().is_some());
        let is_there =
            |field: ContactField| self.field(field).as_value().is_some() || violations.is_at(field.pointer());
        if !identifiers.any(is_there) {
            let rule = "one of external_id, email, phone is required";
            violations.add("", FieldCode::Required, rule);
        }
    }

    /// Applies the input to a contact, except for the lists. Adds violations that can only be seen on the result, or
    /// against the declared types.
    pub fn apply(mut self, contact: &mut Contact, types: &FieldTypes, violations: &mut Violations) {
        let had_identifier = contact.has_identifier();
        let is_cleared = |field: &ContactField| field.identifier().is_some() && *self.field(*field) == Patch::Null;
        let cleared: Vec<_> = CONTACT_FIELDS.into_iter().filter(is_cleared).collect();
        for field in CONTACT_FIELDS {
            match std::mem::take(self.field_mut(field)) {
                Patch::Absent => {}
                Patch::Null => *contact.field_mut(field) = None,
                Patch::Set(text) => *contact.field_mut(field) = Some(field.normalize(text)),
            }
        }
        if had_identifier && !contact.has_identifier() {
            for field in cleared {
                violations.add(field.pointer(), FieldCode::Required, "the last identifier cannot be cleared");
            }
        }
        match self.attributes {
            Patch::Absent => {}
            Patch::Null => contact.attributes.edit().clear(),
            Patch::Set(sent) => {
                attributes::check_types(&sent, types, violations);
                attributes::merge(&mut contact.attributes, sent, violations);
            }
        }
        match self.tags {
            Patch::Absent => {}
            Patch::Null => contact.tags.clear(),
            Patch::Set(tags) => contact.tags = each_once(tags),
        }
        match self.consent {
            Patch::Absent => {}
            Patch::Null => contact.consent = super::Consent::default(),
            Patch::Set(consent) => {
                consent.marketing_email.apply(&mut contact.consent.marketing_email);
                consent.sms.apply(&mut contact.consent.sms);
            }
        }
    }
}

/// Returns the tags without duplicates, each at its first place.
fn each_once(tags: Vec<String>) -> Vec<String> {
    let mut once: Vec<String> = Vec::with_capacity(tags.len());
    for tag in tags {
        if !once.contains(&tag) {
            once.push(tag);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::audience::contact::tests::bare;
    use crate::domain::audience::custom_field::FieldType;
    use crate::input;

    fn faults(violations: &Violations) -> String {
        let text = |one: &crate::violation::Violation| {
            let one = serde_json::to_value(one).unwrap();
            format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap())
        };
        let mut texts: Vec<_> = violations.as_slice().iter().map(text).collect();
        texts.sort();
        texts.join(", ")
    }

    /// The faults of a body by itself.
    #[track_caller]
    fn check(body: Value, expected: &str) {
        let (parsed, mut violations) = match input::body_with_faults::<ContactInput>(
            body.to_string().as_bytes(),
            input::UnknownMembers::default(),
        ) {
            Ok(read) => read,
            Err(error) => panic!("{body}: {error}"),
        };
        parsed.require_identifier(&mut violations);
        assert_eq!(faults(&violations), expected, "{body}");
    }

    fn with(member: &str, value: Value) -> Value {
        let mut body = json!({"external_id": "u-1"});
        body[member] = value;
        body
    }

    #[test]
    fn one_identifier_is_required() {
        check(json!({}), " required");
        check(json!({"email": null, "locale": "en"}), " required");
        check(json!({"email": "ann@example.com"}), "");
        check(json!({"phone": "+14155550123"}), "");
        check(json!({"email": "a***@example.com", "phone": "+*******0123"}), "/email not_allowed, /phone not_allowed");
        check(json!({"external_id": "u-1", "email": "***@example.com"}), "/email not_allowed");
        check(json!({"email": "nobody"}), "/email invalid_format");
        check(json!({"email": 5}), "/email invalid_type");
        check(json!({"external_id": ""}), "/external_id too_short");
    }

    #[test]
    fn members_at_their_limits() {
        check(json!({"external_id": "x".repeat(255)}), "");
        check(json!({"external_id": "x".repeat(256)}), "/external_id too_long");
        check(json!({"external_id": "a\u{0}b"}), "/external_id invalid_format");
        check(json!({"phone": "14155550123"}), "/phone invalid_format");
        check(json!({"email": format!("{}@example.com", "a".repeat(65))}), "/email invalid_format");
        for good in ["en", "deu", "en-US", "zh-Hans-CN", "de-1996", "sl-rozaj-biske-1994"] {
            check(with("locale", json!(good)), "");
        }
        for bad in ["", "e", "engl", "en_US", "en-", "en-x", "en-123456789", "1n", "ü1"] {
            check(with("locale", json!(bad)), "/locale invalid_format");
        }
        check(with("timezone", json!("Europe/Berlin")), "");
        check(with("timezone", json!("Berlin")), "/timezone invalid_format");
        check(with("timezone", json!("localtime")), "/timezone invalid_format");
        check(with("timezone", json!("Factory")), "/timezone invalid_format");
        check(with("timezone", json!(7)), "/timezone invalid_type");
        check(with("tags", json!(["x".repeat(64), "ü".repeat(64)])), "");
        check(with("tags", json!(["", "ü".repeat(65)])), "/tags/0 too_short, /tags/1 too_long");
        check(with("tags", json!([5])), "/tags/0 invalid_type");
        check(with("tags", (0..100).map(|n| json!(n.to_string())).collect()), "");
        check(with("tags", (0..101).map(|n| json!(n.to_string())).collect()), "/tags too_many_items");
        check(with("consent", json!({"marketing_email": true, "sms": null})), "");
        check(with("consent", json!({"marketing_email": "yes"})), "/consent/marketing_email invalid_type");
        check(with("attributes", json!([])), "/attributes invalid_type");
        check(
            with("attributes", json!({"a b": 1, "c": [[]]})),
            "/attributes/a b invalid_format, /attributes/c/0 invalid_type",
        );
        check(with("list_ids", json!("lst_1")), "/list_ids invalid_type");
    }

    /// The contact after a change, and the faults that only show then.
    #[track_caller]
    fn change(contact: &Contact, body: Value) -> (Contact, String) {
        let sent: ContactInput = input::body(body.to_string().as_bytes()).unwrap();
        let types = FieldTypes::from([("age".to_owned(), FieldType::Number), ("plan".to_owned(), FieldType::String)]);
        let (mut changed, mut violations) = (contact.clone(), Violations::new());
        sent.apply(&mut changed, &types, &mut violations);
        (changed, faults(&violations))
    }

    #[test]
    fn absent_keeps_null_clears_a_value_replaces() {
        let full = json!({"email": "Ann@Example.COM", "phone": "+14155550123", "locale": "en", "timezone": "UTC",
            "tags": ["b", "a", "b"], "attributes": {"plan": "pro"}, "consent": {"marketing_email": true, "sms": false}});
        let (contact, faults) = change(&bare(), full);
        assert_eq!(faults, "");
        assert_eq!(contact.email.as_deref(), Some("ann@example.com"));
        assert_eq!(contact.tags, ["b", "a"]);
        assert_eq!((contact.consent.marketing_email, contact.consent.sms), (Some(true), Some(false)));

        assert_eq!(change(&contact, json!({})), (contact.clone(), String::new()));
        let (cleared, faults) = change(
            &contact,
            json!({"email": null, "phone": null, "locale": null, "timezone": null, "tags": null, "attributes": null,
                   "consent": null}),
        );
        assert_eq!((cleared, faults.as_str()), (bare(), ""));
        let (changed, _) = change(&contact, json!({"consent": {"sms": null}, "attributes": {"age": 31}}));
        assert_eq!((changed.consent.marketing_email, changed.consent.sms), (Some(true), None));
        assert_eq!(Value::Object(changed.attributes.into_members()), json!({"plan": "pro", "age": 31}));
    }

    #[test]
    fn the_last_identifier_stays() {
        assert_eq!(change(&bare(), json!({"external_id": null})).1, "/external_id required");
        assert_eq!(change(&bare(), json!({"external_id": null, "email": "ann@example.com"})).1, "");
    }

    #[test]
    fn declared_attributes_have_their_type() {
        let faults = change(&bare(), json!({"attributes": {"age": "old", "plan": 5, "free": []}})).1;
        assert_eq!(faults, "/attributes/age invalid_type, /attributes/plan invalid_type");
        assert_eq!(change(&bare(), json!({"attributes": {"age": null, "plan": "pro"}})).1, "");
    }
}
