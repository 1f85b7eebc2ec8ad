//! API keys.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::api_key::ApiKey;
use messaging_core::ids::{ApiKeyId, Id as _, WorkspaceId};
use messaging_core::ports::store::{ApiKeys, PageRequest, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::query::{many, one};
use super::row::{below, document, one_more, record, slice, stored};

pub(super) fn put(connection: &Connection, key: &ApiKey, expect: Expect) -> Result<(), Fault> {
    let (workspace, id, doc) = (key.workspace_id.to_bytes(), key.id.to_bytes(), document(key)?);
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached("INSERT INTO api_keys (workspace, id, prefix, revision, doc) VALUES (?1, ?2, ?3, 1, ?4)")?
            .execute(params![workspace, id, key.prefix, doc])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE api_keys SET prefix = ?3, doc = ?4, revision = revision + 1
                 WHERE workspace = ?1 AND id = ?2 AND revision = ?5",
            )?
            .execute(params![workspace, id, key.prefix, doc, revision])?,
    })
}

pub(super) fn touch(connection: &Connection, id: ApiKeyId, at: Timestamp) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO api_key_uses (id, used_at) VALUES (?1, ?2)
             ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at WHERE excluded.used_at > used_at",
        )?
        .execute(params![id.to_bytes(), at.as_millis()])?;
    Ok(())
}

#[async_trait]
impl ApiKeys for SqliteStore {
    async fn api_key_by_prefix(&self, prefix: &str) -> Result<Option<ApiKey>, StoreError> {
        let prefix = prefix.to_owned();
        self.readers
            .read(move |connection| {
                one(connection, "SELECT doc FROM api_keys WHERE prefix = ?1", [prefix], |row| record(row, 0))
            })
            .await
    }

    async fn api_key(&self, workspace: WorkspaceId, id: ApiKeyId) -> Result<Option<Stored<ApiKey>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM api_keys WHERE workspace = ?1 AND id = ?2";
        self.readers.read(move |connection| one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], stored)).await
    }

    async fn api_key_anywhere(&self, id: ApiKeyId) -> Result<Option<Stored<ApiKey>>, StoreError> {
        self.readers
            .read(move |connection| {
                one(connection, "SELECT revision, doc FROM api_keys WHERE id = ?1", [id.to_bytes()], stored)
            })
            .await
    }

    async fn api_keys(
        &self,
        workspace: WorkspaceId,
        page: PageRequest,
    ) -> Result<Slice<(ApiKey, Option<Timestamp>)>, StoreError> {
        const SQL: &str = "SELECT doc, used_at FROM api_keys LEFT JOIN api_key_uses USING (id)
            WHERE workspace = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";
        self.readers
            .read(move |connection| {
                let bounds = params![workspace.to_bytes(), below(&page), one_more(&page)];
                let items = many(connection, SQL, bounds, |row| {
                    let used = row.get::<_, Option<i64>>(1)?.map(Timestamp::from_millis);
                    Ok((record(row, 0)?, used))
                })?;
                Ok(slice(items, page.limit, |(key, _): &(ApiKey, _)| key.id.to_bytes()))
            })
            .await
    }
}
