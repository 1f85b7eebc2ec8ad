//! Keeping the index by which contacts and messages are searched: every few seconds, on a task of its own.
//!
//! What is written does not wait for it. What is due is found in the database, so a process that ends leaves nothing
//! undone: the next one goes on. Where several work on one database, the first to commit a block has made it; for the
//! others it is a conflict, and they go on with what is due then.

use std::time::Duration;

use futures_util::future::join_all;
use messaging_core::changes::{Changes, Write};
use messaging_core::domain::search::SearchTexts;
use messaging_core::domain::search::messages::{DueMessages, MessageBlock};
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::ids::Id as _;
use messaging_core::ports::store::{CommitError, StoreError};
use messaging_core::time::Timestamp;
use tokio::sync::watch;

use crate::app::App;
use crate::jobs::upkeep::CONTENT_KEPT;
use crate::work::repeated_failure::RepeatedFailure;

/// Time between two looks at what is due.
const EVERY: Duration = Duration::from_secs(2);
/// Age from which messages are indexed. Commits are done long before, so ids that are older come no more.
const SETTLED_AFTER: Duration = Duration::from_secs(5);
/// Time after which the contents of messages that are forgotten are gone.
const AGED_AFTER: Duration = CONTENT_KEPT.saturating_add(Duration::from_hours(24));
/// Blocks of one look.
const BLOCKS: usize = 64;
/// Messages whose contents are read at the same time: a store that is elsewhere is asked once for all of them.
const TOGETHER: usize = 32;
/// Looks of one turn: what is due beyond that waits for the next one.
const ROUNDS: usize = 100;

/// Follows what changes until the process is told to stop.
async fn keep(app: App, mut stopped: watch::Receiver<bool>) {
    let mut failure = RepeatedFailure::default();
    while !*stopped.borrow() {
        tokio::select! {
            biased;
            _ = stopped.changed() => return,
            () = app.clock().sleep(EVERY) => {}
        }
        tokio::select! {
            biased;
            _ = stopped.changed() => return,
            () = follow(&app, &mut failure) => {}
        }
    }
}

/// Keeps the index on a task of its own.
pub(super) fn spawn(app: &App, stopped: &watch::Receiver<bool>) -> tokio::task::JoinHandle<()> {
    tokio::spawn(keep(app.clone(), stopped.clone()))
}

/// Indexes what is due. What fails is logged, unless it is as before, and due at the next look.
pub(super) async fn follow(app: &App, failure: &mut RepeatedFailure) {
    for _ in 0..ROUNDS {
        if !app.store().health().takes_work() {
            return;
        }
        match round(app).await {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                if let Some(error) = failure.note(&error, app.monotonic()) {
                    tracing::warn!(error, "what is searched is not indexed yet");
                }
                return;
            }
        }
    }
}

/// Indexes some of what is due; answers how many blocks that were.
async fn round(app: &App) -> Result<usize, StoreError> {
    let now = app.now();
    let contacts = app.store().contact_blocks_due(BLOCKS).await?;
    let putting = contacts.into_iter().map(|block| put(app, Write::PutContactBlock(Box::new(block))));
    let mut indexed: usize = join_all(putting).await.into_iter().sum::<Result<_, _>>()?;
    let aged = now - AGED_AFTER;
    // One after the other: a block begins where the one before it ends.
    for due in app.store().message_blocks_due(now - SETTLED_AFTER, aged, BLOCKS).await? {
        let Some(block) = block_of(app, due, aged).await? else { continue };
        indexed += put(app, Write::PutMessageBlock(Box::new(block))).await?;
    }
    Ok(indexed)
}

/// Commits a block; 0 where somebody else has made it, or something of it has changed since.
async fn put(app: &App, write: Write) -> Result<usize, StoreError> {
    match app.commit_in_background(Changes::from_iter([write])).await {
        Ok(()) => Ok(1),
        Err(CommitError::Conflict) => Ok(0),
        Err(error) => Err(error.into_store_error()),
    }
}

/// The texts of messages, with the subjects that they have as they are sent.
async fn block_of(app: &App, due: DueMessages, aged: Timestamp) -> Result<Option<MessageBlock>, StoreError> {
    let DueMessages { workspace_id, replaces, messages } = due;
    let (Some(first), Some(last)) = (messages.first(), messages.last()) else { return Ok(None) };
    let (first, last) = (first.id, last.id);
    let mut texts = SearchTexts::default();
    for together in messages.chunks(TOGETHER) {
        let outlines = join_all(together.iter().map(|message| app.outline_of(message, Redactor::new(true)))).await;
        for (message, outline) in together.iter().zip(outlines) {
            texts.add_message(message, outline?.subject.as_deref());
        }
    }
    Ok(Some(MessageBlock {
        workspace_id,
        replaces,
        first,
        last,
        messages: u32::try_from(messages.len()).unwrap_or(u32::MAX),
        is_aged: last.millis() < aged.as_millis(),
        texts,
    }))
}
