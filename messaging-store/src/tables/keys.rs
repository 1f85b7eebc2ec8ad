//! API keys.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::security::api_key::usage::OperationUse;
use messaging_core::domain::security::api_key::{ApiKey, expiry};
use messaging_core::domain::security::digest::Digest;
use messaging_core::ids::{ApiKeyId, Id as _, WorkspaceId};
use messaging_core::ports::store::{ApiKeys, PageRequest, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, one_more, sql_limit};
use crate::row::{Row, document, get, id, maybe_time, record, stored, time};
use crate::sql::{Sql, key, params, sql};

/// The digest leads the search. The prefix is compared with that of a key that has the secret, of no other.
pub(crate) const BY_SECRET: Sql = sql!(
    sqlite: "SELECT doc FROM api_keys INDEXED BY api_keys_by_secret WHERE secret = ?1 AND prefix = ?2",
    postgres: "WITH found AS MATERIALIZED (SELECT prefix, doc FROM api_keys WHERE secret = $1)
        SELECT doc FROM found WHERE prefix = $2",
);

pub(crate) fn put(on: &mut dyn Statements, api_key: &ApiKey, expect: Expect) -> Result<(), Fault> {
    let ApiKey { workspace_id, id, prefix, secret_digest, .. } = api_key;
    let (secret, doc) = (secret_digest.as_bytes().as_slice(), document(api_key)?);
    let (ends_at, warn_at) = (expiry::end(api_key), expiry::next_warning(api_key));
    let mut row = params![key(*workspace_id), key(*id), prefix.as_str(), secret, doc, ends_at, warn_at];
    match expect {
        Expect::Absent => on.run(
            sql!(
                "INSERT INTO api_keys (workspace, id, prefix, secret, revision, doc, ends_at, warn_at)
                 VALUES ($1, $2, $3, $4, 1, $5, $6, $7)"
            ),
            row,
        ),
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!(
                    "UPDATE api_keys SET prefix = $3, secret = $4, doc = $5, ends_at = $6, warn_at = $7,
                         revision = revision + 1
                     WHERE workspace = $1 AND id = $2 AND revision = $8"
                ),
                row,
            )
        }
    }
}

/// Notes a use. On PostgreSQL nobody waits for whoever notes another use at this moment: the times are nearly the same.
pub(crate) fn touch(on: &mut dyn Statements, id: ApiKeyId, at: Timestamp) -> Result<(), Fault> {
    const UPDATE: Sql = sql!(
        sqlite: "UPDATE api_key_uses SET used_at = ?2 WHERE id = ?1 AND used_at < ?2",
        postgres: "UPDATE api_key_uses SET used_at = $2 WHERE id = (
            SELECT id FROM api_key_uses WHERE id = $1 AND used_at < $2 FOR NO KEY UPDATE SKIP LOCKED)",
    );
    const INSERT: Sql = sql!(
        sqlite: "INSERT INTO api_key_uses (id, used_at) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        postgres: "INSERT INTO api_key_uses (id, used_at) SELECT $1::uuid, $2::bigint
            WHERE NOT EXISTS (SELECT 1 FROM api_key_uses WHERE id = $1) ON CONFLICT DO NOTHING",
    );
    on.run(UPDATE, params![key(id), at])?;
    on.run(INSERT, params![key(id), at])
}

/// Notes uses of operations. On PostgreSQL nobody waits for whoever notes another use at this moment, as with [`touch`]. A
/// key that is gone gets no rows.
pub(crate) fn note_uses(on: &mut dyn Statements, uses: &[OperationUse]) -> Result<(), Fault> {
    const UPDATE: Sql = sql!(
        sqlite: "UPDATE api_key_operations SET used_at = ?3, ip = ?4 WHERE id = ?1 AND operation = ?2 AND used_at < ?3",
        postgres: "UPDATE api_key_operations SET used_at = $3, ip = $4 WHERE (id, operation) = (
            SELECT id, operation FROM api_key_operations WHERE id = $1 AND operation = $2 AND used_at < $3
            FOR NO KEY UPDATE SKIP LOCKED)",
    );
    const INSERT: Sql = sql!(
        sqlite: "INSERT INTO api_key_operations (id, operation, first_at, used_at, ip)
            SELECT id, ?2, ?3, ?4, ?5 FROM api_keys WHERE id = ?1 ON CONFLICT DO NOTHING",
        postgres: "INSERT INTO api_key_operations (id, operation, first_at, used_at, ip)
            SELECT id, $2::text, $3::bigint, $4::bigint, $5::text FROM api_keys WHERE id = $1
            AND NOT EXISTS (SELECT 1 FROM api_key_operations WHERE id = $1 AND operation = $2::text)
            ON CONFLICT DO NOTHING",
    );
    for used in uses {
        let OperationUse { key_id, operation, first_at, used_at, ip } = used;
        let ip = ip.map(|ip| ip.to_string());
        on.run(UPDATE, params![key(*key_id), operation.as_str(), *used_at, ip.clone()])?;
        on.run(INSERT, params![key(*key_id), operation.as_str(), *first_at, *used_at, ip])?;
    }
    Ok(())
}

