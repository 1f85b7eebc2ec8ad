//! Job that deletes an erased person's events and automation runs, and removes the person from the messages sent to
//! them.
//!
//! Contract section 6.2. First the product events and the runs in automations, then the messages attributed to the
//! contact, then other people's messages that copy it, then those that were sent to one of its addresses without being
//! attributed, then the targets of links that hold its email address or phone number: a page after another, so that no
//! commit is long.
//!
//! Messages are being sent meanwhile, and whichever commits second decides again. So each message is a commit of its
//! own, tried again when its row changed, and made under the claim of the job.

mod messages;

use std::time::Duration;

use messaging_core::changes::{AutomationWrite, Changes, DocumentKey, Write};
use messaging_core::domain::audience::contact::erasure::{ErasedAddresses, Names};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address;
use messaging_core::domain::installation::quarantine::{KEPT, Quarantined};
use messaging_core::domain::mail::link_token::CopyKey;
use messaging_core::domain::message::MessageFilter;
use messaging_core::domain::security::request_log::LoggedBodies;
use messaging_core::ids::MessageId;
use messaging_core::ports::store::{PageRequest, StoreCursor, StoreError};
use messaging_core::time::Timestamp;

use crate::jobs::erase_contact::{EraseContact, Progress};
use crate::work::job::{Job, JobContext, JobError};
use crate::work::move_messages::LOOK_AGAIN;

/// Number of messages that are decided together, each with a commit of its own.
const PAGE: usize = 20;

/// Number of pages of one run: then the progress is stored, and other jobs have their turn.
const PAGES: usize = 8;

/// Wait before a message is tried again that changed whenever it was to be redacted.
const PAUSE: Duration = Duration::from_secs(1);

/// Number of product events, or runs, of one commit.
const EVENTS: usize = 200;

/// Number of logged requests whose bodies are searched together.
const LOGGED: usize = 100;

/// Time after the erasure at which they are searched: requests that were answered before it are logged by then.
const LOGGED_AFTER: Duration = Duration::from_secs(5);

/// Number of targets of links of one commit.
const URLS: usize = 200;

impl EraseContact {
    fn names(&self) -> Names {
        Names::new(self.addresses.iter().map(|(_, address)| address.clone()).chain(self.names.iter().cloned()))
    }

    /// Returns the addresses to remove from texts of other people: addresses that nobody else has, and no words.
    fn erased_addresses(&self) -> ErasedAddresses {
        let all = self.addresses.iter().map(|(_, address)| address.clone());
        ErasedAddresses::new(self.unmistakable()).and_opaque(all)
    }

    /// Returns the email addresses and phone numbers; other names may be words that also occur in other people's
    /// messages.
    fn unmistakable(&self) -> impl Iterator<Item = &str> {
        let addresses = self.addresses.iter();
        let own = addresses.filter(|(channel, _)| matches!(channel, Channel::Email | Channel::Sms));
        own.map(|(_, address)| address.as_str())
    }

