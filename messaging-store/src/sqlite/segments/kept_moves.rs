//! Who became or ceased to be a member, kept in the transaction that made it so, until somebody has worked it off.

use messaging_core::ids::{Id as _, SegmentId, WorkspaceId};
use messaging_core::ports::store::StoreCursor;
use messaging_core::ports::store::segments::Moved;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::super::fault::{Fault, expect_one};
use super::super::numbers::{segment_number, workspace_number};
use super::super::query::many;
use super::super::row::{id, numbered_place, place_number, sql_limit};

/// Where the moves of a segment go: nowhere, or to those of the workspace with a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Destination(Option<i64>);

impl Destination {
    /// For moves that nobody is to hear of.
    pub(super) const NOWHERE: Self = Self(None);

    /// Where the moves of a segment go; `None` when it is not there.
    pub(super) fn of(connection: &Connection, segment: i64) -> Result<Option<Self>, Fault> {
        let sql = "SELECT iif(keeps_moves, workspace_number, NULL) FROM segments WHERE n = ?1 AND removed = 0";
        Ok(connection.prepare_cached(sql)?.query_row([segment], |row| Ok(Self(row.get(0)?))).optional()?)
    }

    /// Keeps a move.
    pub(super) fn keep(self, connection: &Connection, segment: i64, contact: i64, member: bool) -> Result<(), Fault> {
        const SQL: &str =
            "INSERT INTO segment_moves (workspace_number, segment, contact, member) VALUES (?1, ?2, ?3, ?4)";
        if let Some(workspace_number) = self.0 {
            connection.prepare_cached(SQL)?.execute(params![workspace_number, segment, contact, member])?;
        }
        Ok(())
    }
}

/// Begins or ends to keep the moves of a segment.
pub(in super::super) fn set(
    connection: &Connection,
    workspace: WorkspaceId,
    segment: SegmentId,
    keeps: bool,
) -> Result<(), Fault> {
    const SQL: &str = "UPDATE segments SET keeps_moves = ?3
        WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = ?1) AND id = ?2 AND removed = 0";
    expect_one(connection.prepare_cached(SQL)?.execute(params![workspace.to_bytes(), segment.to_bytes(), keeps])?)?;
    match segment_number(connection, workspace, segment)? {
        Some(number) if !keeps => forget(connection, number),
        _ => Ok(()),
    }
}

/// Lets the moves of a segment go.
pub(super) fn forget(connection: &Connection, segment: i64) -> Result<(), Fault> {
    const SQL: &str = "DELETE FROM segment_moves
        WHERE workspace_number = (SELECT workspace_number FROM segments WHERE n = ?1) AND segment = ?1";
    connection.prepare_cached(SQL)?.execute([segment])?;
    Ok(())
}

/// The oldest moves of a workspace, of segments and contacts that are there.
pub(super) fn oldest(
    connection: &Connection,
    workspace: WorkspaceId,
    limit: usize,
) -> Result<Vec<(StoreCursor, Moved)>, Fault> {
    const SQL: &str = "SELECT m.n, s.id, c.id, m.member FROM segment_moves m
        CROSS JOIN segments s ON s.n = m.segment AND s.removed = 0
        CROSS JOIN contacts c ON c.n = m.contact
        WHERE m.workspace_number = ?1 ORDER BY m.n LIMIT ?2";
    let Some(workspace_number) = workspace_number(connection, workspace)? else { return Ok(Vec::new()) };
    many(connection, SQL, params![workspace_number, sql_limit(limit)], |row| {
        let moved = Moved { segment: id(row, 1)?, contact: id(row, 2)?, member: row.get(3)? };
        Ok((numbered_place(row.get(0)?), moved))
    })
}

/// Takes the moves of a workspace away up to a place, which must be there.
pub(in super::super) fn take(connection: &Connection, workspace: WorkspaceId, place: StoreCursor) -> Result<(), Fault> {
    const LAST: &str = "SELECT 1 FROM segment_moves WHERE workspace_number = ?1 AND n = ?2";
    const ALL: &str = "DELETE FROM segment_moves WHERE workspace_number = ?1 AND n <= ?2";
    let key = [workspace_number(connection, workspace)?, Some(place_number(place))];
    if !connection.prepare_cached(LAST)?.exists(key)? {
        return Err(Fault::Conflict);
    }
    connection.prepare_cached(ALL)?.execute(key)?;
    Ok(())
}
