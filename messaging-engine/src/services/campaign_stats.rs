//! Statistics of a campaign: what came of its messages.

use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::campaign::stats::CampaignStats;
use messaging_core::ports::store::StoreError;

use crate::app::App;

impl App {
    /// The statistics of a campaign: two look-ups by key, however many messages it has.
    pub(crate) async fn campaign_stats(&self, campaign: &Campaign) -> Result<CampaignStats, StoreError> {
        let (workspace, id) = (campaign.workspace_id, campaign.id);
        let progress = self.store().campaign_progress(workspace, id).await?;
        let audience = progress.map(|stored| stored.record.counts).unwrap_or_default();
        let variants = self.store().campaign_counts(workspace, id).await?;
        Ok(CampaignStats::of(campaign, audience, &variants))
    }
}
