//! Campaigns and how far the work on them has come.
//!
//! What open campaigns hold is in [`holds`]. Beside this: messages that wait to be released ([`waiting`]), messages by
//! outcome ([`messages`]), when marketing messages to contacts began ([`sends`]), and how all of it goes ([`forget`]).

mod forget;
mod messages;
mod sends;
mod sends_look;
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
use rusqlite::{Connection, OptionalExtension as _, params};

use super::SqliteStore;
use super::fault::{Fault, expect_one};
use super::holds::{self, Holder};
use super::numbers::campaign_number;
use super::query::{many, one};
use super::row::{below, document, number, numbered_place, one_more, place_number, record, slice, stored};

pub(super) use sends::{delete_of as delete_contact_sends, put as put_contact_sends};
pub(super) use sends_look::SendsLook;
pub(super) use waiting::{insert as insert_waiting, put as put_waiting, take as take_waiting};

pub(super) fn put(connection: &Connection, campaign: &Campaign, expect: Expect) -> Result<(), Fault> {
    let (workspace, id) = (campaign.workspace_id.to_bytes(), campaign.id.to_bytes());
    let status = number(&CampaignStatus::ALL, &campaign.status);
    let doc = document(campaign)?;
    let n = match expect {
        Expect::Absent => connection
            .prepare_cached(
                "INSERT INTO campaigns (workspace, id, revision, removed, status, doc) VALUES (?1, ?2, 1, 0, ?3, ?4)
                 RETURNING n",
            )?
            .query_row(params![workspace, id, status, doc], |row| row.get(0)),
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE campaigns SET revision = revision + 1, status = ?3, doc = ?4
                 WHERE workspace = ?1 AND id = ?2 AND revision = ?5 AND removed = 0 RETURNING n",
            )?
            .query_row(params![workspace, id, status, doc, revision], |row| row.get(0)),
    };
    let holder = Holder::Campaign(n.optional()?.ok_or(Fault::Conflict)?);
    holds::follow(connection, campaign.workspace_id, holder, &campaign.holds())
}

pub(super) fn delete(connection: &Connection, workspace: WorkspaceId, id: CampaignId) -> Result<(), Fault> {
    let Some(n) = campaign_number(connection, workspace, id)? else { return Ok(()) };
    holds::let_go(connection, Holder::Campaign(n))?;
    connection.prepare_cached("UPDATE campaigns SET removed = 1, doc = '' WHERE n = ?1")?.execute([n])?;
    Ok(())
}

/// A conflict unless the campaign is in a state.
pub(super) fn expect(
    connection: &Connection,
    workspace: WorkspaceId,
    id: CampaignId,
    status: CampaignStatus,
) -> Result<(), Fault> {
    let found = connection
        .prepare_cached("SELECT 1 FROM campaigns WHERE workspace = ?1 AND id = ?2 AND status = ?3 AND removed = 0")?
        .exists(params![workspace.to_bytes(), id.to_bytes(), number(&CampaignStatus::ALL, &status)])?;
    if found { Ok(()) } else { Err(Fault::Conflict) }
}

pub(super) fn put_progress(connection: &Connection, progress: &CampaignProgress, expect: Expect) -> Result<(), Fault> {
    let n = campaign_number(connection, progress.workspace_id, progress.campaign_id)?.ok_or(Fault::Conflict)?;
    expect_one(match expect {
        Expect::Absent => connection
            .prepare_cached("INSERT INTO campaign_progress (campaign, revision, doc) VALUES (?1, 1, ?2)")?
            .execute(params![n, document(progress)?])?,
        Expect::Revision(revision) => connection
            .prepare_cached(
                "UPDATE campaign_progress SET revision = revision + 1, doc = ?2 WHERE campaign = ?1 AND revision = ?3",
            )?
            .execute(params![n, document(progress)?, revision])?,
    })
}

