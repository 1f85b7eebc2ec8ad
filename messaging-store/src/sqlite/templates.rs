//! Templates and their versions.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::template::Template;
use messaging_core::ids::{Id as _, TemplateId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreError, Stored, Templates};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::query::{many, one};
use super::row::{below, document, number, numbered_place, one_more, place_number, record, slice, sql_limit, stored};

pub(super) fn put(connection: &Connection, template: &Template, expect: Expect) -> Result<(), Fault> {
    let (workspace, id) = (template.workspace_id.to_bytes(), template.id.to_bytes());
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached(
                "INSERT INTO templates (workspace, id, channel, revision, version) VALUES (?1, ?2, ?3, 1, ?4)",
            )?
            .execute(params![workspace, id, number(&Channel::ALL, &template.channel), template.version])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE templates SET version = ?3, revision = revision + 1
                 WHERE workspace = ?1 AND id = ?2 AND revision = ?4 AND removed_at IS NULL",
            )?
            .execute(params![workspace, id, template.version, revision])?,
    })?;
    connection
        .prepare_cached(
            "INSERT INTO template_versions (workspace, template, version, head, doc) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![workspace, id, template.version, document(&template.head())?, document(template)?])?;
    Ok(())
}

pub(super) fn delete(
    connection: &Connection,
    workspace: WorkspaceId,
    id: TemplateId,
    at: Timestamp,
) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "UPDATE templates SET removed_at = ?3, revision = revision + 1
             WHERE workspace = ?1 AND id = ?2 AND removed_at IS NULL",
        )?
        .execute(params![workspace.to_bytes(), id.to_bytes(), at.as_millis()])?;
    Ok(())
}

/// Versions first, then the templates that have none any more.
fn forget(connection: &Connection, before: Timestamp, limit: usize) -> Result<u64, Fault> {
    let versions = connection
        .prepare_cached(
            "DELETE FROM template_versions WHERE n IN (
                 SELECT v.n FROM templates t JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id
                 WHERE t.removed_at < ?1 LIMIT ?2)",
        )?
        .execute(params![before.as_millis(), sql_limit(limit)])?;
    let templates = connection
        .prepare_cached(
            "DELETE FROM templates WHERE (workspace, id) IN (
                 SELECT workspace, id FROM templates t WHERE removed_at < ?1 AND NOT EXISTS (
                     SELECT 1 FROM template_versions v WHERE v.workspace = t.workspace AND v.template = t.id)
                 LIMIT ?2)",
        )?
        .execute(params![before.as_millis(), sql_limit(limit)])?;
    Ok((versions + templates) as u64)
}

#[async_trait]
impl Templates for SqliteStore {
    async fn template(&self, workspace: WorkspaceId, id: TemplateId) -> Result<Option<Stored<Template>>, StoreError> {
        const SQL: &str = "SELECT t.revision, v.doc FROM templates t
             JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id AND v.version = t.version
             WHERE t.workspace = ?1 AND t.id = ?2 AND t.removed_at IS NULL";
        self.readers.read(move |connection| one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], stored)).await
    }

    async fn template_head(&self, workspace: WorkspaceId, id: TemplateId) -> Result<Option<Template>, StoreError> {
        const SQL: &str = "SELECT v.head FROM templates t
             JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id AND v.version = t.version
             WHERE t.workspace = ?1 AND t.id = ?2 AND t.removed_at IS NULL";
        self.readers
            .read(move |connection| one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| record(row, 0)))
            .await
    }

    async fn template_version(
        &self,
        workspace: WorkspaceId,
        id: TemplateId,
        version: u32,
    ) -> Result<Option<Template>, StoreError> {
        const SQL: &str = "SELECT doc FROM template_versions WHERE workspace = ?1 AND template = ?2 AND version = ?3";
        self.readers
            .read(move |connection| {
                one(connection, SQL, params![workspace.to_bytes(), id.to_bytes(), version], |row| record(row, 0))
            })
            .await
    }

    async fn templates(
        &self,
        workspace: WorkspaceId,
        channel: Option<Channel>,
        page: PageRequest,
    ) -> Result<Slice<Template>, StoreError> {
        const SQL: &str = "SELECT v.head FROM templates t
             JOIN template_versions v ON v.workspace = t.workspace AND v.template = t.id AND v.version = t.version
             WHERE t.workspace = ?1 AND t.id < ?2 AND t.removed_at IS NULL AND (?4 IS NULL OR t.channel = ?4)
             ORDER BY t.id DESC LIMIT ?3";
        self.readers
            .read(move |connection| {
                let channel = channel.map(|channel| number(&Channel::ALL, &channel));
                let bounds = params![workspace.to_bytes(), below(&page), one_more(&page), channel];
                let items = many(connection, SQL, bounds, |row| record(row, 0))?;
                Ok(slice(items, page.limit, |template: &Template| template.id.to_bytes()))
            })
            .await
    }

    async fn template_versions(
        &self,
        workspace: WorkspaceId,
        id: TemplateId,
        page: PageRequest,
    ) -> Result<Slice<Template>, StoreError> {
        const SQL: &str = "SELECT head FROM template_versions
             WHERE workspace = ?1 AND template = ?2 AND version < ?3 ORDER BY version DESC LIMIT ?4";
        self.readers
            .read(move |connection| {
                let before = page.after.map_or(i64::MAX, place_number);
                let bounds = params![workspace.to_bytes(), id.to_bytes(), before, one_more(&page)];
                let items = many(connection, SQL, bounds, |row| record(row, 0))?;
                Ok(slice(items, page.limit, |template: &Template| numbered_place(template.version.into()).to_bytes()))
            })
            .await
    }

    async fn forget_templates(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.writer.undurably(move |connection| forget(connection, before, limit)).await
    }
}
