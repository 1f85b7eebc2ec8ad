//! Sending domains.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::sending_domain::SendingDomain;
use messaging_core::ids::{DomainId, Id as _, WorkspaceId};
use messaging_core::ports::store::{PageRequest, SendingDomains, Slice, StoreError, Stored};

use super::PostgresStore;
use super::fault::Fault;
use super::query::params;
use super::row::{below_id, document, one_more, record, revision_param, slice, sql_limit, stored, uuid};
use super::transaction::Transaction;

pub(super) fn put(transaction: &mut Transaction, domain: &SendingDomain, expect: Expect) -> Result<(), Fault> {
    let (workspace, id, doc) = (uuid(domain.workspace_id), uuid(domain.id), document(domain)?);
    match expect {
        Expect::Absent => transaction.run(
            "INSERT INTO sending_domains (workspace, id, name, revision, doc) VALUES ($1, $2, $3, 1, $4)",
            params![workspace, id, domain.domain.clone(), doc],
        ),
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE sending_domains SET name = $3, doc = $4, revision = revision + 1
             WHERE workspace = $1 AND id = $2 AND revision = $5",
            params![workspace, id, domain.domain.clone(), doc, revision_param(revision)],
        ),
    }
    Ok(())
}

pub(super) fn delete(transaction: &mut Transaction, workspace: WorkspaceId, id: DomainId) {
    transaction.run("DELETE FROM sending_domains WHERE workspace = $1 AND id = $2", params![uuid(workspace), uuid(id)]);
}

#[async_trait]
impl SendingDomains for PostgresStore {
    async fn domain(&self, workspace: WorkspaceId, id: DomainId) -> Result<Option<Stored<SendingDomain>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM sending_domains WHERE workspace = $1 AND id = $2";
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], stored).await
    }

    async fn domain_by_name(
        &self,
        workspace: WorkspaceId,
        name: &str,
    ) -> Result<Option<Stored<SendingDomain>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM sending_domains WHERE workspace = $1 AND name = $2";
        self.reads.one_shared(SQL, params![uuid(workspace), name.to_owned()], stored).await
    }

    async fn domains_named(
        &self,
        name: &str,
        after: Option<WorkspaceId>,
        limit: usize,
    ) -> Result<Vec<SendingDomain>, StoreError> {
        const SQL: &str = "SELECT doc FROM sending_domains
            WHERE name = $1 AND doc::jsonb ->> 'verified_at' IS NOT NULL AND ($2::uuid IS NULL OR workspace > $2)
            ORDER BY workspace LIMIT $3";
        self.reads.many(SQL, params![name.to_owned(), after.map(uuid), sql_limit(limit)], |row| record(row, 0)).await
    }

    async fn all_domains(&self, limit: usize) -> Result<Vec<SendingDomain>, StoreError> {
        const SQL: &str = "SELECT doc FROM sending_domains ORDER BY name, workspace LIMIT $1";
        self.reads.many(SQL, params![sql_limit(limit)], |row| record(row, 0)).await
    }

    async fn domains(&self, workspace: WorkspaceId, page: PageRequest) -> Result<Slice<SendingDomain>, StoreError> {
        const SQL: &str = "SELECT doc FROM sending_domains WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
        let bounds = params![uuid(workspace), below_id(&page), one_more(&page)];
        let items = self.reads.many_shared(SQL, bounds, |row| record(row, 0)).await?;
        Ok(slice(items, page.limit, |domain: &SendingDomain| domain.id.to_bytes()))
    }
}
