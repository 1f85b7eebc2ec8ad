//! Workspaces under deletion, and the removal of their rows and of the files that belong to rows.

use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::{RemovedRows, StoreError};
use rusqlite::{Connection, ToSql, params};

use super::Sqlite;
use super::connection::Overwriting;
use super::fault::Fault;
use super::lanes::LaneIndex;
use super::query::many;
use crate::pages::sql_limit;
use crate::row::id;
use crate::workspace_rows::{By, EMPTY_LANES, JOBS, OWNED, Owned};

pub(super) async fn remove_rows(
    store: &Sqlite,
    workspace: WorkspaceId,
    step: usize,
    limit: usize,
) -> Result<Option<RemovedRows>, StoreError> {
    let mut steps = OWNED.iter().filter(|owned| !owned.sqlite.is_empty());
    let Some(owned) = steps.nth(step) else { return Ok(None) };
    let rows = store
        .writer
        .task(move |writing| {
            writing.overwrite(Overwriting::Pages)?;
            let removed = writing.undurably(|connection, index, _| match owned.table {
                "jobs" => remove_jobs(connection, index, workspace, limit),
                _ => remove_page(connection, owned, workspace, limit),
            })?;
            writing.checkpoints.note_erasure();
            writing.checkpoints.note_growth();
            Ok(removed)
        })
        .await?;
    if owned.table == "captures" && rows == 0 {
        // Once in a pass: all files are listed for it. Another pass follows where this one is cut off.
        store.blobs.delete_captures_of(workspace).await?;
    }
    Ok(Some(RemovedRows { table: owned.table, rows }))
}

fn remove_page(connection: &Connection, owned: &Owned, workspace: WorkspaceId, limit: usize) -> Result<u64, Fault> {
    let (bytes, text) = (workspace.to_bytes(), workspace.to_string());
    let key: &dyn ToSql = match owned.by {
        By::Id => &bytes,
        By::Text => &text,
    };
    let mut touched = 0;
    for sql in owned.sqlite {
        touched = connection.prepare_cached(sql)?.execute(params![key, sql_limit(limit)])?;
    }
    Ok(touched as u64)
}

/// Removes jobs that nobody has claimed, and lanes without jobs.
fn remove_jobs(
    connection: &Connection,
    index: &mut LaneIndex,
    workspace: WorkspaceId,
    limit: usize,
) -> Result<u64, Fault> {
    let workspace = workspace.to_string();
    let mut free: Vec<(String, i64, [u8; 16])> = Vec::new();
    {
        let mut statement = connection.prepare_cached(JOBS)?;
        let mut rows = statement.query([&workspace])?;
        while free.len() < limit
            && let Some(row) = rows.next()?
        {
            if !index.is_leased(id(row, 2)?) {
                free.push((row.get(0)?, row.get(1)?, row.get(2)?));
            }
        }
    }
    let mut delete = connection.prepare_cached("DELETE FROM jobs WHERE lane = ?1 AND due_at = ?2 AND id = ?3")?;
    for (lane, due_at, job) in &free {
        delete.execute(params![lane, due_at, job])?;
    }
    let lanes: Vec<String> =
        many(connection, EMPTY_LANES, params![workspace, sql_limit(limit)], |row| Ok(row.get(0)?))?;
    for lane in &lanes {
        index.remove_emptied(connection, lane)?;
    }
    Ok((free.len() + lanes.len()) as u64)
}
