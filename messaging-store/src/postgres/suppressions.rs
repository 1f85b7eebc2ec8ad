//! The suppression list.

use async_trait::async_trait;
use messaging_core::changes::Expect;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::domain::suppression::{Suppression, SuppressionFilter};
use messaging_core::ids::{Id as _, SuppressionId, WorkspaceId};
use messaging_core::ports::store::{PageRequest, Slice, StoreError, Stored, Suppressions};
use messaging_core::time::Timestamp;

use super::PostgresStore;
use super::fault::Fault;
use super::query::{one, params};
use super::row::{below, below_id, document, number, record, revision_param, slice, stored, uuid};
use super::scan::{Listing, page_of};
use super::segments::tell_of_address;
use super::transaction::Transaction;
use super::{listeners, outbox};
use crate::tables::soft_bounces::digest;

pub(super) async fn put(transaction: &mut Transaction, suppression: &Suppression, expect: Expect) -> Result<(), Fault> {
    let (workspace, channel) = (uuid(suppression.workspace_id), number(&Channel::ALL, &suppression.channel));
    let (address, id, doc) = (suppression.address.clone(), uuid(suppression.id), document(suppression)?);
    match expect {
        Expect::Absent => {
            transaction.run(
                "INSERT INTO suppressions (workspace, channel, address, id, revision, doc) VALUES ($1, $2, $3, $4, 1, $5)",
                params![workspace, channel, address, id, doc],
            );
            tell(transaction, suppression, suppression.created_at).await?;
        }
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE suppressions SET id = $4, doc = $5, revision = revision + 1
             WHERE workspace = $1 AND channel = $2 AND digest = $3 AND revision = $6",
            params![workspace, channel, digest(&address), id, doc, revision_param(revision)],
        ),
    }
    Ok(())
}

async fn tell(transaction: &mut Transaction, suppression: &Suppression, at: Timestamp) -> Result<(), Fault> {
    let address = (suppression.channel, suppression.address.as_str());
    tell_of_address(transaction, suppression.workspace_id, address, at).await
}

pub(super) async fn delete(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    id: SuppressionId,
    at: Timestamp,
) -> Result<(), Fault> {
    const HELD: &str = "SELECT doc FROM suppressions WHERE workspace = $1 AND id = $2";
    let is_followed = outbox::read_mask_in(transaction, workspace, ReadMask::SUPPRESSIONS).await?.is_some();
    if is_followed || listeners::is_any(transaction, workspace).await? {
        let held: Option<Suppression> =
            one(transaction, HELD, params![uuid(workspace), uuid(id)], |row| record(row, 0)).await?;
        if let Some(held) = held {
            tell(transaction, &held, at).await?;
        }
    }
    let sql = "DELETE FROM suppressions WHERE workspace = $1 AND id = $2";
    transaction.run(sql, params![uuid(workspace), uuid(id)]);
    Ok(())
}

/// Channels and what addresses are found by, as columns.
fn columns(addresses: &[(Channel, String)]) -> (Vec<i64>, Vec<Vec<u8>>) {
    addresses.iter().map(|(channel, address)| (number(&Channel::ALL, channel), digest(address))).unzip()
}

/// The rows of addresses of several channels.
const ANYWHERE: &str = "SELECT doc FROM suppressions s
    JOIN unnest($2::bigint[], $3::bytea[]) AS asked (channel, digest)
        ON s.channel = asked.channel AND s.digest = asked.digest
    WHERE s.workspace = $1";

#[async_trait]
impl Suppressions for PostgresStore {
    async fn suppressed_anywhere(
        &self,
        workspace: WorkspaceId,
        addresses: &[(Channel, String)],
    ) -> Result<Vec<Suppression>, StoreError> {
        if addresses.is_empty() {
            return Ok(Vec::new());
        }
        let (channels, addresses) = columns(addresses);
        self.reads.many(ANYWHERE, params![uuid(workspace), channels, addresses], |row| record(row, 0)).await
    }

    async fn suppressed(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        addresses: &[String],
    ) -> Result<Vec<Stored<Suppression>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM suppressions
            WHERE workspace = $1 AND channel = $2 AND digest = ANY ($3)";
        if addresses.is_empty() {
            return Ok(Vec::new());
        }
        let digests: Vec<_> = addresses.iter().map(|address| digest(address)).collect();
        let key = params![uuid(workspace), number(&Channel::ALL, &channel), digests];
        self.reads.many(SQL, key, |row| stored(row)).await
    }

    async fn suppression(
        &self,
        workspace: WorkspaceId,
        id: SuppressionId,
    ) -> Result<Option<Stored<Suppression>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM suppressions WHERE workspace = $1 AND id = $2";
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], |row| stored(row)).await
    }

    async fn suppressions(
        &self,
        workspace: WorkspaceId,
        filter: &SuppressionFilter,
        page: PageRequest,
    ) -> Result<Slice<Suppression>, StoreError> {
        match filter.candidates() {
            Some(candidates) => self.pick_suppressions(workspace, &candidates, filter, &page).await,
            None => self.scan_suppressions(workspace, filter, &page).await,
        }
    }
}

impl PostgresStore {
    /// The few rows of an address.
    async fn pick_suppressions(
        &self,
        workspace: WorkspaceId,
        candidates: &[(Channel, String)],
        filter: &SuppressionFilter,
        page: &PageRequest,
    ) -> Result<Slice<Suppression>, StoreError> {
        let (channels, addresses) = columns(candidates);
        let key = params![uuid(workspace), channels, addresses];
        let mut found: Vec<Suppression> = self.reads.many(ANYWHERE, key, |row| record(row, 0)).await?;
        found.retain(|one| filter.matches(one) && one.id.to_bytes() < below(page));
        found.sort_unstable_by_key(|one| std::cmp::Reverse(one.id));
        Ok(slice(found, page.limit, |one: &Suppression| one.id.to_bytes()))
    }

    /// All rows from the newest on, as many as one call looks at.
    async fn scan_suppressions(
        &self,
        workspace: WorkspaceId,
        filter: &SuppressionFilter,
        page: &PageRequest,
    ) -> Result<Slice<Suppression>, StoreError> {
        const SQL: &str = "SELECT id, doc FROM suppressions WHERE workspace = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
        let listing = Listing { sql: SQL, params: |below, piece| params![uuid(workspace), below, piece] };
        let page = page_of(&self.reads, listing, below_id(page), page.limit, |row| {
            let suppression: Suppression = record(row, 1)?;
            Ok(filter.matches(&suppression).then_some(suppression))
        });
        Ok(page.await?)
    }
}
