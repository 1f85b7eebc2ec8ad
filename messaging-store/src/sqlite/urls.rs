//! Targets of redirected links.

use async_trait::async_trait;
use messaging_core::domain::link_token::UrlKey;
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::{StoreError, Urls};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::Fault;
use super::query::one;

/// Stores a target unless it is there.
pub(super) fn put(connection: &Connection, workspace: WorkspaceId, url: &str) -> Result<(), Fault> {
    connection
        .prepare_cached("INSERT INTO urls (workspace, key, url) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
        .execute(params![workspace.to_bytes(), UrlKey::of(url).0, url])?;
    Ok(())
}

#[async_trait]
impl Urls for SqliteStore {
    async fn url(&self, workspace: WorkspaceId, key: UrlKey) -> Result<Option<String>, StoreError> {
        const SQL: &str = "SELECT url FROM urls WHERE workspace = ?1 AND key = ?2";
        self.readers
            .glance(move |connection| one(connection, SQL, params![workspace.to_bytes(), key.0], |row| Ok(row.get(0)?)))
            .await
    }
}
