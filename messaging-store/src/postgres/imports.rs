//! Imports of contacts, and which of their rows were refused.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::import::Import;
use messaging_core::domain::import::report::RowErrors;
use messaging_core::ids::{Id as _, ImportId, WorkspaceId};
use messaging_core::ports::store::{Imports, PageRequest, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;

use super::PostgresStore;
use super::fault::Fault;
use super::query::params;
use super::row::{
    below_id, count, document, first_id, get, one_more, record, revision_param, slice, sql_limit, stored, uuid,
};
use super::sweep::sweep;
use super::transaction::Transaction;

pub(super) fn put(transaction: &mut Transaction, import: &Import, expect: Expect) -> Result<(), Fault> {
    let (workspace, id, doc) = (uuid(import.workspace_id), uuid(import.id), document(import)?);
    match expect {
        Expect::Absent => transaction.run(
            "INSERT INTO imports (workspace, id, revision, doc) VALUES ($1, $2, 1, $3)",
            params![workspace, id, doc],
        ),
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE imports SET doc = $3, revision = revision + 1 WHERE workspace = $1 AND id = $2 AND revision = $4",
            params![workspace, id, doc, revision_param(revision)],
        ),
    }
    Ok(())
}

pub(super) fn append_errors(transaction: &mut Transaction, errors: &RowErrors) {
    let first_row = i64::try_from(errors.first_row).unwrap_or(i64::MAX);
    transaction.run(
        "INSERT INTO import_errors (import, first_row, workspace, lines) VALUES ($1, $2, $3, $4)",
        params![uuid(errors.import_id), first_row, uuid(errors.workspace_id), errors.lines.clone()],
    );
}

#[async_trait]
impl Imports for PostgresStore {
    async fn import(&self, workspace: WorkspaceId, id: ImportId) -> Result<Option<Stored<Import>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM imports WHERE workspace = $1 AND id = $2";
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], stored).await
    }

    async fn imports(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Import>, StoreError> {
        const SQL: &str = "SELECT doc FROM imports WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
        let bounds = params![uuid(workspace), below_id(&page), one_more(&page)];
        let items = self.reads.many(SQL, bounds, |row| record(row, 0)).await?;
        Ok(slice(items, page.limit, |import: &Import| import.id.to_bytes()))
    }

    async fn row_errors(
        &self,
        workspace: WorkspaceId,
        id: ImportId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<RowErrors>, StoreError> {
        const SQL: &str = "SELECT first_row, lines FROM import_errors
            WHERE import = $1 AND first_row > $2 AND workspace = $3 ORDER BY first_row LIMIT $4";
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let bounds = params![uuid(id), after, uuid(workspace), sql_limit(limit)];
        self.reads
            .many(SQL, bounds, |row| {
                let (first_row, lines) = (count(row, 0)?, get(row, 1)?);
                Ok(RowErrors { workspace_id: workspace, import_id: id, first_row, lines })
            })
            .await
    }

    async fn forget_row_errors(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const SQL: &str = "DELETE FROM import_errors WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM import_errors WHERE import < $1
            ORDER BY import, first_row LIMIT $2 FOR UPDATE SKIP LOCKED))";
        sweep(&self.writes, SQL, params![first_id(before), sql_limit(limit)]).await
    }
}
