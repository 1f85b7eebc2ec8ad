//! Custom fields.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::custom_field::CustomField;
use messaging_core::ids::{FieldId, Id as _, WorkspaceId};
use messaging_core::ports::store::{CustomFields, PageRequest, Slice, StoreError, Stored};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::query::{many, one};
use super::row::{below, document, one_more, record, slice, stored};

pub(super) fn put(connection: &Connection, field: &CustomField, expect: Expect) -> Result<(), Fault> {
    let (workspace, id, doc) = (field.workspace_id.to_bytes(), field.id.to_bytes(), document(field)?);
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached("INSERT INTO custom_fields (workspace, id, key, revision, doc) VALUES (?1, ?2, ?3, 1, ?4)")?
            .execute(params![workspace, id, field.key, doc])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE custom_fields SET doc = ?3, revision = revision + 1
                 WHERE workspace = ?1 AND id = ?2 AND revision = ?4",
            )?
            .execute(params![workspace, id, doc, revision])?,
    })
}

pub(super) fn delete(connection: &Connection, workspace: WorkspaceId, id: FieldId) -> Result<(), Fault> {
    connection
        .prepare_cached("DELETE FROM custom_fields WHERE workspace = ?1 AND id = ?2")?
        .execute([workspace.to_bytes(), id.to_bytes()])?;
    Ok(())
}

#[async_trait]
impl CustomFields for SqliteStore {
    async fn custom_field(
        &self,
        workspace: WorkspaceId,
        id: FieldId,
    ) -> Result<Option<Stored<CustomField>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM custom_fields WHERE workspace = ?1 AND id = ?2";
        self.readers.read(move |connection| one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], stored)).await
    }

    async fn custom_fields(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<CustomField>, StoreError> {
        const SQL: &str = "SELECT doc FROM custom_fields WHERE workspace = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";
        self.readers
            .read(move |connection| {
                let bounds = params![workspace.to_bytes(), below(&page), one_more(&page)];
                let items = many(connection, SQL, bounds, |row| record(row, 0))?;
                Ok(slice(items, page.limit, |field: &CustomField| field.id.to_bytes()))
            })
            .await
    }
}
