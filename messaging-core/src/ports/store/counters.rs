//! Counters of messages, and series over time.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::analytics::site_tally::SiteCounts;
use crate::domain::analytics::tally::Counts;
use crate::domain::analytics::tally::buckets::Quarter;
use crate::domain::channel::Channel;
use crate::ids::{CampaignId, WorkspaceId};

/// Messages that a series counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesOf {
    /// Messages of the workspace, on a channel if one is given.
    Workspace(Option<Channel>),
    /// Messages of a campaign, of all of its variants.
    Campaign(CampaignId),
}

/// Reads of counters.
#[async_trait]
pub trait Counters {
    /// Returns the totals of a campaign by variant, in the order of the variants up to the last that has any. The cost
    /// does not depend on the number of messages.
    async fn campaign_counts(&self, workspace: WorkspaceId, campaign: CampaignId) -> Result<Vec<Counts>, StoreError>;
    /// Returns the counts in the quarters of an hour from `from` to before `to`, in order, without quarters in which
    /// nothing was counted.
    async fn series(
        &self,
        workspace: WorkspaceId,
        of: SeriesOf,
        from: Quarter,
        to: Quarter,
    ) -> Result<Vec<(Quarter, Counts)>, StoreError>;
    /// Returns the counts of email by site in the quarters of an hour from `from` to before `to`: sites with most
    /// messages first, then by name; at most `limit`.
    async fn site_activity(
        &self,
        workspace: WorkspaceId,
        from: Quarter,
        to: Quarter,
        limit: usize,
    ) -> Result<Vec<(String, SiteCounts)>, StoreError>;
    /// Deletes counts by site of quarters before one, at most `limit`; returns how many.
    async fn forget_site_activity(&self, before: Quarter, limit: usize) -> Result<u64, StoreError>;
    /// Returns the links of a campaign's templates that people clicked, by variant and number: at most 64 of each
    /// variant.
    async fn campaign_links(&self, workspace: WorkspaceId, campaign: CampaignId)
    -> Result<Vec<LinkCounts>, StoreError>;
}

/// Clicks on a link of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkCounts {
    /// Variant of the campaign.
    pub variant: u8,
    /// Number of the link in the variant's template.
    pub link: u8,
    /// The URL as it stands in the template.
    pub url: String,
    /// Clicks of people.
    pub clicks: u64,
    /// Messages in which people clicked the link.
    pub unique_clicks: u64,
}
