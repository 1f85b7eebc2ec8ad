//! Reading contacts from their rows.

use messaging_core::domain::audience::contact::{Contact, Identifier};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Stored;
use rusqlite::{Connection, Row, params};

use super::super::fault::Fault;
use super::super::numbers::{BY_EMAIL, BY_EXTERNAL_ID, BY_PHONE};
use super::super::query::one;
use crate::tables::contacts::{contact, contact_columns};

/// The number of the contact that has an identifier.
pub(in super::super) fn identified(
    connection: &Connection,
    workspace_number: i64,
    identifier: &Identifier,
) -> Result<Option<i64>, Fault> {
    let (sql, text) = match identifier {
        Identifier::ExternalId(text) => (BY_EXTERNAL_ID, text),
        Identifier::Email(text) => (BY_EMAIL, text),
        Identifier::Phone(text) => (BY_PHONE, text),
    };
    one(connection, sql, params![workspace_number, text], |row| Ok(row.get(0)?))
}

/// A contact by its number.
pub(super) fn numbered(
    connection: &Connection,
    workspace: WorkspaceId,
    n: i64,
) -> Result<Option<Stored<Contact>>, Fault> {
    const SQL: &str = concat!("SELECT ", contact_columns!(sqlite), " FROM contacts c WHERE c.n = ?1");
    Ok(one(connection, SQL, [n], |row| contact(workspace, row))?.map(|(_, stored)| stored))
}

/// A column that holds a text or nothing.
pub(super) fn text_at<'row>(row: &'row Row<'_>, column: usize) -> Result<Option<&'row str>, Fault> {
    row.get_ref(column)?.as_str_or_null().map_err(|_| Fault::Malformed("a text column holds no text"))
}