#[async_trait]
impl<D: Database> ApiKeys for SqlStore<D> {
    async fn api_key_by_secret(&self, secret: &Digest, prefix: &str) -> Result<Option<ApiKey>, StoreError> {
        let given = params![secret.as_bytes().as_slice(), prefix];
        self.one(Query::new(BY_SECRET, given, |row| record(row, 0)).shared()).await
    }

    async fn api_key(&self, workspace: WorkspaceId, id: ApiKeyId) -> Result<Option<Stored<ApiKey>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM api_keys WHERE workspace = $1 AND id = $2");
        self.one(Query::new(SQL, params![key(workspace), key(id)], stored)).await
    }

    async fn api_key_anywhere(&self, id: ApiKeyId) -> Result<Option<Stored<ApiKey>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM api_keys WHERE id = $1");
        self.one(Query::new(SQL, params![key(id)], stored)).await
    }

    async fn api_keys(
        &self,
        workspace: WorkspaceId,
        page: PageRequest,
    ) -> Result<Slice<(ApiKey, Option<Timestamp>)>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT doc, used_at FROM api_keys LEFT JOIN api_key_uses USING (id)
             WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
        );
        let bounds = params![key(workspace), below(&page), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| Ok((record::<ApiKey>(row, 0)?, maybe_time(row, 1)?)));
        self.page(query, page, |(api_key, _)| api_key.id.to_bytes()).await
    }

    async fn api_key_last_used(&self, workspace: WorkspaceId, id: ApiKeyId) -> Result<Option<Timestamp>, StoreError> {
        const SQL: Sql =
            sql!("SELECT used_at FROM api_keys JOIN api_key_uses USING (id) WHERE workspace = $1 AND id = $2");
        self.one(Query::new(SQL, params![key(workspace), key(id)], |row| time(row, 0))).await
    }

    async fn api_key_uses(&self, workspace: WorkspaceId, keys: &[ApiKeyId]) -> Result<Vec<OperationUse>, StoreError> {
        const SQL: Sql = sql!(
            sqlite: "SELECT o.id, o.operation, o.first_at, o.used_at, o.ip
                FROM api_keys k JOIN api_key_operations o ON o.id = k.id WHERE k.workspace = $1 AND k.id = $2",
            postgres: "SELECT o.id, o.operation, o.first_at, o.used_at, o.ip
                FROM api_keys k JOIN api_key_operations o ON o.id = k.id WHERE k.workspace = $1 AND k.id = ANY ($2)",
        );
        let keys = keys.iter().map(|id| params![key(*id)]).collect();
        self.gathered(Query::new(SQL, params![key(workspace)], use_of).point(), keys).await
    }

    async fn api_keys_to_warn_of(&self, now: Timestamp, limit: usize) -> Result<Vec<Stored<ApiKey>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM api_keys WHERE warn_at <= $1 ORDER BY warn_at LIMIT $2");
        self.many(Query::new(SQL, params![now, sql_limit(limit)], stored)).await
    }

    async fn api_keys_ending(
        &self,
        after: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<ApiKey>, StoreError> {
        const SQL: Sql =
            sql!("SELECT doc FROM api_keys WHERE ends_at > $1 AND ends_at <= $2 ORDER BY ends_at LIMIT $3");
        self.many(Query::new(SQL, params![after, until, sql_limit(limit)], |row| record(row, 0))).await
    }
}

fn use_of(row: &dyn Row) -> Result<OperationUse, Fault> {
    let ip: Option<String> = get(row, 4)?;
    Ok(OperationUse {
        key_id: id(row, 0)?,
        operation: get(row, 1)?,
        first_at: time(row, 2)?,
        used_at: time(row, 3)?,
        ip: ip.and_then(|ip| ip.parse().ok()),
    })
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::security::api_key::generate;
    use messaging_core::ids::IdSource;
    use messaging_core::ports::clock::SystemEntropy;
    use rusqlite::{Connection, StatementStatus};

    use super::*;
    use crate::sqlite::schema;

    /// The work of a look-up, in steps of SQLite's virtual machine and in rows.
    fn work(connection: &Connection, secret: &str, prefix: &str) -> (i32, usize) {
        let mut statement = connection.prepare(BY_SECRET.sqlite).unwrap();
        let mut rows = statement.query((Digest::of(secret).as_bytes(), prefix)).unwrap();
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
                rotated_from: None,
                replaced_by: None,
                warned_days: None,
            };
            put(&mut &connection, &key, Expect::Absent).unwrap();
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
