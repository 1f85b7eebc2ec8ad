//! Campaigns and their progress.

mod messages;

use async_trait::async_trait;
use messaging_core::changes::{ContactSends, Expect, WaitingKey};
use messaging_core::domain::campaign::archive::archive_time;
use messaging_core::domain::campaign::progress::CampaignProgress;
use messaging_core::domain::campaign::{Campaign, CampaignStatus, Reference};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::message::Message;
use messaging_core::ids::{CampaignId, ContactId, Id as _, MessageId, WorkspaceId};
use messaging_core::ports::store::campaigns::CampaignMessageFilter;
use messaging_core::ports::store::{Campaigns, PageRequest, Slice, StoreError, Stored};
use messaging_core::time::Timestamp;

use super::holds::{self, Holder};
use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::pages::{below, number, numbered_place, one_more, place_number, sql_limit};
use crate::row::{document, get, id as id_of, record, stored, time};
use crate::send_times;
use crate::sql::{Sql, key, params, sql};

/// On PostgreSQL a transaction that changes the state of a campaign waits for those that expect the state, and later
/// ones wait for the change. A row lock would let the others overtake it for ever.
const LOCK: Sql = sql!(sqlite: "", postgres: "SELECT pg_advisory_xact_lock(uuid_hash_extended($1, 7016))");
const LOCK_SHARED: Sql =
    sql!(sqlite: "", postgres: "SELECT pg_advisory_xact_lock_shared(uuid_hash_extended($1, 7016))");

/// Methods that each database implements in its own way.
#[async_trait]
pub(crate) trait CampaignRows {
    /// See [`Campaigns::waiting_tracks`].
    async fn tracks(&self, workspace: WorkspaceId, campaign: CampaignId) -> Result<Vec<(u8, Timestamp)>, StoreError>;

    /// See [`Campaigns::forget_campaign_rows`].
    async fn forget_rows_of_campaigns(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}

pub(crate) fn put(on: &mut dyn Statements, campaign: &Campaign, expect: Expect) -> Result<(), Fault> {
    let status = number(&CampaignStatus::ALL, &campaign.status);
    let archived_at = archive_time(campaign);
    let mut row = params![key(campaign.workspace_id), key(campaign.id), status, document(campaign)?, archived_at];
    match expect {
        Expect::Absent => on.run(
            sql!(
                "INSERT INTO campaigns (workspace, id, revision, removed, status, doc, archived_at)
                 VALUES ($1, $2, 1, false, $3, $4, $5)"
            ),
            row,
        )?,
        Expect::Revision(revision) => {
            on.run(LOCK, params![key(campaign.id)])?;
            row.push(revision.into());
            on.run_one(
                sql!(
                    "UPDATE campaigns SET revision = revision + 1, status = $3, doc = $4, archived_at = $5
                     WHERE workspace = $1 AND id = $2 AND revision = $6 AND NOT removed"
                ),
                row,
            )?;
        }
    }
    holds::replace_held(on, campaign.workspace_id, Holder::Campaign(campaign.id), &campaign.holds())
}

pub(crate) fn delete(on: &mut dyn Statements, workspace: WorkspaceId, id: CampaignId) -> Result<(), Fault> {
    on.run(LOCK, params![key(id)])?;
    holds::release_all(on, workspace, Holder::Campaign(id))?;
    on.run(
        sql!("UPDATE campaigns SET removed = true, doc = '' WHERE workspace = $1 AND id = $2 AND NOT removed"),
        params![key(workspace), key(id)],
    )
}

/// Raises a conflict unless the campaign is in a state.
pub(crate) fn expect(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    id: CampaignId,
    status: CampaignStatus,
) -> Result<(), Fault> {
    const SQL: Sql =
        sql!("SELECT count(*) FROM campaigns WHERE workspace = $1 AND id = $2 AND status = $3 AND NOT removed");
    on.run(LOCK_SHARED, params![key(id)])?;
    on.expect(1, SQL, params![key(workspace), key(id), number(&CampaignStatus::ALL, &status)])
}

pub(crate) fn put_progress(on: &mut dyn Statements, progress: &CampaignProgress, expect: Expect) -> Result<(), Fault> {
    let mut row = params![key(progress.workspace_id), key(progress.campaign_id), document(progress)?];
    match expect {
        // On PostgreSQL the campaign cannot be removed until the transaction ends.
        Expect::Absent => on.run_one(
            sql!(
                sqlite: "INSERT INTO campaign_progress (campaign, revision, doc)
                    SELECT n, 1, $3 FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed",
                postgres: "INSERT INTO campaign_progress (campaign, revision, doc)
                    SELECT n, 1, $3 FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed FOR KEY SHARE",
            ),
            row,
        ),
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(
                sql!(
                    "UPDATE campaign_progress SET revision = revision + 1, doc = $3
                     WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)
                         AND revision = $4"
                ),
                row,
            )
        }
    }
}

