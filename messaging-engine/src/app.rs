//! The application: the ports put together, and what every operation and job finds through it.
//!
//! An [`App`] is a handle; clones share everything. Here are its parts and nothing that decides: that is in
//! [`services`](crate::services), which operations and jobs call.

pub(crate) mod account_pauses;
pub(crate) mod account_rates;
mod builder;
pub(crate) mod cache;
pub(crate) mod caches;
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
    pub(crate) fetch: Arc<dyn Fetch>,
    pub(crate) dns_providers: HashMap<DnsProviderName, Arc<dyn DnsProvider>>,
    pub(crate) transports: HashMap<(Channel, String), Arc<dyn Transport>>,
    /// Providers that the program brings.
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
    /// Single sign-on provider, as this process knows it.
    pub(crate) sign_on_provider: SignOnProvider,
    pub(crate) dkim_keys: HeavyWork,
    pub(crate) signers: Signers,
    pub(crate) domain_looks: DomainLooks,
    /// What the checks of the operator found last.
    pub(crate) checks: KnownChecks,
    pub(crate) segment_turns: SegmentTurns,
    pub(crate) template_work: HeavyWork,
    pub(crate) compiled_templates: CompiledVersions,
    pub(crate) compiled_texts: CompiledTexts,
    pub(crate) work: WorkSignal,
    /// Outcomes of jobs that are committed together.
    pub(crate) grouped_commits: Arc<GroupedCommits>,
    /// Fence of the installation as this process knows it; while it is up, nothing may leave.
    pub(crate) fence: KnownFence,
    /// Accounts at providers that are left alone for a while.
    pub(crate) account_pauses: Arc<AccountPauses>,
    pub(crate) chat_order: Arc<ChatOrder>,
    /// How fast messages leave over accounts at providers.
    pub(crate) account_rates: AccountRates,
    /// Accounts at providers whose answers cannot be read.
    pub(crate) unreadable_answers: UnreadableAnswers,
    /// Paths of the sources of this process; transports share it.
    pub(crate) paths: Arc<PathKeeper>,
    /// The sites that mail is counted by, with the rules of sites.
    pub(crate) counted_sites: CountedSites,
    /// When messages of campaigns with a rate limit began.
    pub(crate) campaign_pace: CampaignPace,
    /// Mail to the operator that was handed on of late.
    pub(crate) role_mail_pace: RoleMailPace,
    /// Posts to forms, by callers and addresses.
    pub(crate) form_posts: FormPosts,
    /// Pages of forms that were posted with a proof of work.
    pub(crate) used_pages: UsedPages,
    pub(crate) events: EventSignal,
    pub(crate) webhook_limiter: ConcurrencyLimiter,
    pub(crate) metrics: Arc<Metrics>,
    /// Until when what is known of the queue is good enough.
    pub(crate) queue_look: tokio::sync::Mutex<Option<Instant>>,
    /// Whether the application only tries something out, of which the log says nothing.
    pub(crate) is_without_log: bool,
    /// Room for contents of messages in work.
    pub(crate) content_memory: Arc<MemoryBudget>,
    /// Room for attachments of messages in work.
    pub(crate) file_memory: Arc<MemoryBudget>,
    /// Parts of long lists that may be committed at one time.
    pub(crate) parts: Semaphore,
    /// Imports whose rows are read at one time.
    pub(crate) imports: Semaphore,
    /// Files that are received at one time.
    pub(crate) upload_places: FairSemaphore,
    /// Callbacks of providers that are worked on at one time.
    pub(crate) callback_turns: FairSemaphore,
    /// What transports tell of by themselves; they hold it weakly.
    pub(crate) provider_sink: Arc<dyn ProviderSink>,
    /// Imports whose file is being received.
    pub(crate) receiving: Receiving,
    /// Opens a temporary store for each dry run; `None` where there can be none.
    pub(crate) temporary_stores: Option<Arc<dyn TemporaryStores>>,
    /// Dry runs at one time.
    pub(crate) dry_runs: FairSemaphore,
    /// How long work that waits for others waits before it looks by itself.
    pub(crate) idle_interval: Duration,
}

impl App {
    /// The store.
    pub fn store(&self) -> &dyn Store {
        self.0.store.as_ref()
    }

    /// Where the bytes of attachments are kept.
    pub fn blobs(&self) -> &dyn BlobStore {
        self.0.blobs.as_ref()
    }

    /// Store of uploaded files, those of imports.
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

    /// Now.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// The same moment on the clock that is never set.
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

    /// Lets a recipient domain that could not be reached be tried again at once, whichever transport remembers that.
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

    /// Accounts at providers that are left alone for a while.
    pub(crate) fn account_pauses(&self) -> &Arc<AccountPauses> {
        &self.0.account_pauses
    }

    /// How fast messages leave over accounts at providers.
    pub(crate) fn account_rates(&self) -> &AccountRates {
        &self.0.account_rates
    }

