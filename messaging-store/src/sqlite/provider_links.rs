//! Providers' names for messages.

use async_trait::async_trait;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::inbound_message::InboundKey;
use messaging_core::domain::provider_link::{KEPT, ProviderLink};
use messaging_core::ids::{Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::{ProviderLinks, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};
use serde_json::Value;

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::query::{many, one};
use super::row::{number, numbered, time};

/// How many old ones go when a new one comes: more than one, so that they become fewer.
const FORGOTTEN_AT_A_TIME: u32 = 2;

/// Keeps a name, and lets go of some old ones.
pub(super) fn put(connection: &Connection, link: &ProviderLink) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO provider_links (workspace, channel, provider, name, message, at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            link.workspace_id.to_bytes(),
            number(&Channel::ALL, &link.channel),
            link.provider,
            link.provider_message_id,
            link.message_id.to_bytes(),
            link.at.as_millis(),
        ])?;
    let kept = i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "DELETE FROM provider_links WHERE (workspace, channel, provider, name) IN
             (SELECT workspace, channel, provider, name FROM provider_links WHERE at < ?1 ORDER BY at LIMIT ?2)",
        )?
        .execute(params![link.at.as_millis().saturating_sub(kept), FORGOTTEN_AT_A_TIME])?;
    Ok(())
}

/// Notes what came in, and lets go of some old ones; a conflict when it is noted.
pub(super) fn note_inbound(
    connection: &Connection,
    workspace: WorkspaceId,
    channel: Channel,
    key: InboundKey,
    at: Timestamp,
) -> Result<(), Fault> {
    let noted = connection
        .prepare_cached("INSERT OR IGNORE INTO inbound_notes (workspace, channel, key, at) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![workspace.to_bytes(), number(&Channel::ALL, &channel), key.0, at.as_millis()])?;
    expect_one(noted)?;
    let kept = i64::try_from(InboundKey::KEPT.as_millis()).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "DELETE FROM inbound_notes WHERE (workspace, channel, key) IN
             (SELECT workspace, channel, key FROM inbound_notes WHERE at < ?1 ORDER BY at LIMIT ?2)",
        )?
        .execute(params![at.as_millis().saturating_sub(kept), FORGOTTEN_AT_A_TIME])?;
    Ok(())
}

#[async_trait]
impl ProviderLinks for SqliteStore {
    async fn message_of_provider(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        provider_message_id: &str,
    ) -> Result<Option<MessageId>, StoreError> {
        const SQL: &str =
            "SELECT message FROM provider_links WHERE workspace = ?1 AND channel = ?2 AND provider = ?3 AND name = ?4";
        let (provider, name) = (provider.to_owned(), provider_message_id.to_owned());
        self.readers
            .point_read(move |connection| {
                let key = params![workspace.to_bytes(), number(&Channel::ALL, &channel), provider, name];
                one(connection, SQL, key, |row| Ok(MessageId::from_bytes(row.get(0)?)))
            })
            .await
    }

    async fn messages_of_provider(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        names: &[String],
    ) -> Result<Vec<MessageId>, StoreError> {
        const SQL: &str = "SELECT DISTINCT message FROM provider_links
            WHERE workspace = ?1 AND channel = ?2 AND provider = ?3 AND name IN (SELECT value FROM json_each(?4))";
        let (provider, names) = (provider.to_owned(), Value::from(names).to_string());
        self.readers
            .point_read(move |connection| {
                let key = params![workspace.to_bytes(), number(&Channel::ALL, &channel), provider, names];
                many(connection, SQL, key, |row| Ok(MessageId::from_bytes(row.get(0)?)))
            })
            .await
    }

    async fn provider_of_message(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
    ) -> Result<Option<ProviderLink>, StoreError> {
        const SQL: &str = "SELECT channel, provider, name, at FROM provider_links
            WHERE message = ?2 AND workspace = ?1 ORDER BY at DESC, name LIMIT 1";
        self.readers
            .point_read(move |connection| {
                one(connection, SQL, [workspace.to_bytes(), message.to_bytes()], |row| {
                    Ok(ProviderLink {
                        workspace_id: workspace,
                        channel: numbered(&Channel::ALL, row.get(0)?)?,
                        provider: row.get(1)?,
                        provider_message_id: row.get(2)?,
                        message_id: message,
                        at: time(row, 3)?,
                    })
                })
            })
            .await
    }

    async fn is_inbound_noted(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        key: InboundKey,
    ) -> Result<bool, StoreError> {
        const SQL: &str = "SELECT 1 FROM inbound_notes WHERE workspace = ?1 AND channel = ?2 AND key = ?3";
        self.readers
            .point_read(move |connection| {
                let key = params![workspace.to_bytes(), number(&Channel::ALL, &channel), key.0];
                Ok(connection.prepare_cached(SQL)?.exists(key)?)
            })
            .await
    }
}
