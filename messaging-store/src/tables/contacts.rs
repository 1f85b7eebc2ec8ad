//! Contacts as their rows hold them.

use messaging_core::domain::contact::attributes::Attributes;
use messaging_core::domain::contact::{Consent, Contact};
use messaging_core::ids::{ListId, WorkspaceId};
use messaging_core::ports::store::Stored;

use crate::fault::Fault;
use crate::row::{Row, document, get, id, or_empty, time};

/// The columns that [`contact`] reads, in its order.
macro_rules! contact_columns {
    () => {
        "c.n, c.id, c.revision, c.created_at, c.updated_at, c.marketing_email, c.sms, c.external_id, c.email, \
         c.phone, c.locale, c.timezone, c.tags, c.attributes"
    };
}
pub(crate) use contact_columns;

/// A contact from the columns of `contact_columns`, with its number. Its lists stand in other rows.
pub(crate) fn contact(
    workspace: WorkspaceId,
    row: &dyn Row,
    list_ids: Vec<ListId>,
) -> Result<(i64, Stored<Contact>), Fault> {
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
        list_ids,
        created_at: time(row, 3)?,
        updated_at: time(row, 4)?,
    };
    Ok((get(row, 0)?, Stored { record, revision: get(row, 2)? }))
}

/// The tags of a contact as they are stored.
pub(crate) fn tags_text(contact: &Contact) -> Result<Option<String>, Fault> {
    if contact.tags.is_empty() { Ok(None) } else { Ok(Some(document(&contact.tags)?)) }
}

/// The attributes of a contact as they are stored.
pub(crate) fn attributes_text(contact: &Contact) -> Option<&str> {
    if contact.attributes.is_empty() { None } else { Some(contact.attributes.json()) }
}
