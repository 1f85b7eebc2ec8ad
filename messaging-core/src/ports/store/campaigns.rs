//! Campaigns, their messages, and what of these waits to be released.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::changes::{ContactSends, WaitingKey};
use crate::domain::campaign::progress::CampaignProgress;
use crate::domain::campaign::{Campaign, CampaignStatus, Reference};
use crate::domain::channel::Channel;
use crate::domain::message::Message;
use crate::domain::message::milestones::EngagementFlags;
use crate::ids::{CampaignId, ContactId, MessageId, WorkspaceId};
use crate::time::Timestamp;

/// Which messages of a campaign a listing shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CampaignMessageFilter {
    /// All.
    All,
    /// Of which this was seen.
    Engaged(EngagementFlags),
    /// Of the statuses in this set, each a bit at its place in [`MessageStatus::ALL`](crate::domain::message::MessageStatus::ALL).
    Statuses(u16),
}

/// Reads of campaigns.
#[async_trait]
pub trait Campaigns {
    /// A campaign.
    async fn campaign(&self, workspace: WorkspaceId, id: CampaignId) -> Result<Option<Stored<Campaign>>, StoreError>;
    /// Campaigns, newest first; in a state if one is given.
    async fn campaigns(
        &self,
        workspace: WorkspaceId,
        status: Option<CampaignStatus>,
        page: PageRequest,
    ) -> Result<Slice<Campaign>, StoreError>;
    /// Campaigns with an [`archive_time`](crate::domain::campaign::archive::archive_time), the latest first, at most `limit`;
    /// those that come after `before` if it is given, and none where that has no such time.
    async fn archived_campaigns(
        &self,
        workspace: WorkspaceId,
        before: Option<CampaignId>,
        limit: usize,
    ) -> Result<Vec<Campaign>, StoreError>;
    /// Campaigns of all workspaces that are scheduled, sending or paused, in no particular order.
    async fn open_campaigns(&self, page: PageRequest) -> Result<Slice<Campaign>, StoreError>;
    /// Campaigns that hold something, at most `limit`.
    async fn campaigns_holding(
        &self,
        workspace: WorkspaceId,
        what: Reference,
        limit: usize,
    ) -> Result<Vec<CampaignId>, StoreError>;
    /// How far the work on a campaign has come.
    async fn campaign_progress(
        &self,
        workspace: WorkspaceId,
        id: CampaignId,
    ) -> Result<Option<Stored<CampaignProgress>>, StoreError>;

    /// Messages of a campaign and a track that are due, the longest due first, at most `limit`.
    async fn due_messages(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        track: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<WaitingKey>, StoreError>;
    /// The tracks of a campaign on which messages wait, each with when its first is due.
    async fn waiting_tracks(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
    ) -> Result<Vec<(u8, Timestamp)>, StoreError>;
    /// Messages of a campaign, newest first. A page may be short, or empty, and go on: a store looks at so many messages at
    /// a time.
    async fn campaign_messages(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        wanted: CampaignMessageFilter,
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError>;
    /// The message of a campaign to a contact, if it has one.
    async fn campaign_message_of(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        contact: ContactId,
    ) -> Result<Option<MessageId>, StoreError>;
    /// When marketing messages to a contact on a channel began.
    async fn contact_sends(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
        channel: Channel,
    ) -> Result<Option<Stored<ContactSends>>, StoreError>;
    /// Lets go up to `limit` rows of campaigns that were removed and of sends that no cap asks for any more; answers how
    /// many. A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_campaign_rows(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
