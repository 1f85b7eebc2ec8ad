//! Times that follow from dates of contacts, at which an automation's date trigger fires.
//!
//! Contract section 13.4, "Date". Once a day the times of the next two days are stored, and those of contacts that
//! change meanwhile when they do. When one is due the date is read again, so that outdated times need not be removed; a
//! time that was stored once is not stored again.

use std::collections::HashSet;
use std::time::Duration;

use jiff::tz::TimeZone;
use messaging_core::changes::{AutomationWrite, Changes, DateFire, PutDateFires, Write};
use messaging_core::domain::audience::contact::{Contact, ContactFilter};
use messaging_core::domain::automation::note::{Cause, Note};
use messaging_core::domain::automation::time::date_at;
use messaging_core::domain::automation::trigger::{DateTrigger, TriggerKind};
use messaging_core::domain::installation::quarantine::Again;
use messaging_core::ports::store::{CommitError, PageRequest};
use messaging_core::time::{self, Timestamp};

use super::runs::enter;
use super::{ActiveAutomation, SLICE, active_or_rest};
use crate::app::App;
use crate::jobs::run_automation::{DateLook, FollowDates, RunAutomation};
use crate::services::entering::Candidate;
use crate::services::page_size::PageSize;
use crate::work::job::{Job, JobContext, JobError};

/// Span ahead for which times are stored.
const AHEAD: Duration = Duration::from_hours(48);
/// Interval between the looks at all contacts.
const EVERY: Duration = Duration::from_hours(24);
/// Delay after which a due time no longer counts.
const LATE: Duration = Duration::from_hours(24);
/// Number of contacts that are read together.
const CONTACTS: usize = 500;

impl RunAutomation {
    /// Processes a page of the due times, one of each contact; returns false if there was none.
    pub(super) async fn dates(
        &self,
        cx: &JobContext,
        active: &ActiveAutomation,
        size: usize,
    ) -> Result<bool, JobError> {
        let (workspace, id) = (self.workspace_id, self.automation_id);
        let TriggerKind::Date(trigger) = &active.plan.trigger.kind else {
            return self.discard_dates(cx, active, size).await;
        };
        let due = cx.app.store().due_dates(workspace, id, self.shard, active.now, size).await?;
        if due.is_empty() {
            return Ok(false);
        }
        let mut changes = Changes::from_iter([active.expected()]);
        let mut candidates = Vec::new();
        let mut contacts = HashSet::new();
        for fire in due.into_iter().filter(|fire| contacts.insert(fire.contact_id)) {
            if is_in_time(active, fire.due_at)
                && let Some(contact) = cx.app.store().contact(workspace, fire.contact_id).await?
                && follows(&contact.record, trigger, &active.zone, fire.due_at)
            {
                candidates.push(Candidate::new(fire.contact_id, fire.due_at));
            }
            changes.push(Write::Automation(AutomationWrite::TakeDateFire(workspace, id, fire)));
        }
        changes.append(enter(&cx.app, active, candidates).await?);
        cx.commit(changes).await?;
        Ok(true)
    }

    /// Removes the remaining times after the trigger was changed.
    async fn discard_dates(&self, cx: &JobContext, active: &ActiveAutomation, size: usize) -> Result<bool, JobError> {
        let (workspace, id) = (self.workspace_id, self.automation_id);
        let due = cx.app.store().due_dates(workspace, id, self.shard, active.now, size).await?;
        let changes: Changes =
            due.into_iter().map(|fire| Write::Automation(AutomationWrite::TakeDateFire(workspace, id, fire))).collect();
        let is_any = !changes.is_empty();
        cx.commit(changes).await?;
        Ok(is_any)
    }
}

/// Returns true if a due time still counts: it is not before the activation of the automation, nor too long ago.
fn is_in_time(active: &ActiveAutomation, due_at: Timestamp) -> bool {
    active.automation.activated_at.is_none_or(|activated| due_at >= activated) && active.now.since(due_at) < LATE
}

/// Returns true if a time follows from a contact's date, as it is now.
fn follows(contact: &Contact, trigger: &DateTrigger, zone: &TimeZone, due_at: Timestamp) -> bool {
    moments(contact, trigger, zone, due_at - Duration::from_millis(1), due_at).contains(&due_at)
}

/// Returns the times that follow from a contact's date, later than `after` and not later than `until`.
fn moments(
    contact: &Contact,
    trigger: &DateTrigger,
    zone: &TimeZone,
    after: Timestamp,
    until: Timestamp,
) -> Vec<Timestamp> {
    let own = contact.timezone.as_deref().and_then(time::zone).map(|(zone, _)| zone);
    let zone = own.as_ref().unwrap_or(zone);
    let date = date_at(&contact.attributes, &trigger.attribute);
    date.map_or_else(Vec::new, |date| trigger.moments(date, zone, after, until))
}

