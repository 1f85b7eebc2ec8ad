//! What is not there yet. This file goes when it is empty.
#![allow(unused_imports)]
use super::PostgresStore;
use crate::conformance::every_call::prelude::*;
use async_trait::async_trait;
use messaging_core::domain::lane::Lane;
use messaging_core::ports::store::{Claim, ClaimedJob, Jobs, Queues, StoredJob};
use messaging_core::time::Monotonic;
use std::time::Duration;

macro_rules! failure {
    () => {
        StoreError
    };
    ($error:ty) => {
        $error
    };
}
macro_rules! pending {
    (impl $trait:ident { $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty $(, $error:ty)?;)* }) => {
        #[async_trait]
        impl $trait for PostgresStore {
            $(async fn $name(&self, $($argument: $type),*) -> Result<$answer, failure!($($error)?)> {
                $(let _ = $argument;)*
                Err(StoreError::Unavailable.into())
            })*
        }
    };
}

pending! { impl Jobs {
    claim(claim: Claim) -> Vec<ClaimedJob>;
    next_due(now: Timestamp, monotonic: Monotonic) -> Option<Duration>;
    job_count() -> u64;
    jobs_of(kinds: &[&'static str], limit: usize) -> Vec<StoredJob>;
    queues(limit: usize) -> Queues;
    lane_lengths(lanes: &[Lane], due_by: Timestamp, most: usize) -> Vec<u64>;
} }

pending! { impl Audiences {
    audience_piece(workspace: WorkspaceId, query: &Arc<AudienceQuery>, piece: Option<u64>) -> AudiencePiece;
    taken_addresses(workspace: WorkspaceId, campaign: CampaignId, digests: Vec<u64>) -> Vec<u64>;
    preview_audience(workspace: WorkspaceId, query: &Arc<AudienceQuery>) -> AudiencePreview;
    audience_facts(workspace: WorkspaceId, query: &Arc<AudienceQuery>, contact: ContactId)
        -> Option<ContactFacts>;
    audience_rows(workspace: WorkspaceId, campaign: CampaignId, set: AudienceSet, from: u64, limit: usize) -> Vec<AudienceRow>;
    audience_sets_of(workspace: WorkspaceId, campaign: CampaignId, contact: ContactId) -> Vec<AudienceSet>;
    addresses_left_in(workspace: WorkspaceId, campaign: CampaignId, channel: Channel, contact: ContactId, addresses: Vec<String>) -> Vec<String>;
    campaign_recipients(workspace: WorkspaceId, campaign: CampaignId, channel: Channel, viber: ViberService, numbers: &[u64]) -> Vec<CampaignRecipient>;
} }

pending! { impl Verification {
    workspace_after(after: Option<WorkspaceId>) -> Option<WorkspaceId>;
    verify_workspace(workspace: WorkspaceId) -> Verified;
    verify_message_jobs(kind: &'static str, message_of: MessageOfJob) -> Verified;
    contents_after(after: Option<StoreCursor>, limit: usize) -> Vec<PlacedContent>;
} }
