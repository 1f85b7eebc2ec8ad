//! Workspaces under deletion, and the removal of their rows.

use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{RemovedRows, StoreError};

use super::Postgres;
use super::sweep::{begin_undurably, end};
use crate::pages::sql_limit;
use crate::sql::{Params, key, params};
use crate::workspace_rows::{By, OWNED};

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
    let rows = end(transaction, touched).await?;
    Ok(Some(RemovedRows { table: owned.table, rows }))
}
