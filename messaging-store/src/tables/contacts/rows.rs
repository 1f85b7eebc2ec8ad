//! Contacts as rows.

use messaging_core::domain::audience::contact::attributes::Attributes;
use messaging_core::domain::audience::contact::fields::CONTACT_FIELDS;
use messaging_core::domain::audience::contact::{Consent, Contact, ContactFilter, Identifier};
use messaging_core::ids::{Id as _, ListId, WorkspaceId};
use messaging_core::ports::store::Stored;

use crate::fault::Fault;
use crate::row::{Row, document, get, id, or_empty, time};

/// The columns that [`contact`] reads, in its order. The last are the lists, in hexadecimal digits.
macro_rules! contact_columns {
    (sqlite) => {
        concat!(
            $crate::tables::contacts::rows::contact_columns!(),
            $crate::tables::contacts::rows::contact_columns!(lists of sqlite)
        )
    };
    (lists of sqlite) => {
        "(SELECT group_concat(hex(l.id)) FROM list_members lm CROSS JOIN lists l ON l.n = lm.list
            WHERE lm.contact = c.n AND NOT l.removed)"
    };
    (postgres) => {
        concat!(
            $crate::tables::contacts::rows::contact_columns!(),
            "(SELECT string_agg(encode(uuid_send(l.id), 'hex'), ',') FROM list_members lm
                JOIN lists l ON l.n = lm.list WHERE lm.contact = c.n AND NOT l.removed)"
        )
    };
    () => {
        concat!(
            "c.n, c.id, c.revision, c.created_at, c.updated_at, c.marketing_email, c.sms, ",
            $crate::tables::contacts::rows::text_columns!(c),
            ", c.tags, c.attributes, "
        )
    };
}
pub(crate) use contact_columns;

/// The columns with the texts of contacts, in the order of [`CONTACT_FIELDS`].
macro_rules! text_columns {
    () => {
        "external_id, email, phone, locale, timezone"
    };
    (c) => {
        "c.external_id, c.email, c.phone, c.locale, c.timezone"
    };
    // PostgreSQL: null unless they are asked for.
    (if $asked:literal) => {
        concat!(
            "CASE WHEN ",
            $asked,
            " THEN c.external_id END, CASE WHEN ",
            $asked,
            " THEN c.email END, CASE WHEN ",
            $asked,
            " THEN c.phone END, CASE WHEN ",
            $asked,
            " THEN c.locale END, CASE WHEN ",
            $asked,
            " THEN c.timezone END"
        )
    };
}
pub(crate) use text_columns;

/// Index of the first text among the columns of `contact_columns`.
const TEXTS: usize = 7;
/// Index of the first column after the texts.
const AFTER_TEXTS: usize = TEXTS + CONTACT_FIELDS.len();

/// Number of columns of `contact_columns`: the index at which further columns of a longer selection begin.
#[cfg(feature = "postgres")]
pub(crate) const CONTACT_COLUMNS: usize = AFTER_TEXTS + 3;

/// Reads the lists of a contact.
fn lists(row: &dyn Row, column: usize) -> Result<Vec<ListId>, Fault> {
    let Some(text) = get::<Option<&str>>(row, column)? else { return Ok(Vec::new()) };
    let id = |digits: &str| Some(ListId::from_bytes(u128::from_str_radix(digits, 16).ok()?.to_be_bytes()));
    let ids: Option<Vec<ListId>> = text.split(',').map(id).collect();
    let mut ids = ids.ok_or(Fault::Malformed("an id is no hexadecimal number"))?;
    ids.sort_unstable();
    Ok(ids)
}

/// Reads a contact and its number from the columns of `contact_columns`.
pub(crate) fn contact(workspace: WorkspaceId, row: &dyn Row) -> Result<(i64, Stored<Contact>), Fault> {
    let attributes = get::<Option<&str>>(row, AFTER_TEXTS + 1)?.map(Attributes::parse).transpose()?;
    let mut record = Contact {
        updated_at: time(row, 4)?,
        consent: Consent { marketing_email: get(row, 5)?, sms: get(row, 6)? },
        tags: or_empty(row, AFTER_TEXTS)?,
        attributes: attributes.unwrap_or_default(),
        list_ids: lists(row, AFTER_TEXTS + 2)?,
        ..Contact::new(id(row, 1)?, workspace, time(row, 3)?)
    };
    for field in CONTACT_FIELDS {
        *record.field_mut(field) = get(row, TEXTS + field as usize)?;
    }
    Ok((get(row, 0)?, Stored { record, revision: get(row, 2)? }))
}

/// Tags of a contact in their stored form.
pub(crate) fn tags_text(contact: &Contact) -> Result<Option<String>, Fault> {
    if contact.tags.is_empty() { Ok(None) } else { Ok(Some(document(&contact.tags)?)) }
}

/// Attributes of a contact in their stored form.
pub(crate) fn attributes_text(contact: &Contact) -> Option<&str> {
    if contact.attributes.is_empty() { None } else { Some(contact.attributes.json()) }
}

/// Identifier in a filter that finds at most one contact.
pub(crate) fn identifier(filter: &ContactFilter) -> Option<Identifier> {
    let external_id = filter.external_id.clone().map(Identifier::ExternalId);
    let email = || filter.email.clone().map(Identifier::Email);
    external_id.or_else(email).or_else(|| filter.phone.clone().map(Identifier::Phone))
}

/// Returns true if a contact satisfies a filter, apart from its segments.
pub(crate) fn matches(filter: &ContactFilter, contact: &Contact) -> bool {
    let is = |wanted: &Option<String>, held: &Option<String>| wanted.is_none() || wanted == held;
    is(&filter.external_id, &contact.external_id)
        && is(&filter.email, &contact.email)
        && is(&filter.phone, &contact.phone)
        && filter.updated_since.is_none_or(|since| contact.updated_at >= since)
        && filter.tag.as_ref().is_none_or(|tag| contact.tags.contains(tag))
        && filter.list_id.is_none_or(|list| contact.list_ids.contains(&list))
        && filter.search.as_ref().is_none_or(|search| search.finds(contact))
}