    /// Returns the keys of messages that copy the contact, or whose chain is sent to it.
    fn copy_keys(&self, cx: &JobContext) -> Vec<CopyKey> {
        let link_key = cx.app.link_key();
        let keys = |(channel, address): &(Channel, String)| {
            link_key.copies(self.workspace_id, &address::normalize(*channel, address))
        };
        let mut keys: Vec<_> = self.addresses.iter().flat_map(keys).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// Continuation of the job after a page.
enum Step {
    /// The next page, from the current progress.
    Next,
    /// The next page, but not before this time, with changes to commit.
    NextAt(Timestamp, Changes),
    /// The job is done.
    Done,
}

impl Job for EraseContact {
    async fn run(mut self, cx: &JobContext) -> Result<(), JobError> {
        for _ in 0..PAGES {
            match self.page(cx).await? {
                Step::Next => {}
                Step::NextAt(due_at, changes) => return cx.again_at(due_at, &self, changes).await,
                Step::Done => return Ok(cx.finish(Changes::default()).await?),
            }
        }
        cx.again_at(cx.app.now(), &self, Changes::default()).await
    }
}

impl EraseContact {
    /// Does a page of the work, and advances the progress.
    async fn page(&mut self, cx: &JobContext) -> Result<Step, JobError> {
        let store = cx.app.store();
        if store.has_left_events(self.workspace_id, self.contact_id).await? {
            let deletion = Write::DeleteProductEvents(self.workspace_id, self.contact_id, EVENTS);
            return Ok(Step::NextAt(cx.app.now(), Changes::from_iter([deletion])));
        }
        if store.has_left_runs(self.workspace_id, self.contact_id).await? {
            let deletion = Write::Automation(AutomationWrite::DeleteRuns(self.workspace_id, self.contact_id, EVENTS));
            return Ok(Step::NextAt(cx.app.now(), Changes::from_iter([deletion])));
        }
        match self.progress {
            Progress::Attributed | Progress::Again => self.attributed(cx).await,
            Progress::Copied => self.copied(cx).await,
            Progress::Addressed(after) => self.addressed(cx, after).await,
            Progress::Linked(after) => self.linked(cx, after).await,
            Progress::Logged(after) => self.logged(cx, after).await,
        }
    }

    /// Advances to `progress` unless a message of the page has to be tried again.
    fn after(&mut self, cx: &JobContext, is_done: bool, progress: Progress) -> Step {
        if !is_done {
            return Step::NextAt(cx.app.now() + PAUSE, Changes::default());
        }
        self.progress = progress;
        Step::Next
    }

    async fn attributed(&mut self, cx: &JobContext) -> Result<Step, JobError> {
        let page = PageRequest { after: None, limit: PAGE };
        let filter = MessageFilter { contact_id: Some(self.contact_id), ..MessageFilter::default() };
        let found = cx.app.store().messages(self.workspace_id, &filter, page).await?.items;
        if found.is_empty() && self.progress == Progress::Again {
            return Ok(Step::Done);
        }
        let ids: Vec<MessageId> = found.iter().map(|message| message.id).collect();
        let is_done = messages::redact(cx, self.workspace_id, &ids, &self.names()).await?;
        // A redacted message is attributed to nobody, so the next page is the first again.
        let progress = if ids.is_empty() { Progress::Copied } else { self.progress };
        Ok(self.after(cx, is_done, progress))
    }

    async fn copied(&mut self, cx: &JobContext) -> Result<Step, JobError> {
        for key in self.copy_keys(cx) {
            let ids = cx.app.store().messages_copying(self.workspace_id, key, PAGE).await?;
            if !ids.is_empty() {
                let erased = self.erased_addresses();
                let is_done = messages::take_out(cx, self.workspace_id, &ids, &erased, key).await?;
                // A message from which the contact was removed is not found again.
                return Ok(self.after(cx, is_done, Progress::Copied));
            }
        }
        Ok(self.after(cx, true, Progress::Addressed(None)))
    }

    async fn addressed(&mut self, cx: &JobContext, after: Option<StoreCursor>) -> Result<Step, JobError> {
        let page = PageRequest { after, limit: PAGE };
        let slice = cx.app.store().messages_to(self.workspace_id, &self.addresses, page).await?;
        let ids: Vec<MessageId> = slice.items.iter().map(|message| message.id).collect();
        let is_done = messages::redact(cx, self.workspace_id, &ids, &self.names()).await?;
        let progress = slice.next.map_or(Progress::Linked(None), |next| Progress::Addressed(Some(next)));
        Ok(self.after(cx, is_done, progress))
    }

    async fn linked(&mut self, cx: &JobContext, after: Option<StoreCursor>) -> Result<Step, JobError> {
        let names = Names::new(self.unmistakable().map(ToOwned::to_owned));
        let page = PageRequest { after, limit: URLS };
        let slice = cx.app.store().urls_naming(self.workspace_id, &names, page).await?;
        let changes: Vec<_> =
            slice.items.iter().map(|key| Write::Delete(DocumentKey::Url(self.workspace_id, *key))).collect();
        let now = cx.app.now();
        if let Some(next) = slice.next {
            self.progress = Progress::Linked(Some(next));
            return Ok(Step::NextAt(now, changes.into_iter().collect()));
        }
        let put_aside = self.put_aside(cx, &names).await?;
        self.progress = Progress::Logged(None);
        Ok(Step::NextAt(now + LOGGED_AFTER, changes.into_iter().chain(put_aside).collect()))
    }

    /// Removes the bodies of logged requests that name the person or the contact.
    async fn logged(&mut self, cx: &JobContext, after: Option<StoreCursor>) -> Result<Step, JobError> {
        let names = Names::new(self.unmistakable().map(ToOwned::to_owned));
        let contact = self.contact_id.to_string();
        let page = PageRequest { after, limit: LOGGED };
        let slice = cx.app.store().logged_bodies(self.workspace_id, page).await?;
        let is_named =
            |text: &Option<String>| text.as_ref().is_some_and(|text| names.are_in(text) || text.contains(&contact));
        let is_about = |resource: Option<&str>, bodies: &LoggedBodies| {
            resource == Some(contact.as_str()) || is_named(&bodies.request) || is_named(&bodies.response)
        };
        let found = slice.items.iter().filter(|(_, resource, bodies)| is_about(resource.as_deref(), bodies));
        let found: Vec<_> = found.map(|(key, ..)| *key).collect();
        let forget = (!found.is_empty()).then(|| Write::ForgetRequestBodies(self.workspace_id, found));
        let now = cx.app.now();
        if let Some(next) = slice.next {
            self.progress = Progress::Logged(Some(next));
            return Ok(Step::NextAt(now, forget.into_iter().collect()));
        }
        self.progress = Progress::Again;
        self.addresses.clear();
        self.names.clear();
        Ok(Step::NextAt(now + LOOK_AGAIN, forget.into_iter().collect()))
    }

    /// Returns the writes that remove quarantine records of the workspace which name the person.
    async fn put_aside(&self, cx: &JobContext, names: &Names) -> Result<Vec<Write>, StoreError> {
        let (_, records) = cx.app.store().quarantined(KEPT).await?;
        let own = records.into_iter().filter(|record| record.workspace_id == Some(self.workspace_id));
        let is_about = |record: &Quarantined| serde_json::to_string(record).is_ok_and(|text| names.are_in(&text));
        Ok(own.filter(is_about).map(|record| Write::ForgetQuarantined(record.id)).collect())
    }
}
