//! Texts of contacts that are searched, and the blocks in which they are indexed.

use super::{Search, SearchTexts, add_row};
use crate::domain::audience::contact::Contact;
use crate::domain::audience::contact::attributes::Attributes;

/// Number of last bits in which the numbers of the contacts of a block may differ.
pub const CONTACT_BLOCK_BITS: u32 = 5;

impl Search {
    /// True if the external id, email address, phone number, first or last name of a contact contains the searched
    /// text.
    pub fn finds(&self, contact: &Contact) -> bool {
        let mut texts = SearchTexts::default();
        texts.add_contact(ContactTexts::of(contact));
        self.is_in(&texts.shown, &texts.hidden)
    }
}

impl SearchTexts {
    /// Adds a contact.
    pub fn add_contact(&mut self, contact: ContactTexts<'_>) {
        let ContactTexts { external_id, email, phone, attributes } = contact;
        add_row(&mut self.shown, [external_id]);
        let name = |name: &str| attributes.and_then(|attributes| attributes.get(name)?.as_str());
        add_row(&mut self.hidden, [email, phone, name("first_name"), name("last_name")]);
    }
}

/// The texts of a contact that are searched.
#[derive(Debug, Clone, Copy)]
pub struct ContactTexts<'a> {
    /// The workspace's own id.
    pub external_id: Option<&'a str>,
    /// The email address.
    pub email: Option<&'a str>,
    /// The phone number.
    pub phone: Option<&'a str>,
    /// The attributes, of which `first_name` and `last_name` are searched.
    pub attributes: Option<&'a Attributes>,
}

impl<'a> ContactTexts<'a> {
    fn of(contact: &'a Contact) -> Self {
        Self {
            external_id: contact.external_id.as_deref(),
            email: contact.email.as_deref(),
            phone: contact.phone.as_deref(),
            attributes: Some(&contact.attributes),
        }
    }
}

/// A block of contacts that is to be indexed anew, as its contacts are now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactBlock {
    /// Number of the block.
    pub block: i64,
    /// Notes of changes to contacts of the block, which this removes.
    pub notes: Vec<i64>,
    /// Texts of its contacts; empty if it has none any more.
    pub texts: SearchTexts,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::audience::contact::tests::bare;

    fn contact() -> Contact {
        let mut contact = bare();
        contact.external_id = Some("U-42".to_owned());
        contact.email = Some("ann@example.org".to_owned());
        contact.phone = Some("+14155550123".to_owned());
        let attributes = contact.attributes.edit();
        attributes.insert("first_name".to_owned(), json!("Änne"));
        attributes.insert("last_name".to_owned(), json!("Smith"));
        attributes.insert("plan".to_owned(), json!("premium"));
        contact
    }

    #[track_caller]
    fn check(text: &str, with: bool, without: bool) {
        let contact = contact();
        assert_eq!(Search::new(text, true).finds(&contact), with, "{text} by who sees addresses");
        assert_eq!(Search::new(text, false).finds(&contact), without, "{text} by who does not");
    }

    #[test]
    fn contacts_are_found_by_what_the_caller_may_read() {
        check("u-4", true, true);
        check("-42", true, true);
        check("ANN@", true, false);
        check("5550", true, false);
        check("änn", true, false);
        check("ÄNN", true, false);
        check("smith", true, false);
        check("premium", false, false);
        // No text reaches into the next.
        check("org+1", false, false);
        check("nnesmith", false, false);
        check("org\u{1f}+1", true, false);
    }
}
