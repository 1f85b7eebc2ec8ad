//! Templates and their versions.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::template::Template;
use messaging_core::ids::{Id as _, TemplateId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreError, Stored, Templates};
use messaging_core::time::Timestamp;

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, number, numbered_place, one_more, place_number, sql_limit};
use crate::row::{document, record, stored};
use crate::sql::{Sql, key, params, sql};

pub(crate) fn put(on: &mut dyn Statements, template: &Template, expect: Expect) -> Result<(), Fault> {
    let Template { workspace_id, id, version, channel, .. } = template;
    let (workspace, id) = (key(*workspace_id), key(*id));
    match expect {
        Expect::Absent => on.run(
            sql!("INSERT INTO templates (workspace, id, channel, revision, version) VALUES ($1, $2, $3, 1, $4)"),
            params![workspace.clone(), id.clone(), number(&Channel::ALL, channel), *version],
        )?,
        Expect::Revision(revision) => on.run_one(
            sql!(
                "UPDATE templates SET version = $3, revision = revision + 1
                 WHERE workspace = $1 AND id = $2 AND revision = $4 AND removed_at IS NULL"
            ),
            params![workspace.clone(), id.clone(), *version, revision],
        )?,
    }
    on.run(
        sql!("INSERT INTO template_versions (workspace, template, version, head, doc) VALUES ($1, $2, $3, $4, $5)"),
        params![workspace, id, *version, document(&template.head())?, document(template)?],
    )
}

pub(crate) fn delete(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    id: TemplateId,
    at: Timestamp,
) -> Result<(), Fault> {
    on.run(
        sql!(
            "UPDATE templates SET removed_at = $3, revision = revision + 1
             WHERE workspace = $1 AND id = $2 AND removed_at IS NULL"
        ),
        params![key(workspace), key(id), at],
    )
}

#[async_trait]
impl<D: Database> Templates for SqlStore<D> {
    async fn template(&self, workspace: WorkspaceId, id: TemplateId) -> Result<Option<Stored<Template>>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT t.revision, v.doc FROM templates t
             JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id AND v.version = t.version
             WHERE t.workspace = $1 AND t.id = $2 AND t.removed_at IS NULL"
        );
        self.one(Query::new(SQL, params![key(workspace), key(id)], stored).shared()).await
    }

    async fn template_head(&self, workspace: WorkspaceId, id: TemplateId) -> Result<Option<Template>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT v.head FROM templates t
             JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id AND v.version = t.version
             WHERE t.workspace = $1 AND t.id = $2 AND t.removed_at IS NULL"
        );
        self.one(Query::new(SQL, params![key(workspace), key(id)], |row| record(row, 0)).shared()).await
    }

    async fn template_version(
        &self,
        workspace: WorkspaceId,
        id: TemplateId,
        version: u32,
    ) -> Result<Option<Template>, StoreError> {
        const SQL: Sql =
            sql!("SELECT doc FROM template_versions WHERE workspace = $1 AND template = $2 AND version = $3");
        self.one(Query::new(SQL, params![key(workspace), key(id), version], |row| record(row, 0)).shared()).await
    }

    async fn templates(
        &self,
        workspace: WorkspaceId,
        channel: Option<Channel>,
        page: PageRequest,
    ) -> Result<Slice<Template>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT v.head FROM templates t
             JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id AND v.version = t.version
             WHERE t.workspace = $1 AND t.id < $2 AND t.removed_at IS NULL
                 AND (CAST($4 AS bigint) IS NULL OR t.channel = $4)
             ORDER BY t.id DESC LIMIT $3"
        );
        let channel = channel.map(|channel| number(&Channel::ALL, &channel));
        let bounds = params![key(workspace), below(&page), one_more(&page), channel];
        let query = Query::new(SQL, bounds, |row| record::<Template>(row, 0));
        self.page(query, page, |template| template.id.to_bytes()).await
    }

    async fn template_versions(
        &self,
        workspace: WorkspaceId,
        id: TemplateId,
        page: PageRequest,
    ) -> Result<Slice<Template>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT head FROM template_versions
             WHERE workspace = $1 AND template = $2 AND version < $3 ORDER BY version DESC LIMIT $4"
        );
        let before = page.after.map_or(i64::MAX, place_number);
        let bounds = params![key(workspace), key(id), before, one_more(&page)];
        let query = Query::new(SQL, bounds, |row| record::<Template>(row, 0));
        self.page(query, page, |template| numbered_place(template.version.into()).to_bytes()).await
    }

    /// Versions first, then the templates that have none any more.
    async fn forget_templates(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const VERSIONS: Sql = sql!(
            sqlite: "DELETE FROM template_versions WHERE n IN (
                SELECT v.n FROM templates t JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id
                WHERE t.removed_at < ?1 LIMIT ?2)",
            postgres: "DELETE FROM template_versions WHERE (workspace, template, version) IN (
                SELECT v.workspace, v.template, v.version
                FROM templates t JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id
                WHERE t.removed_at < $1 LIMIT $2 FOR UPDATE OF v SKIP LOCKED)",
        );
        const TEMPLATES: Sql = sql!(
            sqlite: "DELETE FROM templates WHERE (workspace, id) IN (
                SELECT workspace, id FROM templates t WHERE removed_at < ?1 AND NOT EXISTS (
                    SELECT 1 FROM template_versions v WHERE v.workspace = t.workspace AND v.template = t.id)
                LIMIT ?2)",
            postgres: "DELETE FROM templates WHERE ctid = ANY (ARRAY (
                SELECT ctid FROM templates t WHERE removed_at < $1 AND NOT EXISTS (
                    SELECT 1 FROM template_versions v WHERE v.workspace = t.workspace AND v.template = t.id)
                LIMIT $2 FOR UPDATE SKIP LOCKED))",
        );
        let versions = self.sweep(VERSIONS, params![before, sql_limit(limit)]).await?;
        Ok(versions + self.sweep(TEMPLATES, params![before, sql_limit(limit)]).await?)
    }
}
