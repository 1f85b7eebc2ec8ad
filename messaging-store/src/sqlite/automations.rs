//! Automations: what is written and let go in a way of SQLite's own. The rest is in
//! [`tables`](crate::tables::automations); how notes are made is in [`listeners`](super::listeners).

mod answers;
mod contacts;
mod forget;
mod runs;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{FilterQuery, StoreError};
use messaging_core::time::Timestamp;
use rusqlite::Connection;

use super::Sqlite;
use crate::tables::automations::{AutomationRows, SLICE};

pub(super) use contacts::{delete as delete_runs, merge as move_runs};
pub(super) use runs::{count_nodes, put as put_run, put_date_fires};

#[async_trait]
impl AutomationRows for Sqlite {
    /// Notes come in the order of the commits.
    async fn settled_notes(&self, _: WorkspaceId) -> Result<Option<i64>, StoreError> {
        Ok(Some(i64::MAX))
    }

    async fn answer(
        &self,
        workspace: WorkspaceId,
        asks: &[FilterQuery],
        zone: &TimeZone,
    ) -> Result<Vec<bool>, StoreError> {
        let (asks, zone) = (asks.to_vec(), zone.clone());
        self.scans.read(move |connection| answers::answer(connection, workspace, &asks, &zone)).await
    }

    async fn forget_ended_runs(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let forget = move |connection: &Connection, slice| forget::ended_runs(connection, before, slice);
        self.forget_in_slices(limit, SLICE, forget).await
    }
}
