//! The start of a campaign, and its going on after a pause.

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::campaign::Campaign;
use messaging_core::domain::campaign::progress::CampaignProgress;
use messaging_core::ports::store::Stored;
use messaging_core::time::Timestamp;

use super::{Step, fail, put};
use crate::jobs::run_campaign::RunCampaign;
use crate::work::job::{JobContext, JobError};

impl RunCampaign {
    /// Its time has come. The first time its templates and senders are pinned; afterwards they stay as they were, with
    /// the audience.
    pub(super) async fn begin(
        &self,
        cx: &JobContext,
        stored: &Stored<Campaign>,
        now: Timestamp,
    ) -> Result<Step, JobError> {
        let campaign = &stored.record;
        let Some(begun) = campaign.begin(now) else { return Ok(Step::Again) };
        if campaign.started_at.is_some() {
            let progress = cx.app.store().campaign_progress(self.workspace_id, self.campaign_id).await?;
            let senders = progress.map(|stored| stored.record.senders).unwrap_or_default();
            if let Err(reason) = cx.app.check_pinned(campaign, &senders).await? {
                return fail(cx, stored, reason, now).await;
            }
            put(cx, &begun, stored.revision).await?;
            return Ok(Step::Again);
        }
        let variants = match cx.app.pin_variants(campaign).await? {
            Ok(variants) => variants,
            Err(reason) => return fail(cx, stored, reason, now).await,
        };
        if let Some(limit) = campaign.plan.settings.rate_limit {
            cx.app.campaign_pace().start(campaign.id, limit);
        }
        let senders: Vec<_> = variants.iter().filter_map(|(_, sender)| sender.clone()).collect();
        let sending_domains = cx.app.sending_domains_of_senders(campaign.workspace_id, &senders).await?;
        let begun = Campaign { sending_domains, ..begun };
        let progress = CampaignProgress::new(&begun, now, variants);
        let writes = [
            Write::put(Box::new(begun), Expect::Revision(stored.revision)),
            Write::put(Box::new(progress), Expect::Absent),
        ];
        cx.commit(Changes::from_iter(writes)).await?;
        Ok(Step::Again)
    }
}
