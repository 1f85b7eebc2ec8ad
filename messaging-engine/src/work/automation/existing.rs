//! Entry of the contacts that were members of a segment when an automation was activated which waits for new members of
//! it.
//!
//! Contract section 13.4, "Entry": `include_existing`. The position reached is stored in the commit that lets a page
//! in, so no contact is let in twice and none is skipped. A contact that becomes a member meanwhile is noted as always,
//! and enters by that note: contacts that have an open note, or have entered since the activation, are skipped here.
//! Members are read first, then notes, then entries, so that no note is missed in between.

use std::collections::HashSet;

use messaging_core::changes::Changes;
use messaging_core::domain::audience::contact::Contact;
use messaging_core::domain::automation::SHARDS;
use messaging_core::domain::automation::entering::key_of;
use messaging_core::domain::automation::note::Cause;
use messaging_core::domain::automation::trigger::TriggerKind;
use messaging_core::domain::installation::quarantine::Again;
use messaging_core::ids::ContactId;
use messaging_core::ports::store::{CommitError, PageRequest, StoreError};
use serde_json::Map;

use super::runs::enter;
use super::{ActiveAutomation, Paging, RETRY, SLICE, active_or_rest};
use crate::jobs::run_automation::EnterExisting;
use crate::services::entering::Candidate;
use crate::work::job::{Job, JobContext, JobError};

/// Number of notes of a shard that are read; while there are more, no contact is let in here.
const NOTES: usize = 2_000;

impl Job for EnterExisting {
    async fn run(mut self, cx: &JobContext) -> Result<(), JobError> {
        let until = cx.app.monotonic() + SLICE;
        let mut paging = Paging::new();
        loop {
            let Some(active) = active_or_rest(cx, (self.workspace_id, self.automation_id), &self).await? else {
                return Ok(());
            };
            let is_wanted = matches!(&active.plan.trigger.kind,
                TriggerKind::SegmentEnter { segment_id, include_existing: true } if *segment_id == self.segment_id);
            if !is_wanted {
                return Ok(cx.finish(Changes::default()).await?);
            }
            match self.page(cx, &active, paging.size()).await {
                Ok(true) => paging.succeeded(),
                Ok(false) => return Ok(()),
                Err(error) => {
                    let Some(why) = paging.after(&cx.app, error).await? else { continue };
                    if !self.pass_by(cx, &active, &why).await? {
                        return Ok(());
                    }
                }
            }
            if cx.app.monotonic() >= until {
                return cx.again_at(cx.app.now(), &self, Changes::default()).await;
            }
        }
    }
}

impl EnterExisting {
    /// Lets a page of members in; returns true to continue at once. After the last page the job is finished, and if it
    /// has to wait it is put back.
    async fn page(&mut self, cx: &JobContext, active: &ActiveAutomation, size: usize) -> Result<bool, JobError> {
        let (store, workspace, id) = (cx.app.store(), self.workspace_id, self.automation_id);
        let page = PageRequest { after: self.after, limit: size };
        let members = store.segment_contacts(workspace, self.segment_id, page).await?;
        let Some(noted) = self.noted(cx).await? else {
            cx.again_at(cx.app.now() + RETRY, self, Changes::default()).await?;
            return Ok(false);
        };
        let key = key_of(active.automation.design.re_entry_key.as_deref(), &Map::new());
        let keys: Vec<_> = members.items.iter().map(|contact| (contact.id, key.clone())).collect();
        let known = store.entries(workspace, id, &keys).await?;
        let has_entered = |at: usize| {
            known.get(at).and_then(Option::as_ref).is_some_and(|entry| entry.record.entered_at >= self.activated_at)
        };
        let is_new = |at: usize, id: ContactId| !has_entered(at) && !noted.contains(&id);
        let newcomers = members.items.iter().enumerate().filter(|(at, contact)| is_new(*at, contact.id));
        let candidates = newcomers.map(|(_, contact)| Candidate::new(contact.id, self.activated_at)).collect();
        let mut changes = Changes::from_iter([active.expected()]);
        changes.append(enter(&cx.app, active, candidates).await?);
        let Some(next) = members.next else {
            cx.finish(changes).await?;
            return Ok(false);
        };
        let rest = Self { after: Some(next), ..self.clone() };
        cx.save(&rest, changes).await?;
        *self = rest;
        Ok(true)
    }

    /// Skips the next member, whose entry the store refuses for good; returns true if there are more.
    async fn pass_by(
        &mut self,
        cx: &JobContext,
        active: &ActiveAutomation,
        why: &CommitError,
    ) -> Result<bool, JobError> {
        let page = PageRequest { after: self.after, limit: 1 };
        let members = cx.app.store().segment_contacts(self.workspace_id, self.segment_id, page).await?;
        let aside = |contact: &Contact| {
            let again = Again::Entry { automation_id: self.automation_id, contact_id: contact.id };
            cx.app.quarantine(Some(self.workspace_id), ("automation_entry", &contact.id), why, Some(again))
        };
        let changes = members.items.iter().map(aside).chain([active.expected()]).collect();
        self.after = members.next;
        if self.after.is_none() {
            cx.finish(changes).await?;
            return Ok(false);
        }
        cx.save(self, changes).await?;
        Ok(true)
    }

    /// Returns the contacts that are to enter by an open note; `None` while there are too many notes to read.
    async fn noted(&self, cx: &JobContext) -> Result<Option<HashSet<ContactId>>, StoreError> {
        let mut noted = HashSet::new();
        for shard in 0..SHARDS {
            let store = cx.app.store();
            let notes = store.automation_notes(self.workspace_id, self.automation_id, shard, NOTES).await?;
            if notes.len() == NOTES {
                return Ok(None);
            }
            let entering = notes.into_iter().filter(|(_, note, _)| {
                note.may_enter && matches!(note.cause, Cause::SegmentEntered(id) if id == self.segment_id)
            });
            noted.extend(entering.map(|(_, note, _)| note.contact_id));
        }
        Ok(Some(noted))
    }
}
