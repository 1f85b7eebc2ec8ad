//! Contacts as their rows hold them.

use messaging_core::domain::contact::attributes::Attributes;
use messaging_core::domain::contact::{Consent, Contact};
use messaging_core::ids::{Id as _, ListId, WorkspaceId};
use messaging_core::ports::store::Stored;
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::row::{document, get, id, or_empty, small, time};

/// The columns that [`contact`] reads, in its order.
macro_rules! contact_columns {
    () => {
        "c.n, c.id, c.revision, c.created_at, c.updated_at, c.marketing_email, c.sms, c.external_id, c.email, \
         c.phone, c.locale, c.timezone, c.tags, c.attributes, \
         array(SELECT l.id FROM list_members lm JOIN lists l ON l.n = lm.list \
             WHERE lm.contact = c.n AND NOT l.removed ORDER BY l.id)"
    };
}
pub(in super::super) use contact_columns;

/// A contact from the columns of `contact_columns`, with its number.
pub(in super::super) fn contact(workspace: WorkspaceId, row: &Row) -> Result<(i64, Stored<Contact>), Fault> {
    let lists = row.try_get::<_, Vec<Uuid>>(14)?;
    let record = Contact {
        id: id(row, 1)?,
        workspace_id: workspace,
        external_id: get(row, 7)?,
        email: get(row, 8)?,
        phone: get(row, 9)?,
        attributes: get::<Option<&str>>(row, 13)?.map(Attributes::parse).transpose()?.unwrap_or_default(),
        tags: or_empty(row, 12)?,
        locale: get(row, 10)?,
        timezone: get(row, 11)?,
        consent: Consent { marketing_email: get(row, 5)?, sms: get(row, 6)? },
        list_ids: lists.into_iter().map(|id| ListId::from_bytes(id.into_bytes())).collect(),
        created_at: time(row, 3)?,
        updated_at: time(row, 4)?,
    };
    Ok((get(row, 0)?, Stored { record, revision: small(row, 2)? }))
}

/// The tags of a contact as they are stored.
pub(super) fn tags_text(contact: &Contact) -> Result<Option<String>, Fault> {
    if contact.tags.is_empty() { Ok(None) } else { Ok(Some(document(&contact.tags)?)) }
}

/// The attributes of a contact as they are stored.
pub(super) fn attributes_text(contact: &Contact) -> Option<&str> {
    if contact.attributes.is_empty() { None } else { Some(contact.attributes.json()) }
}
