//! Job that removes workspaces whose deletion is due.
//!
//! Data is removed in pages, each in a transaction of its own, so that nothing waits for long and a removal that is cut
//! off continues with the rest. Work that was under way when the removal began may write later: so all tables are gone
//! through again until nothing is found any more, the last time a while after the beginning. Then the workspace itself
//! is removed, and its id stays taken.

use std::collections::BTreeMap;
use std::time::Duration;

use messaging_core::changes::{Changes, Expect, JobWrite, Write};
use messaging_core::domain::security::account::{Workspace, WorkspaceEnd};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::{CommitError, StoreError, Stored};

use crate::app::App;
use crate::jobs::JobData as _;
use crate::jobs::delete_workspace::DeleteWorkspace;
use crate::work::job::{Job, JobContext, JobError};

/// Number of rows of one page: few enough that a request never waits for them noticeably.
const PAGE: usize = 500;
/// Number of files that are listed at a time.
const FILES: usize = 2000;
/// Number of pages of one run before other jobs have their turn.
const MAX_PAGES: usize = 1000;
/// Time after which requests, reports and jobs that were under way when the removal began have ended.
const SETTLE: Duration = Duration::from_secs(30);
/// Time until the next run.
const GO_ON_AFTER: Duration = Duration::from_secs(1);

/// Number of jobs that are searched for those of one workspace.
const MAX_JOBS: usize = 10_000;

/// Number of removed rows by table, and of files.
pub(crate) type Removed = BTreeMap<&'static str, u64>;

impl Job for DeleteWorkspace {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let app = &cx.app;
        let Some(stored) = app.store().workspace(self.workspace_id).await? else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        let Some(end) = stored.record.end else {
            // Conflicts if it is deleted again meanwhile: that call finds this job and adds none.
            let unchanged = Write::put(stored.record, Expect::Revision(stored.revision));
            return Ok(cx.finish(Changes::from_iter([unchanged])).await?);
        };
        let Some(since) = end.removing_since else {
            if end.is_revocable(app.now()) {
                return cx.again_at(end.deletes_at, &self, Changes::default()).await;
            }
            let begin = Changes::from_iter([begin(stored, end, app)]);
            return cx.again_at(app.now(), &self, begin).await;
        };
        let is_settled = app.now() >= since + SETTLE;
        let mut pass = Pass { app, job: Some(cx), workspace: self.workspace_id, removed: Removed::new(), pages: 0 };
        if pass.remove().await? == Outcome::Cut {
            return cx.again_at(app.now() + GO_ON_AFTER, &self, Changes::default()).await;
        }
        let rows = pass.removed.values().sum::<u64>();
        if rows > 0 {
            tracing::info!(workspace_id = %self.workspace_id, removed = rows, "rows and files of a workspace were removed");
            return cx.again_at(app.now(), &self, Changes::default()).await;
        }
        if !is_settled {
            return cx.again_at(since + SETTLE, &self, Changes::default()).await;
        }
        // Conflicts while a job is still at work: the removal is tried again.
        cx.finish(Changes::from_iter([Write::EndWorkspace(self.workspace_id)])).await?;
        tracing::info!(workspace_id = %self.workspace_id, "a workspace was removed");
        Ok(())
    }
}

/// Returns the write that begins the removal: from then on the workspace cannot be restored.
fn begin(stored: Stored<Workspace>, end: WorkspaceEnd, app: &App) -> Write {
    let end = WorkspaceEnd { removing_since: Some(app.now()), ..end };
    Write::put(Workspace { end: Some(end), ..stored.record }, Expect::Revision(stored.revision))
}

/// Result of one pass over the tables and files of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Whole,
    Cut,
}

/// One pass over the tables and files of a workspace.
struct Pass<'a> {
    app: &'a App,
    /// Run of the job that it is a part of; `None` if a program works on the database alone.
    job: Option<&'a JobContext>,
    workspace: WorkspaceId,
    removed: Removed,
    pages: usize,
}

impl Pass<'_> {
    async fn remove(&mut self) -> Result<Outcome, CommitError> {
        if self.remove_files().await? == Outcome::Cut {
            return Ok(Outcome::Cut);
        }
        let mut step = 0;
        loop {
            if !self.next_page().await? {
                return Ok(Outcome::Cut);
            }
            let Some(page) = self.app.store().remove_rows_of(self.workspace, step, PAGE).await? else {
                return Ok(Outcome::Whole);
            };
            if page.rows == 0 {
                step += 1;
            } else {
                self.count(page.table, page.rows);
            }
        }
    }

    /// Removes attachments and uploaded files, wherever they are stored.
    async fn remove_files(&mut self) -> Result<Outcome, CommitError> {
        loop {
            let blobs = self.app.blobs().blobs_of(self.workspace, FILES).await?;
            if blobs.is_empty() {
                break;
            }
            let named: Vec<_> = blobs.into_iter().map(|blob| (self.workspace, blob)).collect();
            self.app.blobs().remove_blobs(&named).await?;
            self.count("attachments", named.len() as u64);
            if !self.next_page().await? {
                return Ok(Outcome::Cut);
            }
        }
        loop {
            let uploads = self.app.uploads().uploads_of(self.workspace, FILES).await?;
            if uploads.is_empty() {
                return Ok(Outcome::Whole);
            }
            for file in &uploads {
                self.app.uploads().remove_upload(*file).await?;
            }
            self.count("uploads", uploads.len() as u64);
            if !self.next_page().await? {
                return Ok(Outcome::Cut);
            }
        }
    }

    fn count(&mut self, what: &'static str, number: u64) {
        *self.removed.entry(what).or_default() += number;
    }

    /// Returns true if this run, whose claim is held, may do another page.
    async fn next_page(&mut self) -> Result<bool, CommitError> {
        let Some(job) = self.job else { return Ok(true) };
        job.hold().await?;
        self.pages += 1;
        Ok(self.pages <= MAX_PAGES)
    }
}

impl App {
    /// Removes a workspace whose deletion is due, at once and completely: for a program that alone works on the
    /// database. `note` is called with the number removed so far.
    pub(crate) async fn remove_workspace(
        &self,
        workspace: WorkspaceId,
        note: &mut (dyn FnMut(&Removed) + Send),
    ) -> Result<Removed, CommitError> {
        let mut all = Removed::new();
        loop {
            let Some(stored) = self.store().workspace(workspace).await? else { return Ok(all) };
            let Some(end) = stored.record.end else { return Ok(all) };
            if end.is_revocable(self.now()) {
                return Ok(all);
            }
            if end.removing_since.is_none() {
                self.commit(Changes::from_iter([begin(stored, end, self)])).await?;
            }
            let mut pass = Pass { app: self, job: None, workspace, removed: Removed::new(), pages: 0 };
            pass.remove().await?;
            if pass.removed.is_empty() {
                let mut changes = Changes::from_iter([Write::EndWorkspace(workspace)]);
                changes.extend(self.removals_of(workspace).await?);
                self.commit(changes).await?;
                continue;
            }
            for (what, number) in pass.removed {
                *all.entry(what).or_default() += number;
            }
            note(&all);
        }
    }

    /// Returns the writes that remove the jobs which were to do it.
    async fn removals_of(&self, workspace: WorkspaceId) -> Result<Vec<Write>, StoreError> {
        let jobs = self.store().jobs_of(&[DeleteWorkspace::KIND], MAX_JOBS).await?;
        let lane = DeleteWorkspace { workspace_id: workspace }.lane();
        let own = jobs.into_iter().filter(|job| job.place.lane == lane);
        Ok(own.map(|job| Write::Job(JobWrite::Remove(job.place))).collect())
    }
}