    /// Paths of the sources of this process.
    pub(crate) fn paths(&self) -> &Arc<PathKeeper> {
        &self.0.paths
    }

    /// The sites that mail is counted by.
    pub(crate) fn counted_sites(&self) -> &CountedSites {
        &self.0.counted_sites
    }

    /// The rules of sites that the server goes by.
    pub(crate) fn site_rules(&self) -> &SiteRules {
        self.0.counted_sites.rules()
    }

    /// Accounts at providers whose answers cannot be read.
    pub(crate) fn unreadable_answers(&self) -> &UnreadableAnswers {
        &self.0.unreadable_answers
    }

    /// A provider of a channel: one that the program brought, or one of contract section 16.
    pub fn provider_kind(&self, channel: Channel, name: &str) -> Option<&ProviderKind> {
        self.0.own_providers.get(&(channel, name.to_owned())).or_else(|| provider::find(channel, name))
    }

    /// The names of the secrets among the settings of providers that the program brings.
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

    /// What calls web addresses that users gave.
    pub fn fetch(&self) -> &dyn Fetch {
        self.0.fetch.as_ref()
    }

    /// Makes and reads the tokens of links and return addresses.
    pub fn link_key(&self) -> Arc<LinkKey> {
        Arc::clone(&self.0.secret_keys.held().link_key)
    }

    /// How many attempts at a recipient ended, since this process started, without it being known whether the message
    /// arrived: the reply to the content was lost, or a process ended while the transaction was open. The latter are
    /// counted when they are found.
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

    /// Answers those who wait for events, now and from now on at once: the server is about to stop.
    pub fn end_waits(&self) {
        self.0.events.end();
    }

    /// Waits for the turn to call a webhook.
    pub(crate) async fn webhook_turn(&self, webhook: WebhookId) -> OwnedSemaphorePermit {
        self.0.webhook_limiter.pass(webhook).await
    }

    /// Why nothing leaves the installation, if that is so: the database is a copy (contract section 22).
    pub fn fence(&self) -> Option<Fence> {
        self.0.fence.get()
    }

    /// Whether something may leave: the store can keep its outcome, and the installation is not fenced. Costs two atomic
    /// loads; asked right before.
    pub(crate) fn may_send(&self) -> bool {
        self.store().health().takes_work() && !self.0.fence.is_up()
    }

    /// The same for what leaves a workspace, which may be under deletion.
    pub(crate) fn may_send_from(&self, workspace: WorkspaceId) -> bool {
        self.may_send() && !self.is_known_to_end(workspace)
    }

    /// Whether a workspace is under deletion, as far as this process knows.
    pub(crate) fn is_known_to_end(&self, workspace: WorkspaceId) -> bool {
        self.lookups().ending_workspaces.latest().contains(&workspace)
    }

    /// Looks whether the installation is fenced. An application that was built on a runtime hears of that by itself.
    pub async fn look_at_fence(&self) -> Result<(), StoreError> {
        self.0.look_at_fence().await
    }

    pub(crate) fn work(&self) -> &WorkSignal {
        &self.0.work
    }

    /// Room for the contents of messages in work.
    pub(crate) fn content_memory(&self) -> &Arc<MemoryBudget> {
        &self.0.content_memory
    }

    /// Room for attachments of messages in work. Whoever takes both takes it after that for the content.
    pub(crate) fn file_memory(&self) -> &Arc<MemoryBudget> {
        &self.0.file_memory
    }

    /// How often something has waited for memory or another bounded resource.
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

    /// Where dry runs take place, if this program has a place for them.
    pub(crate) fn temporary_stores(&self) -> Option<&Arc<dyn TemporaryStores>> {
        self.0.temporary_stores.as_ref()
    }

    /// Turns to make dry runs.
    pub(crate) fn dry_runs(&self) -> &FairSemaphore {
        &self.0.dry_runs
    }

    /// How long work that waits for others to do something, who wake it, waits before it looks by itself.
    pub(crate) fn idle_interval(&self) -> Duration {
        self.0.idle_interval
    }

    pub(crate) fn running_keys(&self) -> &RunningKeys {
        &self.0.running_keys
    }

    /// The clicks of the last moment.
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
    /// The parts of the queue that are suspended, as of the last second.
    pub(crate) async fn suspensions(&self) -> Result<Arc<Suspensions>, StoreError> {
        let load = async { Ok(self.store.suspensions().await?.into_iter().collect()) };
        self.lookups.suspensions.look(self.clock.now(), load).await
    }

    /// Something was suspended or resumed: those who are about to send learn of it, and workers look for what waited.
    pub(crate) async fn follow_suspensions(&self) {
        if let Err(error) = self.suspensions().await {
            tracing::warn!(error = %Chain(&error), "it is not known what of the queue is suspended");
        }
        self.work.announce();
    }

    /// Looks whether the installation is fenced; when it is not any more, workers look for what waited.
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
