//! Campaigns of a database that is a copy.
//!
//! Contract section 22. It is not known here which messages of them the other server has sent since the copy was taken,
//! so each campaign waits for a person; a page at a time, and after an interruption the remaining ones follow.

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::campaign::{Campaign, PauseReason};
use messaging_core::domain::installation::fence::Fence;
use messaging_core::ids::CampaignId;
use messaging_core::ports::store::{CommitError, PageRequest, StoreError};

use crate::app::App;

/// Number of campaigns in a page.
const PAGE: usize = 50;

/// Number of tries to change a campaign while it keeps changing.
const MAX_COMMITS: usize = 8;

impl App {
    /// Pauses the campaigns that were scheduled or sending when the installation was fenced. A campaign that was
    /// scheduled since then waits for the end of the fence by itself.
    pub(crate) async fn pause_restored_campaigns(&self, fence: Fence) -> Result<(), CommitError> {
        let is_of_copy = |campaign: &Campaign| campaign.schedule_called_at.is_none_or(|called| called < fence.since);
        let mut after = None;
        loop {
            let page = self.store().open_campaigns(PageRequest { after, limit: PAGE }).await?;
            for campaign in page.items.iter().filter(|one| is_of_copy(one)) {
                let pause =
                    |found: &Campaign| found.hold_back(PauseReason::Restored, self.now()).filter(|_| is_of_copy(found));
                self.change_campaign("pauseCampaign", campaign, pause).await?;
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Cancels a page of the campaigns that are scheduled, sending or paused; returns their number. The job of each
    /// cancels its messages, and none of them leaves before.
    pub(crate) async fn cancel_open_campaigns(&self) -> Result<usize, CommitError> {
        let page = self.store().open_campaigns(PageRequest { after: None, limit: PAGE }).await?;
        for campaign in &page.items {
            self.change_campaign("cancelCampaign", campaign, |found| found.cancel(self.now()).ok()).await?;
        }
        Ok(page.items.len())
    }

    /// Commits a change of a campaign at its current revision, and records it like the `operation` of a person; does
    /// nothing if `change` returns `None`.
    async fn change_campaign(
        &self,
        operation: &str,
        campaign: &Campaign,
        change: impl Fn(&Campaign) -> Option<Campaign>,
    ) -> Result<(), CommitError> {
        let id: CampaignId = campaign.id;
        for _ in 0..MAX_COMMITS {
            let Some(stored) = self.store().campaign(campaign.workspace_id, id).await? else { return Ok(()) };
            let Some(changed) = change(&stored.record) else { return Ok(()) };
            let mut changes = Changes::from_iter(self.campaign_changed(&changed, self.now()));
            changes.extend(self.record_own_campaign_change(operation, &stored.record, &changed).await?);
            changes.push(Write::put(Box::new(changed), Expect::Revision(stored.revision)));
            match self.commit_in_background(changes).await {
                // The campaign was changed meanwhile, which only people do.
                Err(CommitError::Conflict) => {}
                outcome => return outcome,
            }
        }
        Err(CommitError::Conflict)
    }

    /// Checks whether the installation is fenced, and pauses the active campaigns and automations of the copy.
    pub(crate) async fn heed_fence(&self) -> Result<(), CommitError> {
        let fence: Result<_, StoreError> = self.store().fence().await;
        match fence? {
            Some(fence) => {
                self.pause_restored_campaigns(fence).await?;
                self.pause_restored_automations(fence).await
            }
            None => Ok(()),
        }
    }
}
