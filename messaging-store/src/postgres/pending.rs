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

pending! { impl Contacts {
    contact(workspace: WorkspaceId, id: ContactId) -> Option<Stored<Contact>>;
    contacts_identified(workspace: WorkspaceId, identifiers: Vec<Identifier>) -> Vec<Stored<Contact>>;
    contact_identified(workspace: WorkspaceId, identifier: &Identifier) -> Option<ContactId>;
    contacts(workspace: WorkspaceId, filter: &ContactFilter, page: PageRequest) -> Slice<Contact>;
    contact_count(workspace: WorkspaceId) -> u64;
} }

pending! { impl Automations {
    automation(workspace: WorkspaceId, id: AutomationId) -> Option<Stored<Automation>>;
    automations(workspace: WorkspaceId, status: Option<AutomationStatus>, page: PageRequest) -> Slice<Automation>;
    automation_version(workspace: WorkspaceId, id: AutomationId, version: u32) -> Option<AutomationVersion>;
    automations_holding(workspace: WorkspaceId, what: Reference, limit: usize) -> Vec<AutomationId>;
    run(workspace: WorkspaceId, automation: AutomationId, id: RunId) -> Option<Stored<Run>>;
    runs(workspace: WorkspaceId, automation: AutomationId, wanted: &RunFilter, page: PageRequest) -> Slice<Run>;
    run_steps(run: RunKey) -> Vec<RunStep>;
    run_of_message(workspace: WorkspaceId, message: MessageId) -> Option<RunKey>;
    automation_counts(workspace: WorkspaceId, automation: AutomationId) -> AutomationCounts;
    automation_notes(workspace: WorkspaceId, automation: AutomationId, shard: u8, limit: usize) -> Vec<(StoreCursor, Note, Option<Happened>)>;
    has_left_runs(workspace: WorkspaceId, contact: ContactId) -> bool;
    due_runs(workspace: WorkspaceId, automation: AutomationId, shard: u8, now: Timestamp, limit: usize) -> Vec<Stored<Run>>;
    next_run_due(workspace: WorkspaceId, automation: AutomationId, shard: u8) -> Option<Timestamp>;
    open_runs(workspace: WorkspaceId, automation: AutomationId, contacts: &[ContactId]) -> Vec<Stored<Run>>;
    entries(workspace: WorkspaceId, automation: AutomationId, keys: &[(ContactId, Option<String>)]) -> Vec<Option<Stored<Entry>>>;
    entries_since(workspace: WorkspaceId, automation: AutomationId, contacts: &[(ContactId, Timestamp)]) -> Vec<u32>;
    answers(workspace: WorkspaceId, asks: &[Ask], zone: &TimeZone) -> Vec<bool>;
    due_dates(workspace: WorkspaceId, automation: AutomationId, shard: u8, now: Timestamp, limit: usize) -> Vec<DateFire>;
    forget_automation_rows(now: Timestamp, limit: usize) -> u64;
} }

pending! { impl Lists {
    list(workspace: WorkspaceId, id: ListId) -> Option<Stored<ContactList>>;
    lists(workspace: WorkspaceId, page: PageRequest) -> Slice<ContactList>;
    lists_among(workspace: WorkspaceId, ids: &[ListId]) -> Vec<ListId>;
    memberships(workspace: WorkspaceId, list: ListId, contacts: &[ContactId]) -> Vec<(ContactId, bool)>;
    forget_members(limit: usize) -> u64;
} }

pending! { impl ProductEvents {
    known_to_events(workspace: WorkspaceId, named: Named, since: Timestamp) -> Known;
    product_events(workspace: WorkspaceId, contact: ContactId, page: PageRequest) -> Slice<ProductEvent>;
    has_left_events(workspace: WorkspaceId, contact: ContactId) -> bool;
    event_activity(workspace: WorkspaceId, name: Option<&str>, buckets: &Arc<Buckets>, limit: usize) -> Vec<EventActivity>;
    forget_unique_ids(before: Timestamp, limit: usize) -> u64;
} }

pending! { impl Verification {
    workspace_after(after: Option<WorkspaceId>) -> Option<WorkspaceId>;
    verify_workspace(workspace: WorkspaceId) -> Verified;
    verify_message_jobs(kind: &'static str, message_of: MessageOfJob) -> Verified;
    contents_after(after: Option<StoreCursor>, limit: usize) -> Vec<PlacedContent>;
} }
