//! Reading contacts from their rows.

use messaging_core::domain::contact::{Contact, Identifier};
use messaging_core::ids::{ListId, WorkspaceId};
use messaging_core::ports::store::Stored;
use rusqlite::{Connection, Row, params};

use super::super::fault::Fault;
use super::super::numbers::{BY_EMAIL, BY_EXTERNAL_ID, BY_PHONE};
use super::super::query::{many, one};
use super::super::row::id;
use crate::tables::contacts::{self, contact_columns};

/// A contact from the columns of `contact_columns`, with its number.
pub(super) fn contact(
    connection: &Connection,
    workspace: WorkspaceId,
    row: &Row<'_>,
) -> Result<(i64, Stored<Contact>), Fault> {
    contacts::contact(workspace, row, lists_of(connection, row.get(0)?)?)
}

fn lists_of(connection: &Connection, n: i64) -> Result<Vec<ListId>, Fault> {
    const SQL: &str = "SELECT lists.id FROM list_members CROSS JOIN lists ON lists.n = list_members.list
        WHERE list_members.contact = ?1 AND lists.removed = 0";
    let mut lists: Vec<ListId> = many(connection, SQL, [n], |row| id(row, 0))?;
    lists.sort_unstable();
    Ok(lists)
}

/// The number of the contact that has an identifier.
pub(super) fn identified(
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
    const SQL: &str = concat!("SELECT ", contact_columns!(), " FROM contacts c WHERE c.n = ?1");
    Ok(one(connection, SQL, [n], |row| contact(connection, workspace, row))?.map(|(_, stored)| stored))
}

/// A column that holds a text or nothing.
pub(super) fn text_at<'row>(row: &'row Row<'_>, column: usize) -> Result<Option<&'row str>, Fault> {
    row.get_ref(column)?.as_str_or_null().map_err(|_| Fault::Malformed("a text column holds no text"))
}
