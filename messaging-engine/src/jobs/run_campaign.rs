//! All that happens to a campaign as a whole, from its start to its end.

use std::collections::BTreeMap;

use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Begins a campaign, finds its audience, makes and releases its messages, chooses its winner, ends it, and withdraws
/// what is left of one that was cancelled. A campaign has one such job at most, which is woken whenever something has
/// become of the campaign.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunCampaign {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) campaign_id: CampaignId,
    /// When it was to go on at the latest; a run that comes hours later finds a campaign that stood still.
    pub(crate) expected_at: Timestamp,
    /// How many messages of a track are in delivery at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) windows: BTreeMap<u8, u16>,
}

impl RunCampaign {
    /// The job of a campaign that goes on at a time.
    pub const fn of(campaign: &Campaign, at: Timestamp) -> Self {
        Self {
            workspace_id: campaign.workspace_id,
            campaign_id: campaign.id,
            expected_at: at,
            windows: BTreeMap::new(),
        }
    }

    /// The lane of the one job of a campaign. Not that of bulk mail, whose places slow mail servers may hold.
    pub(crate) fn lane_of(workspace: WorkspaceId, campaign: CampaignId) -> Lane {
        Lane::new(JobClass::Transactional, workspace, &format!("{}{campaign}", lanes::CAMPAIGN))
    }
}

impl JobData for RunCampaign {
    const KIND: &'static str = "run_campaign";
    const REACH: Reach = Reach::Outside;

    fn lane(&self) -> Lane {
        Self::lane_of(self.workspace_id, self.campaign_id)
    }
}
