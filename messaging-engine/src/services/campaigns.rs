//! What operations on campaigns and the work on them have in common.

use messaging_core::changes::Write;
use messaging_core::domain::campaign::Campaign;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::run_campaign::RunCampaign;

impl App {
    /// The writes that have a campaign worked on as it has become: part of every commit that schedules, resumes, pauses,
    /// cancels or unschedules it, or chooses its winner. What the job is to do it finds out itself; one that was added
    /// for another time, or for a campaign that is a draft again, does nothing.
    pub(crate) fn campaign_changed(&self, campaign: &Campaign, now: Timestamp) -> [Write; 2] {
        let at = campaign.starts_at().map_or(now, |at| at.max(now));
        let job = RunCampaign::of(campaign, at).enqueue(self.new_id(now), at);
        // A job that this adds is not woken: it waits for its time.
        [Self::wake_campaign(campaign.workspace_id, campaign.id, now), Write::EnqueueOnce(job)]
    }

    /// The write that has a campaign looked at that is being worked on: something that it waits for has happened.
    pub(crate) fn wake_campaign(workspace: WorkspaceId, campaign: CampaignId, now: Timestamp) -> Write {
        Write::WakeLane(RunCampaign::lane_of(workspace, campaign), now)
    }
}
