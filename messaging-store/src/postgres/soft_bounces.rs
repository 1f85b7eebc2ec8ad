//! Soft bounces in a row.

use async_trait::async_trait;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::digest::Digest;
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
            "INSERT INTO soft_bounces (workspace, channel, digest, address, count) VALUES ($1, $2, $3, $4, 1)",
            params![workspace, channel, digest(&streak.address), streak.address.clone()],
        );
    } else {
        transaction.run_one(
            "UPDATE soft_bounces SET count = count + 1
             WHERE workspace = $1 AND channel = $2 AND digest = $3 AND count = $4",
            params![workspace, channel, digest(&streak.address), i64::from(streak.length)],
        );
    }
}

pub(super) fn end(transaction: &mut Transaction, workspace: WorkspaceId, channel: Channel, address: &str) {
    transaction.run(
        "DELETE FROM soft_bounces WHERE workspace = $1 AND channel = $2 AND digest = $3",
        params![uuid(workspace), number(&Channel::ALL, &channel), digest(address)],
    );
}

/// What an address is found by: it may be longer than an index takes.
pub(super) fn digest(address: &str) -> Vec<u8> {
    Digest::of(address).as_bytes().to_vec()
}

#[async_trait]
impl SoftBounces for PostgresStore {
    async fn soft_bounces(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        address: &str,
    ) -> Result<Streak, StoreError> {
        const SQL: &str = "SELECT count FROM soft_bounces WHERE workspace = $1 AND channel = $2 AND digest = $3";
        let key = params![uuid(workspace), number(&Channel::ALL, &channel), digest(address)];
        let length = self.reads.one(SQL, key, |row| small(row, 0)).await?.unwrap_or(0);
        Ok(Streak { workspace_id: workspace, channel, address: address.to_owned(), length })
    }
}