pub(crate) fn put_contact_sends(on: &mut dyn Statements, sends: &ContactSends, expect: Expect) -> Result<(), Fault> {
    let times: Vec<u32> = sends.times.iter().copied().map(send_times::seconds).collect();
    let last = times.last().copied();
    let channel = number(&Channel::ALL, &sends.channel);
    let (contact, bytes) = (key(sends.contact_id), send_times::to_bytes(&times));
    match expect {
        // The first revision is a time, so that a row that was removed and added again is not mistaken for the one that
        // was read before.
        Expect::Absent => on.run_one(
            sql!(
                sqlite: "INSERT INTO contact_sends (contact, channel, revision, times, last_at)
                    SELECT n, $3, $4, $5, $6 FROM contacts
                    WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2",
                postgres: "INSERT INTO contact_sends (contact, channel, revision, times, last_at)
                    SELECT n, $3::bigint, $4, $5, $6 FROM contacts
                    WHERE workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1) AND id = $2
                    FOR KEY SHARE",
            ),
            params![key(sends.workspace_id), contact, channel, last.unwrap_or(1), bytes, last.unwrap_or(0)],
        ),
        // A row without times stays until a sweep removes it, for the same reason.
        Expect::Revision(revision) => on.run_one(
            sql!(
                "UPDATE contact_sends SET revision = (revision + 1) & 4294967295, times = $5, last_at = $6
                 WHERE contact = (SELECT n FROM contacts WHERE id = $2
                         AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))
                     AND channel = $3 AND revision = $4"
            ),
            params![key(sends.workspace_id), contact, channel, revision, bytes, last.unwrap_or(0)],
        ),
    }
}

