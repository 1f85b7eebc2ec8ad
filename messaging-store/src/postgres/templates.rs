//! Templates and their versions.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::template::Template;
use messaging_core::ids::{Id as _, TemplateId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreError, Stored, Templates};
use messaging_core::time::Timestamp;

use super::PostgresStore;
use super::fault::Fault;
use super::query::params;
use super::row::{
    below_id, document, number, numbered_place, one_more, place_number, record, revision_param, slice, sql_limit,
    stored, uuid,
};
use super::sweep::sweep;
use super::transaction::Transaction;

pub(super) fn put(transaction: &mut Transaction, template: &Template, expect: Expect) -> Result<(), Fault> {
    let (workspace, id) = (uuid(template.workspace_id), uuid(template.id));
    let version = i64::from(template.version);
    match expect {
        Expect::Absent => transaction.run(
            "INSERT INTO templates (workspace, id, channel, revision, version) VALUES ($1, $2, $3, 1, $4)",
            params![workspace, id, number(&Channel::ALL, &template.channel), version],
        ),
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE templates SET version = $3, revision = revision + 1
             WHERE workspace = $1 AND id = $2 AND revision = $4 AND removed_at IS NULL",
            params![workspace, id, version, revision_param(revision)],
        ),
    }
    transaction.run(
        "INSERT INTO template_versions (workspace, template, version, head, doc) VALUES ($1, $2, $3, $4, $5)",
        params![workspace, id, version, document(&template.head())?, document(template)?],
    );
    Ok(())
}

pub(super) fn delete(transaction: &mut Transaction, workspace: WorkspaceId, id: TemplateId, at: Timestamp) {
    transaction.run(
        "UPDATE templates SET removed_at = $3, revision = revision + 1
         WHERE workspace = $1 AND id = $2 AND removed_at IS NULL",
        params![uuid(workspace), uuid(id), at.as_millis()],
    );
}

#[async_trait]
impl Templates for PostgresStore {
    async fn template(&self, workspace: WorkspaceId, id: TemplateId) -> Result<Option<Stored<Template>>, StoreError> {
        const SQL: &str = "SELECT t.revision, v.doc FROM templates t
             JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id AND v.version = t.version
             WHERE t.workspace = $1 AND t.id = $2 AND t.removed_at IS NULL";
        self.reads.one_shared(SQL, params![uuid(workspace), uuid(id)], stored).await
    }

    async fn template_head(&self, workspace: WorkspaceId, id: TemplateId) -> Result<Option<Template>, StoreError> {
        const SQL: &str = "SELECT v.head FROM templates t
             JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id AND v.version = t.version
             WHERE t.workspace = $1 AND t.id = $2 AND t.removed_at IS NULL";
        self.reads.one_shared(SQL, params![uuid(workspace), uuid(id)], |row| record(row, 0)).await
    }

    async fn template_version(
        &self,
        workspace: WorkspaceId,
        id: TemplateId,
        version: u32,
    ) -> Result<Option<Template>, StoreError> {
        const SQL: &str = "SELECT doc FROM template_versions WHERE workspace = $1 AND template = $2 AND version = $3";
        let key = params![uuid(workspace), uuid(id), i64::from(version)];
        self.reads.one_shared(SQL, key, |row| record(row, 0)).await
    }

    async fn templates(
        &self,
        workspace: WorkspaceId,
        channel: Option<Channel>,
        page: PageRequest,
    ) -> Result<Slice<Template>, StoreError> {
        const SQL: &str = "SELECT v.head FROM templates t
             JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id AND v.version = t.version
             WHERE t.workspace = $1 AND t.id < $2 AND t.removed_at IS NULL AND ($4::bigint IS NULL OR t.channel = $4)
             ORDER BY t.id DESC LIMIT $3";
        let channel = channel.map(|channel| number(&Channel::ALL, &channel));
        let bounds = params![uuid(workspace), below_id(&page), one_more(&page), channel];
        let items = self.reads.many(SQL, bounds, |row| record(row, 0)).await?;
        Ok(slice(items, page.limit, |template: &Template| template.id.to_bytes()))
    }

    async fn template_versions(
        &self,
        workspace: WorkspaceId,
        id: TemplateId,
        page: PageRequest,
    ) -> Result<Slice<Template>, StoreError> {
        const SQL: &str = "SELECT head FROM template_versions
             WHERE workspace = $1 AND template = $2 AND version < $3 ORDER BY version DESC LIMIT $4";
        let before = page.after.map_or(i64::MAX, place_number);
        let bounds = params![uuid(workspace), uuid(id), before, one_more(&page)];
        let items = self.reads.many(SQL, bounds, |row| record(row, 0)).await?;
        Ok(slice(items, page.limit, |template: &Template| numbered_place(template.version.into()).to_bytes()))
    }

    /// Versions first, then the templates that have none any more.
    async fn forget_templates(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        const VERSIONS: &str = "DELETE FROM template_versions WHERE (workspace, template, version) IN (
            SELECT v.workspace, v.template, v.version
            FROM templates t JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id
            WHERE t.removed_at < $1 LIMIT $2 FOR UPDATE OF v SKIP LOCKED)";
        const TEMPLATES: &str = "DELETE FROM templates WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM templates t WHERE removed_at < $1 AND NOT EXISTS (
                SELECT 1 FROM template_versions v WHERE v.workspace = t.workspace AND v.template = t.id)
            LIMIT $2 FOR UPDATE SKIP LOCKED))";
        let mut forgotten = 0;
        for sql in [VERSIONS, TEMPLATES] {
            forgotten += sweep(&self.writes, sql, params![before.as_millis(), sql_limit(limit)]).await?;
        }
        Ok(forgotten)
    }
}
