//! The job that deletes what an erased person did, and takes them out of the messages sent to them.
//!
//! Contract section 6.2. First the product events, then the messages attributed to the contact, then those
//! that went to one of its addresses without being attributed, then the targets of links that hold its email
//! address or phone number: a page after another, so that no commit is long. What is not looked through:
//! copies of other people's messages.

use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::changes::{Changes, RedactMessage, Write};
use crate::domain::channel::Channel;
use crate::domain::contact::Contact;
use crate::domain::contact::erasure::{self, Names};
use crate::domain::content;
use crate::domain::message::{EventKind, Message, MessageEvent, MessageFilter, MessageStatus};
use crate::ids::{ContactId, WorkspaceId};
use crate::ports::store::{PageRequest, StoreError};
use crate::work::job::{Job, JobContext, JobError};
use crate::work::move_messages::LOOK_AGAIN;

/// Messages of one commit.
const PAGE: usize = 20;

/// Product events of one commit.
const EVENTS: usize = 200;

/// Targets of links of one commit.
const URLS: usize = 200;

/// Events of one message that are looked through; opens and clicks may be many.
const MAX_EVENTS: usize = 100_000;

/// Takes a person out of their messages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EraseContact {
    workspace_id: WorkspaceId,
    contact_id: ContactId,
    /// Its addresses; none on the second look, so that they are kept no longer than needed.
    addresses: Vec<(Channel, String)>,
    /// Other texts that name the person.
    names: Vec<String>,
    /// How far the messages to the addresses are looked through.
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Progress {
    /// Messages attributed to the contact.
    Attributed,
    /// Messages to its addresses, older than the one with this key.
    Addressed(Option<[u8; 16]>),
    /// Targets of links, after the one with this key.
    Linked(Option<[u8; 16]>),
    /// Once more messages attributed to the contact: some may have been accepted while it went.
    Again,
}

impl EraseContact {
    /// The job of an erasure.
    pub fn of(contact: &Contact) -> Self {
        Self {
            workspace_id: contact.workspace_id,
            contact_id: contact.id,
            addresses: contact.all_addresses(),
            names: contact.external_id.iter().cloned().collect(),
            progress: Progress::Attributed,
        }
    }

    fn names(&self) -> Names {
        Names::new(self.addresses.iter().map(|(_, address)| address.clone()).chain(self.names.iter().cloned()))
    }
}

impl Job for EraseContact {
    const KIND: &'static str = "erase_contact";

    fn lane(&self) -> String {
        format!("contacts:{}", self.workspace_id)
    }

    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let (app, now) = (&cx.app, cx.app.now());
        if app.store().has_left_events(self.workspace_id, self.contact_id).await? {
            let deletion = Write::DeleteProductEvents(self.workspace_id, self.contact_id, EVENTS);
            return cx.again_at(now, &self, Changes::from_iter([deletion])).await;
        }
        match self.progress {
            Progress::Addressed(after) => return self.erase_addressed(cx, after).await,
            Progress::Linked(after) => return self.erase_links(cx, after).await,
            Progress::Attributed | Progress::Again => {}
        }
        let page = PageRequest { after: None, limit: PAGE };
        let filter = MessageFilter { contact_id: Some(self.contact_id), ..MessageFilter::default() };
        let messages = app.store().messages(self.workspace_id, &filter, page).await?.items;
        let changes = redact(app, &messages, &self.names()).await?;
        match (messages.is_empty(), self.progress) {
            // A redacted message belongs to nobody, so the next page is the first again.
            (false, _) => cx.again_at(now, &self, changes).await,
            (true, Progress::Again) => Ok(cx.finish(changes).await?),
            (true, _) => cx.again_at(now, &Self { progress: Progress::Addressed(None), ..self }, changes).await,
        }
    }
}

impl EraseContact {
    /// A page of the messages that went to one of its addresses.
    async fn erase_addressed(self, cx: &JobContext, after: Option<[u8; 16]>) -> Result<(), JobError> {
        let page = PageRequest { after, limit: PAGE };
        let slice = cx.app.store().messages_to(self.workspace_id, &self.addresses, page).await?;
        let changes = redact(&cx.app, &slice.items, &self.names()).await?;
        let progress = match slice.next {
            Some(next) => Progress::Addressed(Some(next)),
            None => Progress::Linked(None),
        };
        cx.again_at(cx.app.now(), &Self { progress, ..self }, changes).await
    }

    /// A page of the targets of links that name it.
    async fn erase_links(self, cx: &JobContext, after: Option<[u8; 16]>) -> Result<(), JobError> {
        // Other names may be words that also stand in links of everybody.
        let is_unmistakable = |channel: &Channel| matches!(channel, Channel::Email | Channel::Sms);
        let addresses = self.addresses.iter().filter(|(channel, _)| is_unmistakable(channel));
        let names = Names::new(addresses.map(|(_, address)| address.clone()));
        let page = PageRequest { after, limit: URLS };
        let slice = cx.app.store().urls_naming(self.workspace_id, &names, page).await?;
        let changes = slice.items.iter().map(|key| Write::DeleteUrl(self.workspace_id, *key)).collect();
        let now = cx.app.now();
        if let Some(next) = slice.next {
            return cx.again_at(now, &Self { progress: Progress::Linked(Some(next)), ..self }, changes).await;
        }
        let (addresses, names) = (Vec::new(), Vec::new());
        let again = Self { addresses, names, progress: Progress::Again, ..self };
        cx.again_at(now + LOOK_AGAIN, &again, changes).await
    }
}

/// The writes that leave of the messages what names nobody.
async fn redact(app: &App, messages: &[Message], names: &Names) -> Result<Changes, StoreError> {
    let mut changes = Changes::default();
    for message in messages {
        let workspace = message.workspace_id;
        let events = app.store().message_events(workspace, message.id, MAX_EVENTS).await?;
        let redacted = events.iter().filter_map(|event| Some((event.at, event.id, erasure::meta(event, names)?)));
        // Nothing goes to an erased person any more.
        let is_cancelled = message.status.may_become(MessageStatus::Cancelled);
        let now = app.now();
        changes.push(Write::RedactMessage(Box::new(RedactMessage {
            workspace_id: workspace,
            message_id: message.id,
            revision: message.revision,
            status: if is_cancelled { MessageStatus::Cancelled } else { message.status },
            updated_at: if is_cancelled { now } else { message.updated_at },
            tags: erasure::tags(message, names),
            events: redacted.collect(),
        })));
        if is_cancelled {
            changes.push(Write::AppendEvent(Box::new(MessageEvent {
                id: app.new_id(now),
                workspace_id: workspace,
                message_id: message.id,
                kind: EventKind::Cancelled,
                at: now,
                meta: serde_json::Map::new(),
            })));
        }
        let stored = app.store().message_with_content(workspace, message.id).await?.and_then(|(_, content)| content);
        let files = stored.and_then(|stored| content::decode(&stored).ok()).map(|request| request.files);
        for file in files.into_iter().flatten() {
            changes.push(Write::DeleteBlob(workspace, file.blob));
        }
    }
    Ok(changes)
}
