//! Channel settings.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::settings::ChannelSettings;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{Channels, StoreError, Stored};

use super::PostgresStore;
use super::fault::Fault;
use super::query::params;
use super::row::{document, number, record, revision_param, stored, uuid};
use super::transaction::Transaction;

pub(super) fn put(transaction: &mut Transaction, settings: &ChannelSettings, expect: Expect) -> Result<(), Fault> {
    let (workspace, channel) = (uuid(settings.workspace_id), number(&Channel::ALL, &settings.channel));
    let doc = document(settings)?;
    match expect {
        Expect::Absent => transaction.run(
            "INSERT INTO channels (workspace, channel, revision, doc) VALUES ($1, $2, 1, $3)",
            params![workspace, channel, doc],
        ),
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE channels SET doc = $3, revision = revision + 1
             WHERE workspace = $1 AND channel = $2 AND revision = $4",
            params![workspace, channel, doc, revision_param(revision)],
        ),
    }
    Ok(())
}

pub(super) fn delete(transaction: &mut Transaction, workspace: WorkspaceId, channel: Channel) {
    transaction.run(
        "DELETE FROM channels WHERE workspace = $1 AND channel = $2",
        params![uuid(workspace), number(&Channel::ALL, &channel)],
    );
}

#[async_trait]
impl Channels for PostgresStore {
    async fn channel(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
    ) -> Result<Option<Stored<ChannelSettings>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM channels WHERE workspace = $1 AND channel = $2";
        self.reads.one_shared(SQL, params![uuid(workspace), number(&Channel::ALL, &channel)], stored).await
    }

    async fn channels(&self, workspace: WorkspaceId) -> Result<Vec<ChannelSettings>, StoreError> {
        const SQL: &str = "SELECT doc FROM channels WHERE workspace = $1 ORDER BY channel";
        self.reads.many(SQL, params![uuid(workspace)], |row| record(row, 0)).await
    }
}
