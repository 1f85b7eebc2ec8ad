//! The suppression list: addresses that a workspace does not send to.

use std::cmp::Reverse;
use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::audience::suppression::{Suppression, SuppressionFilter};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{Id as _, SuppressionId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreError, Stored, Suppressions};
use messaging_core::time::Timestamp;

use super::soft_bounces::digest;
use crate::database::open_commit::OpenCommit;
use crate::database::scan::{Listing, Pick, page_of};
use crate::database::{Database, Query, SqlStore};
use crate::fault::Fault;
use crate::pages::{below, number, slice};
use crate::row::{Row, document, record, stored};
use crate::sql::{Sql, key, params, sql};

/// Creates or replaces the suppression of an address. A new one is announced to segments and automations.
pub(crate) async fn put(on: &mut impl OpenCommit, suppression: &Suppression, expect: Expect) -> Result<(), Fault> {
    let Suppression { workspace_id, channel, address, id, created_at, .. } = suppression;
    let mut row =
        params![key(*workspace_id), number(&Channel::ALL, channel), digest(address), key(*id), document(suppression)?,];
    match expect {
        Expect::Absent => {
            row.push(address.as_str().into());
            on.statements().run(
                sql!(
                    "INSERT INTO suppressions (workspace, channel, digest, id, revision, doc, address)
                     VALUES ($1, $2, $3, $4, 1, $5, $6)"
                ),
                row,
            )?;
            on.tell_of_address(*workspace_id, (*channel, address), *created_at).await
        }
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.statements().run_one(
                sql!(
                    "UPDATE suppressions SET id = $4, doc = $5, revision = revision + 1
                     WHERE workspace = $1 AND channel = $2 AND digest = $3 AND revision = $6"
                ),
                row,
            )
        }
    }
}

/// Deletes a suppression, and announces it if a segment or automation depends on suppressions.
pub(crate) async fn delete(
    on: &mut impl OpenCommit,
    workspace: WorkspaceId,
    id: SuppressionId,
    at: Timestamp,
) -> Result<(), Fault> {
    const HELD: Sql = sql!("SELECT doc FROM suppressions WHERE workspace = $1 AND id = $2");
    const DELETE: Sql = sql!("DELETE FROM suppressions WHERE workspace = $1 AND id = $2");
    let by_id = || params![key(workspace), key(id)];
    if on.is_followed(workspace, ReadMask::SUPPRESSIONS).await? || on.is_heard(workspace).await? {
        let held = Query::new(HELD, by_id(), |row| record::<Suppression>(row, 0));
        if let Some(held) = on.one(held).await? {
            on.tell_of_address(workspace, (held.channel, &held.address), at).await?;
        }
    }
    on.statements().run(DELETE, by_id())
}

/// The suppressions of some addresses, each with its channel.
async fn anywhere(
    database: &impl Database,
    workspace: WorkspaceId,
    addresses: &[(Channel, String)],
) -> Result<Vec<Suppression>, StoreError> {
    const SQL: Sql = sql!(
        sqlite: "SELECT doc FROM suppressions WHERE workspace = $1 AND channel = $2 AND digest = $3",
        postgres: "SELECT doc FROM suppressions s
            JOIN unnest($2::bigint[], $3::bytea[]) AS asked (channel, digest)
                ON s.channel = asked.channel AND s.digest = asked.digest
            WHERE s.workspace = $1",
    );
    let keys = addresses.iter().map(|(channel, address)| params![number(&Channel::ALL, channel), digest(address)]);
    let query = Query::new(SQL, params![key(workspace)], |row| record(row, 0)).point();
    database.gathered(query, keys.collect()).await
}

#[async_trait]
impl<D: Database> Suppressions for SqlStore<D> {
    async fn suppressed_anywhere(
        &self,
        workspace: WorkspaceId,
        addresses: &[(Channel, String)],
    ) -> Result<Vec<Suppression>, StoreError> {
        anywhere(&self.0, workspace, addresses).await
    }

    async fn suppressed(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        addresses: &[String],
    ) -> Result<Vec<Stored<Suppression>>, StoreError> {
        const SQL: Sql = sql!(
            sqlite: "SELECT revision, doc FROM suppressions WHERE workspace = $1 AND channel = $2 AND digest = $3",
            postgres: "SELECT revision, doc, number
                FROM unnest($1::uuid[], $2::bigint[], $3::bytea[]) WITH ORDINALITY
                    AS wanted (of_workspace, of_channel, of_address, number)
                CROSS JOIN LATERAL (
                    SELECT revision, doc FROM suppressions
                    WHERE workspace = of_workspace AND channel = of_channel AND digest = of_address OFFSET 0) AS found",
        );
        let channel = number(&Channel::ALL, &channel);
        let keys = addresses.iter().map(|address| params![key(workspace), channel, digest(address)]).collect();
        self.by_keys(Query::new(SQL, Vec::new(), stored).point(), keys).await
    }

    async fn suppression(
        &self,
        workspace: WorkspaceId,
        id: SuppressionId,
    ) -> Result<Option<Stored<Suppression>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM suppressions WHERE workspace = $1 AND id = $2");
        self.one(Query::new(SQL, params![key(workspace), key(id)], stored).point()).await
    }

    async fn suppressions(
        &self,
        workspace: WorkspaceId,
        filter: &SuppressionFilter,
        page: PageRequest,
    ) -> Result<Slice<Suppression>, StoreError> {
        match filter.candidates() {
            Some(candidates) => pick(&self.0, workspace, &candidates, filter, &page).await,
            None => scan(&self.0, workspace, filter, &page).await,
        }
    }
}

/// A page of the suppressions of `candidates`, found by their keys.
async fn pick(
    database: &impl Database,
    workspace: WorkspaceId,
    candidates: &[(Channel, String)],
    filter: &SuppressionFilter,
    page: &PageRequest,
) -> Result<Slice<Suppression>, StoreError> {
    let mut found = anywhere(database, workspace, candidates).await?;
    found.retain(|one| filter.matches(one) && one.id.to_bytes() < below(page));
    found.sort_unstable_by_key(|one| Reverse(one.id));
    Ok(slice(found, page.limit, |one| one.id.to_bytes()))
}

/// A page of the suppressions that match a filter, from the newest on. A call examines a bounded number of rows, so a page
/// may be short or empty and still have a next one.
async fn scan(
    database: &impl Database,
    workspace: WorkspaceId,
    filter: &SuppressionFilter,
    page: &PageRequest,
) -> Result<Slice<Suppression>, StoreError> {
    const SQL: Sql =
        sql!("SELECT id, doc FROM suppressions WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
    let params = |below: [u8; 16], piece: i64| params![key(workspace), below, piece];
    let filter = filter.clone();
    let pick: Pick<Suppression> = Arc::new(move |row: &dyn Row| {
        let suppression: Suppression = record(row, 1)?;
        Ok(filter.matches(&suppression).then_some(suppression))
    });
    page_of(database, Listing { sql: SQL, params, pick }, below(page), page.limit).await
}
