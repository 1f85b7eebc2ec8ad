//! Providers' names for messages.

use async_trait::async_trait;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::inbound_message::InboundKey;
use messaging_core::domain::provider_link::{KEPT, ProviderLink};
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::{ProviderLinks, StoreError};
use messaging_core::time::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::query::params;
use super::row::{get, id, number, numbered, time, uuid};
use super::transaction::Transaction;

/// How many old ones go when a new one comes: more than one, so that they become fewer.
const FORGOTTEN_AT_A_TIME: i64 = 2;

/// Keeps a name, and lets go of some old ones.
pub(super) fn put(transaction: &mut Transaction, link: &ProviderLink) {
    transaction.run(
        "INSERT INTO provider_links (workspace, channel, provider, name, message, at) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (workspace, channel, provider, name) DO UPDATE SET message = excluded.message, at = excluded.at",
        params![
            uuid(link.workspace_id),
            number(&Channel::ALL, &link.channel),
            link.provider.clone(),
            link.provider_message_id.clone(),
            uuid(link.message_id),
            link.at.as_millis(),
        ],
    );
    transaction.run(
        "DELETE FROM provider_links WHERE ctid = ANY (ARRAY (
             SELECT ctid FROM provider_links WHERE at < $1
             ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))",
        params![(link.at - KEPT).as_millis(), FORGOTTEN_AT_A_TIME],
    );
}

/// Notes what came in, and lets go of some old ones; a conflict when it is noted.
pub(super) fn note_inbound(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    channel: Channel,
    key: InboundKey,
    at: Timestamp,
) {
    transaction.run(
        "INSERT INTO inbound_notes (workspace, channel, key, at) VALUES ($1, $2, $3, $4)",
        params![uuid(workspace), number(&Channel::ALL, &channel), Uuid::from_bytes(key.0), at.as_millis()],
    );
    transaction.run(
        "DELETE FROM inbound_notes WHERE ctid = ANY (ARRAY (
             SELECT ctid FROM inbound_notes WHERE at < $1
             ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))",
        params![(at - InboundKey::KEPT).as_millis(), FORGOTTEN_AT_A_TIME],
    );
}

#[async_trait]
impl ProviderLinks for PostgresStore {
    async fn message_of_provider(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        provider_message_id: &str,
    ) -> Result<Option<MessageId>, StoreError> {
        const SQL: &str =
            "SELECT message FROM provider_links WHERE workspace = $1 AND channel = $2 AND provider = $3 AND name = $4";
        let (provider, name) = (provider.to_owned(), provider_message_id.to_owned());
        let key = params![uuid(workspace), number(&Channel::ALL, &channel), provider, name];
        self.reads.one(SQL, key, |row| id(row, 0)).await
    }

    async fn messages_of_provider(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        names: &[String],
    ) -> Result<Vec<MessageId>, StoreError> {
        const SQL: &str = "SELECT DISTINCT message FROM provider_links
            WHERE workspace = $1 AND channel = $2 AND provider = $3 AND name = ANY ($4)";
        let (provider, names) = (provider.to_owned(), names.to_vec());
        let key = params![uuid(workspace), number(&Channel::ALL, &channel), provider, names];
        self.reads.many(SQL, key, |row| id(row, 0)).await
    }

    async fn provider_of_message(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
    ) -> Result<Option<ProviderLink>, StoreError> {
        const SQL: &str = "SELECT channel, provider, name, at FROM provider_links
            WHERE message = $2 AND workspace = $1 ORDER BY at DESC, name LIMIT 1";
        self.reads
            .one(SQL, params![uuid(workspace), uuid(message)], |row| {
                Ok(ProviderLink {
                    workspace_id: workspace,
                    channel: numbered(&Channel::ALL, get(row, 0)?)?,
                    provider: get(row, 1)?,
                    provider_message_id: get(row, 2)?,
                    message_id: message,
                    at: time(row, 3)?,
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
        const SQL: &str = "SELECT 1 FROM inbound_notes WHERE workspace = $1 AND channel = $2 AND key = $3";
        let key = params![uuid(workspace), number(&Channel::ALL, &channel), Uuid::from_bytes(key.0)];
        Ok(self.reads.one(SQL, key, |_| Ok(())).await?.is_some())
    }
}
