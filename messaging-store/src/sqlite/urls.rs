//! Targets of redirected links.

use async_trait::async_trait;
use messaging_core::domain::contact::erasure::Names;
use messaging_core::domain::link_token::UrlKey;
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreCursor, StoreError, Urls};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::Fault;
use super::query::one;

/// How many rows one call looks at.
const MAX_SCANNED: usize = 20_000;

/// Stores a target unless it is there.
pub(super) fn put(connection: &Connection, workspace: WorkspaceId, url: &str) -> Result<(), Fault> {
    connection
        .prepare_cached("INSERT INTO urls (workspace, key, url) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
        .execute(params![workspace.to_bytes(), UrlKey::of(url).0, url])?;
    Ok(())
}

pub(super) fn delete(connection: &Connection, workspace: WorkspaceId, key: UrlKey) -> Result<(), Fault> {
    connection
        .prepare_cached("DELETE FROM urls WHERE workspace = ?1 AND key = ?2")?
        .execute(params![workspace.to_bytes(), key.0])?;
    Ok(())
}

fn naming(
    connection: &Connection,
    workspace: WorkspaceId,
    names: &Names,
    page: &PageRequest,
) -> Result<Slice<UrlKey>, Fault> {
    const ALL: &str = "SELECT key, url FROM urls WHERE workspace = ?1 ORDER BY key";
    const REST: &str = "SELECT key, url FROM urls WHERE workspace = ?1 AND key > ?2 ORDER BY key";
    let mut statement = connection.prepare_cached(if page.after.is_some() { REST } else { ALL })?;
    let mut rows = match page.after {
        Some(after) => statement.query(params![workspace.to_bytes(), after.to_bytes()])?,
        None => statement.query([workspace.to_bytes()])?,
    };
    let (mut items, mut scanned): (Vec<UrlKey>, _) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let url = row.get_ref(1)?.as_str().map_err(|_| Fault::Malformed("a target is not text"))?;
        if names.are_in(url) {
            if items.len() == page.limit {
                return Ok(Slice { next: items.last().map(|key| StoreCursor::from_bytes(key.0)), items });
            }
            items.push(UrlKey(row.get(0)?));
        }
        scanned += 1;
        if scanned == MAX_SCANNED {
            return Ok(Slice { next: Some(StoreCursor::from_bytes(row.get(0)?)), items });
        }
    }
    Ok(Slice { items, next: None })
}

#[async_trait]
impl Urls for SqliteStore {
    async fn url(&self, workspace: WorkspaceId, key: UrlKey) -> Result<Option<String>, StoreError> {
        const SQL: &str = "SELECT url FROM urls WHERE workspace = ?1 AND key = ?2";
        self.readers
            .point_read(move |connection| {
                one(connection, SQL, params![workspace.to_bytes(), key.0], |row| Ok(row.get(0)?))
            })
            .await
    }

    async fn urls_naming(
        &self,
        workspace: WorkspaceId,
        names: &Names,
        page: PageRequest,
    ) -> Result<Slice<UrlKey>, StoreError> {
        let names = names.clone();
        self.readers.read(move |connection| naming(connection, workspace, &names, &page)).await
    }
}