#[async_trait]
impl<D: Database + CampaignRows> Campaigns for SqlStore<D> {
    async fn campaign(&self, workspace: WorkspaceId, id: CampaignId) -> Result<Option<Stored<Campaign>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed");
        self.one(Query::new(SQL, params![key(workspace), key(id)], stored).shared()).await
    }

    async fn campaigns(
        &self,
        workspace: WorkspaceId,
        status: Option<CampaignStatus>,
        page: PageRequest,
    ) -> Result<Slice<Campaign>, StoreError> {
        const ALL: Sql = sql!(
            "SELECT doc FROM campaigns {INDEXED BY campaigns_by_id}
             WHERE workspace = $1 AND id < $2 AND NOT removed ORDER BY id DESC LIMIT $3"
        );
        const BY_STATUS: Sql = sql!(
            "SELECT doc FROM campaigns {INDEXED BY campaigns_by_status}
             WHERE workspace = $1 AND id < $2 AND NOT removed AND status = $4 ORDER BY id DESC LIMIT $3"
        );
        let mut bounds = params![key(workspace), below(&page), one_more(&page)];
        let mut sql = ALL;
        if let Some(status) = status {
            bounds.push(number(&CampaignStatus::ALL, &status).into());
            sql = BY_STATUS;
        }
        let query = Query::new(sql, bounds, |row| record::<Campaign>(row, 0));
        self.page(query, page, |campaign| campaign.id.to_bytes()).await
    }

    async fn archived_campaigns(
        &self,
        workspace: WorkspaceId,
        before: Option<CampaignId>,
        limit: usize,
    ) -> Result<Vec<Campaign>, StoreError> {
        const LATEST: Sql = sql!(
            "SELECT doc FROM campaigns {INDEXED BY campaigns_archived}
             WHERE workspace = $1 AND archived_at IS NOT NULL AND NOT removed
             ORDER BY archived_at DESC, id DESC LIMIT $2"
        );
        const BEFORE: Sql = sql!(
            "SELECT doc FROM campaigns {INDEXED BY campaigns_archived}
             WHERE workspace = $1 AND archived_at IS NOT NULL AND NOT removed
                 AND (archived_at, id) < (SELECT archived_at, id FROM campaigns
                     WHERE workspace = $1 AND id = $3 AND NOT removed)
             ORDER BY archived_at DESC, id DESC LIMIT $2"
        );
        let mut bounds = params![key(workspace), sql_limit(limit)];
        let mut sql = LATEST;
        if let Some(before) = before {
            bounds.push(key(before));
            sql = BEFORE;
        }
        self.many(Query::new(sql, bounds, |row| record::<Campaign>(row, 0))).await
    }

    async fn open_campaigns(&self, page: PageRequest) -> Result<Slice<Campaign>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT n, doc FROM campaigns {INDEXED BY campaigns_open}
             WHERE NOT removed AND status BETWEEN 1 AND 3 AND n > $1 ORDER BY n LIMIT $2"
        );
        let bounds = params![page.after.map_or(i64::MIN, place_number), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| Ok((get::<i64>(row, 0)?, record(row, 1)?)));
        let found = self.page(query, page, |(n, _)| numbered_place(*n).to_bytes()).await?;
        Ok(Slice { items: found.items.into_iter().map(|(_, campaign)| campaign).collect(), next: found.next })
    }

    async fn campaigns_holding(
        &self,
        workspace: WorkspaceId,
        what: Reference,
        limit: usize,
    ) -> Result<Vec<CampaignId>, StoreError> {
        holds::campaigns(&self.0, workspace, what, limit).await
    }

    async fn campaign_progress(
        &self,
        workspace: WorkspaceId,
        id: CampaignId,
    ) -> Result<Option<Stored<CampaignProgress>>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT p.revision, p.doc FROM campaigns c JOIN campaign_progress p ON p.campaign = c.n
             WHERE c.workspace = $1 AND c.id = $2 AND NOT c.removed"
        );
        self.one(Query::new(SQL, params![key(workspace), key(id)], stored).point()).await
    }

    async fn due_messages(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        track: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<WaitingKey>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT due_at, message FROM campaign_waiting
             WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed)
                 AND track = $3 AND due_at <= $4 ORDER BY due_at, message LIMIT $5"
        );
        let bounds = params![key(workspace), key(campaign), track, now, sql_limit(limit)];
        let query = Query::new(SQL, bounds, move |row| {
            Ok(WaitingKey { track, due_at: time(row, 0)?, message_id: id_of(row, 1)? })
        });
        self.many(query).await
    }

    async fn waiting_tracks(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
    ) -> Result<Vec<(u8, Timestamp)>, StoreError> {
        self.tracks(workspace, campaign).await
    }

    async fn campaign_messages(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        wanted: CampaignMessageFilter,
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError> {
        messages::list(&self.0, workspace, campaign, wanted, &page).await
    }

    async fn campaign_message_of(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        contact: ContactId,
    ) -> Result<Option<MessageId>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT id FROM messages {INDEXED BY messages_by_contact}
             WHERE workspace = $1 AND contact = $2 AND campaign = $3 ORDER BY id DESC LIMIT 1"
        );
        let wanted = params![key(workspace), key(contact), key(campaign)];
        self.one(Query::new(SQL, wanted, |row| id_of(row, 0))).await
    }

    async fn contact_sends(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
        channel: Channel,
    ) -> Result<Option<Stored<ContactSends>>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT revision, times FROM contact_sends
             WHERE contact = (SELECT n FROM contacts WHERE id = $2
                     AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $1))
                 AND channel = $3"
        );
        let wanted = params![key(workspace), key(contact), number(&Channel::ALL, &channel)];
        let query = Query::new(SQL, wanted, move |row| {
            let times = send_times::from_bytes(get(row, 1)?);
            let times = times.ok_or(Fault::Malformed("times of sends are of four bytes"))?;
            let record = ContactSends { workspace_id: workspace, contact_id: contact, channel, times };
            Ok(Stored { record, revision: get(row, 0)? })
        });
        self.one(query.point()).await
    }

    async fn forget_campaign_rows(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.forget_rows_of_campaigns(now, limit).await
    }
}
