//! Automations of a database that is a copy.
//!
//! Contract section 22. It is not known here how far the runs have come on the other server since the copy was taken,
//! so each automation waits for a person; a page at a time, and after an interruption the remaining ones follow.

use messaging_core::changes::{AutomationWrite, Changes, Expect, PutRun, Write};
use messaging_core::domain::automation::run::{Run, RunStatus};
use messaging_core::domain::automation::{Automation, SHARDS};
use messaging_core::domain::installation::fence::Fence;
use messaging_core::ports::store::{CommitError, PageRequest, RunFilter, StoreError, Stored};
use messaging_core::time::Timestamp;

use crate::app::App;

/// Number of automations in a page.
const PAGE: usize = 50;

/// Number of runs that are ended in one commit.
const RUNS: usize = 200;

/// Number of tries to change an automation while it keeps changing.
const MAX_COMMITS: usize = 8;

/// A time later than the due time of any run.
const EVER: Timestamp = Timestamp::from_millis(i64::MAX);

impl App {
    /// Pauses the automations that were active when the installation was fenced. An automation that was activated since
    /// then waits for the end of the fence by itself.
    pub(super) async fn pause_restored_automations(&self, fence: Fence) -> Result<(), CommitError> {
        let is_of_copy = |automation: &Automation| automation.activated_at.is_none_or(|at| at < fence.since);
        let mut after = None;
        loop {
            let page = self.store().begun_automations(PageRequest { after, limit: PAGE }).await?;
            for automation in page.items.into_iter().filter(is_of_copy) {
                self.hold_back(&automation, is_of_copy).await?;
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn hold_back(
        &self,
        automation: &Automation,
        is_of_copy: impl Fn(&Automation) -> bool,
    ) -> Result<(), CommitError> {
        for _ in 0..MAX_COMMITS {
            let found = self.store().automation(automation.workspace_id, automation.id).await?;
            let Some(Stored { record, revision }) = found.filter(|found| is_of_copy(&found.record)) else {
                return Ok(());
            };
            let Some(held) = record.clone().hold_back(self.now()) else { return Ok(()) };
            let put = self.put_automation(&held, &held.design.read(), Expect::Revision(revision)).await?;
            let mut changes = Changes::from_iter([put]);
            changes.extend(self.record_own_automation_change("pauseAutomation", &record, &held).await?);
            match self.commit_in_background(changes).await {
                // The automation was changed meanwhile, which only people do.
                Err(CommitError::Conflict) => {}
                outcome => return outcome,
            }
        }
        Err(CommitError::Conflict)
    }

    /// Ends a page of the runs that were open when the installation was fenced; returns their number.
    pub(crate) async fn exit_restored_runs(&self, fence: Fence) -> Result<usize, CommitError> {
        let mut after = None;
        loop {
            let page = self.store().begun_automations(PageRequest { after, limit: PAGE }).await?;
            for automation in page.items {
                let runs = self.restored_runs(&automation, fence).await?;
                if !runs.is_empty() {
                    let count = runs.len();
                    self.exit_all(runs).await?;
                    return Ok(count);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(0);
            }
        }
    }

    /// Returns some of the open runs of an automation from before the fence; empty if none is left.
    async fn restored_runs(&self, automation: &Automation, fence: Fence) -> Result<Vec<Stored<Run>>, StoreError> {
        let (workspace, id) = (automation.workspace_id, automation.id);
        let is_of_copy = |run: &Stored<Run>| run.record.entered_at < fence.since;
        for shard in 0..SHARDS {
            let due = self.store().due_runs(workspace, id, shard, EVER, RUNS).await?;
            let runs: Vec<_> = due.into_iter().filter(is_of_copy).collect();
            if !runs.is_empty() {
                return Ok(runs);
            }
        }
        // Runs that wait for something without a time, and those listed behind runs that began since.
        for status in [RunStatus::Active, RunStatus::Waiting] {
            let wanted = RunFilter { status: Some(status), contact_id: None, node_id: None };
            let mut after = None;
            loop {
                let page = self.store().runs(workspace, id, &wanted, PageRequest { after, limit: RUNS }).await?;
                let mut runs = Vec::new();
                for run in page.items {
                    runs.extend(self.store().run(workspace, id, run.id).await?.filter(is_of_copy));
                }
                if !runs.is_empty() {
                    return Ok(runs);
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(Vec::new())
    }

    async fn exit_all(&self, runs: Vec<Stored<Run>>) -> Result<(), CommitError> {
        let ended = |stored: Stored<Run>| {
            let (run, steps) = stored.record.exit("restored", self.now()).ok()?;
            let expect = Expect::Revision(stored.revision);
            Some(Write::Automation(AutomationWrite::PutRun(Box::new(PutRun {
                run,
                expect,
                steps,
                messages: Vec::new(),
            }))))
        };
        match self.commit_in_background(runs.into_iter().filter_map(ended).collect()).await {
            // A run was ended or merged meanwhile: the remaining ones are found again.
            Ok(()) | Err(CommitError::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
