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

pub(super) fn blobs() -> Arc<dyn BlobStore> {
    unimplemented!("not yet")
}
pub(super) fn uploads() -> Arc<dyn Uploads> {
    unimplemented!("not yet")
}

pending! { impl Attempts {
    attempts(workspace: WorkspaceId, message: MessageId, page: PageRequest) -> Slice<MessageAttempt>;
    forget_attempts(before: Timestamp, limit: usize) -> u64;
} }

pending! { impl Blobs {
    forget_abandoned_blobs(before: Timestamp, limit: usize) -> u64;
} }

pending! { impl Campaigns {
    campaign(workspace: WorkspaceId, id: CampaignId) -> Option<Stored<Campaign>>;
    campaigns(workspace: WorkspaceId, status: Option<CampaignStatus>, page: PageRequest) -> Slice<Campaign>;
    open_campaigns(page: PageRequest) -> Slice<Campaign>;
    campaigns_holding(workspace: WorkspaceId, what: Reference, limit: usize) -> Vec<CampaignId>;
    campaign_progress(workspace: WorkspaceId, id: CampaignId) -> Option<Stored<CampaignProgress>>;
    due_messages(workspace: WorkspaceId, campaign: CampaignId, track: u8, now: Timestamp, limit: usize) -> Vec<WaitingKey>;
    waiting_tracks(workspace: WorkspaceId, campaign: CampaignId) -> Vec<(u8, Timestamp)>;
    campaign_messages(workspace: WorkspaceId, campaign: CampaignId, wanted: Wanted, page: PageRequest) -> Slice<Message>;
    campaign_message_of(workspace: WorkspaceId, campaign: CampaignId, contact: ContactId) -> Option<MessageId>;
    contact_sends(workspace: WorkspaceId, contact: ContactId, channel: Channel) -> Option<Stored<ContactSends>>;
    forget_campaign_rows(now: Timestamp, limit: usize) -> u64;
} }

pending! { impl Channels {
    channel(workspace: WorkspaceId, channel: Channel) -> Option<Stored<ChannelSettings>>;
    channels(workspace: WorkspaceId) -> Vec<ChannelSettings>;
} }

pending! { impl Counters {
    campaign_counts(workspace: WorkspaceId, campaign: CampaignId) -> Vec<Counts>;
    series(workspace: WorkspaceId, of: SeriesOf, from: Quarter, to: Quarter) -> Vec<(Quarter, Counts)>;
    campaign_links(workspace: WorkspaceId, campaign: CampaignId) -> Vec<LinkCounts>;
} }

pending! { impl CustomFields {
    custom_field(workspace: WorkspaceId, id: FieldId) -> Option<Stored<CustomField>>;
    custom_fields(workspace: WorkspaceId, page: PageRequest) -> Slice<CustomField>;
} }

