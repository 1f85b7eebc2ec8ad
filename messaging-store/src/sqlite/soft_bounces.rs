//! Soft bounces in a row.

use async_trait::async_trait;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::soft_bounce::Streak;
use messaging_core::ids::{Id as _, WorkspaceId};
use messaging_core::ports::store::{SoftBounces, StoreError};
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::query::one;
use super::row::number;

/// Counts one more, if the streak is as long as it was when it was read.
pub(super) fn lengthen(connection: &Connection, streak: &Streak) -> Result<(), Fault> {
    let (workspace, channel) = (streak.workspace_id.to_bytes(), number(&Channel::ALL, &streak.channel));
    expect_one(if streak.length == 0 {
        connection
            .prepare_cached("INSERT INTO soft_bounces (workspace, channel, address, count) VALUES (?1, ?2, ?3, 1)")?
            .execute(params![workspace, channel, streak.address])?
    } else {
        connection
            .prepare_cached(
                "UPDATE soft_bounces SET count = count + 1
                 WHERE workspace = ?1 AND channel = ?2 AND address = ?3 AND count = ?4",
            )?
            .execute(params![workspace, channel, streak.address, streak.length])?
    })
}

pub(super) fn end(
    connection: &Connection,
    workspace: WorkspaceId,
    channel: Channel,
    address: &str,
) -> Result<(), Fault> {
    connection
        .prepare_cached("DELETE FROM soft_bounces WHERE workspace = ?1 AND channel = ?2 AND address = ?3")?
        .execute(params![workspace.to_bytes(), number(&Channel::ALL, &channel), address])?;
    Ok(())
}

#[async_trait]
impl SoftBounces for SqliteStore {
    async fn soft_bounces(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        address: &str,
    ) -> Result<Streak, StoreError> {
        const SQL: &str = "SELECT count FROM soft_bounces WHERE workspace = ?1 AND channel = ?2 AND address = ?3";
        let address = address.to_owned();
        self.readers
            .point_read(move |connection| {
                let key = params![workspace.to_bytes(), number(&Channel::ALL, &channel), address];
                let length = one(connection, SQL, key, |row| Ok(row.get(0)?))?.unwrap_or(0);
                Ok(Streak { workspace_id: workspace, channel, address, length })
            })
            .await
    }
}
