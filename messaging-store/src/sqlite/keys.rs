//! API keys.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::api_key::ApiKey;
use messaging_core::domain::digest::Digest;
use messaging_core::ids::{ApiKeyId, Id as _, WorkspaceId};
use messaging_core::ports::store::{ApiKeys, PageRequest, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::query::{many, one};
use super::row::{below, document, one_more, record, slice, stored, time};

/// The digest leads the search. The prefix is compared with that of a key that has the secret, of no other.
const BY_SECRET: &str =
    "SELECT doc FROM api_keys INDEXED BY api_keys_by_secret WHERE doc ->> '$.secret_digest' = ?1 AND prefix = ?2";

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
    async fn api_key_by_secret(&self, secret: &Digest, prefix: &str) -> Result<Option<ApiKey>, StoreError> {
        let (secret, prefix) = (secret.to_text(), prefix.to_owned());
        self.readers.read(move |connection| one(connection, BY_SECRET, [secret, prefix], |row| record(row, 0))).await
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

    async fn api_key_last_used(&self, workspace: WorkspaceId, id: ApiKeyId) -> Result<Option<Timestamp>, StoreError> {
        const SQL: &str = "SELECT used_at FROM api_keys JOIN api_key_uses USING (id) WHERE workspace = ?1 AND id = ?2";
        self.readers
            .read(move |connection| one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| time(row, 0)))
            .await
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::api_key::generate;
    use messaging_core::ids::IdSource;
    use messaging_core::ports::clock::SystemEntropy;
    use rusqlite::StatementStatus;

    use super::*;
    use crate::sqlite::schema;

    /// The work of a look-up, in steps of SQLite's virtual machine and in rows.
    fn work(connection: &Connection, secret: &str, prefix: &str) -> (i32, usize) {
        let mut statement = connection.prepare(BY_SECRET).unwrap();
        let mut rows = statement.query([Digest::of(secret).to_text(), prefix.to_owned()]).unwrap();
        let mut found = 0;
        while rows.next().unwrap().is_some() {
            found += 1;
        }
        drop(rows);
        (statement.get_status(StatementStatus::VmStep), found)
    }

    #[test]
    fn a_wrong_secret_is_the_same_work_for_known_and_unknown_prefixes() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let (ids, entropy) = (IdSource::default(), SystemEntropy::default());
        let mut known = Vec::new();
        for _ in 0..50 {
            let (prefix, secret) = generate(&entropy);
            let key = ApiKey {
                id: ids.next(Timestamp::from_millis(0), &entropy),
                workspace_id: ids.next(Timestamp::from_millis(0), &entropy),
                name: "test".to_owned(),
                prefix: prefix.clone(),
                secret_digest: Digest::of(&secret),
                scopes: Vec::new(),
                rate_limit: 600,
                ip_allowlist: Vec::new(),
                created_at: Timestamp::from_millis(0),
                expires_at: None,
                revoked_at: None,
            };
            put(&connection, &key, Expect::Absent).unwrap();
            known.push((prefix, secret));
        }
        for (prefix, secret) in &known {
            let (unknown, wrong) = generate(&entropy);
            assert_eq!(work(&connection, &wrong, prefix), work(&connection, &wrong, &unknown));
            assert_eq!(work(&connection, secret, prefix).1, 1);
            assert_eq!(work(&connection, secret, &unknown).1, 0);
        }
    }
}
