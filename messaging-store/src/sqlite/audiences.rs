//! Audiences of campaigns: who is in them, as it is found ([`scan`], [`walk`], [`preview`]), and as it was frozen
//! ([`kept`], [`taken`]).
//!
//! What is found is found on the thread for scans, in looks of some milliseconds, each of which is one snapshot.

mod kept;
mod left_out;
mod preview;
mod recipients;
mod scan;
mod suppressed;
mod taken;
#[cfg(test)]
mod tests;
mod walk;

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use messaging_core::changes::AudienceRow;
use messaging_core::domain::campaign::audience::{AudienceSet, ContactFacts};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel_content::ViberService;
use messaging_core::ids::{CampaignId, ContactId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::store::audiences::{
    AudiencePiece, AudiencePreview, AudienceQuery, Audiences, CampaignRecipient,
};

use self::preview::Count;
use self::scan::LOOK;
use self::taken::Taken;
use self::walk::Walk;
use super::SqliteStore;

pub(super) use self::kept::{forget_campaign, put};
pub(super) use self::left_out::{
    SLICE as LEFT_OUT_SLICE, forget as forget_left_out, forget_some as forget_some_left_out, old as old_left_out,
    put as leave_out,
};
pub(super) use self::taken::{forget as forget_addresses, take};

#[async_trait]
impl Audiences for SqliteStore {
    async fn audience_piece(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        piece: Option<u64>,
    ) -> Result<AudiencePiece, StoreError> {
        let mut walk = Walk::new(workspace, query, piece);
        loop {
            let (gone_on, is_all) = self
                .scans
                .read(move |connection| {
                    let is_all = walk.go_on(connection, LOOK)?;
                    Ok((walk, is_all))
                })
                .await?;
            walk = gone_on;
            if is_all {
                return Ok(walk.found());
            }
        }
    }

    async fn taken_addresses(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        digests: Vec<u64>,
    ) -> Result<Vec<u64>, StoreError> {
        let mut taken = Taken::new(workspace, campaign, digests);
        loop {
            let (gone_on, is_all) = self
                .scans
                .read(move |connection| {
                    let is_all = taken.go_on(connection)?;
                    Ok((taken, is_all))
                })
                .await?;
            taken = gone_on;
            if is_all {
                return Ok(taken.found());
            }
        }
    }

    async fn preview_audience(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
    ) -> Result<AudiencePreview, StoreError> {
        let began = Instant::now();
        let mut count = Count::new(workspace, query);
        loop {
            let (gone_on, is_all) = self
                .scans
                .read(move |connection| {
                    let is_all = count.go_on(connection)?;
                    Ok((count, is_all))
                })
                .await?;
            count = gone_on;
            if is_all || count.is_over(began) {
                return Ok(count.preview());
            }
        }
    }

    async fn audience_facts(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        contact: ContactId,
    ) -> Result<Option<ContactFacts>, StoreError> {
        let query = Arc::clone(query);
        self.scans.read(move |connection| scan::facts_of(connection, workspace, &query, contact)).await
    }

    async fn audience_rows(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        set: AudienceSet,
        from: u64,
        limit: usize,
    ) -> Result<Vec<AudienceRow>, StoreError> {
        self.readers.read(move |connection| kept::rows(connection, workspace, campaign, set, from, limit)).await
    }

    async fn audience_sets_of(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        contact: ContactId,
    ) -> Result<Vec<AudienceSet>, StoreError> {
        self.readers.read(move |connection| kept::sets_of(connection, workspace, campaign, contact)).await
    }

    async fn addresses_left_in(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        channel: Channel,
        contact: ContactId,
        addresses: Vec<String>,
    ) -> Result<Vec<String>, StoreError> {
        self.readers
            .read(move |connection| left_out::rest(connection, workspace, campaign, channel, contact, addresses))
            .await
    }

    async fn campaign_recipients(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        channel: Channel,
        viber: ViberService,
        numbers: &[u64],
    ) -> Result<Vec<CampaignRecipient>, StoreError> {
        let numbers = numbers.to_vec();
        self.readers
            .read(move |connection| recipients::numbered(connection, workspace, campaign, (channel, viber), &numbers))
            .await
    }
}
