//! Housekeeping: what expired is removed, a little at a time.

use std::time::Duration;

use messaging_core::changes::{Changes, Write};
use messaging_core::domain::product_event::UNIQUE_FOR;
use messaging_core::domain::webhook::{HELD, KEPT};
use messaging_core::error::Chain;
use messaging_core::ports::settle_blobs;
use messaging_core::ports::store::{CommitError, StoreError};
use tokio::sync::watch;

use crate::app::App;

/// How often expired things are looked for.
const INTERVAL: Duration = Duration::from_mins(1);
/// Rows removed in one commit: few enough that a request never waits for them noticeably.
const SLICE: usize = 500;
/// Pieces of reports on imports removed in one commit; each is about a slice of rows.
const ROW_ERROR_SLICE: usize = 20;
/// Commits in one sweep; what is left waits for the next.
const MAX_SLICES: usize = 200;
/// Captures kept per workspace (contract section 22, "Sandbox inbox").
const KEPT_CAPTURES: usize = 10_000;
/// What was sent is kept this long after it was accepted, for retries and for support; the status and
/// events stay. The contract is silent here.
const CONTENT_KEPT: Duration = Duration::from_hours(30 * 24);

/// How long a stored file waits for the commit that names it. No request lasts nearly as long; one that does is
/// decided again, with new files.
const FILES_WAIT: Duration = Duration::from_hours(1);

/// What was said on the wire is kept this long.
const ATTEMPTS_KEPT: Duration = Duration::from_hours(30 * 24);

/// Which rows of an import were refused is kept this long after it was asked for.
const ROW_ERRORS_KEPT: Duration = Duration::from_hours(30 * 24);

/// Sweeps now and then until told to stop.
pub(super) async fn keep_sweeping(app: App, mut stopped: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = app.clock().sleep(INTERVAL) => {}
            _ = stopped.changed() => return,
        }
        if let Err(error) = sweep(&app).await {
            tracing::warn!(error = %Chain(&error), "a sweep was cut short");
        }
    }
}

/// Removes what expired: remembered replies, sessions, failed sign-ins, captures beyond the newest, old contents and files, files that
/// no commit came to name, members of removed lists and segments, unique ids of product events, reports of imports, versions of removed
/// templates, old deliveries of webhooks.
pub async fn sweep(app: &App) -> Result<(), StoreError> {
    let store = app.store();
    let now = app.now();
    let old = now - CONTENT_KEPT;
    for _ in 0..MAX_SLICES {
        let removed = store.forget_expired(now, SLICE).await?
            + store.forget_sign_ins(now, SLICE).await?
            + store.trim_captures(KEPT_CAPTURES, SLICE).await?
            + store.forget_contents(old, SLICE).await?
            + store.forget_attempts(now - ATTEMPTS_KEPT, SLICE).await?
            + store.forget_members(SLICE).await?
            + store.forget_segment_members(SLICE).await?
            + store.forget_unique_ids(now - UNIQUE_FOR, SLICE).await?
            + store.forget_row_errors(now - ROW_ERRORS_KEPT, ROW_ERROR_SLICE).await?
            + store.forget_templates(old, SLICE).await?
            + store.expire_deliveries(now - HELD, SLICE).await?
            + store.forget_deliveries(now - KEPT, SLICE).await?
            + store.forget_log(now - KEPT, SLICE).await?
            + settle_blobs(store, app.blobs(), now - FILES_WAIT, SLICE).await?
            + store.forget_abandoned_blobs(old, SLICE).await?
            + forget_files(app, old).await?;
        if removed == 0 {
            break;
        }
    }
    Ok(())
}

async fn forget_files(app: &App, old: messaging_core::time::Timestamp) -> Result<u64, StoreError> {
    let files = app.blobs().blobs_before(old, SLICE).await?;
    if files.is_empty() {
        return Ok(0);
    }
    let changes: Changes = files.iter().map(|(workspace, blob)| Write::DeleteBlob(*workspace, *blob)).collect();
    match app.commit_in_background(changes).await {
        Ok(()) | Err(CommitError::Conflict) => Ok(files.len() as u64),
        Err(error) => Err(error.into_store_error()),
    }
}