/// Returns the write of the times of contacts that were noted as created or changed. Times before the change do not
/// count.
pub(super) async fn fires_of(
    app: &App,
    active: &ActiveAutomation,
    trigger: &DateTrigger,
    notes: impl Iterator<Item = &Note> + Send,
) -> Result<Option<Write>, JobError> {
    let mut fires = Vec::new();
    for note in notes.filter(|note| matches!(note.cause, Cause::Created | Cause::Changed)) {
        let workspace = active.automation.workspace_id;
        let Some(contact) = app.store().contact(workspace, note.contact_id).await? else { continue };
        // A daily look that began at this moment covers no more.
        let until = active.now + AHEAD;
        let found = moments(&contact.record, trigger, &active.zone, note.at, until);
        fires.extend(found.into_iter().map(|due_at| DateFire { contact_id: note.contact_id, due_at }));
    }
    Ok(put(active, fires))
}

/// Returns the times of some contacts within a span; a past one only if the contact has not changed since.
fn fires_between(
    contacts: &[Contact],
    trigger: &DateTrigger,
    active: &ActiveAutomation,
    (after, until): (Timestamp, Timestamp),
) -> Vec<DateFire> {
    let mut fires = Vec::new();
    for contact in contacts {
        let found = moments(contact, trigger, &active.zone, after, until);
        let counts = |at: &Timestamp| *at > active.now || contact.updated_at <= *at;
        let fire = |due_at| DateFire { contact_id: contact.id, due_at };
        fires.extend(found.into_iter().filter(counts).map(fire));
    }
    fires
}

/// Returns the write that records the times of a contact as put aside.
fn aside(
    cx: &JobContext,
    active: &ActiveAutomation,
    contact: &Contact,
    fires: &[DateFire],
    why: &CommitError,
) -> Write {
    let due_at = fires.iter().filter(|fire| fire.contact_id == contact.id).map(|fire| fire.due_at).collect();
    let again = Again::Moments { automation_id: active.automation.id, contact_id: contact.id, due_at };
    cx.app.quarantine(Some(contact.workspace_id), ("automation_moments", &contact.id), why, Some(again))
}

fn put(active: &ActiveAutomation, fires: Vec<DateFire>) -> Option<Write> {
    let (workspace_id, automation_id) = (active.automation.workspace_id, active.automation.id);
    let put = PutDateFires { workspace_id, automation_id, fires };
    (!put.fires.is_empty()).then(|| Write::Automation(AutomationWrite::PutDateFires(Box::new(put))))
}

impl Job for FollowDates {
    async fn run(mut self, cx: &JobContext) -> Result<(), JobError> {
        let until = cx.app.monotonic() + SLICE;
        let mut page = PageSize::new(CONTACTS);
        loop {
            let Some(active) = active_or_rest(cx, (self.workspace_id, self.automation_id), &self).await? else {
                return Ok(());
            };
            let TriggerKind::Date(trigger) = &active.plan.trigger.kind else {
                return Ok(cx.finish(Changes::from_iter([active.expected()])).await?);
            };
            let (now, since) = (active.now, (active.automation.version, active.automation.activated_at));
            if self.since != since {
                let changed = active.automation.updated_at;
                self.known_to = if self.since.1 == since.1 { changed } else { since.1.unwrap_or(changed) };
                self.since = since;
                self.look = None;
            }
            let Some(look) = self.look.take() else {
                let next = self.known_to - (AHEAD - EVERY);
                if next > now {
                    return cx.again_at(next, &self, Changes::default()).await;
                }
                self.look = Some(DateLook { to: now + AHEAD, after: None });
                continue;
            };
            let request = PageRequest { after: look.after, limit: page.size() };
            let contacts = cx.app.store().contacts(self.workspace_id, &ContactFilter::default(), request).await?;
            let activated = active.automation.activated_at.unwrap_or(now);
            let after = self.known_to.max(activated).max(now - LATE);
            let fires = fires_between(&contacts.items, trigger, &active, (after, look.to));
            let changes = match page.refused() {
                Some(why) => contacts.items.iter().map(|contact| aside(cx, &active, contact, &fires, why)).collect(),
                None => put(&active, fires).into_iter().collect(),
            };
            if let Err(error) = cx.commit(changes).await {
                // The one contact whose times the store refuses is skipped, and the others do not wait.
                page.failed(error, contacts.items.len())?;
                self.look = Some(look);
                continue;
            }
            page.kept();
            match contacts.next {
                Some(next) => self.look = Some(DateLook { to: look.to, after: Some(next) }),
                None => self.known_to = look.to,
            }
            if cx.app.monotonic() >= until {
                return cx.again_at(now, &self, Changes::default()).await;
            }
        }
    }
}
