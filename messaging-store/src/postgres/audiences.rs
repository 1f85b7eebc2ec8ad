//! Audiences of campaigns: who is in them, as it is found ([`scan`], [`walk`], [`preview`]), and as it was frozen
//! ([`kept`], [`taken`], [`left_out`]).

mod campaign;
mod kept;
mod left_out;
mod preview;
mod recipients;
mod scan;
mod taken;
mod walk;

use std::sync::Arc;

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

use super::PostgresStore;

pub(super) use self::kept::put;
pub(super) use self::left_out::{forget as forget_left_out, forget_old as forget_old_left_out, put as leave_out};
pub(super) use self::taken::{forget as forget_addresses, take};

/// Statements that remove rows of a removed campaign, `$1`, at most `$2`.
pub(super) const FORGET_CAMPAIGN: [&str; 3] = [
    "DELETE FROM campaign_audience WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM campaign_audience WHERE campaign = $1 LIMIT $2 FOR UPDATE))",
    "DELETE FROM campaign_addresses WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM campaign_addresses WHERE campaign = $1 LIMIT $2 FOR UPDATE))",
    "DELETE FROM campaign_left_out WHERE ctid = ANY (ARRAY (
         SELECT ctid FROM campaign_left_out WHERE campaign = $1 LIMIT $2 FOR UPDATE))",
];

#[async_trait]
impl Audiences for PostgresStore {
    async fn audience_piece(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        piece: Option<u64>,
    ) -> Result<AudiencePiece, StoreError> {
        Ok(walk::piece(&self.reads, workspace, query, piece).await?)
    }

    async fn taken_addresses(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        digests: Vec<u64>,
    ) -> Result<Vec<u64>, StoreError> {
        Ok(taken::among(&self.reads, workspace, campaign, digests).await?)
    }

    async fn preview_audience(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
    ) -> Result<AudiencePreview, StoreError> {
        Ok(preview::preview(&self.reads, workspace, query).await?)
    }

    async fn audience_facts(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        contact: ContactId,
    ) -> Result<Option<ContactFacts>, StoreError> {
        Ok(scan::facts_of(&self.reads, workspace, query, contact).await?)
    }

    async fn audience_rows(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        set: AudienceSet,
        from: u64,
        limit: usize,
    ) -> Result<Vec<AudienceRow>, StoreError> {
        kept::rows(&self.reads, (workspace, campaign), set, from, limit).await
    }

    async fn audience_sets_of(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        contact: ContactId,
    ) -> Result<Vec<AudienceSet>, StoreError> {
        kept::sets_of(&self.reads, workspace, campaign, contact).await
    }

    async fn addresses_left_in(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        channel: Channel,
        contact: ContactId,
        addresses: Vec<String>,
    ) -> Result<Vec<String>, StoreError> {
        Ok(left_out::rest(&self.reads, (workspace, campaign), channel, contact, addresses).await?)
    }

    async fn campaign_recipients(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        channel: Channel,
        viber: ViberService,
        numbers: &[u64],
    ) -> Result<Vec<CampaignRecipient>, StoreError> {
        Ok(recipients::numbered(&self.reads, (workspace, campaign), (channel, viber), numbers).await?)
    }
}
