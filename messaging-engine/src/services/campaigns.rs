//! Code that operations on campaigns and jobs of campaigns share.

use messaging_core::changes::{JobWrite, Write};
use messaging_core::domain::campaign::{Campaign, CampaignStatus, FailureReason};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::domain::delivery::recipient_time::Terms;
use messaging_core::domain::mail::sender;
use messaging_core::domain::message::content::TemplateUse;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::run_campaign::RunCampaign;

/// Pinned template of a variant, with its sender.
pub(crate) type PinnedVariant = (TemplateUse, Option<String>);

impl App {
    /// Returns the writes that have a job work on a changed campaign: part of every commit that schedules, resumes,
    /// pauses, cancels or unschedules it, or chooses its winner. The job finds out itself what to do; one that was
    /// added for another time, or for a campaign that is a draft again, does nothing.
    pub(crate) fn campaign_changed(&self, campaign: &Campaign, now: Timestamp) -> Vec<Write> {
        let at = campaign.starts_at().map_or(now, |at| at.max(now));
        let job = RunCampaign::of(campaign, at).enqueue(self.new_id(now), at);
        // The added job is not woken: it waits for its time.
        let mut writes =
            vec![Self::wake_campaign(campaign.workspace_id, campaign.id, now), Write::Job(JobWrite::EnqueueOnce(job))];
        writes.extend(Self::forget_addresses(campaign));
        writes
    }

    /// Returns the writes that remove the recorded addresses of a campaign's recipients, if it has ended: part of the
    /// commit that ends it, perhaps while its audience was being found. A page of the audience that is judged at the
    /// same moment conflicts, so nothing is recorded afterwards.
    pub(crate) fn forget_addresses(campaign: &Campaign) -> Vec<Write> {
        use CampaignStatus::{Cancelled, Failed, Sent};
        let (workspace, id) = (campaign.workspace_id, campaign.id);
        let forget = Write::ForgetAddresses(workspace, id);
        match campaign.status {
            Cancelled | Failed => vec![forget, Write::ForgetLeftOut(workspace, id)],
            Sent => vec![forget],
            _ => Vec::new(),
        }
    }

    /// Returns the write that wakes the job of a campaign: something that it waits for has happened.
    pub(crate) fn wake_campaign(workspace: WorkspaceId, campaign: CampaignId, now: Timestamp) -> Write {
        Write::Job(JobWrite::WakeLane(RunCampaign::lane_of(workspace, campaign), now))
    }

    /// Returns the current templates of a campaign's variants and their senders, in the order of the variants; or the
    /// reason why the campaign cannot be sent.
    pub(crate) async fn pin_variants(
        &self,
        campaign: &Campaign,
    ) -> Result<Result<Vec<PinnedVariant>, FailureReason>, StoreError> {
        let (workspace, plan) = (campaign.workspace_id, &campaign.plan);
        let places = plan.places();
        let mut pinned = Vec::with_capacity(places.len());
        for place in places {
            let id = plan.template_of(place);
            let Some(template) = self.store().template_head(workspace, id).await? else {
                return Ok(Err(FailureReason::TemplateMissing));
            };
            let own = template.design.from_email.as_deref();
            match self.variant_sender(workspace, plan, own).await? {
                Ok(sender) => pinned.push((TemplateUse { id, version: template.version }, sender)),
                Err(_) => return Ok(Err(FailureReason::SenderDomainNotVerified)),
            }
        }
        Ok(self.check_channel(workspace, plan.channel).await?.map(|()| pinned))
    }

    /// Checks that a campaign that has begun can continue: its senders may still send, and its channel has a provider.
    pub(crate) async fn check_pinned(
        &self,
        campaign: &Campaign,
        senders: &[Option<String>],
    ) -> Result<Result<(), FailureReason>, StoreError> {
        let domains = self.sending_domains(campaign.workspace_id).await?;
        let may_send = |text: &String| EmailAddress::parse(text).is_ok_and(|one| sender::may_send(&one, &domains));
        if !senders.iter().flatten().all(may_send) {
            return Ok(Err(FailureReason::SenderDomainNotVerified));
        }
        self.check_channel(campaign.workspace_id, campaign.plan.channel).await
    }

    async fn check_channel(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
    ) -> Result<Result<(), FailureReason>, StoreError> {
        Ok(if self.has_transport(workspace, channel).await? {
            Ok(())
        } else {
            Err(FailureReason::ChannelNotConfigured)
        })
    }
}

/// Returns a campaign's restrictions on the time of sending; without its pause and pace.
pub(crate) fn terms(campaign: &Campaign) -> Terms {
    Terms {
        is_paused: false,
        wall_time: campaign.wall_time,
        quiet_hours: campaign.plan.settings.quiet_hours,
        frequency_cap: campaign.plan.settings.frequency_cap,
        pace_free_at: None,
    }
}
