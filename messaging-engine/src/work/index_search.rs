//! Task that maintains the index for searching contacts and messages, every few seconds.
//!
//! Writes do not wait for the index. Due work is found in the database, so a process that ends leaves nothing undone:
//! the next one continues. If several work on one database, the first to commit a block has made it; the others get a
//! conflict, and continue with what is due then.

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

/// Interval of the looks for due work.
const EVERY: Duration = Duration::from_secs(2);
/// Age from which messages are indexed. Commits are done long before, so no older ids appear later.
const SETTLED_AFTER: Duration = Duration::from_secs(5);
/// Age after which the removed contents of messages are certainly gone.
const AGED_AFTER: Duration = CONTENT_KEPT.saturating_add(Duration::from_hours(24));
/// Number of blocks of one look.
const BLOCKS: usize = 64;
/// Number of messages whose contents are read at the same time: a remote store is queried once for all of them.
const TOGETHER: usize = 32;
/// Number of looks of one turn: what is due beyond that waits for the next one.
const ROUNDS: usize = 100;

/// Indexes changes until the process stops.
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

/// Starts the task.
pub(super) fn spawn(app: &App, stopped: &watch::Receiver<bool>) -> tokio::task::JoinHandle<()> {
    tokio::spawn(keep(app.clone(), stopped.clone()))
}

/// Indexes due contacts and messages. An error is logged, unless it is the same as before, and the work is due at the
/// next look.
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

/// Indexes some of what is due; returns the number of blocks.
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

/// Commits a block; 0 if another process has made it, or something in it has changed since.
async fn put(app: &App, write: Write) -> Result<usize, StoreError> {
    match app.commit_in_background(Changes::from_iter([write])).await {
        Ok(()) => Ok(1),
        Err(CommitError::Conflict) => Ok(0),
        Err(error) => Err(error.into_store_error()),
    }
}

/// Returns the block of the texts of messages, with their subjects as they are sent.
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
