//! API keys.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::api_key::ApiKey;
use messaging_core::domain::digest::Digest;
use messaging_core::ids::{ApiKeyId, Id as _, WorkspaceId};
use messaging_core::ports::store::{ApiKeys, PageRequest, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;

use super::PostgresStore;
use super::fault::Fault;
use super::query::params;
use super::row::{below_id, document, maybe_time, one_more, record, revision_param, slice, stored, time, uuid};
use super::transaction::Transaction;

pub(super) fn put(transaction: &mut Transaction, key: &ApiKey, expect: Expect) -> Result<(), Fault> {
    let (workspace, id, doc) = (uuid(key.workspace_id), uuid(key.id), document(key)?);
    let (prefix, secret) = (key.prefix.clone(), key.secret_digest.as_bytes().to_vec());
    match expect {
        Expect::Absent => transaction.run(
            "INSERT INTO api_keys (workspace, id, prefix, secret, revision, doc) VALUES ($1, $2, $3, $4, 1, $5)",
            params![workspace, id, prefix, secret, doc],
        ),
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE api_keys SET prefix = $3, secret = $4, doc = $5, revision = revision + 1
             WHERE workspace = $1 AND id = $2 AND revision = $6",
            params![workspace, id, prefix, secret, doc, revision_param(revision)],
        ),
    }
    Ok(())
}

/// Notes a use. Nobody waits for whoever notes another use at this moment: the times are nearly the same.
pub(super) fn touch(transaction: &mut Transaction, id: ApiKeyId, at: Timestamp) {
    transaction.run(
        "UPDATE api_key_uses SET used_at = $2 WHERE id = (
             SELECT id FROM api_key_uses WHERE id = $1 AND used_at < $2 FOR NO KEY UPDATE SKIP LOCKED)",
        params![uuid(id), at.as_millis()],
    );
    transaction.run(
        "INSERT INTO api_key_uses (id, used_at) SELECT $1::uuid, $2::bigint
         WHERE NOT EXISTS (SELECT 1 FROM api_key_uses WHERE id = $1) ON CONFLICT DO NOTHING",
        params![uuid(id), at.as_millis()],
    );
}

#[async_trait]
impl ApiKeys for PostgresStore {
    async fn api_key_by_secret(&self, secret: &Digest, prefix: &str) -> Result<Option<ApiKey>, StoreError> {
        // The digest leads the search. The prefix is compared with that of a key that has the secret, of no other.
        const SQL: &str = "WITH found AS MATERIALIZED (SELECT prefix, doc FROM api_keys WHERE secret = $1)
            SELECT doc FROM found WHERE prefix = $2";
        let key = params![secret.as_bytes().to_vec(), prefix.to_owned()];
        self.reads.one_shared(SQL, key, |row| record(row, 0)).await
    }

    async fn api_key(&self, workspace: WorkspaceId, id: ApiKeyId) -> Result<Option<Stored<ApiKey>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM api_keys WHERE workspace = $1 AND id = $2";
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], stored).await
    }

    async fn api_key_anywhere(&self, id: ApiKeyId) -> Result<Option<Stored<ApiKey>>, StoreError> {
        self.reads.one("SELECT revision, doc FROM api_keys WHERE id = $1", params![uuid(id)], stored).await
    }

    async fn api_keys(
        &self,
        workspace: WorkspaceId,
        page: PageRequest,
    ) -> Result<Slice<(ApiKey, Option<Timestamp>)>, StoreError> {
        const SQL: &str = "SELECT doc, used_at FROM api_keys LEFT JOIN api_key_uses USING (id)
            WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
        let bounds = params![uuid(workspace), below_id(&page), one_more(&page)];
        let items = self.reads.many(SQL, bounds, |row| Ok((record(row, 0)?, maybe_time(row, 1)?))).await?;
        Ok(slice(items, page.limit, |(key, _): &(ApiKey, _)| key.id.to_bytes()))
    }

    async fn api_key_last_used(&self, workspace: WorkspaceId, id: ApiKeyId) -> Result<Option<Timestamp>, StoreError> {
        const SQL: &str = "SELECT used_at FROM api_keys JOIN api_key_uses USING (id) WHERE workspace = $1 AND id = $2";
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], |row| time(row, 0)).await
    }
}
