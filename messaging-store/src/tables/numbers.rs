//! The numbers that workspaces, contacts and segments have in tables of many rows, instead of their ids.

use std::ops::RangeInclusive;

use messaging_core::ids::{ContactId, SegmentId, WorkspaceId};

use crate::database::Query;
use crate::row::get;
use crate::sql::{Sql, key, params, sql};

/// The low bits of a contact's number tell the contacts of a workspace apart, nearly in the order of their creation.
pub(crate) const COUNT_BITS: i64 = 40;

/// The numbers that contacts of a workspace may have.
pub(crate) const fn contacts_of(workspace_number: i64) -> RangeInclusive<i64> {
    (workspace_number << COUNT_BITS)..=((workspace_number + 1) << COUNT_BITS) - 1
}

/// The number of a workspace, if it has any contacts, lists or tags.
pub(crate) fn workspace(workspace: WorkspaceId) -> Query<i64> {
    const SQL: Sql = sql!("SELECT number FROM workspace_numbers WHERE workspace = $1");
    Query::new(SQL, params![key(workspace)], |row| get(row, 0)).point()
}

/// The number of a contact.
pub(crate) fn contact(workspace: WorkspaceId, id: ContactId) -> Query<i64> {
    const SQL: Sql = sql!(
        "SELECT n FROM contacts
         WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2"
    );
    Query::new(SQL, params![key(workspace), key(id)], |row| get(row, 0)).point()
}

/// The number of a segment.
pub(crate) fn segment(workspace: WorkspaceId, id: SegmentId) -> Query<i64> {
    const SQL: Sql = sql!(
        "SELECT n FROM segments
         WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2 AND NOT removed"
    );
    Query::new(SQL, params![key(workspace), key(id)], |row| get(row, 0)).point()
}
