//! Custom fields.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::custom_field::CustomField;
use messaging_core::ids::{FieldId, Id as _, WorkspaceId};
use messaging_core::ports::store::{CustomFields, PageRequest, Slice, StoreError, Stored};

use super::PostgresStore;
use super::fault::Fault;
use super::query::params;
use super::row::{below_id, document, one_more, record, revision_param, slice, stored, uuid};
use super::transaction::Transaction;

pub(super) fn put(transaction: &mut Transaction, field: &CustomField, expect: Expect) -> Result<(), Fault> {
    let (workspace, id, doc) = (uuid(field.workspace_id), uuid(field.id), document(field)?);
    match expect {
        Expect::Absent => transaction.run(
            "INSERT INTO custom_fields (workspace, id, key, revision, doc) VALUES ($1, $2, $3, 1, $4)",
            params![workspace, id, field.key.clone(), doc],
        ),
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE custom_fields SET doc = $3, revision = revision + 1
             WHERE workspace = $1 AND id = $2 AND revision = $4",
            params![workspace, id, doc, revision_param(revision)],
        ),
    }
    Ok(())
}

pub(super) fn delete(transaction: &mut Transaction, workspace: WorkspaceId, id: FieldId) {
    transaction.run("DELETE FROM custom_fields WHERE workspace = $1 AND id = $2", params![uuid(workspace), uuid(id)]);
}

#[async_trait]
impl CustomFields for PostgresStore {
    async fn custom_field(
        &self,
        workspace: WorkspaceId,
        id: FieldId,
    ) -> Result<Option<Stored<CustomField>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM custom_fields WHERE workspace = $1 AND id = $2";
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], stored).await
    }

    async fn custom_fields(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<CustomField>, StoreError> {
        const SQL: &str = "SELECT doc FROM custom_fields WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
        let bounds = params![uuid(workspace), below_id(&page), one_more(&page)];
        let items = self.reads.many_shared(SQL, bounds, |row| record(row, 0)).await?;
        Ok(slice(items, page.limit, |field: &CustomField| field.id.to_bytes()))
    }
}
