//! The numbers that workspaces, contacts, lists and segments have in tables of many rows, instead of their ids.

use messaging_core::ids::{AutomationId, ContactId, SegmentId, WorkspaceId};

use super::fault::Fault;
use super::query::{Queries, one};
use crate::row::get;
use crate::sql::{key, params};

pub(super) use crate::tables::numbers::COUNT_BITS;

/// The number of a workspace, if it has any contacts, lists or tags.
pub(super) async fn workspace_number(on: &mut impl Queries, workspace: WorkspaceId) -> Result<Option<i64>, Fault> {
    let sql = "SELECT number FROM workspace_numbers WHERE workspace = $1";
    one(on, sql, params![key(workspace)], |row| get(row, 0)).await
}

/// The number of a contact.
pub(super) async fn contact_number(
    on: &mut impl Queries,
    workspace: WorkspaceId,
    id: ContactId,
) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT n FROM contacts
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2";
    one(on, SQL, params![key(workspace), key(id)], |row| get(row, 0)).await
}

/// The number of a segment.
pub(super) async fn segment_number(
    on: &mut impl Queries,
    workspace: WorkspaceId,
    id: SegmentId,
) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT n FROM segments
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2 AND NOT removed";
    one(on, SQL, params![key(workspace), key(id)], |row| get(row, 0)).await
}

/// The number of an automation.
pub(super) async fn automation_number(
    on: &mut impl Queries,
    workspace: WorkspaceId,
    id: AutomationId,
) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT n FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed";
    one(on, SQL, params![key(workspace), key(id)], |row| get(row, 0)).await
}
