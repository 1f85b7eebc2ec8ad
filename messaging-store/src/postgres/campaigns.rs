//! Rows of campaigns on PostgreSQL.
//!
//! Messages that wait to be released are in [`waiting`], the removal of rows in [`forget`].

mod forget;
mod waiting;

use async_trait::async_trait;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;

use super::Postgres;
use super::transaction::Transaction;
use crate::sql::params;
use crate::tables::audiences::forget_old_left_out;
use crate::tables::campaigns::CampaignRows;

pub(super) use waiting::{insert as insert_waiting, put as put_waiting, take as take_waiting};

#[async_trait]
impl CampaignRows for Postgres {
    async fn tracks(&self, workspace: WorkspaceId, campaign: CampaignId) -> Result<Vec<(u8, Timestamp)>, StoreError> {
        waiting::tracks(&self.reads, workspace, campaign).await
    }

    async fn forget_rows_of_campaigns(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let room = |forgotten: u64| limit.saturating_sub(usize::try_from(forgotten).unwrap_or(limit));
        let mut forgotten = forget::removed_campaigns(&self.writes, limit).await?;
        forgotten += forget_old_left_out(self, now, room(forgotten)).await?;
        forgotten += forget::contact_sends(&self.writes, now, room(forgotten)).await?;
        Ok(forgotten)
    }
}

/// Removes the sends to a contact that is removed, by its number.
pub(super) fn delete_contact_sends(transaction: &mut Transaction, contact: i64) {
    transaction.run("DELETE FROM contact_sends WHERE contact = $1", params![contact]);
}
