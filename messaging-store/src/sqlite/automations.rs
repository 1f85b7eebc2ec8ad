//! Automations, their runs, and what these have to hear of.
//!
//! What automations hold is in [`holds`], how their notes are made in [`listeners`](super::listeners). Beside this: runs
//! and what they did ([`runs`]), reading notes ([`notes`]), entries of contacts ([`entries`]), moments of dates
//! ([`dates`]), counts ([`counts`]), questions about contacts ([`answers`]), what becomes of all that when contacts go
//! ([`contacts`]), and how it goes itself ([`forget`]).

mod answers;
mod contacts;
mod counts;
mod dates;
mod entries;
mod forget;
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
use rusqlite::{Connection, OptionalExtension as _, params};

use super::SqliteStore;
use super::fault::Fault;
use super::listeners::{Listeners, status_number};
use super::numbers::automation_number;
use super::query::{many, one};
use super::row::{below, document, numbered_place, one_more, place_number, record, slice, stored};
use crate::tables::holds::{self, Holder};

pub(super) use contacts::{delete as delete_runs, depart, merge as move_runs};
pub(super) use counts::count_nodes;
pub(super) use dates::{put as put_date_fires, take as take_date_fire};
pub(super) use entries::{expect_fewer as expect_entries, put as put_entry};
pub(super) use notes::take as take_notes;
pub(super) use runs::put as put_run;

pub(super) fn put(
    connection: &Connection,
    listeners: &mut Listeners,
    put: &PutAutomation,
    expect: Expect,
) -> Result<(), Fault> {
    let automation = &put.automation;
    let workspace = automation.workspace_id;
    let is_active = automation.status == AutomationStatus::Active;
    let revision = if let Expect::Revision(revision) = expect { revision } else { 0 };
    let entry = put.interest.entry.as_ref().filter(|_| is_active);
    let entry = entry.map(document).transpose()?;
    let row = params![
        workspace.to_bytes(),
        automation.id.to_bytes(),
        status_number(automation.status),
        automation.version,
        entry,
        document(&put.lanes)?,
        document(automation)?,
        revision,
    ];
    let n = match expect {
        Expect::Absent => connection
            .prepare_cached(
                "INSERT INTO automations (workspace, id, revision, removed, status, version, entry, lanes, doc)
                 SELECT ?1, ?2, 1, 0, ?3, ?4, ?5, ?6, ?7 WHERE ?8 = 0 RETURNING n",
            )?
            .query_row(row, |row| row.get(0)),
        Expect::Revision(_) => connection
            .prepare_cached(
                "UPDATE automations SET revision = revision + 1, status = ?3, version = ?4, entry = ?5, lanes = ?6, doc = ?7
                 WHERE workspace = ?1 AND id = ?2 AND revision = ?8 AND removed = 0 RETURNING n",
            )?
            .query_row(row, |row| row.get(0)),
    };
    let n: i64 = n.optional()?.ok_or(Fault::Conflict)?;
    let runs = &put.interest.runs;
    let interest = if *runs == RunInterest::default() { String::new() } else { document(runs)? };
    connection
        .prepare_cached(
            "INSERT INTO automation_versions (automation, version, runs, interest, doc) VALUES (?1, ?2, 0, ?3, ?4)
             ON CONFLICT (automation, version) DO UPDATE SET interest = excluded.interest",
        )?
        .execute(params![n, automation.version, interest, document(&automation.design)?])?;
    let wanted: BTreeSet<Reference> = if is_active { put.holds.iter().copied().collect() } else { BTreeSet::new() };
    holds::follow(&mut &*connection, workspace, Holder::Automation(put.automation.id), &wanted)?;
    listeners.forget(workspace);
    Ok(())
}

pub(super) fn delete(
    connection: &Connection,
    listeners: &mut Listeners,
    workspace: WorkspaceId,
    id: AutomationId,
) -> Result<(), Fault> {
    let Some(n) = automation_number(connection, workspace, id)? else { return Ok(()) };
    holds::let_go(&mut &*connection, workspace, Holder::Automation(id))?;
    connection
        .prepare_cached("UPDATE automations SET removed = 1, entry = NULL, lanes = '[]', doc = '' WHERE n = ?1")?
        .execute([n])?;
    listeners.forget(workspace);
    Ok(())
}

/// A conflict unless the automation is in a state.
pub(super) fn expect(
    connection: &Connection,
    workspace: WorkspaceId,
    id: AutomationId,
    status: AutomationStatus,
) -> Result<(), Fault> {
    let found = connection
        .prepare_cached("SELECT 1 FROM automations WHERE workspace = ?1 AND id = ?2 AND status = ?3 AND removed = 0")?
        .exists(params![workspace.to_bytes(), id.to_bytes(), status_number(status)])?;
    if found { Ok(()) } else { Err(Fault::Conflict) }
}

#[async_trait]
impl Automations for SqliteStore {
    async fn automation(
        &self,
        workspace: WorkspaceId,
        id: AutomationId,
    ) -> Result<Option<Stored<Automation>>, StoreError> {
        const SQL: &str = "SELECT revision, doc FROM automations WHERE workspace = ?1 AND id = ?2 AND removed = 0";
        self.readers
            .point_read(move |connection| {
                one(connection, SQL, [workspace.to_bytes(), id.to_bytes()], |row| stored(row))
            })
            .await
    }

