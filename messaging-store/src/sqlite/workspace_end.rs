//! Workspaces under deletion, and the removal of their rows and of the files that belong to rows.

use messaging_core::domain::account::Workspace;
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::{RemovedRows, StoreError};
use rusqlite::{Connection, ToSql, params};

use super::SqliteStore;
use super::connection::Overwriting;
use super::fault::{Fault, expect_one};
use super::lanes::LaneIndex;
use super::query::{many, one};
use super::row::{id, sql_limit};
use crate::workspace_rows::{By, EMPTY_LANES, HAS_JOBS, JOBS, LAST, OWNED, Owned};

/// Keeps with a workspace that is written whether it is under deletion.
pub(super) fn put(connection: &Connection, workspace: &Workspace) -> Result<(), Fault> {
    const PUT: &str = "INSERT INTO ending_workspaces (workspace, deletes_at, state) VALUES (?1, ?2, ?3)
        ON CONFLICT (workspace) DO UPDATE SET deletes_at = excluded.deletes_at, state = excluded.state WHERE state < 2";
    const FORGET: &str = "DELETE FROM ending_workspaces WHERE workspace = ?1 AND state < 2";
    let workspace_id = workspace.id.to_bytes();
    match workspace.end {
        Some(end) => connection.prepare_cached(PUT)?.execute(params![
            workspace_id,
            end.deletes_at.as_millis(),
            end.removing_since.is_some()
        ])?,
        None => connection.prepare_cached(FORGET)?.execute([workspace_id])?,
    };
    Ok(())
}

/// Ends the removal of a workspace.
pub(super) fn end(connection: &Connection, workspace: WorkspaceId) -> Result<(), Fault> {
    const NUMBER: &str = "UPDATE workspace_numbers SET contacts = 0, read_mask = 0 WHERE workspace = ?1";
    if connection.prepare_cached(HAS_JOBS)?.exists([workspace.to_string()])? {
        // One that is still at work.
        return Err(Fault::Conflict);
    }
    connection.prepare_cached(NUMBER)?.execute([workspace.to_bytes()])?;
    for sql in LAST {
        expect_one(connection.prepare_cached(sql)?.execute([workspace.to_bytes()])?)?;
    }
    Ok(())
}

pub(super) async fn ending(store: &SqliteStore) -> Result<Vec<WorkspaceId>, StoreError> {
    const SQL: &str = "SELECT workspace FROM ending_workspaces WHERE state < 2";
    store.readers.read(|connection| many(connection, SQL, [], |row| id(row, 0))).await
}

pub(super) async fn remove_rows(
    store: &SqliteStore,
    workspace: WorkspaceId,
    step: usize,
    limit: usize,
) -> Result<Option<RemovedRows>, StoreError> {
    const IS_REMOVED: &str = "SELECT 1 FROM ending_workspaces WHERE workspace = ?1 AND state = 1";
    let mut steps = OWNED.iter().filter(|owned| !owned.sqlite.is_empty());
    let Some(owned) = steps.nth(step) else { return Ok(None) };
    let key = workspace.to_bytes();
    let found = store.readers.read(move |connection| one(connection, IS_REMOVED, [key], |_| Ok(())));
    if found.await?.is_none() {
        return Ok(None);
    }
    let rows = store
        .writer
        .task(move |writing| {
            writing.overwrite(Overwriting::Pages)?;
            writing.undurably(|connection, index, _| match owned.table {
                "jobs" => remove_jobs(connection, index, workspace, limit),
                _ => remove_page(connection, owned, workspace, limit),
            })
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
        index.let_go(connection, lane)?;
    }
    Ok((free.len() + lanes.len()) as u64)
}
