//! Counters of messages, and series over time.

use async_trait::async_trait;

use super::{StoreCursor, StoreError};
use crate::domain::channel::Channel;
use crate::domain::message::{Message, MessageSource};
use crate::domain::tally::Counts;
use crate::domain::tally::buckets::Quarter;
use crate::ids::{CampaignId, WorkspaceId};

/// What series are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeriesFilter {
    /// Of this channel.
    pub channel: Option<Channel>,
    /// Of this campaign, all of its variants.
    pub campaign: Option<CampaignId>,
}

/// Counters as they are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptCounts {
    /// Whose.
    pub workspace_id: WorkspaceId,
    /// Of which messages; never transactional ones, which have series only.
    pub source: MessageSource,
    /// The totals.
    pub totals: Counts,
}

/// Reads of counters.
#[async_trait]
pub trait Counters {
    /// The totals of a campaign by variant, in the order of the variants up to the last that has any. The cost does not
    /// depend on how many messages there are.
    async fn campaign_counts(&self, workspace: WorkspaceId, campaign: CampaignId) -> Result<Vec<Counts>, StoreError>;
    /// What was counted in the quarters of an hour from `from` to before `to`, in order; quarters without anything are
    /// left out.
    async fn series(
        &self,
        workspace: WorkspaceId,
        filter: SeriesFilter,
        from: Quarter,
        to: Quarter,
    ) -> Result<Vec<(Quarter, Counts)>, StoreError>;
    /// How many messages of a campaign were sent in which people followed each of the links of a template, by number;
    /// and how often each was followed.
    async fn campaign_links(&self, workspace: WorkspaceId, campaign: CampaignId)
    -> Result<Vec<LinkCounts>, StoreError>;

    /// All kept totals, a page at a time: to be compared with a recount.
    async fn kept_counts(
        &self,
        after: Option<StoreCursor>,
        limit: usize,
    ) -> Result<(Vec<KeptCounts>, Option<StoreCursor>), StoreError>;
    /// Messages of all workspaces, in the order of their keys: for a recount.
    async fn all_messages(
        &self,
        after: Option<(WorkspaceId, StoreCursor)>,
        limit: usize,
    ) -> Result<Vec<Message>, StoreError>;
}

/// How often a link of a campaign was followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkCounts {
    /// Its variant.
    pub variant: u8,
    /// Its number among the links of the variant's template.
    pub link: u8,
    /// The URL as it stands in the template.
    pub url: String,
    /// How often people followed it.
    pub clicks: u64,
    /// In how many messages they did.
    pub unique_clicks: u64,
}
