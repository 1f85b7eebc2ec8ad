//! Sending domains.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::mail::sending_domain::SendingDomain;
use messaging_core::ids::{DomainId, Id, WorkspaceId};
use messaging_core::ports::store::{PageRequest, SendingDomains, Slice, StoreError, Stored};

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, one_more, sql_limit};
use crate::row::{document, record, stored};
use crate::sql::{Sql, key, params, sql};
use crate::tables::domain_reports;

pub(crate) fn put(on: &mut dyn Statements, domain: &SendingDomain, expect: Expect) -> Result<(), Fault> {
    let mut row = params![key(domain.workspace_id), key(domain.id), domain.domain.as_str(), document(domain)?];
    match expect {
        Expect::Absent => on.run(
            sql!("INSERT INTO sending_domains (workspace, id, name, revision, doc) VALUES ($1, $2, $3, 1, $4)"),
            row,
        ),
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!(
                    "UPDATE sending_domains SET name = $3, doc = $4, revision = revision + 1
                     WHERE workspace = $1 AND id = $2 AND revision = $5"
                ),
                row,
            )
        }
    }
}

pub(crate) fn delete(on: &mut dyn Statements, workspace: WorkspaceId, id: DomainId) -> Result<(), Fault> {
    on.run(sql!("DELETE FROM sending_domains WHERE workspace = $1 AND id = $2"), params![key(workspace), key(id)])?;
    domain_reports::delete(on, workspace, id)
}

#[async_trait]
impl<D: Database> SendingDomains for SqlStore<D> {
    async fn domain(&self, workspace: WorkspaceId, id: DomainId) -> Result<Option<Stored<SendingDomain>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM sending_domains WHERE workspace = $1 AND id = $2");
        self.one(Query::new(SQL, params![key(workspace), key(id)], stored)).await
    }

    async fn domain_by_name(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Stored<SendingDomain>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM sending_domains WHERE workspace = $1 AND name = $2");
        self.one(Query::new(SQL, params![key(workspace), name], stored).shared()).await
    }

    async fn domain_anywhere(&self, id: DomainId) -> Result<Option<SendingDomain>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM sending_domains WHERE id = $1");
        self.one(Query::new(SQL, params![key(id)], |row| record(row, 0)).point()).await
    }

    async fn domains_named(
        &self,
        name: &str,
        after: Option<WorkspaceId>,
        limit: usize,
    ) -> Result<Vec<SendingDomain>, StoreError> {
        const SQL: Sql = sql!(
            sqlite: "SELECT doc FROM sending_domains
                WHERE name = ?1 AND doc ->> '$.verified_at' IS NOT NULL AND (?2 IS NULL OR workspace > ?2)
                ORDER BY workspace LIMIT ?3",
            postgres: "SELECT doc FROM sending_domains
                WHERE name = $1 AND doc::jsonb ->> 'verified_at' IS NOT NULL AND ($2::uuid IS NULL OR workspace > $2)
                ORDER BY workspace LIMIT $3",
        );
        let bounds = params![name, after.map(Id::to_bytes), sql_limit(limit)];
        self.many(Query::new(SQL, bounds, |row| record(row, 0))).await
    }

    async fn all_domains(&self, limit: usize) -> Result<Vec<SendingDomain>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM sending_domains ORDER BY name, workspace LIMIT $1");
        self.many(Query::new(SQL, params![sql_limit(limit)], |row| record(row, 0))).await
    }

    async fn domains(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<SendingDomain>, StoreError> {
        const SQL: Sql =
            sql!("SELECT doc FROM sending_domains WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
        let bounds = params![key(workspace), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| record::<SendingDomain>(row, 0)).shared();
        self.page(query, page, |domain| domain.id.to_bytes()).await
    }
}
