//! Custom fields.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::audience::custom_field::CustomField;
use messaging_core::ids::{FieldId, Id as _, WorkspaceId};
use messaging_core::ports::store::{CustomFields, PageRequest, Slice, StoreError, Stored};

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, one_more};
use crate::row::{document, record, stored};
use crate::sql::{Sql, key, params, sql};

pub(crate) fn put(on: &mut dyn Statements, field: &CustomField, expect: Expect) -> Result<(), Fault> {
    let (workspace, id, doc) = (key(field.workspace_id), key(field.id), document(field)?);
    match expect {
        Expect::Absent => on.run(
            sql!("INSERT INTO custom_fields (workspace, id, doc, key, revision) VALUES ($1, $2, $3, $4, 1)"),
            params![workspace, id, doc, field.key.as_str()],
        ),
        Expect::Revision(revision) => on.run_one(
            sql!(
                "UPDATE custom_fields SET doc = $3, revision = revision + 1
                 WHERE workspace = $1 AND id = $2 AND revision = $4"
            ),
            params![workspace, id, doc, revision],
        ),
    }
}

pub(crate) fn delete(on: &mut dyn Statements, workspace: WorkspaceId, id: FieldId) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM custom_fields WHERE workspace = $1 AND id = $2"), params![key(workspace), key(id)])
}

#[async_trait]
impl<D: Database> CustomFields for SqlStore<D> {
    async fn custom_field(
        &self,
        workspace: WorkspaceId,
        id: FieldId,
    ) -> Result<Option<Stored<CustomField>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM custom_fields WHERE workspace = $1 AND id = $2");
        self.one(Query::new(SQL, params![key(workspace), key(id)], stored)).await
    }

    async fn custom_fields(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<CustomField>, StoreError> {
        const SQL: Sql =
            sql!("SELECT doc FROM custom_fields WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
        let bounds = params![key(workspace), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| record::<CustomField>(row, 0)).shared();
        self.page(query, page, |field| field.id.to_bytes()).await
    }
}
