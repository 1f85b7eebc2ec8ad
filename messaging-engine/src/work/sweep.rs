//! Job that removes expired data, a little at a time.
//!
//! Each kind of sweep is a job of the installation, which reschedules itself when it is done: any process does it, one
//! at a time, and none depends on how long a process lives.

use std::time::Duration;

use messaging_core::changes::{Changes, JobWrite, Write};
use messaging_core::domain::analytics::tally::buckets::Quarter;
use messaging_core::domain::audience::product_event::UNIQUE_FOR;
use messaging_core::domain::audience::subscription::CONFIRM_WITHIN;
use messaging_core::domain::mail::dmarc::report;
use messaging_core::domain::security::request_log;
use messaging_core::domain::webhook::{MAX_HOLD, RETENTION};
use messaging_core::ports::settle_blobs;
use messaging_core::ports::store::{CommitError, StoreError};

use crate::app::{App, paths};
use crate::jobs::JobData as _;
use crate::jobs::upkeep::{CONTENT_KEPT, Sweep, Upkeep};
use crate::services::acceptance::MAX_AHEAD;
use crate::work::index_search;
use crate::work::job::{Job, JobContext, JobError};
use crate::work::repeated_failure::RepeatedFailure;

/// Number of rows removed in one commit: few enough that a request never waits for them noticeably.
const SLICE: usize = 500;
/// Pieces of reports on imports removed in one commit; each covers a slice of rows.
const ROW_ERROR_SLICE: usize = 20;
/// Unconfirmed subscriptions removed at a time, each in a commit of its own.
const UNCONFIRMED_SLICE: usize = 50;
/// API keys checked at a time, each with a commit of its own.
const KEY_SLICE: usize = 50;
/// Slices of one run before other jobs have their turn.
const MAX_SLICES: usize = 200;
/// Wait before a sweep that was not finished continues.
const GO_ON_AFTER: Duration = Duration::from_secs(1);
/// Interval between the first runs of new sweeps, so that they do not coincide later.
const APART: Duration = Duration::from_secs(3);
/// Captures kept per workspace (contract section 22, "Sandbox inbox").
const KEPT_CAPTURES: usize = 10_000;
/// Time a stored file waits for the commit that names it. No request lasts nearly as long; one that does is decided
/// again, with new files.
const FILES_WAIT: Duration = Duration::from_hours(1);

/// Retention of versions of removed templates: a message that was accepted before may be due a year later, and shows
/// its content for a while after that.
const TEMPLATES_KEPT: Duration = MAX_AHEAD.saturating_add(CONTENT_KEPT);

/// Retention of SMTP dialogs and provider responses of attempts.
const ATTEMPTS_KEPT: Duration = Duration::from_hours(30 * 24);

/// Retention of the reports on refused rows of imports, from the request of the import.
const ROW_ERRORS_KEPT: Duration = Duration::from_hours(30 * 24);

/// Retention of the counters of sites: a little longer than the longest span that can be requested.
const SITE_ACTIVITY_KEPT: Duration = Duration::from_hours(400 * 24);

impl Job for Upkeep {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let app = &cx.app;
        for _ in 0..MAX_SLICES {
            cx.hold().await?;
            if slice(app, self.sweep).await? == 0 {
                let next = app.now() + self.sweep.interval(app.settings().sweep_every);
                return cx.again_at(next, &self, Changes::default()).await;
            }
        }
        cx.again_at(app.now() + GO_ON_AFTER, &self, Changes::default()).await
    }
}

/// Returns the writes that make every sweep a job; existing jobs stay as they are.
pub(super) fn enqueue_all(app: &App) -> Changes {
    let now = app.now();
    let mut due_at = now;
    let jobs = Sweep::ALL.map(|sweep| {
        due_at = due_at + APART;
        let due_at = due_at + sweep.interval(app.settings().sweep_every);
        Write::Job(JobWrite::EnqueueOnce(Upkeep::of(sweep).enqueue(app.new_id(now), due_at)))
    });
    jobs.into_iter().collect()
}

/// Runs every sweep now, to its end, whatever jobs there are: for programs without workers, and for tests.
pub async fn sweep(app: &App) -> Result<(), StoreError> {
    for sweep in Sweep::ALL {
        for _ in 0..MAX_SLICES {
            if slice(app, sweep).await? == 0 {
                break;
            }
        }
    }
    index_search::follow(app, &mut RepeatedFailure::default()).await;
    Ok(())
}

