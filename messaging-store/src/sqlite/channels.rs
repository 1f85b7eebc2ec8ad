//! Channel settings.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::settings::ChannelSettings;
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::{Channels, StoreError, Stored};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::query::{many, one};
use super::row::{document, number, record, stored};

pub(super) fn put(connection: &Connection, settings: &ChannelSettings, expect: Expect) -> Result<(), Fault> {
    let (workspace, channel) = (settings.workspace_id.to_bytes(), number(&Channel::ALL, &settings.channel));
    let doc = document(settings)?;
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached("INSERT INTO channels (workspace, channel, revision, doc) VALUES (?1, ?2, 1, ?3)")?
            .execute(params![workspace, channel, doc])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE channels SET doc = ?3, revision = revision + 1
                 WHERE workspace = ?1 AND channel = ?2 AND revision = ?4",
            )?
            .execute(params![workspace, channel, doc, revision])?,
    })
}

pub(super) fn delete(connection: &Connection, workspace: WorkspaceId, channel: Channel) -> Result<(), Fault> {
    connection
        .prepare_cached("DELETE FROM channels WHERE workspace = ?1 AND channel = ?2")?
        .execute(params![workspace.to_bytes(), number(&Channel::ALL, &channel)])?;
    Ok(())
}

#[async_trait]
impl Channels for SqliteStore {
    async fn channel(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
    ) -> Result<Option<Stored<ChannelSettings>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM channels WHERE workspace = ?1 AND channel = ?2";
        self.readers
            .read(move |connection| {
                one(connection, SQL, params![workspace.to_bytes(), number(&Channel::ALL, &channel)], stored)
            })
            .await
    }

    async fn channels(&self, workspace: WorkspaceId) -> Result<Vec<ChannelSettings>, StoreError> {
        const SQL: &str = "SELECT doc FROM channels WHERE workspace = ?1";
        self.readers.read(move |connection| many(connection, SQL, [workspace.to_bytes()], |row| record(row, 0))).await
    }
}
