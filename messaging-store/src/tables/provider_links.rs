//! Names that providers give to messages, and notes of inbound messages.

use async_trait::async_trait;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::inbound_message::InboundKey;
use messaging_core::domain::channel::provider_link::{KEPT, ProviderLink};
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::{ProviderLinks, StoreError};
use messaging_core::time::Timestamp;

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::number;
use crate::row::{get, id, numbered, time};
use crate::sql::{Sql, key, params, sql};

/// Number of old names removed when a new one is added: more than one, so that they become fewer.
const FORGOTTEN_AT_A_TIME: i64 = 2;

/// Stores a name, and removes some old ones.
pub(crate) fn put(on: &mut dyn Statements, link: &ProviderLink) -> Result<(), Fault> {
    const PUT: Sql = sql!(
        "INSERT INTO provider_links (workspace, channel, provider, name, message, at) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (workspace, channel, provider, name) DO UPDATE SET message = excluded.message, at = excluded.at"
    );
    const FORGET: Sql = sql!(
        sqlite: "DELETE FROM provider_links WHERE (workspace, channel, provider, name) IN
            (SELECT workspace, channel, provider, name FROM provider_links WHERE at < ?1 ORDER BY at LIMIT ?2)",
        postgres: "DELETE FROM provider_links WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM provider_links WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))",
    );
    let ProviderLink { workspace_id, channel, provider, provider_message_id, message_id, at } = link;
    let (workspace, channel, message) = (key(*workspace_id), number(&Channel::ALL, channel), key(*message_id));
    on.run(PUT, params![workspace, channel, provider.as_str(), provider_message_id.as_str(), message, *at])?;
    on.run(FORGET, params![*at - KEPT, FORGOTTEN_AT_A_TIME])
}

/// Notes an inbound message, and removes some old notes; a conflict if it is noted already.
pub(crate) fn note_inbound(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    channel: Channel,
    inbound: InboundKey,
    at: Timestamp,
) -> Result<(), Fault> {
    const NOTE: Sql = sql!("INSERT INTO inbound_notes (workspace, channel, key, at) VALUES ($1, $2, $3, $4)");
    const FORGET: Sql = sql!(
        sqlite: "DELETE FROM inbound_notes WHERE (workspace, channel, key) IN
            (SELECT workspace, channel, key FROM inbound_notes WHERE at < ?1 ORDER BY at LIMIT ?2)",
        postgres: "DELETE FROM inbound_notes WHERE ctid = ANY (ARRAY (
            SELECT ctid FROM inbound_notes WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))",
    );
    on.run(NOTE, params![key(workspace), number(&Channel::ALL, &channel), inbound.0, at])?;
    on.run(FORGET, params![at - InboundKey::KEPT, FORGOTTEN_AT_A_TIME])
}

#[async_trait]
impl<D: Database> ProviderLinks for SqlStore<D> {
    async fn message_of_provider(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        provider_message_id: &str,
    ) -> Result<Option<MessageId>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT message FROM provider_links WHERE workspace = $1 AND channel = $2 AND provider = $3 AND name = $4"
        );
        let wanted = params![key(workspace), number(&Channel::ALL, &channel), provider, provider_message_id];
        self.one(Query::new(SQL, wanted, |row| id(row, 0)).point()).await
    }

    async fn messages_of_provider(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        provider: &str,
        names: &[String],
    ) -> Result<Vec<MessageId>, StoreError> {
        const SQL: Sql = sql!(
            sqlite: "SELECT DISTINCT message FROM provider_links
                WHERE workspace = ?1 AND channel = ?2 AND provider = ?3 AND name IN (SELECT value FROM json_each(?4))",
            postgres: "SELECT DISTINCT message FROM provider_links
                WHERE workspace = $1 AND channel = $2 AND provider = $3 AND name = ANY ($4)",
        );
        let wanted = params![key(workspace), number(&Channel::ALL, &channel), provider, names.to_vec()];
        self.many(Query::new(SQL, wanted, |row| id(row, 0)).point()).await
    }

    async fn provider_of_message(
        &self,
        workspace: WorkspaceId,
        message: MessageId,
    ) -> Result<Option<ProviderLink>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT channel, provider, name, at FROM provider_links
             WHERE message = $2 AND workspace = $1 ORDER BY at DESC, name LIMIT 1"
        );
        let query = Query::new(SQL, params![key(workspace), key(message)], move |row| {
            Ok(ProviderLink {
                workspace_id: workspace,
                channel: numbered(&Channel::ALL, get(row, 0)?)?,
                provider: get(row, 1)?,
                provider_message_id: get(row, 2)?,
                message_id: message,
                at: time(row, 3)?,
            })
        });
        self.one(query.point()).await
    }

    async fn is_inbound_noted(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        inbound: InboundKey,
    ) -> Result<bool, StoreError> {
        const SQL: Sql = sql!("SELECT 1 FROM inbound_notes WHERE workspace = $1 AND channel = $2 AND key = $3");
        let wanted = params![key(workspace), number(&Channel::ALL, &channel), inbound.0];
        Ok(self.one(Query::new(SQL, wanted, |_| Ok(())).point()).await?.is_some())
    }
}
