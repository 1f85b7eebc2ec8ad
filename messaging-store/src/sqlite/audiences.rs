//! Audiences of campaigns: finding their contacts ([`scan`], [`preview`]), and addresses that recipients of a campaign
//! have already ([`taken_addresses`]).
//!
//! Contacts are found on the thread for scans, in steps that end after 25 ms (`LOOK`), each on a snapshot of its own.

mod preview;
mod scan;
mod suppressed;
mod taken_addresses;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use messaging_core::domain::campaign::audience::ContactFacts;
use messaging_core::ids::{CampaignId, ContactId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::ports::store::audiences::{AudiencePiece, AudiencePreview, AudienceQuery};
use rusqlite::Connection;

use self::preview::Count;
use self::scan::LOOK;
use self::taken_addresses::TakenAddressScan;
use super::Sqlite;
use super::fault::Fault;
use super::row::sql_limit;
use crate::tables::audiences::AudienceRows;
use crate::tables::audiences::walk::Walk;

/// Removes up to `limit` rows of a removed campaign, of a few megabytes at most; returns the number removed.
pub(super) fn forget_campaign(connection: &Connection, campaign: i64, limit: usize) -> Result<usize, Fault> {
    let mut forgotten = 0;
    for (sql, most) in [
        (
            "DELETE FROM campaign_audience WHERE (campaign, kind, due_at, piece) IN
                 (SELECT campaign, kind, due_at, piece FROM campaign_audience WHERE campaign = ?1 LIMIT ?2)",
            200,
        ),
        (
            "DELETE FROM campaign_addresses WHERE (campaign, n) IN
                 (SELECT campaign, n FROM campaign_addresses WHERE campaign = ?1 LIMIT ?2)",
            4,
        ),
        (
            "DELETE FROM campaign_left_out WHERE (campaign, piece) IN
                 (SELECT campaign, piece FROM campaign_left_out WHERE campaign = ?1 LIMIT ?2)",
            4,
        ),
    ] {
        let room = sql_limit(limit.saturating_sub(forgotten).min(most));
        forgotten += connection.prepare_cached(sql)?.execute([campaign, room])?;
    }
    Ok(forgotten)
}

#[async_trait]
impl AudienceRows for Sqlite {
    async fn piece(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        piece: Option<u64>,
    ) -> Result<AudiencePiece, StoreError> {
        let mut walk = Walk::new(piece);
        loop {
            let query = Arc::clone(query);
            let (gone_on, is_all) = self
                .scans
                .read(move |connection| {
                    let is_all = scan::walk_on(connection, workspace, &query, &mut walk, LOOK)?;
                    Ok((walk, is_all))
                })
                .await?;
            walk = gone_on;
            if is_all {
                return Ok(walk.into_piece());
            }
        }
    }

    async fn taken(
        &self,
        workspace: WorkspaceId,
        campaign: CampaignId,
        digests: Vec<u64>,
    ) -> Result<Vec<u64>, StoreError> {
        let mut scan = TakenAddressScan::new(workspace, campaign, digests);
        loop {
            let (gone_on, is_all) = self
                .scans
                .read(move |connection| {
                    let is_all = scan.go_on(connection)?;
                    Ok((scan, is_all))
                })
                .await?;
            scan = gone_on;
            if is_all {
                return Ok(scan.into_taken());
            }
        }
    }

    async fn count_audience(
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

    async fn facts(
        &self,
        workspace: WorkspaceId,
        query: &Arc<AudienceQuery>,
        contact: ContactId,
    ) -> Result<Option<ContactFacts>, StoreError> {
        let query = Arc::clone(query);
        self.scans.read(move |connection| scan::facts_of(connection, workspace, &query, contact)).await
    }
}
