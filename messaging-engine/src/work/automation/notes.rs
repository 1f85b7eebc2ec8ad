//! Processing of an automation's notes, which record events of contacts, in their order.
//!
//! Contract section 13.4, "Order": one event first tests goal and exits, then moves the contact's open runs, then
//! starts a new one. A note is removed in the commit that does the last of it; until then it is processed again, which
//! moves no run a second time, because a run counts only events that were accepted after it arrived at its node.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use messaging_core::changes::{AutomationWrite, Changes, Expect, TakeNotes, Write};
use messaging_core::cursor::StoreCursor;
use messaging_core::domain::automation::note::{Cause, Happened, Note};
use messaging_core::domain::automation::run::Run;
use messaging_core::domain::automation::step::goes_before;
use messaging_core::domain::automation::trigger::TriggerKind;
use messaging_core::ids::ContactId;
use messaging_core::ports::store::Stored;
use serde_json::Map;

use super::ActiveAutomation;
use super::dates::fires_of;
use super::runs::enter;
use super::walk::{Advanced, Incoming, PendingRun, advance};
use crate::jobs::run_automation::RunAutomation;
use crate::services::entering::Candidate;
use crate::work::job::{JobContext, JobError};

/// A note with the event that it is about.
struct Noted {
    cursor: StoreCursor,
    note: Arc<Note>,
    happened: Option<Arc<Happened>>,
}

/// Open runs of contacts, oldest first.
type OpenRuns = HashMap<ContactId, Vec<Stored<Run>>>;

impl RunAutomation {
    /// Processes a page of notes; returns false if there was none.
    pub(super) async fn notes(
        &self,
        cx: &JobContext,
        active: &ActiveAutomation,
        size: usize,
    ) -> Result<bool, JobError> {
        let noted = self.read_notes(cx, size).await?;
        if noted.is_empty() {
            return Ok(false);
        }
        let open = self.read_runs(cx, &noted).await?;
        let mut done = 0;
        let mut changes = Changes::default();
        // Notes of several rounds without changes are removed together.
        while done < noted.len() && changes.is_empty() {
            let round = round(&noted[done..]);
            let worked;
            (worked, changes) = self.round(cx, active, round, &open).await?;
            done += worked;
            if worked < round.len() {
                break;
            }
        }
        let mut all = Changes::from_iter([active.expected()]);
        all.append(changes);
        if let Some(last) = done.checked_sub(1).and_then(|last| noted.get(last)) {
            all.push(Write::Automation(AutomationWrite::TakeNotes(TakeNotes {
                workspace_id: self.workspace_id,
                automation_id: self.automation_id,
                shard: self.shard,
                up_to: last.cursor,
            })));
        }
        cx.commit(all).await?;
        Ok(true)
    }

    async fn read_notes(&self, cx: &JobContext, size: usize) -> Result<Vec<Noted>, JobError> {
        let store = cx.app.store();
        let notes = store.automation_notes(self.workspace_id, self.automation_id, self.shard, size).await?;
        let noted = |(cursor, note, happened): (StoreCursor, Note, Option<Happened>)| Noted {
            cursor,
            note: Arc::new(note),
            happened: happened.map(Arc::new),
        };
        Ok(notes.into_iter().map(noted).collect())
    }

    async fn read_runs(&self, cx: &JobContext, noted: &[Noted]) -> Result<OpenRuns, JobError> {
        let contacts: HashSet<ContactId> = noted.iter().map(|noted| noted.note.contact_id).collect();
        let contacts: Vec<_> = contacts.into_iter().collect();
        let mut open = OpenRuns::new();
        for run in cx.app.store().open_runs(self.workspace_id, self.automation_id, &contacts).await? {
            open.entry(run.record.contact_id).or_default().push(run);
        }
        Ok(open)
    }

