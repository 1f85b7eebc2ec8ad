//! Due runs, and new ones.

use std::collections::HashSet;

use messaging_core::changes::{Changes, Expect};

use super::ActiveAutomation;
use super::walk::{Incoming, PendingRun, advance};
use crate::app::App;
use crate::jobs::run_automation::RunAutomation;
use crate::services::entering::{Candidate, Verdict};
use crate::work::job::{JobContext, JobError};

impl RunAutomation {
    /// Advances a page of the due runs, one of each contact; returns false if there was none, or none could be
    /// advanced.
    pub(super) async fn due_runs(
        &self,
        cx: &JobContext,
        active: &ActiveAutomation,
        size: usize,
    ) -> Result<bool, JobError> {
        let (workspace, id) = (self.workspace_id, self.automation_id);
        let due = cx.app.store().due_runs(workspace, id, self.shard, active.now, size).await?;
        if due.is_empty() {
            return Ok(false);
        }
        if self.has_notes(cx).await? {
            // Notes of events that were accepted up to the due time come first.
            return Ok(true);
        }
        let mut contacts = HashSet::new();
        let first = due.into_iter().filter(|stored| contacts.insert(stored.record.contact_id));
        let page = first.map(|stored| PendingRun {
            expect: Expect::Revision(stored.revision),
            run: stored.record,
            input: Incoming::Due,
        });
        let advanced = advance(&cx.app, &active.automation, page.collect()).await?;
        if advanced.changes.is_empty() {
            // Nothing can be done for them now.
            return Ok(false);
        }
        let mut changes = Changes::from_iter([active.expected()]);
        changes.append(advanced.changes);
        cx.commit(changes).await?;
        Ok(true)
    }
}

/// Returns the changes that let in those candidates who may enter, each another contact, and list those whom a limit
/// refuses.
pub(super) async fn enter(
    app: &App,
    active: &ActiveAutomation,
    candidates: Vec<Candidate>,
) -> Result<Changes, JobError> {
    let mut changes = Changes::default();
    if candidates.is_empty() {
        return Ok(changes);
    }
    let mut page = Vec::with_capacity(candidates.len());
    for verdict in app.judge_entries(&active.automation, &active.plan, candidates, active.now).await? {
        match verdict {
            Verdict::NotAllowed => {}
            Verdict::Refused(refused) => changes.extend(refused.writes()),
            Verdict::Enters(run, proof) => {
                changes.extend(proof);
                page.push(PendingRun { run: *run, expect: Expect::Absent, input: Incoming::Due });
            }
        }
    }
    if !page.is_empty() {
        changes.append(advance(app, &active.automation, page).await?.changes);
    }
    Ok(changes)
}
