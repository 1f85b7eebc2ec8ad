//! Automations, their runs, and the events that they listen for.
//!
//! In its modules: runs and their steps ([`runs`]), reading notes ([`notes`]), entries of contacts ([`entries`]),
//! moments of dates ([`dates`]), counts ([`counts`]), questions about contacts ([`asks`]), listening ([`listening`]),
//! rows of removed contacts ([`departed`]), and the removal of old rows ([`forget`]).

pub(crate) mod asks;
mod counts;
mod dates;
mod departed;
mod entries;
mod forget;
mod keys;
pub(crate) mod listening;
mod notes;
mod rows;
mod runs;

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use messaging_core::changes::{DateFire, Expect, PutAutomation, RunKey};
use messaging_core::domain::automation::history::RunStep;
use messaging_core::domain::automation::note::{Happened, Note, RunSubscription};
use messaging_core::domain::automation::run::{Entry, Run};
use messaging_core::domain::automation::{Automation, AutomationStatus, AutomationVersion};
use messaging_core::domain::campaign::Reference;
use messaging_core::ids::{AutomationId, ContactId, Id as _, MessageId, RunId, WorkspaceId};
use messaging_core::ports::store::{
    AutomationCounts, Automations, FilterQuery, PageRequest, RunFilter, Slice, StoreCursor, StoreError, Stored,
};
use messaging_core::time::Timestamp;

use self::keys::{automation, key_of};
use super::holds::{self, Holder};
use crate::database::{Database, Query, SqlStore, Statements};
use crate::fault::Fault;
use crate::happened::status_number;
use crate::pages::{below, numbered_place, one_more, place_number};
use crate::row::{document, get, record, stored, time};
use crate::sql::{Sql, key, params, sql};

pub(crate) use dates::take as take_date_fire;
pub(crate) use departed::{depart, end_departure, number as departed_number};
pub(crate) use entries::{expect_fewer as expect_entries, put as put_entry};
pub(crate) use forget::SLICE;
pub(crate) use notes::take as take_notes;
pub(crate) use rows::AutomationRows;
pub(crate) use runs::{NumberedRun, PriorRun, write as write_run};

pub(crate) fn put(on: &mut dyn Statements, put: &PutAutomation, expect: Expect) -> Result<(), Fault> {
    const INSERT: Sql = sql!(
        "INSERT INTO automations (workspace, id, revision, removed, status, version, entry, lanes, doc)
         VALUES ($1, $2, 1, false, $3, $4, $5, $6, $7)"
    );
    const UPDATE: Sql = sql!(
        "UPDATE automations
         SET revision = revision + 1, status = $3, version = $4, entry = $5, lanes = $6, doc = $7
         WHERE workspace = $1 AND id = $2 AND NOT removed AND revision = $8"
    );
    const VERSION: Sql = sql!(
        "INSERT INTO automation_versions (automation, version, {runs,} interest, doc)
         SELECT n, $3, {0,} $4, $5 FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed
         ON CONFLICT (automation, version) DO UPDATE SET interest = excluded.interest"
    );
    let automation = &put.automation;
    let of = (automation.workspace_id, automation.id);
    let is_active = automation.status == AutomationStatus::Active;
    let entry = put.subscription.entry.as_ref().filter(|_| is_active);
    let mut row = key_of(of);
    row.extend(params![
        status_number(automation.status),
        automation.version,
        entry.map(document).transpose()?,
        document(&put.lanes)?,
        document(automation)?,
    ]);
    match expect {
        Expect::Absent => on.run_one(INSERT, row)?,
        Expect::Revision(revision) => {
            row.push(revision.into());
            on.run_one(UPDATE, row)?;
        }
    }
    let runs = &put.subscription.runs;
    let subscription = if *runs == RunSubscription::default() { String::new() } else { document(runs)? };
    let mut version = key_of(of);
    version.extend(params![automation.version, subscription, document(&automation.design)?]);
    on.run(VERSION, version)?;
    let wanted: BTreeSet<Reference> = if is_active { put.holds.iter().copied().collect() } else { BTreeSet::new() };
    holds::replace_held(on, of.0, Holder::Automation(of.1), &wanted)
}

