//! Imports of contacts, and which of their rows were refused.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::import::Import;
use messaging_core::domain::import::report::RowErrors;
use messaging_core::ids::{Id as _, ImportId, WorkspaceId};
use messaging_core::ports::store::{Imports, PageRequest, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::query::{many, one};
use super::row::{below, count, document, one_more, record, slice, sql_limit, stored};

pub(super) fn put(connection: &Connection, import: &Import, expect: Expect) -> Result<(), Fault> {
    let (workspace, id, doc) = (import.workspace_id.to_bytes(), import.id.to_bytes(), document(import)?);
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached("INSERT INTO imports (workspace, id, revision, doc) VALUES (?1, ?2, 1, ?3)")?
            .execute(params![workspace, id, doc])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE imports SET doc = ?3, revision = revision + 1 WHERE workspace = ?1 AND id = ?2 AND revision = ?4",
            )?
            .execute(params![workspace, id, doc, revision])?,
    })
}

pub(super) fn append_errors(connection: &Connection, errors: &RowErrors) -> Result<(), Fault> {
    let (workspace, import) = (errors.workspace_id.to_bytes(), errors.import_id.to_bytes());
    let first_row = i64::try_from(errors.first_row).unwrap_or(i64::MAX);
    connection
        .prepare_cached("INSERT INTO import_errors (import, first_row, workspace, lines) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![import, first_row, workspace, errors.lines])?;
    Ok(())
}

#[async_trait]
impl Imports for SqliteStore {
    async fn import(&self, workspace: WorkspaceId, id: ImportId) -> Result<Option<Stored<Import>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM imports WHERE workspace = ?1 AND id = ?2";
        self.readers
            .point_read(move |connection| one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], stored))
            .await
    }

    async fn imports(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Import>, StoreError> {
        const SQL: &str = "SELECT doc FROM imports WHERE workspace = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";
        self.readers
            .read(move |connection| {
                let bounds = params![workspace.to_bytes(), below(&page), one_more(&page)];
                let items = many(connection, SQL, bounds, |row| record(row, 0))?;
                Ok(slice(items, page.limit, |import: &Import| import.id.to_bytes()))
            })
            .await
    }

    async fn row_errors(
        &self,
        workspace: WorkspaceId,
        id: ImportId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<RowErrors>, StoreError> {
        const SQL: &str = "SELECT first_row, lines FROM import_errors
            WHERE import = ?1 AND first_row > ?2 AND workspace = ?3 ORDER BY first_row LIMIT ?4";
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        self.readers
            .read(move |connection| {
                let bounds = params![id.to_bytes(), after, workspace.to_bytes(), sql_limit(limit)];
                many(connection, SQL, bounds, |row| {
                    let (first_row, lines) = (count(row, 0)?, row.get(1)?);
                    Ok(RowErrors { workspace_id: workspace, import_id: id, first_row, lines })
                })
            })
            .await
    }

    async fn forget_row_errors(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const OLD: &str = "SELECT 1 FROM import_errors WHERE import < ?1 LIMIT 1";
        let bound = ImportId::from_bytes((u128::try_from(before.as_millis()).unwrap_or(0) << 80).to_be_bytes());
        let any =
            self.readers.point_read(move |connection| one(connection, OLD, [bound.to_bytes()], |_| Ok(()))).await?;
        if any.is_none() {
            return Ok(0);
        }
        self.writer.task(move |batch| batch.undurably(|connection, _| forget(connection, bound, limit))).await
    }
}

fn forget(connection: &Connection, bound: ImportId, limit: usize) -> Result<u64, Fault> {
    let sql = "DELETE FROM import_errors WHERE (import, first_row) IN
        (SELECT import, first_row FROM import_errors WHERE import < ?1 ORDER BY import, first_row LIMIT ?2)";
    Ok(connection.prepare_cached(sql)?.execute(params![bound.to_bytes(), sql_limit(limit)])? as u64)
}
