//! Campaigns, their messages, and the messages that wait to be released.

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

/// Filter of a listing of a campaign's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CampaignMessageFilter {
    /// All messages.
    All,
    /// Messages with this engagement.
    Engaged(EngagementFlags),
    /// Messages with a status in this set, each a bit at its place in
    /// [`MessageStatus::ALL`](crate::domain::message::MessageStatus::ALL).
    Statuses(u16),
}

/// Reads of campaigns.
#[async_trait]
pub trait Campaigns {
    /// Looks up a campaign.
    async fn campaign(&self, workspace: WorkspaceId, id: CampaignId) -> Result<Option<Stored<Campaign>>, StoreError>;
    /// Returns campaigns, newest first; only those in a state if one is given.
    async fn campaigns(
        &self,
        workspace: WorkspaceId,
        status: Option<CampaignStatus>,
        page: PageRequest,
    ) -> Result<Slice<Campaign>, StoreError>;
    /// Returns campaigns with an [`archive_time`](crate::domain::campaign::archive::archive_time), the latest first, at
    /// most `limit`; those after `before` if it is given, and none if that has no such time.
    async fn archived_campaigns(
        &self,
        workspace: WorkspaceId,
        before: Option<CampaignId>,
        limit: usize,
    ) -> Result<Vec<Campaign>, StoreError>;
    /// Returns the campaigns of all workspaces that are scheduled, sending or paused, in no particular order.
    async fn open_campaigns(&self, page: PageRequest) -> Result<Slice<Campaign>, StoreError>;
    /// Returns campaigns that hold a resource, at most `limit`.
    async fn campaigns_holding(
        &self,
        workspace: WorkspaceId,
        what: Reference,
        limit: usize,
    ) -> Result<Vec<CampaignId>, StoreError>;
    /// Returns the progress of the work on a campaign.
    async fn campaign_progress(
        &self,
        workspace: WorkspaceId,
        id: CampaignId,
    ) -> Result<Option<Stored<CampaignProgress>>, StoreError>;

    /// Returns the due messages of a campaign and a track, the longest due first, at most `limit`.
    async fn due_messages(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        track: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<WaitingKey>, StoreError>;
    /// Returns the tracks of a campaign on which messages wait, each with the time when its first is due.
    async fn waiting_tracks(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
    ) -> Result<Vec<(u8, Timestamp)>, StoreError>;
    /// Returns the messages of a campaign, newest first. A page may be short, or empty, and have a next one: a store
    /// bounds how many messages one call looks at.
    async fn campaign_messages(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        wanted: CampaignMessageFilter,
        page: PageRequest,
    ) -> Result<Slice<Message>, StoreError>;
    /// Returns the message of a campaign to a contact, if there is one.
    async fn campaign_message_of(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        contact: ContactId,
    ) -> Result<Option<MessageId>, StoreError>;
    /// Returns the times at which attempts of marketing messages to a contact on a channel began.
    async fn contact_sends(
        &self,
        workspace: WorkspaceId,
        contact: ContactId,
        channel: Channel,
    ) -> Result<Option<Stored<ContactSends>>, StoreError>;
    /// Deletes up to `limit` rows of deleted campaigns and of sends that no frequency cap needs any more; returns how
    /// many. A write outside of [`Changes`](crate::changes::Changes): it decides nothing and may stop anywhere.
    async fn forget_campaign_rows(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
