//! The methods of the ports, as a list for macros: for stores that hand calls on to another one.
//!
//! To add a method to a port: its line here. Commits, claims and what is not asynchronous are left to whoever hands on.

/// The types that stand in the list of methods, for import where the list is used.
pub mod prelude {
    pub use std::net::IpAddr;
    pub use std::sync::Arc;

    pub use bytes::Bytes;
    pub use jiff::tz::TimeZone;
    pub use messaging_core::changes::{
        AudienceRow, ContactSends, DateFire, JobHandle, JobPlace, Reply, ReplyKey, RunKey, WaitingKey,
    };
    pub use messaging_core::domain::analytics::site_tally::SiteCounts;
    pub use messaging_core::domain::analytics::tally::Counts;
    pub use messaging_core::domain::analytics::tally::buckets::{Buckets, Quarter};
    pub use messaging_core::domain::audience::contact::erasure::Names;
    pub use messaging_core::domain::audience::contact::{Contact, ContactFilter, Identifier};
    pub use messaging_core::domain::audience::custom_field::CustomField;
    pub use messaging_core::domain::audience::form::Form;
    pub use messaging_core::domain::audience::import::Import;
    pub use messaging_core::domain::audience::import::report::RowErrors;
    pub use messaging_core::domain::audience::list::ContactList;
    pub use messaging_core::domain::audience::product_event::ProductEvent;
    pub use messaging_core::domain::audience::product_event::event_deduplicator::Known;
    pub use messaging_core::domain::audience::soft_bounce::Streak;
    pub use messaging_core::domain::audience::subscription::{Subscription, SubscriptionStatus};
    pub use messaging_core::domain::audience::suppression::{Suppression, SuppressionFilter};
    pub use messaging_core::domain::automation::history::RunStep;
    pub use messaging_core::domain::automation::note::{Happened, Note};
    pub use messaging_core::domain::automation::run::{Entry, Run};
    pub use messaging_core::domain::automation::{Automation, AutomationStatus, AutomationVersion};
    pub use messaging_core::domain::campaign::audience::{AudienceSet, ContactFacts};
    pub use messaging_core::domain::campaign::progress::CampaignProgress;
    pub use messaging_core::domain::campaign::{Campaign, CampaignStatus, Reference};
    pub use messaging_core::domain::channel::Channel;
    pub use messaging_core::domain::channel::inbound_message::InboundKey;
    pub use messaging_core::domain::channel::provider_link::ProviderLink;
    pub use messaging_core::domain::channel::settings::ChannelSettings;
    pub use messaging_core::domain::delivery::attempt::MessageAttempt;
    pub use messaging_core::domain::delivery::ip_pool::source::{
        NamedSource, NodeSource, PathRow, SourceAddress, SourceRow,
    };
    pub use messaging_core::domain::delivery::ip_pool::{IpGrant, IpPool};
    pub use messaging_core::domain::delivery::lane::Lane;
    pub use messaging_core::domain::delivery::queue::Suspension;
    pub use messaging_core::domain::image::{Image, ImageUsage};
    pub use messaging_core::domain::installation::fence::Fence;
    pub use messaging_core::domain::installation::quarantine::Quarantined;
    pub use messaging_core::domain::mail::dmarc::report::{Day, ReportKey};
    pub use messaging_core::domain::mail::link_token::{CopyKey, UrlKey};
    pub use messaging_core::domain::mail::mta_sts::StsPolicy;
    pub use messaging_core::domain::mail::sending_domain::SendingDomain;
    pub use messaging_core::domain::message::attachment::MessageBlob;
    pub use messaging_core::domain::message::channel_content::ViberService;
    pub use messaging_core::domain::message::{
        Capture, EventKind, Message, MessageContent, MessageEvent, MessageFilter,
    };
    pub use messaging_core::domain::search::contacts::ContactBlock;
    pub use messaging_core::domain::search::messages::DueMessages;
    pub use messaging_core::domain::security::account::{Member, MemberStatus, Session, Ticket, User, Workspace};
    pub use messaging_core::domain::security::api_key::ApiKey;
    pub use messaging_core::domain::security::api_key::usage::OperationUse;
    pub use messaging_core::domain::security::audit::{AuditEntry, AuditFilter, Chain, StoredRow};
    pub use messaging_core::domain::security::digest::Digest;
    pub use messaging_core::domain::security::factor::{Factor, PendingSignIn};
    pub use messaging_core::domain::security::login_attempts::{SignInAttempt, SignInBlocks};
    pub use messaging_core::domain::security::request_log::{LoggedBodies, LoggedRequest, RequestFilter};
    pub use messaging_core::domain::segment::Segment;
    pub use messaging_core::domain::segment::filter::Filter;
    pub use messaging_core::domain::segment::reads::ReadMask;
    pub use messaging_core::domain::template::Template;
    pub use messaging_core::domain::webhook::Webhook;
    pub use messaging_core::domain::webhook::delivery::{Delivery, DeliveryStatus};
    pub use messaging_core::ids::{
        ApiKeyId, AutomationId, BlobId, CampaignId, ContactId, DeliveryId, DomainId, EventId, FactorId, FieldId,
        FormId, ImageId, ImportId, ListId, MessageId, PoolId, RequestId, RunId, SegmentId, SessionId, SuppressionId,
        TemplateId, UserId, WebhookId, WorkspaceId,
    };
    pub use messaging_core::ports::store::campaigns::CampaignMessageFilter;
    pub use messaging_core::ports::store::events::LogPosition;
    pub use messaging_core::ports::store::installation::{KeyHolder, SealedSecret};
    pub use messaging_core::ports::store::product_events::{EventActivity, Named};
    pub use messaging_core::ports::store::queue::{DatedJob, LaneSummary, OperatorQueue};
    pub use messaging_core::ports::store::segments::{CalculationSlice, MemberQuery, MoveNotes, Moved, Preview};
    pub use messaging_core::ports::store::verification::{MessageOfJob, PlacedContent, Verified};
    pub use messaging_core::ports::store::webhooks::ReplayRange;
    pub use messaging_core::ports::store::{
        Accounts, ApiKeys, Attempts, AudiencePiece, AudiencePreview, AudienceQuery, Audiences, AuditLogs,
        AutomationCounts, Automations, Blobs, CampaignRecipient, Campaigns, Channels, CommitError, Contacts, Counters,
        CustomFields, DmarcSource, DmarcTotals, DomainReports, EventLog, FilterQuery, Images, Imports, Installation,
        IpPools, KeptCounts, LinkCounts, Lists, Messages, PageRequest, ProductEvents, ProviderLinks, RemovedRows,
        Replies, RequestLogs, RunFilter, Sandbox, SearchIndex, SecondFactors, Segments, SendingDomains, SeriesOf,
        SignIns, Slice, SoftBounces, Sources, StoreCursor, StoreError, Stored, StoredTlsRow, StsPolicies, Suppressions,
        Templates, Urls, Verification, Webhooks,
    };
    pub use messaging_core::ports::uploads::UploadFile;
    pub use messaging_core::ports::{BlobStore, Uploads};
    pub use messaging_core::time::Timestamp;
}

