//! Job that checks a domain's records, every day as long as the domain exists.
//!
//! Contract section 14. It also checks when the 72 hours of a broken domain end.

use std::time::Duration;

use messaging_core::changes::{Changes, Expect, JobWrite, Write};
use messaging_core::domain::mail::sending_domain::DomainStatus;
use messaging_core::domain::mail::verification::{apply, is_exempt, next_look};
use messaging_core::ids::DomainId;
use messaging_core::ports::store::{CommitError, Stored};

use crate::jobs::JobData as _;
use crate::jobs::publish_keys::PublishKeys;
use crate::jobs::verify_domain::VerifyDomain;
use crate::work::job::{Job, JobContext, JobError};

/// Number of tries to store a check while the domain keeps changing.
const MAX_COMMITS: usize = 8;

/// Wait of the job while enough other domains are being checked.
const BUSY: Duration = Duration::from_secs(10);

impl Job for VerifyDomain {
    async fn run(self, cx: &JobContext) -> Result<(), JobError> {
        let app = &cx.app;
        let Some(Stored { record: domain, .. }) = app.store().domain(self.workspace_id, self.domain_id).await? else {
            return Ok(cx.finish(Changes::default()).await?);
        };
        if is_exempt(&domain) {
            return Ok(cx.finish(Changes::default()).await?);
        }
        // A job that waited here would keep others from running.
        let Some(_turn) = app.turn_to_look() else {
            return cx.again_at(app.now() + BUSY, &self, Changes::default()).await;
        };
        let findings = app.look_at(&domain).await?;
        for _ in 0..MAX_COMMITS {
            let stored = app.store().domain(self.workspace_id, self.domain_id).await?;
            let Some(Stored { record: before, revision }) = stored else {
                return Ok(cx.finish(Changes::default()).await?);
            };
            let (now, status) = (app.now(), before.status);
            let after = apply(before, findings.clone(), now);
            let (next, became) = (next_look(&after, now), after.status);
            let mut changes = Changes::default();
            if after.awaits_publishing() {
                let job = PublishKeys::of(&after).enqueue(app.new_id(now), now);
                changes.push(Write::Job(JobWrite::Enqueue(job)));
            }
            changes.push(Write::put(after, Expect::Revision(revision)));
            match cx.again_at(next, &self, changes).await {
                Ok(()) => {
                    note(self.domain_id, status, became);
                    return Ok(());
                }
                Err(JobError::Commit(CommitError::Conflict)) => {}
                Err(error) => return Err(error),
            }
        }
        // The domain keeps being changed.
        cx.again_at(app.now() + BUSY, &self, Changes::default()).await
    }
}

fn note(domain: DomainId, before: DomainStatus, after: DomainStatus) {
    if before == after {
        return;
    }
    if after == DomainStatus::Failed {
        tracing::warn!(%domain, "a sending domain was broken for too long and cannot send any more");
    } else {
        tracing::info!(%domain, status = ?after, "a sending domain changed its status");
    }
}
