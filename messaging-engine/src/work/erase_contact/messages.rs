//! Erasure of a person from stored messages.

use futures_util::future::try_join_all;
use messaging_core::changes::{Changes, CountMessages, EraseCopy, EventSubject, RedactMessage, Write};
use messaging_core::domain::audience::contact::erasure::{self, ErasedAddresses, Names};
use messaging_core::domain::delivery::attempt::MessageAttempt;
use messaging_core::domain::mail::link_token::CopyKey;
use messaging_core::domain::message::content;
use messaging_core::domain::message::{EventKind, MessageStatus};
use messaging_core::error::Chain;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::{CommitError, PageRequest, StoreError};

use crate::app::App;
use crate::work::job::{JobContext, JobError};

/// Largest number of times in a row that a message is decided again because it changed meanwhile.
const MAX_TRIES: usize = 16;

/// Number of events of one message that are searched; opens and clicks may be many.
const MAX_EVENTS: usize = 100_000;

/// Number of dialogs of one message that are searched: its last attempts, each with several peers.
const MAX_DIALOGS: usize = 1000;

/// Reduces the messages to data that names nobody; returns true if all of them are done.
pub(super) async fn redact(
    cx: &JobContext,
    workspace: WorkspaceId,
    ids: &[MessageId],
    names: &Names,
) -> Result<bool, JobError> {
    let each = ids.iter().map(|id| until_committed(cx, || redaction(&cx.app, workspace, *id, names)));
    Ok(try_join_all(each).await?.into_iter().all(|is_done| is_done))
}

/// Takes the addresses out of other people's messages; returns true if all of them are done.
pub(super) async fn take_out(
    cx: &JobContext,
    workspace: WorkspaceId,
    ids: &[MessageId],
    erased: &ErasedAddresses,
    key: CopyKey,
) -> Result<bool, JobError> {
    let each = ids.iter().map(|id| until_committed(cx, || removal(&cx.app, workspace, *id, erased, key)));
    Ok(try_join_all(each).await?.into_iter().all(|is_done| is_done))
}

/// Decides and commits, again when the message changed meanwhile; returns true if it succeeded.
async fn until_committed<F>(cx: &JobContext, decide: impl Fn() -> F) -> Result<bool, JobError>
where
    F: Future<Output = Result<Changes, StoreError>>,
{
    for _ in 0..MAX_TRIES {
        match cx.commit(decide().await?).await {
            Err(CommitError::Conflict) => {}
            outcome => return Ok(outcome.map(|()| true)?),
        }
    }
    Ok(false)
}

/// Returns the writes that reduce a message to data that names nobody.
async fn redaction(app: &App, workspace: WorkspaceId, id: MessageId, names: &Names) -> Result<Changes, StoreError> {
    let mut changes = Changes::default();
    let Some((message, stored)) = app.store().message_with_content(workspace, id).await? else { return Ok(changes) };
    if message.is_redacted() {
        return Ok(changes);
    }
    let events = app.store().message_events(workspace, id, MAX_EVENTS).await?;
    let redacted = events.iter().filter_map(|event| Some((event.at, event.id, erasure::meta(event, names)?)));
    // Nothing is sent to an erased person any more.
    let is_cancelled = message.status.may_become(MessageStatus::Cancelled);
    let now = app.now();
    let after = if is_cancelled { message.moved(MessageStatus::Cancelled, now) } else { message.clone() };
    changes.push(Write::RedactMessage(Box::new(RedactMessage {
        workspace_id: workspace,
        message_id: id,
        revision: message.revision,
        status: after.status,
        updated_at: after.updated_at,
        tags: erasure::tags(&message, names),
        events: redacted.collect(),
    })));
    let count = CountMessages::of_change(&message, &after, None, now);
    changes.extend(count.map(|count| Write::CountMessages(Box::new(count))));
    if is_cancelled {
        changes.extend(message.campaign_id.map(|campaign| App::wake_campaign(workspace, campaign, now)));
        let cancelled = [(EventKind::Cancelled, serde_json::Map::new())];
        changes.extend(app.append_events(EventSubject { to: "", ..(&message).into() }, cancelled).await?);
    }
    let files = stored.and_then(|stored| content::decode(&stored).ok()).map(|request| request.files);
    for file in files.into_iter().flatten() {
        changes.push(Write::DeleteBlob(workspace, file.blob));
    }
    Ok(changes)
}

/// Returns the writes that take a copy out of another person's message. Its revision changes in any case, so that an
/// attempt under way finds out.
async fn removal(
    app: &App,
    workspace: WorkspaceId,
    id: MessageId,
    erased: &ErasedAddresses,
    key: CopyKey,
) -> Result<Changes, StoreError> {
    let store = app.store();
    let unlisted = Write::UnlistCopy(workspace, id, key);
    let Some((message, stored)) = store.message_with_content(workspace, id).await? else {
        return Ok(Changes::from_iter([unlisted]));
    };
    let content = match stored.map(|stored| erased.out_of_content(&stored)).transpose() {
        Ok(content) => content.flatten(),
        Err(error) => {
            tracing::error!(message = %id, error = %Chain(&error), "a stored request is not searched for an erased address");
            None
        }
    };
    let events = store.message_events(workspace, id, MAX_EVENTS).await?;
    let events = events.iter().filter_map(|event| Some((event.at, event.id, erased.out_of_meta(&event.meta)?)));
    let attempts = dialogs(app, workspace, id).await?;
    let attempts = attempts.iter().filter_map(|attempt| Some((attempt.id, erased.out_of_dialog(&attempt.dialog)?)));
    let mut metadata = message.metadata;
    erased.out_of_members(&mut metadata);
    let captured = store.capture(workspace, id).await?;
    let erasure = Write::EraseCopy(Box::new(EraseCopy {
        workspace_id: workspace,
        message_id: id,
        revision: message.revision,
        tags: message.tags.into_iter().filter(|tag| erased.out_of_text(tag).is_none()).collect(),
        metadata,
        content,
        events: events.collect(),
        attempts: attempts.collect(),
        capture: captured.and_then(|capture| erased.out_of_capture(&capture)),
    }));
    // The erasure comes first: if the message has changed, nothing has to be undone.
    Ok(Changes::from_iter([erasure, unlisted]))
}

/// Reads the dialogs of a message's attempts.
async fn dialogs(app: &App, workspace: WorkspaceId, id: MessageId) -> Result<Vec<MessageAttempt>, StoreError> {
    let mut page = PageRequest { after: None, limit: 100 };
    let mut found = Vec::new();
    loop {
        let slice = app.store().attempts(workspace, id, page).await?;
        found.extend(slice.items);
        match slice.next {
            Some(next) if found.len() < MAX_DIALOGS => page.after = Some(next),
            _ => return Ok(found),
        }
    }
}
