//! The end of an A/B test, and its winner.

use messaging_core::changes::{Changes, Condition, Expect, Write};
use messaging_core::domain::campaign::CampaignPhase;
use messaging_core::domain::campaign::progress::Group;
use messaging_core::domain::campaign::stats::trials;
use messaging_core::domain::campaign::winner::{Choice, choose, scores};

use super::{Step, UnderWay, put};
use crate::jobs::run_campaign::RunCampaign;
use crate::work::job::{JobContext, JobError};

impl RunCampaign {
    /// Advances an A/B test, if that is due: from the test group that has its messages to the wait for a winner, from
    /// there to the winner, and then to the messages of the rest. A pause holds up none of it. `None` if nothing is
    /// due.
    pub(super) async fn decide(
        &self,
        cx: &JobContext,
        under_way: &UnderWay,
        waiting: u64,
    ) -> Result<Option<Step>, JobError> {
        let UnderWay { campaign, progress, now } = under_way;
        let (campaign, revision, now) = (&campaign.record, campaign.revision, *now);
        let fan_out = &progress.record.fan_out;
        match campaign.phase {
            Some(CampaignPhase::Testing) if fan_out.group == Group::Test && fan_out.is_done && waiting == 0 => {
                let Some(tested) = campaign.test_sent(now) else { return Ok(None) };
                put(cx, &tested, revision).await?;
            }
            Some(CampaignPhase::WaitingWinner) if campaign.winner_due_at().is_some_and(|due| due <= now) => {
                let counts = cx.app.store().campaign_counts(self.workspace_id, self.campaign_id).await?;
                let trials = trials(campaign, &counts);
                let (scores, test) = (scores(&trials), campaign.plan.settings.ab_test);
                let Some(Choice::Winner(place)) = test.map(|test| choose(&trials, &scores, &test)) else {
                    // A person decides.
                    return Ok(None);
                };
                let Some(decided) = campaign.decided(place, scores, now) else { return Ok(None) };
                put(cx, &decided, revision).await?;
            }
            Some(CampaignPhase::Winner) if fan_out.group == Group::Test => {
                let mut next = progress.record.clone();
                next.begin_rest();
                let put = Write::put(Box::new(next), Expect::Revision(progress.revision));
                let expected = Write::Expect(Condition::Campaign(self.workspace_id, self.campaign_id, campaign.status));
                cx.commit(Changes::from_iter([expected, put])).await?;
            }
            _ => return Ok(None),
        }
        Ok(Some(Step::Again))
    }
}
