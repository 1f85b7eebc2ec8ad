//! Soft bounces in a row.

use async_trait::async_trait;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::soft_bounce::Streak;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{SoftBounces, StoreError};

use super::PostgresStore;
use super::query::params;
use super::row::{number, small, uuid};
use super::transaction::Transaction;

/// Counts one more, if the streak is as long as it was when it was read.
pub(super) fn lengthen(transaction: &mut Transaction, streak: &Streak) {
    let (workspace, channel) = (uuid(streak.workspace_id), number(&Channel::ALL, &streak.channel));
    if streak.length == 0 {
        transaction.run(
            "INSERT INTO soft_bounces (workspace, channel, address, count) VALUES ($1, $2, $3, 1)",
            params![workspace, channel, streak.address.clone()],
        );
    } else {
        transaction.run_one(
            "UPDATE soft_bounces SET count = count + 1
             WHERE workspace = $1 AND channel = $2 AND address = $3 AND count = $4",
            params![workspace, channel, streak.address.clone(), i64::from(streak.length)],
        );
    }
}

pub(super) fn end(transaction: &mut Transaction, workspace: WorkspaceId, channel: Channel, address: &str) {
    transaction.run(
        "DELETE FROM soft_bounces WHERE workspace = $1 AND channel = $2 AND address = $3",
        params![uuid(workspace), number(&Channel::ALL, &channel), address.to_owned()],
    );
}

#[async_trait]
impl SoftBounces for PostgresStore {
    async fn soft_bounces(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        address: &str,
    ) -> Result<Streak, StoreError> {
        const SQL: &str = "SELECT count FROM soft_bounces WHERE workspace = $1 AND channel = $2 AND address = $3";
        let address = address.to_owned();
        let key = params![uuid(workspace), number(&Channel::ALL, &channel), address.clone()];
        let length = self.reads.one(SQL, key, |row| small(row, 0)).await?.unwrap_or(0);
        Ok(Streak { workspace_id: workspace, channel, address, length })
    }
}
