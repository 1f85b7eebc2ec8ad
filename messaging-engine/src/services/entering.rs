//! Entry of contacts into automations, for operations and jobs.
//!
//! Contract sections 13.3 and 13.4, "Entry". The rules are in core; here the facts are read for all contacts of a page
//! at once. An entry is proved by the stored entries of its contact (`AutomationWrite::PutEntry`): of two callers who
//! let the same contact in at the same moment one gets a conflict, and decides again. Entries under different keys do
//! not conflict there; the commit expects how many there may be in a day (`Condition::Entries`).

use messaging_core::changes::{AutomationWrite, Condition, Expect, ExpectEntries, PutRun, Write};
use messaging_core::domain::automation::entering::{DAY, Entrance, Refusal, admit, key_of};
use messaging_core::domain::automation::parse::AutomationPlan;
use messaging_core::domain::automation::run::{Entry, Run, RunStatus};
use messaging_core::domain::automation::{Automation, MAX_ENTRIES_A_DAY};
use messaging_core::domain::segment::filter::Filter;
use messaging_core::ids::{ContactId, EventId};
use messaging_core::ports::store::{EventSpan, FilterQuery, PageRequest, RunFilter, StoreError};
use messaging_core::time::Timestamp;
use serde_json::{Map, Value};

use crate::app::App;

/// Failed runs of a contact that are searched for a refusal within a day: more than it can have had in one.
const FAILED_A_DAY: usize = MAX_ENTRIES_A_DAY as usize + 10;

/// Contact that enters unless something speaks against it.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) contact_id: ContactId,
    /// Time when the cause was accepted.
    pub(crate) at: Timestamp,
    /// Number of automations that caused one another up to the cause.
    pub(crate) depth: u8,
    /// Object that the run knows as `event`: properties of the product event, or the object of the call; or empty.
    pub(crate) event: Map<String, Value>,
    /// Event that is the cause; the filter counts no later ones.
    pub(crate) entry_event: Option<EventId>,
}

impl Candidate {
    /// A candidate that is let in without an event.
    pub(crate) fn new(contact_id: ContactId, at: Timestamp) -> Self {
        Self { contact_id, at, depth: 0, event: Map::new(), entry_event: None }
    }

    /// Id of the last event that the filter counts: the cause, or the last possible one at its time.
    fn up_to(&self) -> EventId {
        self.entry_event.unwrap_or_else(|| EventId::last_of(self.at))
    }
}

/// Decision on a candidate: whether it enters the automation.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The candidate enters: with the new run, which is not stored yet, and the writes that prove the entry.
    Enters(Box<Run>, Vec<Write>),
    /// The candidate does not match the filter of the trigger.
    NotAllowed,
    /// The candidate may not enter now.
    Refused(Refused),
}

/// Rule or limit by which an entry is refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Refused by the rule of re-entry; such refusals are not listed.
    ReEntry,
    /// Refused by a limit. With the row that lists the refusal, and whether it is new: for a contact, a reason and a
    /// day there is one.
    Listed(Box<PutRun>, bool),
}

impl Refused {
    /// Returns the writes that list the refusal, if it is not listed yet; they conflict if it is listed elsewhere at
    /// the same moment.
    pub(crate) fn writes(self) -> Vec<Write> {
        match self {
            Self::Listed(put, true) => {
                let reason = put.run.exit_reason.clone();
                vec![fewer_entries(&put.run, reason, 1), Write::Automation(AutomationWrite::PutRun(put))]
            }
            Self::Listed(_, false) | Self::ReEntry => Vec::new(),
        }
    }
}

impl App {
    /// Decides on candidates of one automation, each another contact; returns the verdicts in their order.
    pub(crate) async fn judge_entries(
        &self,
        automation: &Automation,
        plan: &AutomationPlan,
        candidates: Vec<Candidate>,
        now: Timestamp,
    ) -> Result<Vec<Verdict>, StoreError> {
        let (workspace, id) = (automation.workspace_id, automation.id);
        let allowed = self.match_filter(automation, &plan.trigger.filter, &candidates).await?;
        let path = automation.design.re_entry_key.as_deref();
        let key = |candidate: &Candidate| (candidate.contact_id, key_of(path, &candidate.event));
        let admissible = || candidates.iter().zip(&allowed).filter(|(_, allowed)| **allowed).map(|(one, _)| one);
        let keys: Vec<_> = admissible().map(key).collect();
        if keys.is_empty() {
            return Ok(candidates.iter().map(|_| Verdict::NotAllowed).collect());
        }
        let contacts: Vec<_> = admissible().map(|candidate| (candidate.contact_id, candidate.at - DAY)).collect();
        let known = self.store().entries(workspace, id, &keys).await?;
        let today = self.store().entries_since(workspace, id, &contacts).await?;
        let mut facts = keys.into_iter().zip(known).zip(today);
        let mut verdicts = Vec::with_capacity(candidates.len());
        for (candidate, allowed) in candidates.into_iter().zip(allowed) {
            let found = if allowed { facts.next() } else { None };
            let Some((((_, key), known), today)) = found else {
                verdicts.push(Verdict::NotAllowed);
                continue;
            };
            let Candidate { contact_id, at, depth, event, entry_event } = candidate;
            let entrance = Entrance {
                id: self.new_id(now),
                workspace_id: workspace,
                automation_id: id,
                version: automation.version,
                contact_id,
                at,
                event,
                entry_event,
                key: key.clone(),
            };
            let before = known.as_ref().map(|stored| &stored.record);
            verdicts.push(match admit(automation.design.re_entry, before, depth, today) {
                Ok(depth) => {
                    let open = before.map_or(0, |entry| entry.open) + 1;
                    let entry =
                        Entry { workspace_id: workspace, automation_id: id, contact_id, key, entered_at: at, open };
                    let expect = known.map_or(Expect::Absent, |stored| Expect::Revision(stored.revision));
                    let run = entrance.run(depth);
                    let mut proof = vec![Write::Automation(AutomationWrite::PutEntry(Box::new(entry), expect))];
                    if run.key.is_some() {
                        proof.push(fewer_entries(&run, None, MAX_ENTRIES_A_DAY));
                    }
                    Verdict::Enters(Box::new(run), proof)
                }
                Err(refusal) => Verdict::Refused(self.list_refusal(entrance, refusal, depth).await?),
            });
        }
        Ok(verdicts)
    }

