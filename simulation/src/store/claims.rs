//! Claims of jobs, some of which end too early.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::changes::JobHandle;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ids::JobId;
use messaging_core::ports::store::{Claim, ClaimedJob, Jobs, Queues, StoreError, StoredJob};
use messaging_core::time::{Monotonic, Timestamp};
use serde_json::Value;

use super::FaultyStore;
use crate::blocking::wait;
use crate::planted::Planted;

/// The latest claim of each job.
#[derive(Debug, Default)]
pub(super) struct Claims(BTreeMap<JobId, Latest>);

#[derive(Debug)]
struct Latest {
    handle: JobHandle,
    /// True if the claim ends before its job may.
    is_short: bool,
}

impl Claims {
    /// The claim that the store considers valid, for the mistake that skips the check.
    pub(super) fn latest(&self, handle: &JobHandle) -> JobHandle {
        self.0.get(&handle.id).map_or(handle, |latest| &latest.handle).clone()
    }
}

impl FaultyStore {
    /// Notes the new claims, and the loss of earlier ones that ended too early.
    fn note_claims(&self, jobs: &[ClaimedJob], is_short: bool) {
        let mut claims = self.database.claims.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for job in jobs {
            self.life.note(format_args!("claims {} {}", job.kind, job.handle.id));
            let before = claims.0.insert(job.handle.id, Latest { handle: job.handle.clone(), is_short });
            if before.is_some_and(|before| before.is_short)
                && let Ok(payload) = serde_json::from_slice::<Value>(&job.payload)
                && let Some(message) = payload["message_id"].as_str()
            {
                self.life.world.ledger().claim_lost(message, payload["domain"].as_str());
            }
        }
    }
}

#[async_trait]
impl Jobs for FaultyStore {
    async fn claim(&self, mut claim: Claim) -> Result<Vec<ClaimedJob>, StoreError> {
        self.before("claim").await?;
        let world = &self.life.world;
        // The planted mistake shows only if claims end too early, and not always then.
        let rate = world.plan.store.lease_lost;
        let rate = if world.planted == Some(Planted::LeaseNotChecked) { rate.max(400) } else { rate };
        let is_short = world.strikes(rate);
        if is_short {
            claim.lease = world.draw(|dice| dice.span(1, 120));
            self.fault("lease lost", format_args!("claims end after {:?}", claim.lease));
        }
        let database = self.database();
        let claimed = wait(database.claim(claim));
        if let Ok(jobs) = &claimed {
            self.note_claims(jobs, is_short);
        }
        self.after("claim", claimed.is_ok()).await;
        claimed
    }

    async fn next_due(&self, now: Timestamp, monotonic: Monotonic) -> Result<Option<Duration>, StoreError> {
        self.before("next_due").await?;
        let database = self.database();
        wait(database.next_due(now, monotonic))
    }

    async fn job_count(&self) -> Result<u64, StoreError> {
        let database = self.database();
        wait(database.job_count())
    }

    async fn jobs_of(&self, kinds: &[&'static str], limit: usize) -> Result<Vec<StoredJob>, StoreError> {
        self.before("jobs_of").await?;
        let database = self.database();
        wait(database.jobs_of(kinds, limit))
    }

    async fn queues(&self, limit: usize) -> Result<Queues, StoreError> {
        let database = self.database();
        wait(database.queues(limit))
    }

    async fn lane_lengths(&self, lanes: &[Lane], due_by: Timestamp, most: usize) -> Result<Vec<u64>, StoreError> {
        self.before("lane_lengths").await?;
        let database = self.database();
        wait(database.lane_lengths(lanes, due_by, most))
    }
}