/// The error of a call in the lists below: that of reads, unless the list names another.
#[macro_export]
macro_rules! failure_of_call {
    () => {
        $crate::every_call::prelude::StoreError
    };
    ($error:ty) => {
        $error
    };
}

/// Calls a macro with the reads and the upkeep of [`Store`](messaging_core::ports::Store), as
/// `impl TRAIT { METHOD(ARGUMENT: TYPE, …) -> ANSWER; … } …`: each method is asynchronous and answers
/// `Result<ANSWER, StoreError>`, or the error after its comma. The names of [`prelude`] must be in scope.
#[macro_export]
macro_rules! for_every_read {
    ($then:ident) => {
        $then! {
            impl Accounts {
                user(id: UserId) -> Option<Stored<User>>;
                user_by_email(email: &str) -> Option<Stored<User>>;
                user_by_identity(issuer: &str, subject: &str) -> Option<Stored<User>>;
                session(token: &Digest) -> Option<Session>;
                sessions_of(user: UserId, password_version: u32, now: Timestamp, page: PageRequest)
                    -> Slice<(Session, Timestamp)>;
                session_by_id(user: UserId, id: SessionId) -> Option<Session>;
                ticket(digest: &Digest) -> Option<Ticket>;
                users(page: PageRequest) -> Slice<User>;
                workspaces(page: PageRequest) -> Slice<Workspace>;
                workspace(id: WorkspaceId) -> Option<Stored<Workspace>>;
                ending_workspaces() -> Vec<WorkspaceId>;
                remove_rows_of(workspace: WorkspaceId, step: usize, limit: usize) -> Option<RemovedRows>;
                workspaces_of(user: UserId, status: MemberStatus, page: PageRequest) -> Slice<(Workspace, Member)>;
                member(workspace: WorkspaceId, user: UserId) -> Option<Stored<Member>>;
                members(workspace: WorkspaceId, page: PageRequest) -> Slice<(Member, User)>;
                owner_count(workspace: WorkspaceId) -> u64;
            }
            impl Attempts {
                attempts(workspace: WorkspaceId, message: MessageId, page: PageRequest) -> Slice<MessageAttempt>;
                forget_attempts(before: Timestamp, limit: usize) -> u64;
            }
            impl Audiences {
                audience_piece(workspace: WorkspaceId, query: &Arc<AudienceQuery>, piece: Option<u64>) -> AudiencePiece;
                taken_addresses(workspace: WorkspaceId, campaign: CampaignId, digests: Vec<u64>) -> Vec<u64>;
                preview_audience(workspace: WorkspaceId, query: &Arc<AudienceQuery>) -> AudiencePreview;
                audience_facts(workspace: WorkspaceId, query: &Arc<AudienceQuery>, contact: ContactId)
                    -> Option<ContactFacts>;
                audience_rows(workspace: WorkspaceId, campaign: CampaignId, set: AudienceSet, from: u64, limit: usize) -> Vec<AudienceRow>;
                audience_sets_of(workspace: WorkspaceId, campaign: CampaignId, contact: ContactId) -> Vec<AudienceSet>;
                addresses_left_in(workspace: WorkspaceId, campaign: CampaignId, channel: Channel, contact: ContactId, addresses: Vec<String>) -> Vec<String>;
                campaign_recipients(workspace: WorkspaceId, campaign: CampaignId, channel: Channel, viber: ViberService, numbers: &[u64]) -> Vec<CampaignRecipient>;
            }
            impl AuditLogs {
                audit_entries(workspace: Option<WorkspaceId>, filter: &AuditFilter, page: PageRequest) -> Slice<AuditEntry>;
                audit_chain(workspace: Option<WorkspaceId>) -> Option<Chain>;
                audit_rows(workspace: Option<WorkspaceId>, after: u64, limit: usize) -> Vec<StoredRow>;
                expired_audit_rows(before: Timestamp, limit: usize) -> Option<(Option<WorkspaceId>, u64)>;
            }
            impl Blobs {
                forget_abandoned_blobs(before: Timestamp, limit: usize) -> u64;
            }
            impl Campaigns {
                campaign(workspace: WorkspaceId, id: CampaignId) -> Option<Stored<Campaign>>;
                campaigns(workspace: WorkspaceId, status: Option<CampaignStatus>, page: PageRequest) -> Slice<Campaign>;
                archived_campaigns(workspace: WorkspaceId, before: Option<CampaignId>, limit: usize) -> Vec<Campaign>;
                open_campaigns(page: PageRequest) -> Slice<Campaign>;
                campaigns_holding(workspace: WorkspaceId, what: Reference, limit: usize) -> Vec<CampaignId>;
                campaign_progress(workspace: WorkspaceId, id: CampaignId) -> Option<Stored<CampaignProgress>>;
                due_messages(workspace: WorkspaceId, campaign: CampaignId, track: u8, now: Timestamp, limit: usize) -> Vec<WaitingKey>;
                waiting_tracks(workspace: WorkspaceId, campaign: CampaignId) -> Vec<(u8, Timestamp)>;
                campaign_messages(workspace: WorkspaceId, campaign: CampaignId, wanted: CampaignMessageFilter, page: PageRequest) -> Slice<Message>;
                campaign_message_of(workspace: WorkspaceId, campaign: CampaignId, contact: ContactId) -> Option<MessageId>;
                contact_sends(workspace: WorkspaceId, contact: ContactId, channel: Channel) -> Option<Stored<ContactSends>>;
                forget_campaign_rows(now: Timestamp, limit: usize) -> u64;
            }
            impl Channels {
                channel(workspace: WorkspaceId, channel: Channel) -> Option<Stored<ChannelSettings>>;
                channels(workspace: WorkspaceId) -> Vec<ChannelSettings>;
            }
            impl Contacts {
                contact(workspace: WorkspaceId, id: ContactId) -> Option<Stored<Contact>>;
                contacts_identified(workspace: WorkspaceId, identifiers: Vec<Identifier>) -> Vec<Stored<Contact>>;
                contact_identified(workspace: WorkspaceId, identifier: &Identifier) -> Option<ContactId>;
                contacts(workspace: WorkspaceId, filter: &ContactFilter, page: PageRequest) -> Slice<Contact>;
                contact_count(workspace: WorkspaceId) -> u64;
            }
            impl Counters {
                campaign_counts(workspace: WorkspaceId, campaign: CampaignId) -> Vec<Counts>;
                series(workspace: WorkspaceId, of: SeriesOf, from: Quarter, to: Quarter) -> Vec<(Quarter, Counts)>;
                site_activity(workspace: WorkspaceId, from: Quarter, to: Quarter, limit: usize) -> Vec<(String, SiteCounts)>;
                forget_site_activity(before: Quarter, limit: usize) -> u64;
                campaign_links(workspace: WorkspaceId, campaign: CampaignId) -> Vec<LinkCounts>;
            }
            impl CustomFields {
                custom_field(workspace: WorkspaceId, id: FieldId) -> Option<Stored<CustomField>>;
                custom_fields(workspace: WorkspaceId, page: PageRequest) -> Slice<CustomField>;
            }
            impl DomainReports {
                is_domain_report_kept(workspace: WorkspaceId, domain: DomainId, key: ReportKey) -> bool;
                kept_of_domain(workspace: WorkspaceId, domain: DomainId, most: u64) -> KeptCounts;
                dmarc_totals(workspace: WorkspaceId, domain: DomainId, first: Day, last: Day) -> DmarcTotals;
                dmarc_sources(workspace: WorkspaceId, domain: DomainId, first: Day, last: Day, limit: usize) -> Vec<DmarcSource>;
                tls_rows(workspace: WorkspaceId, domain: DomainId, page: PageRequest) -> Slice<StoredTlsRow>;
                forget_domain_reports(before: Day, limit: usize) -> u64;
            }
            impl EventLog {
                event(workspace: WorkspaceId, message: MessageId, at: Timestamp, id: EventId) -> Option<(MessageEvent, Message)>;
                events_among(workspace: WorkspaceId, keys: &[(MessageId, Timestamp, EventId)]) -> Vec<(MessageEvent, Message)>;
                events_after(workspace: WorkspaceId, after: Option<LogPosition>, limit: usize) -> Vec<(LogPosition, MessageEvent, Message)>;
                log_position(workspace: WorkspaceId, time: Timestamp) -> LogPosition;
                followed_until(workspace: WorkspaceId) -> Option<Timestamp>;
                forget_log(before: Timestamp, limit: usize) -> u64;
            }
            impl Automations {
                automation(workspace: WorkspaceId, id: AutomationId) -> Option<Stored<Automation>>;
                automations(workspace: WorkspaceId, status: Option<AutomationStatus>, page: PageRequest) -> Slice<Automation>;
                begun_automations(page: PageRequest) -> Slice<Automation>;
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
                answers(workspace: WorkspaceId, asks: &[FilterQuery], zone: &TimeZone) -> Vec<bool>;
                due_dates(workspace: WorkspaceId, automation: AutomationId, shard: u8, now: Timestamp, limit: usize) -> Vec<DateFire>;
                forget_automation_rows(now: Timestamp, limit: usize) -> u64;
            }
            impl Imports {
                import(workspace: WorkspaceId, id: ImportId) -> Option<Stored<Import>>;
                imports(workspace: WorkspaceId, page: PageRequest) -> Slice<Import>;
                row_errors(workspace: WorkspaceId, id: ImportId, after: u64, limit: usize) -> Vec<RowErrors>;
                forget_row_errors(before: Timestamp, limit: usize) -> u64;
            }
            impl Installation {
                key_check() -> Option<String>;
                installation_name() -> Option<String>;
                fence() -> Option<Fence>;
                quarantined(limit: usize) -> (u64, Vec<Quarantined>);
                announce_keys(keys: &[String]) -> ();
                key_holders() -> Vec<KeyHolder>;
                sealed_secrets(limit: usize) -> Vec<SealedSecret>;
            }
            impl IpPools {
                ip_pool(workspace: WorkspaceId, id: PoolId) -> Option<Stored<IpPool>>;
                ip_pool_by_name(workspace: WorkspaceId, name: &str) -> Option<Stored<IpPool>>;
                ip_pools(workspace: WorkspaceId, page: PageRequest) -> Slice<IpPool>;
                shared_ip_pools(limit: usize) -> Vec<Stored<IpPool>>;
                all_ip_pools(after: Option<PoolId>, limit: usize) -> Vec<IpPool>;
                ip_grants(workspace: WorkspaceId, after: Option<IpAddr>, limit: usize) -> Vec<IpGrant>;
                granted_ips(workspace: WorkspaceId, ips: &[IpAddr]) -> Vec<IpGrant>;
            }
            impl Images {
                image(workspace: WorkspaceId, id: ImageId) -> Option<Image>;
                image_by_digest(workspace: WorkspaceId, sha256: &str) -> Option<Image>;
                images(workspace: WorkspaceId, page: PageRequest) -> Slice<Image>;
                image_bytes(workspace: WorkspaceId, id: ImageId) -> Option<Bytes>;
                image_usage(workspace: WorkspaceId) -> ImageUsage;
                templates_with_text(workspace: WorkspaceId, text: &str, limit: usize) -> Vec<TemplateId>;
            }
            impl SearchIndex {
                contact_blocks_due(limit: usize) -> Vec<ContactBlock>;
                message_blocks_due(before: Timestamp, aged: Timestamp, limit: usize) -> Vec<DueMessages>;
            }
            impl OperatorQueue {
                suspensions() -> Vec<Suspension>;
                lane_summaries(kind: &'static str, after: Option<&Lane>, limit: usize) -> Vec<LaneSummary>;
                jobs_after(after: Option<&JobPlace>, limit: usize) -> Vec<DatedJob>;
            }
            impl ApiKeys {
                api_key_by_secret(secret: &Digest, prefix: &str) -> Option<ApiKey>;
                api_key(workspace: WorkspaceId, id: ApiKeyId) -> Option<Stored<ApiKey>>;
                api_key_anywhere(id: ApiKeyId) -> Option<Stored<ApiKey>>;
                api_keys(workspace: WorkspaceId, page: PageRequest) -> Slice<(ApiKey, Option<Timestamp>)>;
                api_key_last_used(workspace: WorkspaceId, id: ApiKeyId) -> Option<Timestamp>;
                api_key_uses(workspace: WorkspaceId, keys: &[ApiKeyId]) -> Vec<OperationUse>;
                api_keys_to_warn_of(now: Timestamp, limit: usize) -> Vec<Stored<ApiKey>>;
                api_keys_ending(after: Timestamp, until: Timestamp, limit: usize) -> Vec<ApiKey>;
            }
            impl Lists {
                list(workspace: WorkspaceId, id: ListId) -> Option<Stored<ContactList>>;
                lists(workspace: WorkspaceId, page: PageRequest) -> Slice<ContactList>;
                lists_among(workspace: WorkspaceId, ids: &[ListId]) -> Vec<ListId>;
                public_lists(workspace: WorkspaceId, limit: usize) -> Vec<ContactList>;
                public_lists_among(workspace: WorkspaceId, ids: &[ListId]) -> Vec<ListId>;
                memberships(workspace: WorkspaceId, list: ListId, contacts: &[ContactId]) -> Vec<(ContactId, bool)>;
                subscriptions_among(workspace: WorkspaceId, lists: &[ListId], contacts: &[ContactId]) -> Vec<Stored<Subscription>>;
                subscriptions_of(workspace: WorkspaceId, contact: ContactId, limit: usize) -> Vec<Stored<Subscription>>;
                subscriptions(workspace: WorkspaceId, list: ListId, status: SubscriptionStatus, page: PageRequest) -> Slice<Subscription>;
                unconfirmed_since_before(before: Timestamp, limit: usize) -> Vec<Stored<Subscription>>;
                form(workspace: WorkspaceId, id: FormId) -> Option<Stored<Form>>;
                forms(workspace: WorkspaceId, page: PageRequest) -> Slice<Form>;
                forget_members(limit: usize) -> u64;
            }
            impl Messages {
                message(workspace: WorkspaceId, id: MessageId) -> Option<Message>;
                message_with_length(workspace: WorkspaceId, id: MessageId) -> Option<(Message, Option<u64>)>;
                message_with_content(workspace: WorkspaceId, id: MessageId) -> Option<(Message, Option<MessageContent>)>;
                message_events(workspace: WorkspaceId, id: MessageId, limit: usize) -> Vec<MessageEvent>;
                message_events_of_kind(workspace: WorkspaceId, id: MessageId, kind: EventKind, limit: usize) -> Vec<MessageEvent>;
                messages(workspace: WorkspaceId, filter: &MessageFilter, page: PageRequest) -> Slice<Message>;
                messages_to(workspace: WorkspaceId, addresses: &[(Channel, String)], page: PageRequest) -> Slice<Message>;
                messages_copying(workspace: WorkspaceId, key: CopyKey, limit: usize) -> Vec<MessageId>;
                forget_contents(before: Timestamp, limit: usize) -> u64;
            }
            impl ProductEvents {
                known_to_events(workspace: WorkspaceId, named: Named, since: Timestamp) -> Known;
                product_events(workspace: WorkspaceId, contact: ContactId, page: PageRequest) -> Slice<ProductEvent>;
                has_left_events(workspace: WorkspaceId, contact: ContactId) -> bool;
                event_activity(workspace: WorkspaceId, name: Option<&str>, buckets: &Arc<Buckets>, limit: usize) -> Vec<EventActivity>;
                forget_unique_ids(before: Timestamp, limit: usize) -> u64;
            }
            impl ProviderLinks {
                message_of_provider(workspace: WorkspaceId, channel: Channel, provider: &str, provider_message_id: &str) -> Option<MessageId>;
                messages_of_provider(workspace: WorkspaceId, channel: Channel, provider: &str, names: &[String]) -> Vec<MessageId>;
                provider_of_message(workspace: WorkspaceId, message: MessageId) -> Option<ProviderLink>;
                is_inbound_noted(workspace: WorkspaceId, channel: Channel, key: InboundKey) -> bool;
            }
            impl Replies {
                reply(key: &ReplyKey, now: Timestamp) -> Option<Reply>;
                forget_expired(now: Timestamp, limit: usize) -> u64;
            }
            impl RequestLogs {
                logged_requests(workspace: WorkspaceId, filter: &RequestFilter, page: PageRequest) -> Slice<LoggedRequest>;
                logged_request(workspace: WorkspaceId, id: &str) -> Option<(LoggedRequest, LoggedBodies)>;
                logged_bodies(workspace: WorkspaceId, page: PageRequest) -> Slice<(RequestId, Option<String>, LoggedBodies)>;
                forget_requests(before: Timestamp, keep: usize, limit: usize) -> u64;
            }
            impl Sandbox {
                capture(workspace: WorkspaceId, message: MessageId) -> Option<Capture>;
                captures(workspace: WorkspaceId, page: PageRequest) -> Slice<Capture>;
                trim_captures(keep: usize, limit: usize) -> u64;
            }
            impl SecondFactors {
                factors_of(user: UserId, page: PageRequest) -> Slice<Stored<Factor>>;
                factor(user: UserId, id: FactorId) -> Option<Stored<Factor>>;
                factors(page: PageRequest) -> Slice<Factor>;
                has_recovery_code(user: UserId, code: &Digest) -> bool;
                recovery_code_count(user: UserId) -> u64;
                pending_sign_in(token: &Digest) -> Option<(PendingSignIn, u32)>;
            }
            impl Segments {
                segment(workspace: WorkspaceId, id: SegmentId) -> Option<Stored<Segment>>;
                segments(workspace: WorkspaceId, page: PageRequest) -> Slice<Segment>;
                segment_read_mask(workspace: WorkspaceId) -> ReadMask;
                segment_contacts(workspace: WorkspaceId, id: SegmentId, page: PageRequest) -> Slice<Contact>;
                preview(workspace: WorkspaceId, query: &MemberQuery, conditions: &[Filter], sample: usize) -> Preview;
                calculate_members(workspace: WorkspaceId, id: SegmentId, query: &MemberQuery, from: Option<StoreCursor>, moves: MoveNotes, job: &JobHandle) -> CalculationSlice, CommitError;
                follow_changes(workspace: WorkspaceId, segments: &[(SegmentId, MemberQuery)], limit: usize, job: &JobHandle) -> (Vec<Moved>, bool), CommitError;
                forget_segment_members(limit: usize) -> u64;
            }
            impl SendingDomains {
                domain(workspace: WorkspaceId, id: DomainId) -> Option<Stored<SendingDomain>>;
                domain_by_name(workspace: WorkspaceId, name: &str) -> Option<Stored<SendingDomain>>;
                domain_anywhere(id: DomainId) -> Option<SendingDomain>;
                domains_named(name: &str, after: Option<WorkspaceId>, limit: usize) -> Vec<SendingDomain>;
                all_domains(limit: usize) -> Vec<SendingDomain>;
                domains(workspace: WorkspaceId, page: PageRequest) -> Slice<SendingDomain>;
            }
            impl SignIns {
                sign_in_blocks(attempt: &SignInAttempt) -> SignInBlocks;
                forget_sign_ins(now: Timestamp, limit: usize) -> u64;
            }
            impl StsPolicies {
                sts_policy(domain: &str) -> Option<StsPolicy>;
                forget_sts_policies(before: Timestamp, limit: usize) -> u64;
            }
            impl SoftBounces {
                soft_bounces(workspace: WorkspaceId, channel: Channel, address: &str) -> Streak;
            }
            impl Sources {
                announce_sources(sources: &[NamedSource]) -> ();
                live_sources() -> Vec<NodeSource>;
                lane_of_node(lane: &Lane, joined: i64) -> Option<Lane>;
                source_rows(after: Option<SourceAddress>, limit: usize) -> Vec<Stored<SourceRow>>;
                source_row(ip: SourceAddress) -> Option<Stored<SourceRow>>;
                path_row(ip: SourceAddress, site: &str) -> Option<Stored<PathRow>>;
                path_rows(ip: SourceAddress, after: Option<&str>, limit: usize) -> Vec<Stored<PathRow>>;
                busiest_paths(ip: SourceAddress, day: i64, limit: usize) -> Vec<PathRow>;
                forget_paths(before: Timestamp, limit: usize) -> u64;
            }
            impl Suppressions {
                suppressed_anywhere(workspace: WorkspaceId, addresses: &[(Channel, String)]) -> Vec<Suppression>;
                suppressed(workspace: WorkspaceId, channel: Channel, addresses: &[String]) -> Vec<Stored<Suppression>>;
                suppression(workspace: WorkspaceId, id: SuppressionId) -> Option<Stored<Suppression>>;
                suppressions(workspace: WorkspaceId, filter: &SuppressionFilter, page: PageRequest) -> Slice<Suppression>;
            }
            impl Templates {
                template(workspace: WorkspaceId, id: TemplateId) -> Option<Stored<Template>>;
                template_head(workspace: WorkspaceId, id: TemplateId) -> Option<Template>;
                template_version(workspace: WorkspaceId, id: TemplateId, version: u32) -> Option<Template>;
                templates(workspace: WorkspaceId, channel: Option<Channel>, page: PageRequest) -> Slice<Template>;
                template_versions(workspace: WorkspaceId, id: TemplateId, page: PageRequest) -> Slice<Template>;
                forget_templates(before: Timestamp, limit: usize) -> u64;
            }
            impl Urls {
                url(workspace: WorkspaceId, key: UrlKey) -> Option<String>;
                urls_naming(workspace: WorkspaceId, names: &Names, page: PageRequest) -> Slice<UrlKey>;
            }
            impl Verification {
                workspace_after(after: Option<WorkspaceId>) -> Option<WorkspaceId>;
                verify_workspace(workspace: WorkspaceId) -> Verified;
                verify_message_jobs(kind: &'static str, message_of: MessageOfJob) -> Verified;
                contents_after(after: Option<StoreCursor>, limit: usize) -> Vec<PlacedContent>;
            }
            impl Webhooks {
                webhook(workspace: WorkspaceId, id: WebhookId) -> Option<Stored<Webhook>>;
                webhooks(workspace: WorkspaceId, page: PageRequest) -> Slice<Webhook>;
                failing_since(workspace: WorkspaceId, id: WebhookId) -> Option<Timestamp>;
                delivery(workspace: WorkspaceId, id: DeliveryId) -> Option<Delivery>;
                deliveries_among(workspace: WorkspaceId, ids: &[DeliveryId]) -> Vec<Delivery>;
                deliveries_of_message(workspace: WorkspaceId, message: MessageId, page: PageRequest) -> Slice<Delivery>;
                deliveries(workspace: WorkspaceId, webhook: WebhookId, status: Option<DeliveryStatus>, page: PageRequest) -> Slice<Delivery>;
                backlog(workspace: WorkspaceId, webhook: WebhookId, limit: usize) -> Vec<Delivery>;
                replayable(workspace: WorkspaceId, webhook: WebhookId, range: &ReplayRange, limit: usize) -> Vec<Delivery>;
                count_replayable(workspace: WorkspaceId, webhook: WebhookId, range: &ReplayRange, limit: usize) -> Option<(u64, DeliveryId)>;
                give_up_backlogs(limit: usize) -> u64;
                expire_deliveries(before: Timestamp, limit: usize) -> u64;
                forget_deliveries(before: Timestamp, limit: usize) -> u64;
            }
        }
    };
}

/// The same for [`BlobStore`](messaging_core::ports::BlobStore) and [`Uploads`](messaging_core::ports::Uploads).
#[macro_export]
macro_rules! for_every_file_call {
    ($then:ident) => {
        $then! {
            impl BlobStore {
                put_blob(blob: MessageBlob, bytes: Bytes) -> ();
                keep_blobs(blobs: &[MessageBlob]) -> ();
                discard_blob(blob: MessageBlob) -> ();
                remove_blobs(blobs: &[(WorkspaceId, BlobId)]) -> ();
                blob(workspace: WorkspaceId, id: BlobId) -> Option<Bytes>;
                pending_blobs(before: Timestamp, limit: usize) -> Vec<MessageBlob>;
                blobs_before(before: Timestamp, limit: usize) -> Vec<(WorkspaceId, BlobId)>;
                blobs_of(workspace: WorkspaceId, limit: usize) -> Vec<BlobId>;
            }
            impl Uploads {
                append_upload(file: UploadFile, at: u64, bytes: Bytes) -> ();
                keep_upload(file: UploadFile) -> ();
                read_upload(file: UploadFile, at: u64, length: usize) -> Option<Bytes>;
                uploads(workspace: WorkspaceId, import: ImportId) -> Vec<BlobId>;
                uploads_of(workspace: WorkspaceId, limit: usize) -> Vec<UploadFile>;
                remove_upload(file: UploadFile) -> ();
            }
        }
    };
}
