//! Campaigns and how far the work on them has come.
//!
//! What open campaigns hold is in [`holds`]. Beside this: messages that wait to be released ([`waiting`]), messages by
//! outcome ([`messages`]), when marketing messages to contacts began ([`sends`]), and how all of it goes ([`forget`]).

mod forget;
mod messages;
mod sends;
mod waiting;

use async_trait::async_trait;
use messaging_core::changes::{ContactSends, Expect, WaitingKey};
use messaging_core::domain::campaign::progress::CampaignProgress;
use messaging_core::domain::campaign::{Campaign, CampaignStatus, Reference};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::Message;
use messaging_core::ids::{CampaignId, ContactId, Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::campaigns::Wanted;
use messaging_core::ports::store::{Campaigns, PageRequest, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;

use super::PostgresStore;
use super::audiences;
use super::fault::Fault;
use super::holds::{self, Holder};
use super::query::params;
use super::row::{
    below_id, document, get, number, numbered_place, one_more, place_number, record, revision_param, slice, stored,
    uuid,
};
use super::transaction::Transaction;

pub(super) use sends::{delete_of as delete_contact_sends, put as put_contact_sends};
pub(super) use waiting::{insert as insert_waiting, put as put_waiting, take as take_waiting};

/// Whoever changes the state of a campaign waits for those that expect it, and those that come later wait for the change.
/// A lock of the row would let the others pass in front of it for ever.
const LOCK: &str = "SELECT pg_advisory_xact_lock(uuid_hash_extended($1, 7016))";
const LOCK_SHARED: &str = "SELECT pg_advisory_xact_lock_shared(uuid_hash_extended($1, 7016))";

pub(super) fn put(transaction: &mut Transaction, campaign: &Campaign, expect: Expect) -> Result<(), Fault> {
    let (workspace, id) = (uuid(campaign.workspace_id), uuid(campaign.id));
    let status = number(&CampaignStatus::ALL, &campaign.status);
    let doc = document(campaign)?;
    match expect {
        Expect::Absent => transaction.run(
            "INSERT INTO campaigns (workspace, id, revision, removed, status, doc) VALUES ($1, $2, 1, false, $3, $4)",
            params![workspace, id, status, doc],
        ),
        Expect::Revision(revision) => {
            transaction.run(LOCK, params![id]);
            transaction.run_one(
                "UPDATE campaigns SET revision = revision + 1, status = $3, doc = $4
                 WHERE workspace = $1 AND id = $2 AND revision = $5 AND NOT removed",
                params![workspace, id, status, doc, revision_param(revision)],
            );
        }
    }
    holds::follow(transaction, campaign.workspace_id, Holder::Campaign(campaign.id), &campaign.holds());
    Ok(())
}

pub(super) fn delete(transaction: &mut Transaction, workspace: WorkspaceId, id: CampaignId) {
    transaction.run(LOCK, params![uuid(id)]);
    holds::let_go(transaction, workspace, Holder::Campaign(id));
    transaction.run(
        "UPDATE campaigns SET removed = true, doc = '' WHERE workspace = $1 AND id = $2 AND NOT removed",
        params![uuid(workspace), uuid(id)],
    );
}

/// A conflict unless the campaign is in a state.
pub(super) fn expect(transaction: &mut Transaction, workspace: WorkspaceId, id: CampaignId, status: CampaignStatus) {
    transaction.run(LOCK_SHARED, params![uuid(id)]);
    transaction.run(
        "SELECT expect_rows((
             SELECT count(*) FROM campaigns WHERE workspace = $1 AND id = $2 AND status = $3 AND NOT removed), 1)",
        params![uuid(workspace), uuid(id), number(&CampaignStatus::ALL, &status)],
    );
}

pub(super) fn put_progress(
    transaction: &mut Transaction,
    progress: &CampaignProgress,
    expect: Expect,
) -> Result<(), Fault> {
    let (workspace, id) = (uuid(progress.workspace_id), uuid(progress.campaign_id));
    let doc = document(progress)?;
    match expect {
        Expect::Absent => transaction.run_one(
            "INSERT INTO campaign_progress (campaign, revision, doc)
             SELECT n, 1, $3 FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed FOR KEY SHARE",
            params![workspace, id, doc],
        ),
        Expect::Revision(revision) => transaction.run_one(
            "UPDATE campaign_progress SET revision = revision + 1, doc = $3
             WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)
                AND revision = $4",
            params![workspace, id, doc, revision_param(revision)],
        ),
    }
    Ok(())
}