    async fn automations(
        &self,
        workspace: WorkspaceId,
        status: Option<AutomationStatus>,
        page: PageRequest,
    ) -> Result<Slice<Automation>, StoreError> {
        const ALL: &str = "SELECT doc FROM automations INDEXED BY automations_by_id
            WHERE workspace = ?1 AND id < ?2 AND removed = 0 AND ?4 IS NULL ORDER BY id DESC LIMIT ?3";
        const BY_STATUS: &str = "SELECT doc FROM automations INDEXED BY automations_by_status
            WHERE workspace = ?1 AND id < ?2 AND removed = 0 AND status = ?4 ORDER BY id DESC LIMIT ?3";
        self.readers
            .read(move |connection| {
                let status = status.map(status_number);
                let sql = if status.is_some() { BY_STATUS } else { ALL };
                let bounds = params![workspace.to_bytes(), below(&page), one_more(&page), status];
                let items = many(connection, sql, bounds, |row| record(row, 0))?;
                Ok(slice(items, page.limit, |automation: &Automation| automation.id.to_bytes()))
            })
            .await
    }

    async fn begun_automations(&self, page: PageRequest) -> Result<Slice<Automation>, StoreError> {
        const SQL: &str = "SELECT n, doc FROM automations
            WHERE removed = 0 AND status BETWEEN 1 AND 2 AND n > ?1 ORDER BY n LIMIT ?2";
        self.readers
            .read(move |connection| {
                let bounds = params![page.after.map_or(i64::MIN, place_number), one_more(&page)];
                let found = many(connection, SQL, bounds, |row| Ok((row.get(0)?, record(row, 1)?)))?;
                let found = slice(found, page.limit, |(n, _): &(i64, Automation)| numbered_place(*n).to_bytes());
                Ok(Slice {
                    items: found.items.into_iter().map(|(_, automation)| automation).collect(),
                    next: found.next,
                })
            })
            .await
    }

    async fn automation_version(
        &self,
        workspace: WorkspaceId,
        id: AutomationId,
        version: u32,
    ) -> Result<Option<AutomationVersion>, StoreError> {
        const SQL: &str = "SELECT v.doc FROM automations a CROSS JOIN automation_versions v ON v.automation = a.n
            WHERE a.workspace = ?1 AND a.id = ?2 AND a.removed = 0 AND v.version = ?3";
        self.readers
            .point_read(move |connection| {
                let design =
                    one(connection, SQL, params![workspace.to_bytes(), id.to_bytes(), version], |row| record(row, 0))?;
                Ok(design.map(|design| AutomationVersion {
                    workspace_id: workspace,
                    automation_id: id,
                    version,
                    design,
                }))
            })
            .await
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
        self.readers.point_read(move |connection| runs::get(connection, (workspace, automation), id)).await
    }

    async fn runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        wanted: &RunFilter,
        page: PageRequest,
    ) -> Result<Slice<Run>, StoreError> {
        let wanted = wanted.clone();
        self.readers.read(move |connection| runs::list(connection, (workspace, automation), &wanted, &page)).await
    }

    async fn run_steps(&self, run: RunKey) -> Result<Vec<RunStep>, StoreError> {
        self.readers.read(move |connection| runs::steps(connection, run)).await
    }

    async fn run_of_message(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<RunKey>, StoreError> {
        self.readers.point_read(move |connection| runs::of_message(connection, workspace, message)).await
    }

    async fn automation_counts(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
    ) -> Result<AutomationCounts, StoreError> {
        self.readers.read(move |connection| counts::get(connection, workspace, automation)).await
    }

    async fn automation_notes(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        limit: usize,
    ) -> Result<Vec<(StoreCursor, Note, Option<Happened>)>, StoreError> {
        self.readers.read(move |connection| notes::oldest(connection, (workspace, automation), shard, limit)).await
    }

    async fn has_left_runs(&self, workspace: WorkspaceId, contact: ContactId) -> Result<bool, StoreError> {
        self.readers
            .point_read(move |connection| Ok(contacts::deleted_number(connection, workspace, contact)?.is_some()))
            .await
    }

    async fn due_runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Stored<Run>>, StoreError> {
        self.readers.read(move |connection| runs::due(connection, (workspace, automation), shard, now, limit)).await
    }

    async fn next_run_due(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.readers
            .point_read(move |connection| {
                // One transaction: of one moment.
                let connection = &*connection.unchecked_transaction()?;
                let Some(n) = automation_number(connection, workspace, automation)? else { return Ok(None) };
                let next = [runs::next_due(connection, n, shard)?, dates::next_due(connection, n, shard)?];
                Ok(next.into_iter().flatten().min())
            })
            .await
    }

    async fn open_runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        contacts: &[ContactId],
    ) -> Result<Vec<Stored<Run>>, StoreError> {
        let contacts = contacts.to_vec();
        self.readers.read(move |connection| runs::open(connection, (workspace, automation), &contacts)).await
    }

    async fn entries(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        keys: &[(ContactId, Option<String>)],
    ) -> Result<Vec<Option<Stored<Entry>>>, StoreError> {
        let keys = keys.to_vec();
        self.readers.read(move |connection| entries::get(connection, (workspace, automation), keys)).await
    }

    async fn entries_since(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        contacts: &[(ContactId, Timestamp)],
    ) -> Result<Vec<u32>, StoreError> {
        let contacts = contacts.to_vec();
        self.readers.read(move |connection| entries::since(connection, (workspace, automation), &contacts)).await
    }

    async fn answers(&self, workspace: WorkspaceId, asks: &[Ask], zone: &TimeZone) -> Result<Vec<bool>, StoreError> {
        if asks.is_empty() {
            return Ok(Vec::new());
        }
        let (asks, zone) = (asks.to_vec(), zone.clone());
        self.scans.read(move |connection| answers::answer(connection, workspace, &asks, &zone)).await
    }

    async fn due_dates(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DateFire>, StoreError> {
        self.readers.read(move |connection| dates::due(connection, (workspace, automation), shard, now, limit)).await
    }

    async fn forget_automation_rows(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.forget_rows_of_automations(now, limit).await
    }
}
