//! Workspaces under deletion, and the removal of their rows.

use messaging_core::domain::account::Workspace;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{RemovedRows, StoreError};

use super::PostgresStore;
use super::query::{Params, params};
use super::row::{id, sql_limit, uuid};
use super::sweep::{begin_undurably, end as end_transaction};
use super::transaction::Transaction;
use crate::workspace_rows::{By, EXPECT_NO_JOBS, LAST, OWNED};

/// Keeps with a workspace that is written whether it is under deletion.
pub(super) fn put(transaction: &mut Transaction, workspace: &Workspace) {
    const PUT: &str = "INSERT INTO ending_workspaces AS known (workspace, deletes_at, state) VALUES ($1, $2, $3)
        ON CONFLICT (workspace) DO UPDATE SET deletes_at = excluded.deletes_at, state = excluded.state
        WHERE known.state < 2";
    const FORGET: &str = "DELETE FROM ending_workspaces WHERE workspace = $1 AND state < 2";
    let workspace_id = uuid(workspace.id);
    match workspace.end {
        Some(end) => {
            let state = i16::from(end.removing_since.is_some());
            transaction.run(PUT, params![workspace_id, end.deletes_at.as_millis(), state]);
        }
        None => transaction.run(FORGET, params![workspace_id]),
    }
}

/// Ends the removal of a workspace.
pub(super) fn end(transaction: &mut Transaction, workspace: WorkspaceId) {
    const NUMBER: &str = "UPDATE workspace_numbers SET read_mask = 0 WHERE workspace = $1";
    transaction.run(NUMBER, params![uuid(workspace)]);
    // A job that came late.
    transaction.run(EXPECT_NO_JOBS, params![workspace.to_string()]);
    for sql in LAST {
        transaction.run_one(sql, params![uuid(workspace)]);
    }
}

pub(super) async fn ending(store: &PostgresStore) -> Result<Vec<WorkspaceId>, StoreError> {
    const SQL: &str = "SELECT workspace FROM ending_workspaces WHERE state < 2";
    store.reads.many(SQL, params![], |row| id(row, 0)).await
}

pub(super) async fn remove_rows(
    store: &PostgresStore,
    workspace: WorkspaceId,
    step: usize,
    limit: usize,
) -> Result<Option<RemovedRows>, StoreError> {
    const IS_REMOVED: &str = "SELECT 1 FROM ending_workspaces WHERE workspace = $1 AND state = 1";
    let Some(owned) = OWNED.get(step) else { return Ok(None) };
    if store.reads.one(IS_REMOVED, params![uuid(workspace)], |_| Ok(())).await?.is_none() {
        return Ok(None);
    }
    let parameters = || -> Params {
        match owned.by {
            By::Id => params![uuid(workspace), sql_limit(limit)],
            By::Text => params![workspace.to_string(), sql_limit(limit)],
        }
    };
    let mut transaction = begin_undurably(&store.writes).await?;
    let mut touched = Ok(0);
    for sql in owned.postgres {
        touched = transaction.execute(sql, parameters()).await;
        if touched.is_err() {
            break;
        }
    }
    let rows = end_transaction(transaction, touched).await?;
    Ok(Some(RemovedRows { table: owned.table, rows }))
}
