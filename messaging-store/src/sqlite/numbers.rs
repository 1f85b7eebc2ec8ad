//! The numbers that workspaces, contacts, lists and segments have in tables of many rows, instead of their ids.

use messaging_core::ids::{AutomationId, CampaignId, ContactId, Id as _, ListId, SegmentId, WorkspaceId};
use rusqlite::Connection;

use super::fault::Fault;
use super::query::one;

pub(super) use crate::tables::numbers::COUNT_BITS;

pub(super) const BY_EXTERNAL_ID: &str = "SELECT n FROM contacts WHERE workspace_number = ?1 AND external_id = ?2";
pub(super) const BY_EMAIL: &str = "SELECT n FROM contacts WHERE workspace_number = ?1 AND email = ?2";
pub(super) const BY_PHONE: &str = "SELECT n FROM contacts WHERE workspace_number = ?1 AND phone = ?2";

/// The number of a workspace, if it has any contacts, lists or tags.
pub(super) fn workspace_number(connection: &Connection, workspace: WorkspaceId) -> Result<Option<i64>, Fault> {
    let sql = "SELECT number FROM workspace_numbers WHERE workspace = ?1";
    one(connection, sql, [workspace.to_bytes()], |row| Ok(row.get(0)?))
}

/// The number of a workspace, given to it when it has none.
pub(super) fn make_workspace_number(connection: &Connection, workspace: WorkspaceId) -> Result<i64, Fault> {
    if let Some(number) = workspace_number(connection, workspace)? {
        return Ok(number);
    }
    let sql = "INSERT INTO workspace_numbers (workspace, newest, contacts) VALUES (?1, 0, 0) RETURNING number";
    Ok(connection.prepare_cached(sql)?.query_row([workspace.to_bytes()], |row| row.get(0))?)
}

/// The number of a contact.
pub(super) fn contact_number(
    connection: &Connection,
    workspace: WorkspaceId,
    id: ContactId,
) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT n FROM contacts
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = ?1) AND id = ?2";
    one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| Ok(row.get(0)?))
}

/// The number of a list.
pub(super) fn list_number(connection: &Connection, workspace: WorkspaceId, id: ListId) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT n FROM lists
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = ?1) AND id = ?2 AND removed = 0";
    one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| Ok(row.get(0)?))
}

/// The number of a segment.
pub(super) fn segment_number(
    connection: &Connection,
    workspace: WorkspaceId,
    id: SegmentId,
) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT n FROM segments
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = ?1) AND id = ?2 AND removed = 0";
    one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| Ok(row.get(0)?))
}

/// The number of a campaign.
pub(super) fn campaign_number(
    connection: &Connection,
    workspace: WorkspaceId,
    id: CampaignId,
) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT n FROM campaigns WHERE workspace = ?1 AND id = ?2 AND NOT removed";
    one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| Ok(row.get(0)?))
}

/// The number of an automation.
pub(super) fn automation_number(
    connection: &Connection,
    workspace: WorkspaceId,
    id: AutomationId,
) -> Result<Option<i64>, Fault> {
    const SQL: &str = "SELECT n FROM automations WHERE workspace = ?1 AND id = ?2 AND removed = 0";
    one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| Ok(row.get(0)?))
}
