//! Progress of a campaign as a whole, from its start to its end.

use std::collections::BTreeMap;

use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jobs::{JobData, Reach, lanes};

/// Job that begins a campaign, finds its audience, makes and releases its messages, chooses its winner, ends it, and
/// withdraws the rest of a cancelled one. A campaign has at most one such job, which is woken whenever the campaign
/// changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunCampaign {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) campaign_id: CampaignId,
    /// Time at which the job was to continue at the latest; a run that comes hours later finds a campaign that stood
    /// still.
    pub(crate) expected_at: Timestamp,
    /// Largest number of messages of each track that are in delivery.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) windows: BTreeMap<u8, u16>,
}

impl RunCampaign {
    /// Returns the job of a campaign that continues at a time.
    pub const fn of(campaign: &Campaign, at: Timestamp) -> Self {
        Self {
            workspace_id: campaign.workspace_id,
            campaign_id: campaign.id,
            expected_at: at,
            windows: BTreeMap::new(),
        }
    }

    /// Returns the lane of the one job of a campaign. It is not bulk, whose places slow mail servers may hold.
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
