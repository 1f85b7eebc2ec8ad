//! Identifiers as statements take them: a column for each kind.

use messaging_core::domain::audience::contact::Identifier;

/// Identifiers by their kinds.
#[derive(Debug, Default)]
pub(in super::super) struct Kinds {
    pub(in super::super) external_ids: Vec<String>,
    pub(in super::super) emails: Vec<String>,
    pub(in super::super) phones: Vec<String>,
}

impl FromIterator<Identifier> for Kinds {
    fn from_iter<T: IntoIterator<Item = Identifier>>(identifiers: T) -> Self {
        let mut kinds = Self::default();
        for identifier in identifiers {
            match identifier {
                Identifier::ExternalId(text) => kinds.external_ids.push(text),
                Identifier::Email(text) => kinds.emails.push(text),
                Identifier::Phone(text) => kinds.phones.push(text),
            }
        }
        kinds
    }
}
