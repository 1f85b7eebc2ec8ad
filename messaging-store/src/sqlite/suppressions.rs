//! The suppression list.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::suppression::Suppression;
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::{StoreError, Stored, Suppressions};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::query::one;
use super::row::{document, number, record, stored};

pub(super) fn put(connection: &Connection, suppression: &Suppression, expect: Expect) -> Result<(), Fault> {
    let (workspace, channel) = (suppression.workspace_id.to_bytes(), number(&Channel::ALL, &suppression.channel));
    let doc = document(suppression)?;
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached(
                "INSERT INTO suppressions (workspace, channel, address, revision, doc) VALUES (?1, ?2, ?3, 1, ?4)",
            )?
            .execute(params![workspace, channel, suppression.address, doc])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE suppressions SET doc = ?4, revision = revision + 1
                 WHERE workspace = ?1 AND channel = ?2 AND address = ?3 AND revision = ?5",
            )?
            .execute(params![workspace, channel, suppression.address, doc, revision])?,
    })
}

#[async_trait]
impl Suppressions for SqliteStore {
    async fn suppressed_anywhere(
        &self,
        workspace: WorkspaceId,
        addresses: &[(Channel, String)],
    ) -> Result<Vec<Suppression>, StoreError> {
        const SQL: &str = "SELECT doc FROM suppressions WHERE workspace = ?1 AND channel = ?2 AND address = ?3";
        if addresses.is_empty() {
            return Ok(Vec::new());
        }
        let addresses = addresses.to_vec();
        self.readers
            .glance(move |connection| {
                // Locked once instead of once for every look-up.
                let connection = connection.unchecked_transaction()?;
                let mut found = Vec::new();
                for (channel, address) in addresses {
                    let key = params![workspace.to_bytes(), number(&Channel::ALL, &channel), address];
                    found.extend(one(&connection, SQL, key, |row| record(row, 0))?);
                }
                Ok(found)
            })
            .await
    }

    async fn suppressed(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        addresses: &[String],
    ) -> Result<Vec<Stored<Suppression>>, StoreError> {
        const SQL: &str =
            "SELECT revision, doc FROM suppressions WHERE workspace = ?1 AND channel = ?2 AND address = ?3";
        let addresses = addresses.to_vec();
        self.readers
            .glance(move |connection| {
                let (workspace, channel) = (workspace.to_bytes(), number(&Channel::ALL, &channel));
                let mut found = Vec::new();
                for address in addresses {
                    found.extend(one(connection, SQL, params![workspace, channel, address], stored)?);
                }
                Ok(found)
            })
            .await
    }
}
