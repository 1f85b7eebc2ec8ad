//! Limits of the API that hold in more than one place (contract section 20). What belongs to one value only stands
//! with it.
//!
//! They are constants of the types that `validate` attributes take, so that the attribute, the schema and the check
//! use the same one.

/// Items of a page.
pub const MAX_PAGE_SIZE: u32 = 200;

/// Contacts, events or list members in one request.
pub const MAX_BULK: u64 = 1000;

/// Characters of the names that people give: of workspaces, lists, segments, templates, and labels of fields.
pub const MAX_NAME: u64 = 200;

/// Characters of the name that is shown beside a sender's address.
pub const MAX_DISPLAY_NAME: u64 = 128;

/// Characters of a subject (RFC 5322 section 2.1.1).
pub const MAX_SUBJECT: u64 = 998;

/// Characters of a contact's id elsewhere.
pub const MAX_EXTERNAL_ID: u64 = 255;

/// Characters of a tag of a contact.
pub const MAX_TAG: usize = 64;

/// Tags of a contact.
pub const MAX_CONTACT_TAGS: u64 = 100;

/// Characters of the name of a file.
pub const MAX_FILENAME: u64 = 255;

/// Characters of a URL that the server is to call or to fetch.
pub const MAX_URL: u64 = 2048;
