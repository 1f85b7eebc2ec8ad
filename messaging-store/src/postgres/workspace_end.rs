//! Workspaces under deletion, and the removal of their rows.

use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{RemovedRows, StoreError};

use super::Postgres;
use super::sweep::{begin_undurably, end as end_transaction};
use super::transaction::Transaction;
use crate::pages::sql_limit;
use crate::sql::{Params, key, params};
use crate::workspace_rows::{By, EXPECT_NO_JOBS, LAST, OWNED};

/// Ends the removal of a workspace.
pub(super) fn end(transaction: &mut Transaction, workspace: WorkspaceId) {
    const NUMBER: &str = "UPDATE workspace_numbers SET read_mask = 0 WHERE workspace = $1";
    transaction.run(NUMBER, params![key(workspace)]);
    // A job that came late.
    transaction.run(EXPECT_NO_JOBS, params![workspace.to_string()]);
    for sql in LAST {
        transaction.run_one(sql, params![key(workspace)]);
    }
}

pub(super) async fn remove_rows(
    store: &Postgres,
    workspace: WorkspaceId,
    step: usize,
    limit: usize,
) -> Result<Option<RemovedRows>, StoreError> {
    let Some(owned) = OWNED.get(step) else { return Ok(None) };
    let parameters = || -> Params {
        match owned.by {
            By::Id => params![key(workspace), sql_limit(limit)],
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
