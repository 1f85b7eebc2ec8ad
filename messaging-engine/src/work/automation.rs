//! Jobs of automations: events of contacts advance runs and begin new ones, and due runs continue.
//!
//! Contract sections 13.3 and 13.4; the design is in docs/design/automations.md. A shard of an automation has one job,
//! which looks at notes first, then at dates, then at runs that are due: a page at a time, each page one commit. The
//! next step follows from the rows, never from memory of the job, so another run of the job can take over from one that
//! was cut off.

mod dates;
mod existing;
mod notes;
mod people;
mod refused;
mod runs;
mod send;
mod walk;

pub(super) use self::refused::{aside, failed};

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use messaging_core::changes::{Changes, Condition, Write};
use messaging_core::domain::automation::parse::AutomationPlan;
use messaging_core::domain::automation::{Automation, AutomationStatus};
use messaging_core::ids::{AutomationId, WorkspaceId};
use messaging_core::ports::store::{CommitError, Stored};
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::jobs::run_automation::RunAutomation;
use crate::services::page_size::PageSize;
use crate::work::job::{Job, JobContext, JobError, back_off_after_conflict};

/// Time a run of the job works before others of its lane's flow have their turn.
const SLICE: Duration = Duration::from_millis(500);
/// Largest number of notes, dates and runs of one commit.
const LARGEST: usize = 256;
/// Largest number of times in a row that a page is decided again because of a conflict.
const MAX_CONFLICTS: u32 = 16;
/// Shortest wait before runs that cannot be advanced, or are about to be due, are looked at again.
const RETRY: Duration = Duration::from_millis(100);

/// An active automation, as it was read.
struct ActiveAutomation {
    automation: Automation,
    plan: Arc<AutomationPlan>,
    /// Time zone of the workspace.
    zone: TimeZone,
    now: Timestamp,
}

impl ActiveAutomation {
    /// Condition of every commit of work on the automation: it is still active, so that no contact enters or proceeds
    /// in one that was paused a moment ago.
    fn expected(&self) -> Write {
        Write::Expect(Condition::Automation(self.automation.workspace_id, self.automation.id, AutomationStatus::Active))
    }
}

/// Number of notes, dates or runs that are decided together: halved by a conflict or a refusal, doubled by a commit.
struct Paging {
    page: PageSize,
    conflicts: u32,
}

impl Paging {
    const fn new() -> Self {
        Self { page: PageSize::new(LARGEST), conflicts: 0 }
    }

    const fn size(&self) -> usize {
        self.page.size()
    }

    fn succeeded(&mut self) {
        self.conflicts = 0;
        self.page.kept();
    }

    /// Reacts to an error: with half a page, after a conflict also after a moment, the work is tried again. If the
    /// store refuses a page of one item for good, returns the reason: that item is to be put aside.
    async fn after(&mut self, app: &App, error: JobError) -> Result<Option<CommitError>, JobError> {
        match error {
            JobError::Commit(CommitError::Conflict) if self.conflicts < MAX_CONFLICTS => {
                self.conflicts += 1;
                self.page.halve();
                back_off_after_conflict(app, self.conflicts).await;
            }
            JobError::Commit(error) => self.page.failed(error, self.page.size())?,
            error => return Err(error),
        }
        Ok(self.page.take_refused())
    }
}

impl Job for RunAutomation {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let until = cx.app.monotonic() + SLICE;
        let mut paging = Paging::new();
        loop {
            let Some(active) = active_or_rest(cx, (self.workspace_id, self.automation_id), &self).await? else {
                return Ok(());
            };
            match self.page(cx, &active, paging.size()).await {
                Ok(true) => paging.succeeded(),
                Ok(false) => {
                    let next = cx.app.store().next_run_due(self.workspace_id, self.automation_id, self.shard).await?;
                    // Due runs that were not advanced cannot be advanced now, and would be found again at once.
                    let rest = active.now + cx.app.idle_interval();
                    let at = next.unwrap_or(rest).clamp(active.now + RETRY, rest);
                    return cx.again_at(at, &self, Changes::default()).await;
                }
                Err(error) => {
                    if let Some(why) = paging.after(&cx.app, error).await? {
                        self.put_aside(cx, &active, &why).await?;
                    }
                }
            }
            if cx.app.monotonic() >= until {
                return cx.again_at(cx.app.now(), &self, Changes::default()).await;
            }
        }
    }
}

impl RunAutomation {
    /// Does the next page of work; returns false if there was none.
    async fn page(&self, cx: &JobContext, active: &ActiveAutomation, size: usize) -> Result<bool, JobError> {
        if self.notes(cx, active, size).await? || self.dates(cx, active, size).await? {
            return Ok(true);
        }
        self.due_runs(cx, active, size).await
    }

    /// Returns true if notes wait, which go before everything else.
    async fn has_notes(&self, cx: &JobContext) -> Result<bool, JobError> {
        let notes = cx.app.store().automation_notes(self.workspace_id, self.automation_id, self.shard, 1).await?;
        Ok(!notes.is_empty())
    }
}

/// Returns the automation to work on if it is active. Otherwise ends the run with `None`: the job ends if the
/// automation is gone, and rests until the automation is activated, which wakes it.
async fn active_or_rest<J: Job>(
    cx: &JobContext,
    (workspace, id): (WorkspaceId, AutomationId),
    job: &J,
) -> Result<Option<ActiveAutomation>, JobError> {
    let app = &cx.app;
    let Some(Stored { record: automation, .. }) = app.store().automation(workspace, id).await? else {
        cx.finish(Changes::default()).await?;
        return Ok(None);
    };
    if automation.status == AutomationStatus::Active
        && let Some(plan) = app.automation_plan(workspace, id, automation.version).await?
    {
        let zone = app.workspace_zone(workspace).await?;
        return Ok(Some(ActiveAutomation { automation, plan, zone, now: app.now() }));
    }
    cx.again_at(app.now() + app.idle_interval(), job, Changes::default()).await?;
    Ok(None)
}
