//! Audiences of campaigns: who is in them, as it is found ([`scan`], [`walk`], [`preview`]), and which addresses are taken.

mod preview;
mod scan;
mod walk;

use std::sync::Arc;

use async_trait::async_trait;
use messaging_core::domain::campaign::audience::ContactFacts;
use messaging_core::ids::{CampaignId, ContactId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::store::audiences::{AudiencePiece, AudiencePreview, AudienceQuery};

use super::Postgres;
use super::fault::Fault;
use super::query::params;
use super::row::{get, uuid};
use crate::audience_rows::common;
use crate::tables::audiences::AudienceRows;

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
impl AudienceRows for Postgres {
    async fn piece(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        piece: Option<u64>,
    ) -> Result<AudiencePiece, StoreError> {
        Ok(walk::piece(&self.reads, workspace, query, piece).await?)
    }

    async fn taken(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        digests: Vec<u64>,
    ) -> Result<Vec<u64>, StoreError> {
        const SQL: &str = "SELECT digests FROM campaign_addresses
            WHERE campaign = (SELECT n FROM campaigns WHERE workspace = $1 AND id = $2 AND NOT removed) ORDER BY n";
        let mut found = Vec::new();
        let mut on = self.reads.snapshot().await?;
        on.each_row(SQL, params![uuid(workspace), uuid(campaign)], |row| {
            let are_digests = common(&digests, get(row, 0)?, &mut found);
            if are_digests { Ok(()) } else { Err(Fault::Malformed("digests of addresses cannot be read")) }
        })
        .await?;
        on.end().await?;
        Ok(found)
    }

    async fn count_audience(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
    ) -> Result<AudiencePreview, StoreError> {
        Ok(preview::preview(&self.reads, workspace, query).await?)
    }

    async fn facts(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        contact: ContactId,
    ) -> Result<Option<ContactFacts>, StoreError> {
        Ok(scan::facts_of(&self.reads, workspace, query, contact).await?)
    }
}