    /// Processes notes of different contacts. Returns the number of notes, from the first on, that are done, and the
    /// changes.
    async fn round(
        &self,
        cx: &JobContext,
        active: &ActiveAutomation,
        noted: &[Noted],
        open: &OpenRuns,
    ) -> Result<(usize, Changes), JobError> {
        let mut changes = Changes::default();
        // Contacts whose notes have to be processed again.
        let mut unsettled: HashSet<ContactId> = HashSet::new();
        let own = |noted: &Noted| open.get(&noted.note.contact_id).map_or(&[][..], Vec::as_slice);

        // Runs that were due before continue by themselves first, one of each contact.
        let mut first = Vec::new();
        for noted in noted {
            let activated = active.automation.activated_at;
            let goes_first = |stored: &&Stored<Run>| goes_before(&stored.record, noted.note.at, activated);
            if let Some(stored) = own(noted).iter().find(goes_first) {
                unsettled.insert(noted.note.contact_id);
                first.push(pending(stored, Incoming::Due));
            }
        }
        changes.append(self.brought_on(cx, active, first).await?.changes);

        // Then the open runs get the note: one of each contact after another, until one of them has moved.
        let most = noted.iter().map(|noted| own(noted).len()).max().unwrap_or(0);
        for place in 0..most {
            let listening = noted.iter().filter(|noted| !unsettled.contains(&noted.note.contact_id));
            let heard: Vec<_> = listening.filter_map(|noted| Some((noted, own(noted).get(place)?))).collect();
            let hear = |(noted, stored): &(&Noted, &Stored<Run>)| {
                pending(stored, Incoming::Note(Arc::clone(&noted.note), noted.happened.clone()))
            };
            let advanced = self.brought_on(cx, active, heard.iter().map(hear).collect()).await?;
            for ((noted, stored), run) in heard.iter().zip(&advanced.runs) {
                // If nothing else follows from the note, it is settled.
                let is_last = place + 1 == own(noted).len() && candidate(active, noted).is_none();
                if *run != stored.record && !is_last {
                    unsettled.insert(noted.note.contact_id);
                }
            }
            changes.append(advanced.changes);
        }

        // A note that moved no run and lets nobody enter is done; the others are processed again with the changed runs.
        // Later notes wait for them.
        let is_over = |noted: &Noted| !unsettled.contains(&noted.note.contact_id);
        let worked = noted.iter().position(|noted| !is_over(noted)).unwrap_or(noted.len());
        let candidates = noted[..worked].iter().filter_map(|noted| candidate(active, noted)).collect();
        changes.append(enter(&cx.app, active, candidates).await?);
        if let TriggerKind::Date(trigger) = &active.plan.trigger.kind {
            let changed = noted[..worked].iter().filter(|noted| noted.note.may_enter).map(|noted| &*noted.note);
            changes.extend(fires_of(&cx.app, active, trigger, changed).await?);
        }
        Ok((worked, changes))
    }

    async fn brought_on(
        &self,
        cx: &JobContext,
        active: &ActiveAutomation,
        page: Vec<PendingRun>,
    ) -> Result<Advanced, JobError> {
        if page.is_empty() {
            return Ok(Advanced { changes: Changes::default(), runs: Vec::new() });
        }
        advance(&cx.app, &active.automation, page).await
    }
}

/// Returns the notes from the first on that are of different contacts.
fn round(noted: &[Noted]) -> &[Noted] {
    let mut contacts = HashSet::new();
    let end = noted.iter().position(|noted| !contacts.insert(noted.note.contact_id));
    &noted[..end.unwrap_or(noted.len())]
}

fn pending(stored: &Stored<Run>, input: Incoming) -> PendingRun {
    PendingRun { run: stored.record.clone(), expect: Expect::Revision(stored.revision), input }
}

/// Returns the contact that may enter by a note, if any.
fn candidate(active: &ActiveAutomation, noted: &Noted) -> Option<Candidate> {
    let (note, happened) = (&noted.note, noted.happened.as_deref());
    if !note.may_enter || !active.plan.trigger.fits(&note.cause, happened, &active.zone) {
        return None;
    }
    let event = match happened {
        Some(Happened::Event(event)) => event.properties.members(),
        _ => Map::new(),
    };
    let entry_event = match note.cause {
        Cause::Event(id) | Cause::Message { event_id: id, .. } => Some(id),
        _ => None,
    };
    // A calculation of the segment that began before the activation may find members after it.
    let at = match note.cause {
        Cause::SegmentEntered(_) => active.automation.activated_at.map_or(note.at, |activated| note.at.max(activated)),
        _ => note.at,
    };
    Some(Candidate { contact_id: note.contact_id, at, depth: note.depth, event, entry_event })
}
