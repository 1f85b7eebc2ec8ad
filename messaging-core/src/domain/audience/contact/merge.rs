//! Merging of two contacts.
//!
//! Contract section 6.2: the primary keeps what it has and gets what it lacks. Where the contract leaves a choice:
//! locale and time zone are merged like identifiers, attributes by key; a result that exceeds the limits of a contact
//! is refused.

use super::fields::CONTACT_FIELDS;
use super::{Consent, Contact, attributes};
use crate::domain::limits::MAX_CONTACT_TAGS;
use crate::violation::{FieldCode, Violations};

/// Returns the primary with the data that it lacked, lists included.
pub fn merge(primary: &Contact, duplicate: &Contact) -> Result<Contact, Violations> {
    let mut merged = primary.clone();
    for field in CONTACT_FIELDS {
        if merged.field(field).is_none() {
            merged.field_mut(field).clone_from(duplicate.field(field));
        }
    }
    for (key, value) in duplicate.attributes.iter() {
        if !merged.attributes.contains_key(key) {
            merged.attributes.edit().insert(key.clone(), value.clone());
        }
    }
    for tag in &duplicate.tags {
        if !merged.tags.contains(tag) {
            merged.tags.push(tag.clone());
        }
    }
    merged.list_ids.extend(&duplicate.list_ids);
    merged.list_ids.sort_unstable();
    merged.list_ids.dedup();
    merged.consent = Consent {
        marketing_email: stricter(primary.consent.marketing_email, duplicate.consent.marketing_email),
        sms: stricter(primary.consent.sms, duplicate.consent.sms),
    };
    let mut violations = Violations::new();
    attributes::check_size(&merged.attributes, "/duplicate_id", &mut violations);
    if merged.tags.len() as u64 > MAX_CONTACT_TAGS {
        violations.add("/duplicate_id", FieldCode::TooManyItems, "together they have more than 100 tags");
    }
    if violations.is_empty() { Ok(merged) } else { Err(violations) }
}

/// Returns the stricter consent: `false` wins over `true`, `true` over never asked.
fn stricter(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one && other),
        (known, None) | (None, known) => known,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::audience::contact::attributes::Attributes;
    use crate::domain::audience::contact::tests::bare;

    #[test]
    fn the_primary_gets_what_it_lacks() {
        let attributes = |value: Value| Attributes::from(value.as_object().cloned().unwrap());
        let primary = Contact {
            email: Some("ann@example.com".to_owned()),
            attributes: attributes(json!({"plan": "pro", "home": {"city": "Riga"}})),
            tags: vec!["vip".to_owned()],
            locale: Some("en".to_owned()),
            ..bare()
        };
        let duplicate = Contact {
            external_id: Some("u-2".to_owned()),
            email: Some("a@example.com".to_owned()),
            phone: Some("+14155550123".to_owned()),
            attributes: attributes(json!({"plan": "free", "age": 31, "home": {"zip": "1"}})),
            tags: vec!["beta".to_owned(), "vip".to_owned()],
            locale: Some("de".to_owned()),
            timezone: Some("UTC".to_owned()),
            ..bare()
        };
        let merged = merge(&primary, &duplicate).unwrap();
        let expected = Contact {
            phone: duplicate.phone.clone(),
            attributes: attributes(json!({"plan": "pro", "age": 31, "home": {"city": "Riga"}})),
            tags: vec!["vip".to_owned(), "beta".to_owned()],
            timezone: duplicate.timezone.clone(),
            ..primary
        };
        assert_eq!(merged, expected);
    }

    #[test]
    fn the_stricter_consent_wins() {
        for (one, other, expected) in [
            (None, None, None),
            (None, Some(true), Some(true)),
            (Some(true), Some(true), Some(true)),
            (Some(true), Some(false), Some(false)),
            (None, Some(false), Some(false)),
        ] {
            assert_eq!(stricter(one, other), expected);
            assert_eq!(stricter(other, one), expected);
        }
    }

    #[test]
    fn too_much_together_is_refused() {
        let tagged = |from: usize| Contact { tags: (from..from + 51).map(|n| n.to_string()).collect(), ..bare() };
        assert!(merge(&tagged(0), &tagged(1)).is_ok());
        assert!(merge(&tagged(0), &tagged(51)).is_err());
    }
}