#[async_trait]
impl Campaigns for PostgresStore {
    async fn campaign(&self, workspace: WorkspaceId, id: CampaignId) -> Result<Option<Stored<Campaign>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed";
        self.reads.one_shared(SQL, params![uuid(workspace), uuid(id)], stored).await
    }

    async fn campaigns(
        &self,
        workspace: WorkspaceId,
        status: Option<CampaignStatus>,
        page: PageRequest,
    ) -> Result<Slice<Campaign>, StoreError> {
        const ALL: &str = "SELECT doc FROM campaigns
            WHERE workspace = $1 AND id < $2 AND NOT removed ORDER BY id DESC LIMIT $3";
        const BY_STATUS: &str = "SELECT doc FROM campaigns
            WHERE workspace = $1 AND id < $2 AND NOT removed AND status = $4 ORDER BY id DESC LIMIT $3";
        let mut bounds = params![uuid(workspace), below_id(&page), one_more(&page)];
        let mut sql = ALL;
        if let Some(status) = status {
            bounds.push(Box::new(number(&CampaignStatus::ALL, &status)));
            sql = BY_STATUS;
        }
        let items = self.reads.many(sql, bounds, |row| record(row, 0)).await?;
        Ok(slice(items, page.limit, |campaign: &Campaign| campaign.id.to_bytes()))
    }

    async fn open_campaigns(&self, page: PageRequest) -> Result<Slice<Campaign>, StoreError> {
        const SQL: &str = "SELECT n, doc FROM campaigns
            WHERE NOT removed AND status BETWEEN 1 AND 3 AND n > $1 ORDER BY n LIMIT $2";
        let bounds = params![page.after.map_or(i64::MIN, place_number), one_more(&page)];
        let found = self.reads.many(SQL, bounds, |row| Ok((get(row, 0)?, record(row, 1)?))).await?;
        let found = slice(found, page.limit, |(n, _): &(i64, Campaign)| numbered_place(*n).to_bytes());
        Ok(Slice { items: found.items.into_iter().map(|(_, campaign)| campaign).collect(), next: found.next })
    }

    async fn campaigns_holding(
        &self,
        workspace: WorkspaceId,
        what: Reference,
        limit: usize,
    ) -> Result<Vec<CampaignId>, StoreError> {
        holds::campaigns(&self.reads, workspace, what, limit).await
    }

    async fn campaign_progress(
        &self,
        workspace: WorkspaceId,
        id: CampaignId,
    ) -> Result<Option<Stored<CampaignProgress>>, StoreError> {
        const SQL: &str = "SELECT p.revision, p.doc FROM campaigns c JOIN campaign_progress p ON p.campaign = c.n
            WHERE c.workspace = $1 AND c.id = $2 AND NOT c.removed";
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], stored).await
    }

    async fn due_messages(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        track: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<WaitingKey>, StoreError> {
        waiting::due(&self.reads, (workspace, campaign), track, now, limit).await
    }

    async fn waiting_tracks(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
    ) -> Result<Vec<(u8, Timestamp)>, StoreError> {
        waiting::tracks(&self.reads, workspace, campaign).await
    }

    async fn campaign_messages(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        wanted: Wanted,
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError> {
        messages::list(&self.reads, workspace, campaign, wanted, &page).await
    }

    async fn campaign_message_of(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        contact: ContactId,
    ) -> Result<Option<MessageId>, StoreError> {
        messages::of_contact(&self.reads, workspace, campaign, contact).await
    }

    async fn contact_sends(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
        channel: Channel,
    ) -> Result<Option<Stored<ContactSends>>, StoreError> {
        sends::get(&self.reads, workspace, contact, channel).await
    }

    async fn forget_campaign_rows(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let room = |forgotten: u64| limit.saturating_sub(usize::try_from(forgotten).unwrap_or(limit));
        let mut forgotten = forget::removed_campaigns(&self.writes, limit).await?;
        forgotten += audiences::forget_old_left_out(&self.reads, &self.writes, now, room(forgotten)).await?;
        forgotten += forget::contact_sends(&self.writes, now, room(forgotten)).await?;
        Ok(forgotten)
    }
}
