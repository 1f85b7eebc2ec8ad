//! Channel settings.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::settings::ChannelSettings;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{Channels, StoreError, Stored};

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::number;
use crate::row::{document, record, stored};
use crate::sql::{Sql, key, params, sql};

pub(crate) fn put(on: &mut dyn Statements, settings: &ChannelSettings, expect: Expect) -> Result<(), Fault> {
    let mut row = params![key(settings.workspace_id), number(&Channel::ALL, &settings.channel), document(settings)?];
    match expect {
        Expect::Absent => {
            on.run(sql!("INSERT INTO channels (workspace, channel, revision, doc) VALUES ($1, $2, 1, $3)"), row)
        }
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!(
                    "UPDATE channels SET doc = $3, revision = revision + 1
                     WHERE workspace = $1 AND channel = $2 AND revision = $4"
                ),
                row,
            )
        }
    }
}

pub(crate) fn delete(on: &mut dyn Statements, workspace: WorkspaceId, channel: Channel) -> Result<(), Fault> {
    on.run(
        sql!("DELETE FROM channels WHERE workspace = $1 AND channel = $2"),
        params![key(workspace), number(&Channel::ALL, &channel)],
    )
}

#[async_trait]
impl<D: Database> Channels for SqlStore<D> {
    async fn channel(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
    ) -> Result<Option<Stored<ChannelSettings>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM channels WHERE workspace = $1 AND channel = $2");
        let asked = params![key(workspace), number(&Channel::ALL, &channel)];
        self.one(Query::new(SQL, asked, stored).shared()).await
    }

    async fn channels(&self, workspace: WorkspaceId) -> Result<Vec<ChannelSettings>, StoreError> {
        const SQL: Sql = sql!("SELECT doc FROM channels WHERE workspace = $1 ORDER BY channel");
        self.many(Query::new(SQL, params![key(workspace)], |row| record(row, 0))).await
    }
}