    /// Returns, for each candidate, true if it matches the filter of the trigger.
    async fn match_filter(
        &self,
        automation: &Automation,
        filter: &Filter,
        candidates: &[Candidate],
    ) -> Result<Vec<bool>, StoreError> {
        if *filter == Filter::Everyone {
            return Ok(vec![true; candidates.len()]);
        }
        let workspace = automation.workspace_id;
        let Some(filter) = self.askable(workspace, filter.clone()).await? else {
            return Ok(vec![false; candidates.len()]);
        };
        let ask = |candidate: &Candidate| FilterQuery {
            contact_id: candidate.contact_id,
            filter: filter.bind(&candidate.event),
            span: EventSpan { up_to: Some(candidate.up_to()), ..EventSpan::default() },
            at: candidate.at,
        };
        let asks: Vec<_> = candidates.iter().map(ask).collect();
        self.store().answers(workspace, &asks, &self.workspace_zone(workspace).await?).await
    }

    /// Returns the row that lists a refusal: a new one, unless one for the same reason is listed already and less than
    /// a day old.
    async fn list_refusal(&self, entrance: Entrance, refusal: Refusal, cause_depth: u8) -> Result<Refused, StoreError> {
        let Some((run, step)) = entrance.refused(refusal, cause_depth) else { return Ok(Refused::ReEntry) };
        let (status, contact_id) = (Some(RunStatus::Failed), Some(run.contact_id));
        let wanted = RunFilter { status, contact_id, node_id: None };
        let page = PageRequest { after: None, limit: FAILED_A_DAY };
        let failed = self.store().runs(run.workspace_id, run.automation_id, &wanted, page).await?.items;
        let since = run.entered_at - DAY;
        let is_same = |one: &Run| one.exit_reason == run.exit_reason && one.entered_at > since;
        let listed = failed.into_iter().find(is_same);
        let is_new = listed.is_none();
        let steps = if is_new { vec![step] } else { Vec::new() };
        let put = PutRun { run: listed.unwrap_or(run), expect: Expect::Absent, steps, messages: Vec::new() };
        Ok(Refused::Listed(Box::new(put), is_new))
    }

    /// Decides on a call to let a contact in, whatever else the trigger lets in; `event` is the run's `event`. A run
    /// that begins is due at once: the job of its shard continues it. The caller adds the condition that the automation
    /// is still active.
    pub(crate) async fn enter_by_hand(
        &self,
        automation: &Automation,
        contact: ContactId,
        event: Map<String, Value>,
        now: Timestamp,
    ) -> Result<Option<ByHand>, StoreError> {
        let (workspace, id) = (automation.workspace_id, automation.id);
        let Some(plan) = self.automation_plan(workspace, id, automation.version).await? else { return Ok(None) };
        let candidate = Candidate { event, ..Candidate::new(contact, now) };
        let verdict = self.judge_entries(automation, &plan, vec![candidate], now).await?.pop();
        Ok(verdict.map(|verdict| match verdict {
            Verdict::NotAllowed => ByHand::NotAllowed,
            Verdict::Refused(Refused::ReEntry) => ByHand::ReEntry,
            Verdict::Refused(Refused::Listed(put, is_new)) => {
                let run = Box::new(put.run.clone());
                let writes = Refused::Listed(put, is_new).writes();
                ByHand::Listed(run, writes)
            }
            Verdict::Enters(run, mut writes) => {
                let put =
                    PutRun { run: (*run).clone(), expect: Expect::Absent, steps: Vec::new(), messages: Vec::new() };
                writes.push(Write::Automation(AutomationWrite::PutRun(Box::new(put))));
                ByHand::Listed(run, writes)
            }
        }))
    }
}

/// Returns the condition that the contact of a run has entered, or was refused for a reason, fewer than `fewer_than`
/// times within the day before.
fn fewer_entries(run: &Run, refused: Option<String>, fewer_than: u32) -> Write {
    Write::Expect(Condition::Entries(Box::new(ExpectEntries {
        workspace_id: run.workspace_id,
        automation_id: run.automation_id,
        contact_id: run.contact_id,
        since: run.entered_at - DAY,
        refused,
        fewer_than,
    })))
}

/// Result of a call to let a contact in.
#[derive(Debug)]
pub(crate) enum ByHand {
    /// The new run, or the row that lists the reason of the refusal (depth, too many in a day), with the writes.
    Listed(Box<Run>, Vec<Write>),
    /// The contact does not match the filter of the trigger.
    NotAllowed,
    /// The rule of re-entry does not let it in.
    ReEntry,
}
