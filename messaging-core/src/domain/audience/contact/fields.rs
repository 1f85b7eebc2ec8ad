//! The text fields of a contact: their names and rules.
//!
//! All code that handles the fields of a contact iterates over [`CONTACT_FIELDS`]: requests, imports, merging, filters,
//! exports. A field is a member of [`Contact`](super::Contact) and of [`ContactInput`](super::input::ContactInput), and
//! a line in each function here and beside those two.

use super::identifier::{Identifier, IdentifierKind};
use crate::domain::channel::Channel;
use crate::domain::channel::address;
use crate::time::zone;
use crate::violation::{FieldCode, Violations};

/// A field of a contact that is a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ContactField {
    /// The workspace's own id of the contact.
    ExternalId,
    /// The email address, lower case.
    Email,
    /// The phone number, E.164.
    Phone,
    /// The BCP 47 language tag.
    Locale,
    /// The IANA time zone name.
    Timezone,
}

/// All text fields. The first ones are identifiers, in the order in which a contact is looked up.
pub const CONTACT_FIELDS: [ContactField; 5] =
    [ContactField::ExternalId, ContactField::Email, ContactField::Phone, ContactField::Locale, ContactField::Timezone];

impl ContactField {
    /// Returns its name in requests, files, filters and columns of tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ExternalId => "external_id",
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Locale => "locale",
            Self::Timezone => "timezone",
        }
    }

    /// Returns the pointer of its member in a request.
    pub const fn pointer(self) -> &'static str {
        match self {
            Self::ExternalId => "/external_id",
            Self::Email => "/email",
            Self::Phone => "/phone",
            Self::Locale => "/locale",
            Self::Timezone => "/timezone",
        }
    }

    /// Returns the kind of identifier that the field is; `None` if it is none.
    pub const fn identifier(self) -> Option<IdentifierKind> {
        match self {
            Self::ExternalId => Some(IdentifierKind::ExternalId),
            Self::Email => Some(IdentifierKind::Email),
            Self::Phone => Some(IdentifierKind::Phone),
            Self::Locale | Self::Timezone => None,
        }
    }

    /// Returns a text of the field as an identifier; `None` if the field is none.
    pub fn identifier_of(self, text: String) -> Option<Identifier> {
        self.identifier().map(|kind| match kind {
            IdentifierKind::ExternalId => Identifier::ExternalId(text),
            IdentifierKind::Email => Identifier::Email(text),
            IdentifierKind::Phone => Identifier::Phone(text),
        })
    }

    /// Adds the violations of a text for the field. Lengths are declared with
    /// [`ContactInput`](super::input::ContactInput).
    pub(super) fn check(self, text: &str, violations: &mut Violations) {
        match self {
            Self::Email => {
                address::check_sent(Channel::Email, text, self.pointer(), "not an email address", violations);
            }
            Self::Phone => {
                address::check_sent(Channel::Sms, text, self.pointer(), "not a phone number in E.164", violations);
            }
            Self::Locale if !is_locale(text) => {
                violations.add(self.pointer(), FieldCode::InvalidFormat, "is not a language tag");
            }
            Self::Timezone if zone(text).is_none() => {
                violations.add(self.pointer(), FieldCode::InvalidFormat, "is not an IANA time zone name");
            }
            Self::ExternalId | Self::Locale | Self::Timezone => {}
        }
    }

    /// Returns the text as it is stored.
    pub(super) fn normalize(self, text: String) -> String {
        match self {
            Self::Email => address::normalize(Channel::Email, &text),
            Self::Timezone => zone(&text).map_or(text, |(_, spelled)| spelled),
            Self::ExternalId | Self::Phone | Self::Locale => text,
        }
    }
}

/// `^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`
pub(crate) fn is_locale(text: &str) -> bool {
    let mut parts = text.split('-');
    let language = parts.next().unwrap_or_default();
    (2..=3).contains(&language.len())
        && language.bytes().all(|byte| byte.is_ascii_alphabetic())
        && parts.all(|part| (2..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::super::input::ContactInput;
    use super::*;
    use crate::patch::Patch;

    #[test]
    fn the_fields_stand_in_their_order() {
        for (place, field) in CONTACT_FIELDS.into_iter().enumerate() {
            assert_eq!((field as usize, &field.pointer()[1..]), (place, field.name()));
        }
        let identifiers: Vec<_> = CONTACT_FIELDS.into_iter().filter_map(ContactField::identifier).collect();
        assert_eq!(identifiers, IdentifierKind::ALL);
    }

    #[test]
    fn each_field_has_a_place_of_its_own() {
        let (mut contact, mut input) = (super::super::tests::bare(), ContactInput::default());
        for field in CONTACT_FIELDS {
            *contact.field_mut(field) = Some(field.name().to_owned());
            *input.field_mut(field) = Patch::Set(field.name().to_owned());
        }
        for field in CONTACT_FIELDS {
            assert_eq!(contact.field(field).as_deref(), Some(field.name()));
            assert_eq!(input.field(field).as_value().map(String::as_str), Some(field.name()));
        }
    }
}
