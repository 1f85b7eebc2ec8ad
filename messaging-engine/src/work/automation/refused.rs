//! Putting aside items whose outcome the store refuses for good, so that the others of their shard continue.

use messaging_core::changes::{AutomationWrite, Changes, Expect, PutRun, TakeNotes, Write};
use messaging_core::domain::automation::run::Run;
use messaging_core::domain::automation::step::goes_before;
use messaging_core::domain::installation::quarantine::Again;
use messaging_core::ids::ContactId;
use messaging_core::ports::store::{CommitError, Stored};
use messaging_core::time::Timestamp;

use super::ActiveAutomation;
use super::walk::fail;
use crate::app::App;
use crate::jobs::run_automation::RunAutomation;
use crate::work::job::{JobContext, JobError};

impl RunAutomation {
    /// Puts aside the first item of a page of one: a due run fails with the reason, a note or a time is removed.
    pub(super) async fn put_aside(
        &self,
        cx: &JobContext,
        active: &ActiveAutomation,
        why: &CommitError,
    ) -> Result<(), JobError> {
        let (store, workspace, id, shard) = (cx.app.store(), self.workspace_id, self.automation_id, self.shard);
        let aside = |kind: &str, contact_id: ContactId, again: Option<Again>| {
            cx.app.quarantine(Some(workspace), (kind, &contact_id), why, again)
        };
        let entry = |contact_id: ContactId| Again::Entry { automation_id: id, contact_id };
        let mut changes = Changes::from_iter([active.expected()]);
        if let Some((up_to, note, happened)) = store.automation_notes(workspace, id, shard, 1).await?.pop() {
            let open = store.open_runs(workspace, id, &[note.contact_id]).await?;
            let goes_first = |run: &&Stored<Run>| goes_before(&run.record, note.at, active.automation.activated_at);
            if let Some(run) = open.iter().find(goes_first) {
                changes.push(self::aside(&cx.app, &run.record, why));
                changes.push(failed(run, active.now, why));
            } else {
                // The event is not stored here, because it may be personal; without it the contact cannot enter by it.
                let fits = || active.plan.trigger.fits(&note.cause, None, &active.zone);
                let enters = note.may_enter && happened.is_none() && fits();
                let again = enters.then(|| entry(note.contact_id));
                changes.push(aside("automation_note", note.contact_id, again));
                changes.push(Write::Automation(AutomationWrite::TakeNotes(TakeNotes {
                    workspace_id: workspace,
                    automation_id: id,
                    shard,
                    up_to,
                })));
            }
        } else if let Some(fire) = store.due_dates(workspace, id, shard, active.now, 1).await?.pop() {
            changes.push(aside("automation_date", fire.contact_id, Some(entry(fire.contact_id))));
            changes.push(Write::Automation(AutomationWrite::TakeDateFire(workspace, id, fire)));
        } else if let Some(run) = store.due_runs(workspace, id, shard, active.now, 1).await?.pop() {
            changes.push(self::aside(&cx.app, &run.record, why));
            changes.push(failed(&run, active.now, why));
        } else {
            return Ok(());
        }
        Ok(cx.commit(changes).await?)
    }
}

/// Returns the write that records a run as put aside.
pub(in crate::work) fn aside(app: &App, run: &Run, why: &CommitError) -> Write {
    let again = Again::Run { automation_id: run.automation_id, run_id: run.id, held: run.held.clone() };
    app.quarantine(Some(run.workspace_id), ("automation_run", &run.id), why, Some(again))
}

/// Returns the write that ends a run as failed at its node.
pub(in crate::work) fn failed(stored: &Stored<Run>, now: Timestamp, why: &CommitError) -> Write {
    let mut run = stored.record.clone();
    let steps = fail(&mut run, &why.to_string(), now);
    let expect = Expect::Revision(stored.revision);
    Write::Automation(AutomationWrite::PutRun(Box::new(PutRun { run, expect, steps, messages: Vec::new() })))
}
