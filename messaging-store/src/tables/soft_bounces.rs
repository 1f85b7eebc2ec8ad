//! Soft bounces in a row.

use async_trait::async_trait;
use messaging_core::domain::audience::soft_bounce::Streak;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::security::digest::Digest;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{SoftBounces, StoreError};

use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::number;
use crate::row::get;
use crate::sql::{Params, Sql, key, params, sql};

/// Counts one more, if the streak still has the length that was read.
pub(crate) fn lengthen(on: &mut dyn Statements, streak: &Streak) -> Result<(), Fault> {
    let Streak { workspace_id, channel, address, length } = streak;
    let mut row = by(*workspace_id, *channel, address);
    if *length == 0 {
        row.push(address.as_str().into());
        return on.run(
            sql!("INSERT INTO soft_bounces (workspace, channel, digest, address, count) VALUES ($1, $2, $3, $4, 1)"),
            row,
        );
    }
    row.push((*length).into());
    on.run_one(
        sql!(
            "UPDATE soft_bounces SET count = count + 1
             WHERE workspace = $1 AND channel = $2 AND digest = $3 AND count = $4"
        ),
        row,
    )
}

pub(crate) fn end(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    channel: Channel,
    address: &str,
) -> Result<(), Fault> {
    const ONE: Sql = sql!("DELETE FROM soft_bounces WHERE workspace = $1 AND channel = $2 AND digest = $3");
    const MANY: &str = "DELETE FROM soft_bounces b
        USING unnest($1::uuid[], $2::bigint[], $3::bytea[]) AS ended (workspace, channel, digest)
        WHERE b.workspace = ended.workspace AND b.channel = ended.channel AND b.digest = ended.digest
            AND ended.channel BETWEEN 0 AND 32767";
    on.remove(ONE, MANY, by(workspace, channel, address))
}

fn by(workspace: WorkspaceId, channel: Channel, address: &str) -> Params {
    params![key(workspace), number(&Channel::ALL, &channel), digest(address)]
}

/// Key of an address, which may be longer than an index of PostgreSQL takes.
pub(crate) fn digest(address: &str) -> Vec<u8> {
    Digest::of(address).as_bytes().to_vec()
}

#[async_trait]
impl<D: Database> SoftBounces for SqlStore<D> {
    async fn soft_bounces(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        address: &str,
    ) -> Result<Streak, StoreError> {
        const SQL: Sql = sql!("SELECT count FROM soft_bounces WHERE workspace = $1 AND channel = $2 AND digest = $3");
        let query = Query::new(SQL, by(workspace, channel, address), |row| get(row, 0)).point();
        let length = self.one(query).await?.unwrap_or(0);
        Ok(Streak { workspace_id: workspace, channel, address: address.to_owned(), length })
    }
}
