//! Rows of campaigns on SQLite.
//!
//! Messages that wait to be released are in [`waiting`], the removal of rows in [`forget`].

mod forget;
mod sends_look;
mod waiting;

use async_trait::async_trait;
use messaging_core::ids::{CampaignId, WorkspaceId};
use messaging_core::ports::store::StoreError;
use messaging_core::time::Timestamp;
use rusqlite::Connection;

use super::Sqlite;
use super::fault::Fault;
use crate::tables::audiences::forget_old_left_out;
use crate::tables::campaigns::CampaignRows;

pub(super) use sends_look::SendsLook;
pub(super) use waiting::{insert as insert_waiting, put as put_waiting, take as take_waiting};

#[async_trait]
impl CampaignRows for Sqlite {
    async fn tracks(&self, workspace: WorkspaceId, campaign: CampaignId) -> Result<Vec<(u8, Timestamp)>, StoreError> {
        self.readers.read(move |connection| waiting::tracks(connection, workspace, campaign)).await
    }

    async fn forget_rows_of_campaigns(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let room = |forgotten: u64| limit.saturating_sub(usize::try_from(forgotten).unwrap_or(limit));
        let mut forgotten = self.forget_removed_campaigns(limit).await?;
        forgotten += self.forget_contact_sends(now, room(forgotten)).await?;
        Ok(forgotten + forget_old_left_out(self, now, room(forgotten)).await?)
    }
}

/// Removes the sends to a contact that is removed.
pub(super) fn delete_contact_sends(connection: &Connection, contact: i64) -> Result<(), Fault> {
    connection.prepare_cached("DELETE FROM contact_sends WHERE contact = ?1")?.execute([contact])?;
    Ok(())
}
