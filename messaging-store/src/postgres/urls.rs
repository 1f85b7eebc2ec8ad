//! Targets of redirected links.

use async_trait::async_trait;
use messaging_core::domain::contact::erasure::Names;
use messaging_core::domain::link_token::UrlKey;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{PageRequest, Slice, StoreCursor, StoreError, Urls};
use uuid::Uuid;

use super::PostgresStore;
use super::query::params;
use super::row::{get, sql_limit, uuid};
use super::transaction::Transaction;

/// How many rows one call looks at.
const MAX_SCANNED: usize = 20_000;

/// How many rows are read at a time.
const AT_A_TIME: usize = 1000;

/// Stores a target unless it is there.
pub(super) fn put(transaction: &mut Transaction, workspace: WorkspaceId, url: &str) {
    transaction.run(
        "INSERT INTO urls (workspace, key, url) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        params![uuid(workspace), param(UrlKey::of(url)), url.to_owned()],
    );
}

pub(super) fn delete(transaction: &mut Transaction, workspace: WorkspaceId, key: UrlKey) {
    transaction.run("DELETE FROM urls WHERE workspace = $1 AND key = $2", params![uuid(workspace), param(key)]);
}

/// A key as a parameter: its 16 bytes.
fn param(key: UrlKey) -> Uuid {
    Uuid::from_bytes(key.0)
}

#[async_trait]
impl Urls for PostgresStore {
    async fn url(&self, workspace: WorkspaceId, key: UrlKey) -> Result<Option<String>, StoreError> {
        const SQL: &str = "SELECT url FROM urls WHERE workspace = $1 AND key = $2";
        self.reads.one(SQL, params![uuid(workspace), param(key)], |row| get(row, 0)).await
    }

    async fn urls_naming(
        &self,
        workspace: WorkspaceId,
        names: &Names,
        page: PageRequest,
    ) -> Result<Slice<UrlKey>, StoreError> {
        const SQL: &str = "SELECT key, url FROM urls
            WHERE workspace = $1 AND ($2::uuid IS NULL OR key > $2) ORDER BY key LIMIT $3";
        let mut items: Vec<UrlKey> = Vec::new();
        let mut after = page.after.map(|after| Uuid::from_bytes(after.to_bytes()));
        for _ in 0..MAX_SCANNED.div_ceil(AT_A_TIME) {
            let key = params![uuid(workspace), after, sql_limit(AT_A_TIME)];
            let rows =
                self.reads.many(SQL, key, |row| Ok((get::<Uuid>(row, 0)?, names.are_in(get::<&str>(row, 1)?)))).await?;
            for (key, _) in rows.iter().filter(|(_, is_named)| *is_named) {
                if items.len() == page.limit {
                    return Ok(Slice { next: items.last().map(|key| StoreCursor::from_bytes(key.0)), items });
                }
                items.push(UrlKey(key.into_bytes()));
            }
            if rows.len() < AT_A_TIME {
                return Ok(Slice { items, next: None });
            }
            after = rows.last().map(|(key, _)| *key);
        }
        Ok(Slice { items, next: after.map(|key| StoreCursor::from_bytes(key.into_bytes())) })
    }
}
