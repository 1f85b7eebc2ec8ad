//! Sending domains.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::sending_domain::SendingDomain;
use messaging_core::ids::{DomainId, Id, WorkspaceId};
use messaging_core::ports::store::{PageRequest, SendingDomains, Slice, StoreError, Stored};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::query::{many, one};
use super::row::{below, document, one_more, record, slice, sql_limit, stored};

pub(super) fn put(connection: &Connection, domain: &SendingDomain, expect: Expect) -> Result<(), Fault> {
    let (workspace, id, doc) = (domain.workspace_id.to_bytes(), domain.id.to_bytes(), document(domain)?);
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached(
                "INSERT INTO sending_domains (workspace, id, name, revision, doc) VALUES (?1, ?2, ?3, 1, ?4)",
            )?
            .execute(params![workspace, id, domain.domain, doc])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE sending_domains SET name = ?3, doc = ?4, revision = revision + 1
                 WHERE workspace = ?1 AND id = ?2 AND revision = ?5",
            )?
            .execute(params![workspace, id, domain.domain, doc, revision])?,
    })
}

pub(super) fn delete(connection: &Connection, workspace: WorkspaceId, id: DomainId) -> Result<(), Fault> {
    connection
        .prepare_cached("DELETE FROM sending_domains WHERE workspace = ?1 AND id = ?2")?
        .execute(params![workspace.to_bytes(), id.to_bytes()])?;
    Ok(())
}

#[async_trait]
impl SendingDomains for SqliteStore {
    async fn domain(&self, workspace: WorkspaceId, id: DomainId) -> Result<Option<Stored<SendingDomain>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM sending_domains WHERE workspace = ?1 AND id = ?2";
        self.readers.read(move |connection| one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], stored)).await
    }

    async fn domain_by_name(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Stored<SendingDomain>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM sending_domains WHERE workspace = ?1 AND name = ?2";
        let name = name.to_owned();
        self.readers.read(move |connection| one(connection, SQL, params![workspace.to_bytes(), name], stored)).await
    }

    async fn domains_named(
        &self,
        name: &str,
        after: Option<WorkspaceId>,
        limit: usize,
    ) -> Result<Vec<SendingDomain>, StoreError> {
        const SQL: &str = "SELECT doc FROM sending_domains
            WHERE name = ?1 AND doc ->> '$.verified_at' IS NOT NULL AND (?2 IS NULL OR workspace > ?2)
            ORDER BY workspace LIMIT ?3";
        let (name, after) = (name.to_owned(), after.map(Id::to_bytes));
        self.readers
            .read(move |connection| many(connection, SQL, params![name, after, sql_limit(limit)], |row| record(row, 0)))
            .await
    }

    async fn all_domains(&self, limit: usize) -> Result<Vec<SendingDomain>, StoreError> {
        const SQL: &str = "SELECT doc FROM sending_domains ORDER BY name, workspace LIMIT ?1";
        self.readers
            .read(move |connection| many(connection, SQL, params![sql_limit(limit)], |row| record(row, 0)))
            .await
    }

    async fn domains(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<SendingDomain>, StoreError> {
        const SQL: &str = "SELECT doc FROM sending_domains WHERE workspace = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";
        self.readers
            .read(move |connection| {
                let bounds = params![workspace.to_bytes(), below(&page), one_more(&page)];
                let items = many(connection, SQL, bounds, |row| record(row, 0))?;
                Ok(slice(items, page.limit, |domain: &SendingDomain| domain.id.to_bytes()))
            })
            .await
    }
}
