//! The application: the ports, and the state that all operations and jobs share.
//!
//! An [`App`] is a handle; clones share everything. Its parts are here, the decisions are in
//! [`services`](crate::services), which operations and jobs call.

pub(crate) mod account_pauses;
pub(crate) mod account_rates;
mod builder;
pub(crate) mod cache;
pub(crate) mod caches;
pub(crate) mod callers;
pub(crate) mod campaign_pace;
pub(crate) mod capacity;
pub(crate) mod chat_order;
pub mod checks;
pub(crate) mod compiled_templates;
pub(crate) mod compiled_texts;
mod concurrency_limiter;
pub(crate) mod counted_sites;
pub(crate) mod domain_looks;
pub(crate) mod event_signal;
pub(crate) mod fence;
pub(crate) mod form_posts;
pub(crate) mod grouped_commits;
pub(crate) mod heavy_work;
pub(crate) mod held_lanes;
pub(crate) mod key_uses;
pub(crate) mod known_urls;
mod last_uses;
pub(crate) mod memory_budget;
pub(crate) mod metrics;
mod news;
pub(crate) mod paths;
mod provider_sink;
pub(crate) mod receiving;
mod request_log;
pub(crate) mod role_mail_pace;
pub(crate) mod running_keys;
mod secret_keys;
pub(crate) mod segment_turns;
mod settings;
pub(crate) mod sign_on_provider;
pub(crate) mod signers;
mod store_clock;
pub mod sts_policies;
pub(crate) mod unknown_kinds;
pub(crate) mod unreadable_answers;
pub(crate) mod used_pages;
pub(crate) mod watched;
pub(crate) mod work_signal;
pub(crate) mod write_queues;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use messaging_core::domain::analytics::bot_detection::RecentClicks;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider::{self, ProviderKind};
use messaging_core::domain::delivery::queue::Suspensions;
use messaging_core::domain::delivery::site::SiteRules;
use messaging_core::domain::installation::fence::Fence;
use messaging_core::domain::mail::auto_dns::DnsProviderName;
use messaging_core::domain::mail::link_token::LinkKey;
use messaging_core::domain::security::page_cursor::CursorKey;
use messaging_core::error::Chain;
use messaging_core::ids::{Id, IdSource, WebhookId, WorkspaceId};
use messaging_core::ports::clock::{Clock, Entropy};
use messaging_core::ports::dns_provider::DnsProvider;
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::inbound::ProviderSink;
use messaging_core::ports::name_servers::NameServers;
use messaging_core::ports::resolver::Resolver;
use messaging_core::ports::store::StoreError;
use messaging_core::ports::{BlobStore, Store, TemporaryStores, Transport, Uploads};
use messaging_core::time::{Monotonic, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::fair_semaphore::FairSemaphore;
use crate::vault::Vault;

use account_pauses::AccountPauses;
use account_rates::AccountRates;
pub use builder::Builder;
use caches::Lookups;
pub use caches::Provider;
use callers::Callers;
use campaign_pace::CampaignPace;
use chat_order::ChatOrder;
use checks::KnownChecks;
use compiled_templates::CompiledVersions;
use compiled_texts::CompiledTexts;
use concurrency_limiter::ConcurrencyLimiter;
use counted_sites::CountedSites;
use domain_looks::DomainLooks;
use event_signal::{EventSignal, EventWait};
use fence::KnownFence;
use form_posts::FormPosts;
use grouped_commits::GroupedCommits;
use heavy_work::HeavyWork;
use held_lanes::HeldLanes;
use key_uses::KeyUses;
use known_urls::KnownUrls;
use last_uses::LastUses;
use memory_budget::MemoryBudget;
use metrics::Metrics;
use paths::PathKeeper;
use receiving::Receiving;
pub use request_log::AnsweredRequest;
use request_log::RequestLogger;
use role_mail_pace::RoleMailPace;
use running_keys::RunningKeys;
use secret_keys::SecretKeys;
use segment_turns::SegmentTurns;
pub use settings::Settings;
use sign_on_provider::SignOnProvider;
use signers::Signers;
use unreadable_answers::UnreadableAnswers;
use used_pages::UsedPages;
use work_signal::WorkSignal;
use write_queues::WriteQueues;

/// A handle to the application.
#[derive(Clone)]
pub struct App(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) blobs: Arc<dyn BlobStore>,
    pub(crate) uploads: Arc<dyn Uploads>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) resolver: Arc<dyn Resolver>,
    /// Asked for records of sending domains that were just written.
    pub(crate) name_servers: Arc<dyn NameServers>,
    pub(crate) fetch: Arc<dyn Fetch>,
    pub(crate) dns_providers: HashMap<DnsProviderName, Arc<dyn DnsProvider>>,
    pub(crate) transports: HashMap<(Channel, String), Arc<dyn Transport>>,
    /// Providers that the program adds to the built-in ones.
    pub(crate) own_providers: HashMap<(Channel, String), ProviderKind>,
    pub(crate) settings: Settings,
    pub(crate) secret_keys: SecretKeys,
    pub(crate) ids: IdSource,
    pub(crate) lookups: Lookups,
    pub(crate) known_urls: KnownUrls,
    pub(crate) recent_clicks: Mutex<RecentClicks>,
    pub(crate) last_uses: LastUses,
    pub(crate) key_uses: KeyUses,
    pub(crate) request_logger: RequestLogger,
    pub(crate) running_keys: RunningKeys,
    pub(crate) write_queues: WriteQueues,
    pub(crate) passwords: FairSemaphore,
    /// Single sign-on provider; cached.
    pub(crate) sign_on_provider: SignOnProvider,
    pub(crate) dkim_keys: HeavyWork,
    pub(crate) signers: Signers,
    pub(crate) domain_looks: DomainLooks,
    /// Latest results of the operator's checks.
    pub(crate) checks: KnownChecks,
    pub(crate) segment_turns: SegmentTurns,
    pub(crate) template_work: HeavyWork,
    pub(crate) compiled_templates: CompiledVersions,
    pub(crate) compiled_texts: CompiledTexts,
    pub(crate) work: WorkSignal,
    /// Outcomes of jobs that are committed together.
    pub(crate) grouped_commits: Arc<GroupedCommits>,
    /// Cached fence of the installation; while it is up, nothing may leave.
    pub(crate) fence: KnownFence,
    /// Provider accounts that are paused.
    pub(crate) account_pauses: Arc<AccountPauses>,
    pub(crate) chat_order: Arc<ChatOrder>,
    /// Send rates of provider accounts.
    pub(crate) account_rates: AccountRates,
    /// Provider accounts whose responses cannot be parsed.
    pub(crate) unreadable_answers: UnreadableAnswers,
    /// Delivery paths of the sources of this process; transports share them.
    pub(crate) paths: Arc<PathKeeper>,
    /// Sites by which mail is counted, with the rules of sites.
    pub(crate) counted_sites: CountedSites,
    /// Start times of messages of campaigns with a rate limit.
    pub(crate) campaign_pace: CampaignPace,
    /// Recent mail forwarded to the operator.
    pub(crate) role_mail_pace: RoleMailPace,
    /// Recent form submissions, by caller and address.
    pub(crate) form_posts: FormPosts,
    /// Form pages that were submitted with a proof of work.
    pub(crate) used_pages: UsedPages,
    /// Lanes that wait for room in the queues they fill.
    pub(crate) held_lanes: HeldLanes,
    /// Commits that callers wait for.
    pub(crate) callers: Callers,
    pub(crate) events: EventSignal,
    pub(crate) webhook_limiter: ConcurrencyLimiter,
    pub(crate) metrics: Arc<Metrics>,
    /// Time until which the measured queue lengths are fresh enough.
    pub(crate) queue_look: tokio::sync::Mutex<Option<Instant>>,
    /// True in a simulation, whose events are not logged.
    pub(crate) is_without_log: bool,
    /// Memory for contents of messages in work.
    pub(crate) content_memory: Arc<MemoryBudget>,
    /// Memory for attachments of messages in work.
    pub(crate) file_memory: Arc<MemoryBudget>,
    /// Permits to commit a part of a long list.
    pub(crate) parts: Semaphore,
    /// Permits to read the rows of an import.
    pub(crate) imports: Semaphore,
    /// Permits to receive a file.
    pub(crate) upload_places: FairSemaphore,
    /// Permits to work on a provider's callback.
    pub(crate) callback_turns: FairSemaphore,
    /// Receives what transports report on their own; they hold it weakly.
    pub(crate) provider_sink: Arc<dyn ProviderSink>,
    /// Imports whose file is being received.
    pub(crate) receiving: Receiving,
    /// Opens a temporary store for each dry run; `None` where there can be none.
    pub(crate) temporary_stores: Option<Arc<dyn TemporaryStores>>,
    /// Permits for dry runs.
    pub(crate) dry_runs: FairSemaphore,
    /// Longest time work waits to be woken before it looks by itself.
    pub(crate) idle_interval: Duration,
}