/// Removes a slice of a sweep's rows; returns their number.
async fn slice(app: &App, sweep: Sweep) -> Result<u64, StoreError> {
    let (store, now) = (app.store(), app.now());
    match sweep {
        Sweep::Replies => store.forget_expired(now, SLICE).await,
        Sweep::SignIns => store.forget_sign_ins(now, SLICE).await,
        Sweep::Captures => store.trim_captures(KEPT_CAPTURES, SLICE).await,
        Sweep::ListMembers => store.forget_members(SLICE).await,
        Sweep::Subscriptions => forget_unconfirmed(app).await,
        Sweep::SegmentMembers => store.forget_segment_members(SLICE).await,
        Sweep::Campaigns => store.forget_campaign_rows(now, SLICE).await,
        Sweep::Automations => store.forget_automation_rows(now, SLICE).await,
        Sweep::Contents => store.forget_contents(now - CONTENT_KEPT, SLICE).await,
        Sweep::Files => {
            let abandoned = store.forget_abandoned_blobs(now - CONTENT_KEPT, SLICE).await?;
            Ok(abandoned + forget_files(app).await?)
        }
        Sweep::PendingFiles => settle_blobs(store, app.blobs(), now - FILES_WAIT, SLICE).await,
        Sweep::Attempts => store.forget_attempts(now - ATTEMPTS_KEPT, SLICE).await,
        Sweep::UniqueIds => store.forget_unique_ids(now - UNIQUE_FOR, SLICE).await,
        Sweep::RowErrors => store.forget_row_errors(now - ROW_ERRORS_KEPT, ROW_ERROR_SLICE).await,
        Sweep::Templates => store.forget_templates(now - TEMPLATES_KEPT, SLICE).await,
        Sweep::Deliveries => {
            let expired = store.expire_deliveries(now - MAX_HOLD, SLICE).await?;
            Ok(expired + store.forget_deliveries(now - RETENTION, SLICE).await?)
        }
        Sweep::EventLog => store.forget_log(now - RETENTION, SLICE).await,
        Sweep::Paths => store.forget_paths(now - paths::KEPT_FOR, SLICE).await,
        Sweep::StsPolicies => store.forget_sts_policies(now, SLICE).await,
        Sweep::DomainReports => store.forget_domain_reports(report::day_of(now - report::KEPT), SLICE).await,
        Sweep::SiteActivity => store.forget_site_activity(Quarter::of(now - SITE_ACTIVITY_KEPT), SLICE).await,
        Sweep::Requests => store.forget_requests(now - request_log::KEPT, request_log::KEPT_ROWS, SLICE).await,
        Sweep::Audit => forget_audit(app).await,
        Sweep::KeyExpiry => app.warn_of_ending_keys(KEY_SLICE).await,
    }
}

/// Removes the first entries of an audit log that are too old.
async fn forget_audit(app: &App) -> Result<u64, StoreError> {
    let before = app.now() - app.settings().audit_kept;
    let Some((workspace, up_to)) = app.store().expired_audit_rows(before, SLICE).await? else { return Ok(0) };
    match app.commit_in_background(Changes::from_iter([Write::TrimAudit(workspace, up_to)])).await {
        Ok(()) | Err(CommitError::Conflict) => Ok(1),
        Err(error) => Err(error.into_store_error()),
    }
}

/// Removes subscriptions that were not confirmed in time, and the contacts that exist by nothing else.
async fn forget_unconfirmed(app: &App) -> Result<u64, StoreError> {
    let overdue = app.store().unconfirmed_since_before(app.now() - CONFIRM_WITHIN, UNCONFIRMED_SLICE).await?;
    let mut forgotten = 0;
    for stored in overdue {
        let changes = app.forget_unconfirmed(stored).await?;
        match app.commit_in_background(changes).await {
            Ok(()) => forgotten += 1,
            // The reader confirmed after all, or the contact has changed: it is looked at again.
            Err(CommitError::Conflict) => {}
            Err(error) => return Err(error.into_store_error()),
        }
    }
    Ok(forgotten)
}

async fn forget_files(app: &App) -> Result<u64, StoreError> {
    let files = app.blobs().blobs_before(app.now() - CONTENT_KEPT, SLICE).await?;
    if files.is_empty() {
        return Ok(0);
    }
    let changes: Changes = files.iter().map(|(workspace, blob)| Write::DeleteBlob(*workspace, *blob)).collect();
    match app.commit_in_background(changes).await {
        Ok(()) | Err(CommitError::Conflict) => Ok(files.len() as u64),
        Err(error) => Err(error.into_store_error()),
    }
}
