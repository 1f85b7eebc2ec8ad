//! Automations, their runs, and what these have to hear of.
//!
//! What automations hold is in [`holds`], how their notes are made in [`listeners`]. Beside this: runs and what they did
//! ([`runs`]), what commits look up together ([`look_up`]), reading notes ([`notes`]), entries of contacts ([`entries`]),
//! moments of dates ([`dates`]), counts ([`counts`]), questions about contacts ([`answers`]), what becomes of all that when
//! contacts go ([`contacts`]), and how it goes itself ([`forget`]).

mod answers;
mod contacts;
mod counts;
mod dates;
mod entries;
mod forget;
mod look_up;
mod looked_up;
mod notes;
mod runs;

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use messaging_core::changes::{DateFire, Expect, PutAutomation, RunKey};
use messaging_core::domain::automation::history::RunStep;
use messaging_core::domain::automation::note::{Happened, Note, RunInterest};
use messaging_core::domain::automation::run::{Entry, Run};
use messaging_core::domain::automation::{Automation, AutomationStatus, AutomationVersion};
use messaging_core::domain::campaign::Reference;
use messaging_core::ids::{AutomationId, ContactId, Id as _, MessageId, RunId, WorkspaceId};
use messaging_core::ports::store::{
    Ask, AutomationCounts, Automations, PageRequest, RunFilter, Slice, StoreCursor, StoreError, Stored,
};
use messaging_core::time::Timestamp;

use super::PostgresStore;
use super::fault::Fault;
use super::listeners::{self, status_number};
use super::numbers::automation_number;
use super::query::params;
use super::row::{
    below_id, document, get, numbered_place, one_more, place_number, record, revision_param, slice, stored, uuid,
};
use super::transaction::Transaction;
use crate::tables::holds::{self, Holder};

pub(super) use contacts::{delete as delete_runs, depart, merge as move_runs};
pub(super) use counts::count_nodes;
pub(super) use dates::{put as put_date_fires, take as take_date_fire};
pub(super) use entries::{expect_fewer as expect_entries, put as put_entry};
pub(super) use look_up::look_up;
pub(super) use looked_up::LookedUp;
pub(super) use notes::take as take_notes;
pub(super) use runs::put as put_run;

pub(super) async fn put(transaction: &mut Transaction, put: &PutAutomation, expect: Expect) -> Result<(), Fault> {
    const INSERT: &str =
        "INSERT INTO automations (workspace, id, revision, removed, status, version, entry, lanes, doc)
        VALUES ($1, $2, 1, false, $3, $4, $5, $6, $7)";
    const UPDATE: &str = "UPDATE automations
        SET revision = revision + 1, status = $3, version = $4, entry = $5, lanes = $6, doc = $7
        WHERE workspace = $1 AND id = $2 AND revision = $8 AND NOT removed";
    const VERSION: &str = "INSERT INTO automation_versions (automation, version, interest, doc)
        SELECT n, $3, $4, $5 FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed
        ON CONFLICT (automation, version) DO UPDATE SET interest = excluded.interest";
    let automation = &put.automation;
    let (workspace, id, version) = (automation.workspace_id, automation.id, i64::from(automation.version));
    listeners::write_notes(transaction).await?;
    let is_active = automation.status == AutomationStatus::Active;
    let entry = put.interest.entry.as_ref().filter(|_| is_active);
    let entry = entry.map(document).transpose()?;
    let mut row = params![
        uuid(workspace),
        uuid(id),
        status_number(automation.status),
        version,
        entry,
        document(&put.lanes)?,
        document(automation)?,
    ];
    match expect {
        Expect::Absent => transaction.run_one(INSERT, row),
        Expect::Revision(revision) => {
            row.push(revision_param(revision).into());
            transaction.run_one(UPDATE, row);
        }
    }
    let runs = &put.interest.runs;
    let interest = if *runs == RunInterest::default() { String::new() } else { document(runs)? };
    transaction.run(VERSION, params![uuid(workspace), uuid(id), version, interest, document(&automation.design)?]);
    let wanted: BTreeSet<Reference> = if is_active { put.holds.iter().copied().collect() } else { BTreeSet::new() };
    holds::follow(transaction, workspace, Holder::Automation(id), &wanted)?;
    transaction.hearing.forget(workspace);
    Ok(())
}

pub(super) async fn delete(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    id: AutomationId,
) -> Result<(), Fault> {
    listeners::write_notes(transaction).await?;
    holds::let_go(transaction, workspace, Holder::Automation(id))?;
    transaction.run(
        "UPDATE automations SET removed = true, entry = NULL, lanes = '[]', doc = ''
         WHERE workspace = $1 AND id = $2 AND NOT removed",
        params![uuid(workspace), uuid(id)],
    );
    transaction.hearing.forget(workspace);
    transaction.looked_up.forget(workspace, id);
    Ok(())
}

/// A conflict unless the automation is in a state. Nobody changes it before the commit: whoever does takes the lock of the
/// workspace's automations alone.
pub(super) fn expect(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    id: AutomationId,
    status: AutomationStatus,
) {
    listeners::share(transaction, workspace);
    transaction.run(
        "SELECT expect_rows((SELECT count(*) FROM automations
             WHERE workspace = $1 AND id = $2 AND status = $3 AND NOT removed), 1)",
        params![uuid(workspace), uuid(id), status_number(status)],
    );
}