impl App {
    /// The store.
    pub fn store(&self) -> &dyn Store {
        self.0.store.as_ref()
    }

    /// Store of the bytes of attachments.
    pub fn blobs(&self) -> &dyn BlobStore {
        self.0.blobs.as_ref()
    }

    /// Store of uploaded import files.
    pub fn uploads(&self) -> &dyn Uploads {
        self.0.uploads.as_ref()
    }

    /// Settings of the installation (contract section 22).
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The clock.
    pub fn clock(&self) -> &dyn Clock {
        self.0.clock.as_ref()
    }

    /// Current time.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Current time on the monotonic clock.
    pub fn monotonic(&self) -> Monotonic {
        self.0.clock.monotonic()
    }

    /// The source of randomness.
    pub fn entropy(&self) -> &dyn Entropy {
        self.0.entropy.as_ref()
    }

    /// A number below `bound`, each as likely as the others to within one in 2^32 / `bound`.
    pub(crate) fn random_below(&self, bound: u32) -> u32 {
        if bound <= 1 {
            return 0;
        }
        let mut bytes = [0; 4];
        self.entropy().fill(&mut bytes);
        u32::from_le_bytes(bytes) % bound
    }

    /// A new id.
    pub fn new_id<I: Id>(&self, now: Timestamp) -> I {
        self.0.ids.next(now, self.entropy())
    }