pub(crate) fn delete(on: &mut dyn Statements, workspace: WorkspaceId, id: AutomationId) -> Result<(), Fault> {
    const SQL: Sql = sql!(
        "UPDATE automations SET removed = true, entry = NULL, lanes = '[]', doc = ''
         WHERE workspace = $1 AND id = $2 AND NOT removed"
    );
    holds::release_all(on, workspace, Holder::Automation(id))?;
    on.run(SQL, key_of((workspace, id)))
}

/// Raises a conflict unless the automation is in a state. On PostgreSQL the lock of the workspace's automations is
/// held, which a change of an automation takes exclusively.
pub(crate) fn expect(
    on: &mut dyn Statements,
    workspace: WorkspaceId,
    id: AutomationId,
    status: AutomationStatus,
) -> Result<(), Fault> {
    const SQL: Sql =
        sql!("SELECT count(*) FROM automations WHERE workspace = $1 AND id = $2 AND status = $3 AND NOT removed");
    on.expect(1, SQL, params![key(workspace), key(id), status_number(status)])
}

/// Query of the events that the runs of a workspace wait for; versions that wait for none are left out.
pub(crate) fn run_subscriptions(workspace: WorkspaceId) -> Query<RunSubscription> {
    const SQL: Sql = sql!(
        "SELECT v.interest FROM automations a {CROSS} JOIN automation_versions v ON v.automation = a.n
         WHERE a.workspace = $1 AND NOT a.removed AND a.lanes <> '[]' AND v.interest <> ''"
    );
    Query::new(SQL, params![key(workspace)], |row| record(row, 0)).point()
}

#[async_trait]
impl<D: Database + AutomationRows> Automations for SqlStore<D> {
    async fn automation(
        &self,
        workspace: WorkspaceId,
        id: AutomationId,
    ) -> Result<Option<Stored<Automation>>, StoreError> {
        const SQL: Sql = sql!("SELECT revision, doc FROM automations WHERE workspace = $1 AND id = $2 AND NOT removed");
        self.one(Query::new(SQL, key_of((workspace, id)), stored).point()).await
    }

    async fn automations(
        &self,
        workspace: WorkspaceId,
        status: Option<AutomationStatus>,
        page: PageRequest,
    ) -> Result<Slice<Automation>, StoreError> {
        const ALL: Sql = sql!(
            "SELECT doc FROM automations {INDEXED BY automations_by_id}
             WHERE workspace = $1 AND id < $2 AND NOT removed ORDER BY id DESC LIMIT $3"
        );
        const BY_STATUS: Sql = sql!(
            "SELECT doc FROM automations {INDEXED BY automations_by_status}
             WHERE workspace = $1 AND id < $2 AND NOT removed AND status = $4 ORDER BY id DESC LIMIT $3"
        );
        let mut bounds = params![key(workspace), below(&page), one_more(&page)];
        let mut sql = ALL;
        if let Some(status) = status {
            bounds.push(status_number(status).into());
            sql = BY_STATUS;
        }
        let query = Query::new(sql, bounds, |row| record::<Automation>(row, 0));
        self.page(query, page, |automation| automation.id.to_bytes()).await
    }

    async fn begun_automations(&self, page: PageRequest) -> Result<Slice<Automation>, StoreError> {
        const SQL: Sql = sql!(
            "SELECT n, doc FROM automations WHERE NOT removed AND status BETWEEN 1 AND 2 AND n > $1 ORDER BY n LIMIT $2"
        );
        let bounds = params![page.after.map_or(i64::MIN, place_number), one_more(&page)];
        let query = Query::new(SQL, bounds, |row| Ok((get::<i64>(row, 0)?, record(row, 1)?)));
        let found = self.page(query, page, |(n, _)| numbered_place(*n).to_bytes()).await?;
        Ok(Slice { items: found.items.into_iter().map(|(_, automation)| automation).collect(), next: found.next })
    }