pending! { impl EventLog {
    event(workspace: WorkspaceId, message: MessageId, at: Timestamp, id: EventId) -> Option<(MessageEvent, Message)>;
    events_after(workspace: WorkspaceId, after: Option<LogPosition>, limit: usize) -> Vec<(LogPosition, MessageEvent, Message)>;
    log_position(workspace: WorkspaceId, time: Timestamp) -> LogPosition;
    followed_until(workspace: WorkspaceId) -> Option<Timestamp>;
    forget_log(before: Timestamp, limit: usize) -> u64;
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

pending! { impl Imports {
    import(workspace: WorkspaceId, id: ImportId) -> Option<Stored<Import>>;
    imports(workspace: WorkspaceId, page: PageRequest) -> Slice<Import>;
    row_errors(workspace: WorkspaceId, id: ImportId, after: u64, limit: usize) -> Vec<RowErrors>;
    forget_row_errors(before: Timestamp, limit: usize) -> u64;
} }

pending! { impl Installation {
    key_check() -> Option<String>;
    installation_name() -> Option<String>;
    fence() -> Option<Fence>;
    sealed_secrets(limit: usize) -> Vec<SealedSecret>;
} }

pending! { impl ApiKeys {
    api_key_by_secret(secret: &Digest, prefix: &str) -> Option<ApiKey>;
    api_key(workspace: WorkspaceId, id: ApiKeyId) -> Option<Stored<ApiKey>>;
    api_key_anywhere(id: ApiKeyId) -> Option<Stored<ApiKey>>;
    api_keys(workspace: WorkspaceId, page: PageRequest) -> Slice<(ApiKey, Option<Timestamp>)>;
    api_key_last_used(workspace: WorkspaceId, id: ApiKeyId) -> Option<Timestamp>;
} }

pending! { impl Messages {
    message(workspace: WorkspaceId, id: MessageId) -> Option<Message>;
    message_with_length(workspace: WorkspaceId, id: MessageId) -> Option<(Message, Option<u64>)>;
    message_with_content(workspace: WorkspaceId, id: MessageId) -> Option<(Message, Option<MessageContent>)>;
    message_events(workspace: WorkspaceId, id: MessageId, limit: usize) -> Vec<MessageEvent>;
    message_events_of_kind(workspace: WorkspaceId, id: MessageId, kind: EventKind, limit: usize) -> Vec<MessageEvent>;
    messages(workspace: WorkspaceId, filter: &MessageFilter, page: PageRequest) -> Slice<Message>;
    messages_to(workspace: WorkspaceId, addresses: &[(Channel, String)], page: PageRequest) -> Slice<Message>;
    messages_copying(workspace: WorkspaceId, key: CopyKey, limit: usize) -> Vec<MessageId>;
    unlisted_messages_naming(workspace: WorkspaceId, names: &Names, page: PageRequest) -> Slice<MessageId>;
    forget_contents(before: Timestamp, limit: usize) -> u64;
} }

pending! { impl ProviderLinks {
    message_of_provider(workspace: WorkspaceId, channel: Channel, provider: &str, provider_message_id: &str) -> Option<MessageId>;
    provider_of_message(workspace: WorkspaceId, message: MessageId) -> Option<ProviderLink>;
    is_inbound_noted(workspace: WorkspaceId, channel: Channel, key: InboundKey) -> bool;
} }

pending! { impl Replies {
    reply(key: &ReplyKey, now: Timestamp) -> Option<Reply>;
    forget_expired(now: Timestamp, limit: usize) -> u64;
} }

pending! { impl Sandbox {
    capture(workspace: WorkspaceId, message: MessageId) -> Option<Capture>;
    captures(workspace: WorkspaceId, page: PageRequest) -> Slice<Capture>;
    trim_captures(keep: usize, limit: usize) -> u64;
} }

pending! { impl SendingDomains {
    domain(workspace: WorkspaceId, id: DomainId) -> Option<Stored<SendingDomain>>;
    domain_by_name(workspace: WorkspaceId, name: &str) -> Option<Stored<SendingDomain>>;
    domains_named(name: &str, limit: usize) -> Vec<SendingDomain>;
    all_domains(limit: usize) -> Vec<SendingDomain>;
    domains(workspace: WorkspaceId, page: PageRequest) -> Slice<SendingDomain>;
} }

pending! { impl SignIns {
    sign_in_blocks(attempt: &SignInAttempt) -> SignInBlocks;
    forget_sign_ins(now: Timestamp, limit: usize) -> u64;
} }

pending! { impl SoftBounces {
    soft_bounces(workspace: WorkspaceId, channel: Channel, address: &str) -> Streak;
} }

pending! { impl Suppressions {
    suppressed_anywhere(workspace: WorkspaceId, addresses: &[(Channel, String)]) -> Vec<Suppression>;
    suppressed(workspace: WorkspaceId, channel: Channel, addresses: &[String]) -> Vec<Stored<Suppression>>;
    suppression(workspace: WorkspaceId, id: SuppressionId) -> Option<Stored<Suppression>>;
    suppressions(workspace: WorkspaceId, filter: &SuppressionFilter, page: PageRequest) -> Slice<Suppression>;
} }

pending! { impl Templates {
    template(workspace: WorkspaceId, id: TemplateId) -> Option<Stored<Template>>;
    template_head(workspace: WorkspaceId, id: TemplateId) -> Option<Template>;
    template_version(workspace: WorkspaceId, id: TemplateId, version: u32) -> Option<Template>;
    templates(workspace: WorkspaceId, channel: Option<Channel>, page: PageRequest) -> Slice<Template>;
    template_versions(workspace: WorkspaceId, id: TemplateId, page: PageRequest) -> Slice<Template>;
    forget_templates(before: Timestamp, limit: usize) -> u64;
} }

pending! { impl Urls {
    url(workspace: WorkspaceId, key: UrlKey) -> Option<String>;
    urls_naming(workspace: WorkspaceId, names: &Names, page: PageRequest) -> Slice<UrlKey>;
} }

pending! { impl Verification {
    workspace_after(after: Option<WorkspaceId>) -> Option<WorkspaceId>;
    verify_workspace(workspace: WorkspaceId) -> Verified;
    verify_message_jobs(kind: &'static str, message_of: MessageOfJob) -> Verified;
    contents_after(after: Option<StoreCursor>, limit: usize) -> Vec<PlacedContent>;
} }

pending! { impl Webhooks {
    webhook(workspace: WorkspaceId, id: WebhookId) -> Option<Stored<Webhook>>;
    webhooks(workspace: WorkspaceId, page: PageRequest) -> Slice<Webhook>;
    failing_since(workspace: WorkspaceId, id: WebhookId) -> Option<Timestamp>;
    delivery(workspace: WorkspaceId, id: DeliveryId) -> Option<Delivery>;
    deliveries(workspace: WorkspaceId, webhook: WebhookId, status: Option<DeliveryStatus>, page: PageRequest) -> Slice<Delivery>;
    backlog(workspace: WorkspaceId, webhook: WebhookId, limit: usize) -> Vec<Delivery>;
    replayable(workspace: WorkspaceId, webhook: WebhookId, range: &ReplayRange, limit: usize) -> Vec<Delivery>;
    count_replayable(workspace: WorkspaceId, webhook: WebhookId, range: &ReplayRange, limit: usize) -> Option<(u64, DeliveryId)>;
    give_up_backlogs(limit: usize) -> u64;
    expire_deliveries(before: Timestamp, limit: usize) -> u64;
    forget_deliveries(before: Timestamp, limit: usize) -> u64;
} }