    /// The transport of a channel's provider, if this installation has one.
    pub fn transport(&self, channel: Channel, provider: &str) -> Option<&Arc<dyn Transport>> {
        self.0.transports.get(&(channel, provider.to_owned()))
    }

    /// Makes all transports forget that a recipient domain was unreachable, so that it is tried again at once.
    pub(crate) fn forget_unreachable(&self, domain: &str) {
        for ((channel, _), transport) in &self.0.transports {
            if *channel == Channel::Email {
                transport.forget_unreachable(domain);
            }
        }
    }

    /// The rate limits of campaigns.
    pub(crate) fn campaign_pace(&self) -> &CampaignPace {
        &self.0.campaign_pace
    }

    /// Provider accounts that are paused.
    pub(crate) fn account_pauses(&self) -> &Arc<AccountPauses> {
        &self.0.account_pauses
    }

    /// Send rates of provider accounts.
    pub(crate) fn account_rates(&self) -> &AccountRates {
        &self.0.account_rates
    }

    /// Delivery paths of the sources of this process.
    pub(crate) fn paths(&self) -> &Arc<PathKeeper> {
        &self.0.paths
    }

    /// Sites by which mail is counted.
    pub(crate) fn counted_sites(&self) -> &CountedSites {
        &self.0.counted_sites
    }

    /// Rules of sites that this server uses.
    pub(crate) fn site_rules(&self) -> &SiteRules {
        self.0.counted_sites.rules()
    }

    /// Provider accounts whose responses cannot be parsed.
    pub(crate) fn unreadable_answers(&self) -> &UnreadableAnswers {
        &self.0.unreadable_answers
    }

    /// A provider of a channel: one that the program adds, or one of contract section 16.
    pub fn provider_kind(&self, channel: Channel, name: &str) -> Option<&ProviderKind> {
        self.0.own_providers.get(&(channel, name.to_owned())).or_else(|| provider::find(channel, name))
    }

