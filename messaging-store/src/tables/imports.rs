//! Imports of contacts, and which of their rows were refused.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::audience::import::Import;
use messaging_core::domain::audience::import::report::RowErrors;
use messaging_core::ids::{Id as _, ImportId, WorkspaceId};
use messaging_core::ports::store::{Imports, PageRequest, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, first_id_of, one_more, sql_limit};
use crate::row::{count, document, get, record, stored};
use crate::sql::{Sql, key, params, sql};

pub(crate) fn put(on: &mut dyn Statements, import: &Import, expect: Expect) -> Result<(), Fault> {
    let mut row = params![key(import.workspace_id), key(import.id), document(import)?];
    match expect {
        Expect::Absent => {
            on.run(sql!("INSERT INTO imports (workspace, id, revision, doc) VALUES ($1, $2, 1, $3)"), row)
        }
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!(
                    "UPDATE imports SET doc = $3, revision = revision + 1
                     WHERE workspace = $1 AND id = $2 AND revision = $4"
                ),
                row,
            )
        }
    }
}

pub(crate) fn append_errors(on: &mut dyn Statements, errors: &RowErrors) -> Result<(), Fault> {
    let RowErrors { workspace_id, import_id, first_row, lines } = errors;
    let first_row = i64::try_from(*first_row).unwrap_or(i64::MAX);
    on.run(
        sql!("INSERT INTO import_errors (import, first_row, workspace, lines) VALUES ($1, $2, $3, $4)"),
        params![key(*import_id), first_row, key(*workspace_id), lines.as_str()],
    )
}

#[async_trait]
impl<D: Database> Imports for SqlStore<D> {
    async fn import(&self, workspace: WorkspaceId, id: ImportId) -> Result<Option<Stored<Import>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM imports WHERE workspace = $1 AND id = $2");
        self.one(Query::new(SQL, params![key(workspace), key(id)], stored).point()).await
    }

    async fn imports(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<Import>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM imports WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
        let bounds = params![key(workspace), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| record::<Import>(row, 0));
        self.page(query, page, |import| import.id.to_bytes()).await
    }

    async fn row_errors(
        &self,
        workspace: WorkspaceId,
        id: ImportId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<RowErrors>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT first_row, lines FROM import_errors
             WHERE import = $1 AND first_row > $2 AND workspace = $3 ORDER BY first_row LIMIT $4"
        );
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let query = Query::new(SQL, params![key(id), after, key(workspace), sql_limit(limit)], move |row| {
            let (first_row, lines) = (count(row, 0)?, get(row, 1)?);
            Ok(RowErrors { workspace_id: workspace, import_id: id, first_row, lines })
        });
        self.many(query).await
    }

    async fn forget_row_errors(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const ANY: Sql = sql!("SELECT 1 FROM import_errors WHERE import < $1 LIMIT 1");
        const SQL: Sql = sql!(
            sqlite: "DELETE FROM import_errors WHERE (import, first_row) IN (
                SELECT import, first_row FROM import_errors WHERE import < ?1 ORDER BY import, first_row LIMIT ?2)",
            postgres: "DELETE FROM import_errors WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM import_errors WHERE import < $1
                ORDER BY import, first_row LIMIT $2 FOR UPDATE SKIP LOCKED))",
        );
        let bound = first_id_of(before);
        // Most times there are none, and then nothing is written.
        if self.one(Query::new(ANY, params![bound], |_| Ok(())).point()).await?.is_none() {
            return Ok(0);
        }
        self.sweep(SQL, params![bound, sql_limit(limit)]).await
    }
}
