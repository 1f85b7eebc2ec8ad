//! Automations on PostgreSQL: the writes, look-ups and deletions that differ from SQLite. What both databases share is
//! in [`tables`](crate::tables::automations); notes of what automations listen for are made in [`listeners`].
//!
//! A transaction that writes about the automations of a workspace holds their advisory lock, see [`listeners::lock`].

mod contacts;
mod forget;
mod look_up;
mod lookup_cache;
mod runs;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use messaging_core::changes::{Expect, PutAutomation};
use messaging_core::ids::{AutomationId, WorkspaceId};
use messaging_core::ports::store::{FilterQuery, StoreError};
use messaging_core::time::Timestamp;

use super::Postgres;
use super::fault::Fault;
use super::listeners;
use super::segments;
use super::transaction::Transaction;
use crate::tables::automations::{self as tables, AutomationRows};

pub(super) use contacts::{delete as delete_runs, merge as move_runs};
pub(super) use look_up::look_up;
pub(super) use lookup_cache::LookupCache;
pub(super) use runs::{count_nodes, put as put_run, put_date_fires};

/// Creates or replaces an automation. The notes that the transaction has gathered are written first, because the old
/// state decides who gets them; afterwards the transaction reads anew what the workspace's automations listen for.
pub(super) async fn put(transaction: &mut Transaction, put: &PutAutomation, expect: Expect) -> Result<(), Fault> {
    listeners::write_notes(transaction).await?;
    tables::put(transaction, put, expect)?;
    transaction.hearing.forget(put.automation.workspace_id);
    Ok(())
}

/// Marks an automation as removed. The notes that the transaction has gathered are written first, and what it has
/// looked up about the automation is forgotten.
pub(super) async fn delete(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    id: AutomationId,
) -> Result<(), Fault> {
    listeners::write_notes(transaction).await?;
    tables::delete(transaction, workspace, id)?;
    transaction.hearing.forget(workspace);
    transaction.looked_up.forget(workspace, id);
    Ok(())
}

#[async_trait]
impl AutomationRows for Postgres {
    async fn settled_notes(&self, workspace: WorkspaceId) -> Result<Option<i64>, StoreError> {
        Ok(listeners::settled_up_to(&mut self.reads.clone(), workspace).await?)
    }

    async fn answer(
        &self,
        workspace: WorkspaceId,
        asks: &[FilterQuery],
        zone: &TimeZone,
    ) -> Result<Vec<bool>, StoreError> {
        let mut snapshot = self.reads.snapshot().await?;
        let answers = segments::answers(&mut snapshot, workspace, asks, zone).await?;
        snapshot.end().await?;
        Ok(answers)
    }

    async fn forget_ended_runs(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        forget::ended_runs(self, before, limit).await
    }
}