    /// Names of the secret settings of the providers that the program adds.
    pub(crate) fn secrets_of_own_providers(&self) -> BTreeSet<&str> {
        let members = self.0.own_providers.values().flat_map(|kind| &kind.members);
        members.filter(|member| member.is_secret()).map(|member| member.name.as_str()).collect()
    }

    /// The names of the providers of a channel, each once.
    pub(crate) fn provider_names(&self, channel: Channel) -> BTreeSet<&str> {
        let own = self.0.own_providers.values();
        own.chain(provider::all()).filter(|kind| kind.channel == channel).map(|kind| kind.name.as_str()).collect()
    }

    /// Seals and opens secrets.
    pub fn vault(&self) -> Arc<Vault> {
        Arc::clone(&self.0.secret_keys.held().vault)
    }

    /// The resolver.
    pub fn resolver(&self) -> &dyn Resolver {
        self.0.resolver.as_ref()
    }

    /// Client that asks the name servers of zones.
    pub(crate) fn name_servers(&self) -> &dyn NameServers {
        self.0.name_servers.as_ref()
    }

    /// Client for web addresses that users gave.
    pub fn fetch(&self) -> &dyn Fetch {
        self.0.fetch.as_ref()
    }

    /// Makes and reads the tokens of links and return addresses.
    pub fn link_key(&self) -> Arc<LinkKey> {
        Arc::clone(&self.0.secret_keys.held().link_key)
    }

    /// Number of attempts at a recipient that ended, since this process started, without it being known whether the
    /// message arrived: the reply to the content was lost, or a process ended while the transaction was open. The
    /// latter are counted when they are found.
    pub fn ambiguous_attempts(&self) -> u64 {
        self.0.metrics.ambiguous.get()
    }

    /// Counts ambiguous attempts.
    pub(crate) fn count_ambiguous(&self, attempts: u64) {
        self.0.metrics.ambiguous.inc_by(attempts);
    }

    /// Counts attempts at exchangers that an MTA-STS policy in mode `testing` would have kept from getting mail.
    pub(crate) fn count_tls_policy_failures(&self, attempts: u64) {
        self.0.metrics.tls_policy_failures.inc_by(attempts);
    }

    /// Seals and opens the cursors of listings.
    pub(crate) fn cursor_key(&self) -> Arc<CursorKey> {
        Arc::clone(&self.0.secret_keys.held().cursor_key)
    }