#[async_trait]
impl Automations for PostgresStore {
    async fn automation(
        &self,
        workspace: WorkspaceId,
        id: AutomationId,
    ) -> Result<Option<Stored<Automation>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed";
        self.reads.one(SQL, params![uuid(workspace), uuid(id)], |row| stored(row)).await
    }

    async fn automations(
        &self,
        workspace: WorkspaceId,
        status: Option<AutomationStatus>,
        page: PageRequest,
    ) -> Result<Slice<Automation>, StoreError> {
        const ALL: &str = "SELECT doc FROM automations
            WHERE workspace = $1 AND id < $2 AND NOT removed ORDER BY id DESC LIMIT $3";
        const BY_STATUS: &str = "SELECT doc FROM automations
            WHERE workspace = $1 AND id < $2 AND NOT removed AND status = $4 ORDER BY id DESC LIMIT $3";
        let mut bounds = params![uuid(workspace), below_id(&page), one_more(&page)];
        let sql = match status {
            Some(status) => {
                bounds.push(status_number(status).into());
                BY_STATUS
            }
            None => ALL,
        };
        let items = self.reads.many(sql, bounds, |row| record(row, 0)).await?;
        Ok(slice(items, page.limit, |automation: &Automation| automation.id.to_bytes()))
    }

    async fn begun_automations(&self, page: PageRequest) -> Result<Slice<Automation>, StoreError> {
        const SQL: &str = "SELECT n, doc FROM automations
            WHERE NOT removed AND status BETWEEN 1 AND 2 AND n > $1 ORDER BY n LIMIT $2";
        let bounds = params![page.after.map_or(i64::MIN, place_number), one_more(&page)];
        let found = self.reads.many(SQL, bounds, |row| Ok((get(row, 0)?, record(row, 1)?))).await?;
        let found = slice(found, page.limit, |(n, _): &(i64, Automation)| numbered_place(*n).to_bytes());
        Ok(Slice { items: found.items.into_iter().map(|(_, automation)| automation).collect(), next: found.next })
    }

    async fn automation_version(
        &self,
        workspace: WorkspaceId,
        id: AutomationId,
        version: u32,
    ) -> Result<Option<AutomationVersion>, StoreError> {
        const SQL: &str = "SELECT v.doc FROM automations a JOIN automation_versions v ON v.automation = a.n
            WHERE a.workspace = $1 AND a.id = $2 AND NOT a.removed AND v.version = $3";
        let key = params![uuid(workspace), uuid(id), i64::from(version)];
        let design = self.reads.one(SQL, key, |row| record(row, 0)).await?;
        Ok(design.map(|design| AutomationVersion { workspace_id: workspace, automation_id: id, version, design }))
    }

    async fn automations_holding(
        &self,
        workspace: WorkspaceId,
        what: Reference,
        limit: usize,
    ) -> Result<Vec<AutomationId>, StoreError> {
        holds::automations(&self.0, workspace, what, limit).await
    }

    async fn run(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        id: RunId,
    ) -> Result<Option<Stored<Run>>, StoreError> {
        runs::get(&self.reads, (workspace, automation), id).await
    }

    async fn runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        wanted: &RunFilter,
        page: PageRequest,
    ) -> Result<Slice<Run>, StoreError> {
        runs::list(&self.reads, (workspace, automation), wanted, &page).await
    }

    async fn run_steps(&self, run: RunKey) -> Result<Vec<RunStep>, StoreError> {
        runs::steps(&self.reads, run).await
    }

    async fn run_of_message(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<RunKey>, StoreError> {
        runs::of_message(&self.reads, workspace, message).await
    }

    async fn automation_counts(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
    ) -> Result<AutomationCounts, StoreError> {
        counts::get(&self.reads, workspace, automation).await
    }

    async fn automation_notes(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        limit: usize,
    ) -> Result<Vec<(StoreCursor, Note, Option<Happened>)>, StoreError> {
        notes::oldest(&self.reads, (workspace, automation), shard, limit).await
    }

    async fn has_left_runs(&self, workspace: WorkspaceId, contact: ContactId) -> Result<bool, StoreError> {
        Ok(contacts::deleted_number(&mut self.reads.clone(), workspace, contact).await?.is_some())
    }

    async fn due_runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Stored<Run>>, StoreError> {
        runs::due(&self.reads, (workspace, automation), shard, now, limit).await
    }

    async fn next_run_due(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
    ) -> Result<Option<Timestamp>, StoreError> {
        let mut snapshot = self.reads.snapshot().await?;
        let next = match automation_number(&mut snapshot, workspace, automation).await? {
            Some(n) => {
                [runs::next_due(&mut snapshot, n, shard).await?, dates::next_due(&mut snapshot, n, shard).await?]
            }
            None => [None, None],
        };
        snapshot.end().await?;
        Ok(next.into_iter().flatten().min())
    }

    async fn open_runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        contacts: &[ContactId],
    ) -> Result<Vec<Stored<Run>>, StoreError> {
        runs::open(&self.reads, (workspace, automation), contacts).await
    }

    async fn entries(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        keys: &[(ContactId, Option<String>)],
    ) -> Result<Vec<Option<Stored<Entry>>>, StoreError> {
        entries::get(&self.reads, (workspace, automation), keys).await
    }

    async fn entries_since(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        contacts: &[(ContactId, Timestamp)],
    ) -> Result<Vec<u32>, StoreError> {
        entries::since(&self.reads, (workspace, automation), contacts).await
    }

    async fn answers(&self, workspace: WorkspaceId, asks: &[Ask], zone: &TimeZone) -> Result<Vec<bool>, StoreError> {
        if asks.is_empty() {
            return Ok(Vec::new());
        }
        answers::answer(&self.reads, workspace, asks, zone).await
    }

    async fn due_dates(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DateFire>, StoreError> {
        dates::due(&self.reads, (workspace, automation), shard, now, limit).await
    }

    async fn forget_automation_rows(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.forget_rows_of_automations(now, limit).await
    }
}
