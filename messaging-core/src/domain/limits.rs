//! Limits of the API that apply in more than one place (contract section 20). A limit of one value is declared with
//! that value.
//!
//! Their types are those that `validate` attributes take, so that attribute, schema and check use the same constant.

/// Maximum number of items of a page.
pub const MAX_PAGE_SIZE: u32 = 200;

/// Maximum number of contacts, events or list members in one request.
pub const MAX_BULK: u64 = 1000;

/// Maximum length, in characters, of the names that people give: of workspaces, lists, segments, templates, and labels
/// of fields.
pub const MAX_NAME: u64 = 200;

/// Maximum length of the name that is shown beside a sender's address, in characters.
pub const MAX_DISPLAY_NAME: u64 = 128;

/// Maximum length of a subject, in characters (RFC 5322 section 2.1.1).
pub const MAX_SUBJECT: u64 = 998;

/// Maximum length of a contact's external id, in characters.
pub(crate) const MAX_EXTERNAL_ID: u64 = 255;

/// Maximum length of a tag of a contact, in characters.
pub(crate) const MAX_TAG: usize = 64;

/// Maximum number of tags of a contact.
pub(crate) const MAX_CONTACT_TAGS: u64 = 100;

/// Maximum length of the name of a file, in characters.
pub const MAX_FILENAME: u64 = 255;

/// Maximum length of a URL that the server calls or fetches, in characters.
pub const MAX_URL: u64 = 2048;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::domain::audience::{custom_field, import};
    use crate::domain::channel::{address, sms};
    use crate::domain::mail::domain_name;
    use crate::domain::message::{channel_content, message_input};
    use crate::domain::segment::parse::{MAX_GROUPS, MAX_LEAVES, MAX_TEXT, MAX_VALUES};
    use crate::domain::segment::resolve::{MAX_NESTING, MAX_RESOLVED_LEAVES};
    use crate::domain::segment::{MAX_FILTER_BYTES, MAX_SEGMENTS};
    use crate::domain::webhook;

    /// A document of the project, or all of a folder, its white space folded.
    fn document(name: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
        let text = if path.is_dir() {
            let pages = fs::read_dir(path).unwrap().map(|page| fs::read_to_string(page.unwrap().path()).unwrap());
            pages.collect::<Vec<_>>().join(" ")
        } else {
            fs::read_to_string(path).unwrap()
        };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn assert_says(name: &str, sentences: &[String]) {
        let text = document(name);
        let missing: Vec<_> = sentences.iter().filter(|sentence| !text.contains(sentence.as_str())).collect();
        assert!(missing.is_empty(), "docs/{name} says otherwise, or in other words: {missing:#?}");
    }

    /// The limits in the documents are those of the code.
    #[test]
    fn the_reference_names_the_limits() {
        let kib = |bytes: usize| format!("{} KiB", bytes >> 10);
        let mib = |bytes: usize| format!("{} MiB", bytes >> 20);
        assert_says(
            "reference",
            &[
                format!("`from_name` has at most {MAX_DISPLAY_NAME} characters"),
                format!("measured in bytes ({} each", mib(message_input::MAX_PART_BYTES)),
                format!("are at most {} bytes (`/text` `too_large`;", channel_content::MAX_PUSH_BYTES),
                format!("characters and {} segments (`/text` `too_long`)", sms::MAX_SEGMENTS),
                format!("`variables` of a request are at most {} of JSON", kib(message_input::MAX_VARIABLES_BYTES)),
                format!("an address of at most {} octets", address::MAX_EMAIL_LENGTH),
                format!("`list_ids` at most {MAX_BULK} items"),
                format!("A workspace has at most {}", custom_field::MAX_FIELDS),
                format!("or {MAX_CONTACT_TAGS} tags: 422 at `/duplicate_id`"),
                format!("at most {}.", mib(import::table::MAX_ROW_BYTES)),
                format!("at most {} webhooks", webhook::MAX_WEBHOOKS),
                format!("a URL at most {MAX_URL} characters"),
                format!("It has at most {} octets", domain_name::MAX_LENGTH),
            ],
        );
        assert_says(
            "segments.md",
            &[
                format!("more than {MAX_GROUPS} groups on a path"),
                format!("more than {MAX_LEAVES} conditions"),
                format!("more than {MAX_VALUES} values"),
                format!("more than {MAX_RESOLVED_LEAVES} conditions with those of the segments"),
                format!("more than {} of JSON", kib(MAX_FILTER_BYTES)),
                format!("segments more than {MAX_NESTING} deep"),
                format!("a text of more than {MAX_TEXT} characters, a tag of more than {MAX_TAG}"),
                format!("A workspace has at most {MAX_SEGMENTS} segments"),
            ],
        );
    }
}