    /// Begins to wait for events of a workspace.
    pub(crate) fn wait_for_events(&self, workspace: WorkspaceId) -> EventWait<'_> {
        self.0.events.wait(workspace)
    }

    /// Ends all waits for events, current and future ones, at once: the server is about to stop.
    pub fn end_waits(&self) {
        self.0.events.end();
    }

    /// Waits for the turn to call a webhook.
    pub(crate) async fn webhook_turn(&self, webhook: WebhookId) -> OwnedSemaphorePermit {
        self.0.webhook_limiter.pass(webhook).await
    }

    /// The fence that keeps everything from leaving the installation, if it is up: the database is a copy (contract
    /// section 22).
    pub fn fence(&self) -> Option<Fence> {
        self.0.fence.get()
    }

    /// Returns true if messages may leave: the store can keep their outcome, and the installation is not fenced. Costs
    /// two atomic loads; call it right before sending.
    pub(crate) fn may_send(&self) -> bool {
        self.store().health().takes_work() && !self.0.fence.is_up()
    }

    /// Like `may_send`, for a workspace: false also if it is under deletion.
    pub(crate) fn may_send_from(&self, workspace: WorkspaceId) -> bool {
        self.may_send() && !self.is_known_to_end(workspace)
    }

    /// Returns true if this process knows that a workspace is under deletion.
    pub(crate) fn is_known_to_end(&self, workspace: WorkspaceId) -> bool {
        self.lookups().ending_workspaces.latest().contains(&workspace)
    }

    /// Reads the fence from the store. An application that was built on a runtime does so by itself.
    pub async fn look_at_fence(&self) -> Result<(), StoreError> {
        self.0.look_at_fence().await
    }

    pub(crate) fn work(&self) -> &WorkSignal {
        &self.0.work
    }

    /// Memory for the contents of messages in work.
    pub(crate) fn content_memory(&self) -> &Arc<MemoryBudget> {
        &self.0.content_memory
    }

    /// Memory for attachments of messages in work. A caller that takes both takes the content's first.
    pub(crate) fn file_memory(&self) -> &Arc<MemoryBudget> {
        &self.0.file_memory
    }

    /// Number of waits for memory or another bounded resource since the process started.
    pub(crate) fn memory_waits(&self) -> u64 {
        let shared = &self.0;
        let fair = [&shared.passwords, &shared.upload_places, &shared.callback_turns, &shared.dry_runs];
        shared.content_memory.waits() + shared.file_memory.waits() + fair.map(FairSemaphore::waits).iter().sum::<u64>()
    }

    /// Waits for the turn to commit a part of a long list.
    pub(crate) async fn part(&self) -> SemaphorePermit<'_> {
        self.0.parts.acquire().await.expect("the semaphore is never closed")
    }

    /// Puts calls that change one resource in order.
    pub(crate) fn write_queues(&self) -> &WriteQueues {
        &self.0.write_queues
    }

    /// Stores for dry runs; `None` if this program has no place for them.
    pub(crate) fn temporary_stores(&self) -> Option<&Arc<dyn TemporaryStores>> {
        self.0.temporary_stores.as_ref()
    }

    /// Permits for dry runs.
    pub(crate) fn dry_runs(&self) -> &FairSemaphore {
        &self.0.dry_runs
    }

    /// Longest time work waits to be woken by others before it looks by itself.
    pub(crate) fn idle_interval(&self) -> Duration {
        self.0.idle_interval
    }

    pub(crate) fn running_keys(&self) -> &RunningKeys {
        &self.0.running_keys
    }

    /// Runs `look` with the clicks of the last moment.
    pub(crate) fn recent_clicks<T>(&self, look: impl FnOnce(&mut RecentClicks) -> T) -> T {
        look(&mut self.0.recent_clicks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn known_urls(&self) -> &KnownUrls {
        &self.0.known_urls
    }

    pub(crate) fn passwords(&self) -> &FairSemaphore {
        &self.0.passwords
    }

    pub(crate) fn dkim_keys(&self) -> &HeavyWork {
        &self.0.dkim_keys
    }

    pub(crate) fn signer_cache(&self) -> &Signers {
        &self.0.signers
    }

    pub(crate) fn domain_looks(&self) -> &DomainLooks {
        &self.0.domain_looks
    }

    pub(crate) fn segment_turns(&self) -> &SegmentTurns {
        &self.0.segment_turns
    }

    pub(crate) fn template_work(&self) -> &HeavyWork {
        &self.0.template_work
    }

    pub(crate) fn compiled_templates(&self) -> &CompiledVersions {
        &self.0.compiled_templates
    }

    pub(crate) fn compiled_texts(&self) -> &CompiledTexts {
        &self.0.compiled_texts
    }

    pub(crate) fn lookups(&self) -> &Lookups {
        &self.0.lookups
    }

    pub(crate) fn last_uses(&self) -> &LastUses {
        &self.0.last_uses
    }
}

impl Shared {
    /// Suspended parts of the queue, at most a second old.
    pub(crate) async fn suspensions(&self) -> Result<Arc<Suspensions>, StoreError> {
        let load = async { Ok(self.store.suspensions().await?.into_iter().collect()) };
        self.lookups.suspensions.look(self.clock.now(), load).await
    }

    /// Reacts to a suspension or a resumption: those about to send learn of it, and workers look for what waited.
    pub(crate) async fn follow_suspensions(&self) {
        if let Err(error) = self.suspensions().await {
            tracing::warn!(error = %Chain(&error), "it is not known what of the queue is suspended");
        }
        self.work.announce();
    }

    /// Reads the fence from the store; if it was lifted, workers look for what waited.
    pub(crate) async fn look_at_fence(&self) -> Result<(), StoreError> {
        if self.fence.look(self.store.as_ref()).await? {
            self.work.announce();
        }
        Ok(())
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}