#[async_trait]
impl Campaigns for SqliteStore {
    async fn campaign(&self, workspace: WorkspaceId, id: CampaignId) -> Result<Option<Stored<Campaign>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM campaigns WHERE workspace = ?1 AND id = ?2 AND removed = 0";
        self.readers
            .point_read(move |connection| one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], stored))
            .await
    }

    async fn campaigns(
        &self,
        workspace: WorkspaceId,
        status: Option<CampaignStatus>,
        page: PageRequest,
    ) -> Result<Slice<Campaign>, StoreError> {
        const ALL: &str = "SELECT doc FROM campaigns INDEXED BY campaigns_by_id
            WHERE workspace = ?1 AND id < ?2 AND removed = 0 AND ?4 IS NULL ORDER BY id DESC LIMIT ?3";
        const BY_STATUS: &str = "SELECT doc FROM campaigns INDEXED BY campaigns_by_status
            WHERE workspace = ?1 AND id < ?2 AND removed = 0 AND status = ?4 ORDER BY id DESC LIMIT ?3";
        self.readers
            .read(move |connection| {
                let status = status.map(|status| number(&CampaignStatus::ALL, &status));
                let sql = if status.is_some() { BY_STATUS } else { ALL };
                let bounds = params![workspace.to_bytes(), below(&page), one_more(&page), status];
                let items = many(connection, sql, bounds, |row| record(row, 0))?;
                Ok(slice(items, page.limit, |campaign: &Campaign| campaign.id.to_bytes()))
            })
            .await
    }

    async fn open_campaigns(&self, page: PageRequest) -> Result<Slice<Campaign>, StoreError> {
        const SQL: &str = "SELECT n, doc FROM campaigns INDEXED BY campaigns_open
            WHERE removed = 0 AND status BETWEEN 1 AND 3 AND n > ?1 ORDER BY n LIMIT ?2";
        self.readers
            .read(move |connection| {
                let bounds = params![page.after.map_or(i64::MIN, place_number), one_more(&page)];
                let found = many(connection, SQL, bounds, |row| Ok((row.get(0)?, record(row, 1)?)))?;
                let found = slice(found, page.limit, |(n, _): &(i64, Campaign)| numbered_place(*n).to_bytes());
                Ok(Slice { items: found.items.into_iter().map(|(_, campaign)| campaign).collect(), next: found.next })
            })
            .await
    }

    async fn campaigns_holding(
        &self,
        workspace: WorkspaceId,
        what: Reference,
        limit: usize,
    ) -> Result<Vec<CampaignId>, StoreError> {
        self.readers.read(move |connection| holds::campaigns(connection, workspace, what, limit)).await
    }

    async fn campaign_progress(
        &self,
        workspace: WorkspaceId,
        id: CampaignId,
    ) -> Result<Option<Stored<CampaignProgress>>, StoreError> {
        const SQL: &str = "SELECT p.revision, p.doc FROM campaigns c JOIN campaign_progress p ON p.campaign = c.n
            WHERE c.workspace = ?1 AND c.id = ?2 AND c.removed = 0";
        self.readers
            .point_read(move |connection| one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], stored))
            .await
    }

    async fn due_messages(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        track: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<WaitingKey>, StoreError> {
        self.readers.read(move |connection| waiting::due(connection, (workspace, campaign), track, now, limit)).await
    }

    async fn waiting_tracks(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
    ) -> Result<Vec<(u8, Timestamp)>, StoreError> {
        self.readers.read(move |connection| waiting::tracks(connection, workspace, campaign)).await
    }

    async fn campaign_messages(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        wanted: Wanted,
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError> {
        self.readers.read(move |connection| messages::list(connection, workspace, campaign, wanted, &page)).await
    }

    async fn campaign_message_of(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        contact: ContactId,
    ) -> Result<Option<MessageId>, StoreError> {
        self.readers.read(move |connection| messages::of_contact(connection, workspace, campaign, contact)).await
    }

    async fn contact_sends(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
        channel: Channel,
    ) -> Result<Option<Stored<ContactSends>>, StoreError> {
        self.readers.point_read(move |connection| sends::get(connection, workspace, contact, channel)).await
    }

    async fn forget_campaign_rows(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let forgotten = self.forget_removed_campaigns(limit).await?;
        let room = limit.saturating_sub(usize::try_from(forgotten).unwrap_or(limit));
        let forgotten = forgotten + self.forget_contact_sends(now, room).await?;
        let room = limit.saturating_sub(usize::try_from(forgotten).unwrap_or(limit));
        Ok(forgotten + self.forget_left_out(now, room).await?)
    }
}