    async fn automation_version(
        &self,
        workspace: WorkspaceId,
        id: AutomationId,
        version: u32,
    ) -> Result<Option<AutomationVersion>, StoreError> {
        const SQL: Sql = sql!(concat!(
            "SELECT doc FROM automation_versions WHERE automation = ",
            automation!(),
            " AND version = $3"
        ));
        let query = Query::new(SQL, params![key(workspace), key(id), version], move |row| {
            Ok(AutomationVersion { workspace_id: workspace, automation_id: id, version, design: record(row, 0)? })
        });
        self.one(query.point()).await
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
        runs::get(&self.0, (workspace, automation), id).await
    }

    async fn runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        wanted: &RunFilter,
        page: PageRequest,
    ) -> Result<Slice<Run>, StoreError> {
        runs::list(&self.0, (workspace, automation), wanted, &page).await
    }

    async fn run_steps(&self, run: RunKey) -> Result<Vec<RunStep>, StoreError> {
        runs::steps(&self.0, run).await
    }

    async fn run_of_message(&self, workspace: WorkspaceId, message: MessageId) -> Result<Option<RunKey>, StoreError> {
        runs::of_message(&self.0, workspace, message).await
    }

    async fn automation_counts(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
    ) -> Result<AutomationCounts, StoreError> {
        counts::get(&self.0, (workspace, automation)).await
    }

    async fn automation_notes(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        limit: usize,
    ) -> Result<Vec<(StoreCursor, Note, Option<Happened>)>, StoreError> {
        notes::oldest(&self.0, (workspace, automation), shard, limit).await
    }

    async fn has_left_runs(&self, workspace: WorkspaceId, contact: ContactId) -> Result<bool, StoreError> {
        Ok(self.one(departed::number(workspace, contact)).await?.is_some())
    }

    async fn due_runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Stored<Run>>, StoreError> {
        runs::due(&self.0, (workspace, automation), shard, (now, limit)).await
    }

    async fn next_run_due(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
    ) -> Result<Option<Timestamp>, StoreError> {
        const SQL: Sql = sql!(concat!(
            "SELECT * FROM (SELECT r.due_at AS at FROM automation_runs r {INDEXED BY automation_runs_due}
                 {CROSS} JOIN contacts c ON c.n = r.contact
                 WHERE r.automation = ",
            automation!(),
            " AND r.contact & 3 = $3 AND r.due_at IS NOT NULL ORDER BY r.due_at LIMIT 1) AS run
             UNION ALL SELECT * FROM (SELECT f.due_at FROM automation_date_fires f {INDEXED BY automation_date_fires_due}
                 {CROSS} JOIN contacts c ON c.n = f.contact
                 WHERE f.automation = ",
            automation!(),
            " AND f.contact & 3 = $3 AND NOT f.taken ORDER BY f.due_at LIMIT 1) AS fire"
        ));
        let bounds = params![key(workspace), key(automation), shard];
        let next = self.many(Query::new(SQL, bounds, |row| time(row, 0)).point()).await?;
        Ok(next.into_iter().min())
    }

    async fn open_runs(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        contacts: &[ContactId],
    ) -> Result<Vec<Stored<Run>>, StoreError> {
        runs::open(&self.0, (workspace, automation), contacts).await
    }

    async fn entries(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        keys: &[(ContactId, Option<String>)],
    ) -> Result<Vec<Option<Stored<Entry>>>, StoreError> {
        entries::get(&self.0, (workspace, automation), keys).await
    }

    async fn entries_since(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        contacts: &[(ContactId, Timestamp)],
    ) -> Result<Vec<u32>, StoreError> {
        entries::since(&self.0, (workspace, automation), contacts).await
    }

    async fn answers(
        &self,
        workspace: WorkspaceId,
        asks: &[FilterQuery],
        zone: &TimeZone,
    ) -> Result<Vec<bool>, StoreError> {
        if asks.is_empty() { Ok(Vec::new()) } else { self.answer(workspace, asks, zone).await }
    }

    async fn due_dates(
        &self,
        workspace: WorkspaceId,
        automation: AutomationId,
        shard: u8,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DateFire>, StoreError> {
        dates::due(&self.0, (workspace, automation), shard, (now, limit)).await
    }

    async fn forget_automation_rows(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        forget::forget(&self.0, now, limit).await
    }
}
