//! Counters of messages, and series over time.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::analytics::site_tally::SiteCounts;
use crate::domain::analytics::tally::Counts;
use crate::domain::analytics::tally::buckets::Quarter;
use crate::domain::channel::Channel;
use crate::ids::{CampaignId, WorkspaceId};

/// The messages that a series counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesOf {
    /// Those of the workspace, on a channel if one is given.
    Workspace(Option<Channel>),
    /// Those of a campaign, of all of its variants.
    Campaign(CampaignId),
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
        of: SeriesOf,
        from: Quarter,
        to: Quarter,
    ) -> Result<Vec<(Quarter, Counts)>, StoreError>;
    /// Counts of email by site in the quarters of an hour from `from` to before `to`: those with most messages first, then by
    /// name; at most `limit`.
    async fn site_activity(
        &self,
        workspace: WorkspaceId,
        from: Quarter,
        to: Quarter,
        limit: usize,
    ) -> Result<Vec<(String, SiteCounts)>, StoreError>;
    /// Forgets counts by site of quarters before one, at most `limit`; answers how many.
    async fn forget_site_activity(&self, before: Quarter, limit: usize) -> Result<u64, StoreError>;
    /// The links of a campaign's templates that people followed, by variant and number: at most 64 of each variant.
    async fn campaign_links(&self, workspace: WorkspaceId, campaign: CampaignId)
    -> Result<Vec<LinkCounts>, StoreError>;
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
    /// The number of times that people followed it.
    pub clicks: u64,
    /// In how many messages they did.
    pub unique_clicks: u64,
}
