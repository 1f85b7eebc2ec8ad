//! Construction of an application from its ports.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::provider::{self, ProviderKind};
use messaging_core::domain::delivery::site::SiteRules;
use messaging_core::domain::mail::auto_dns::DnsProviderName;
use messaging_core::domain::security::secret_key::KeyRing;
use messaging_core::ids::IdSource;
use messaging_core::ports::clock::{Clock, Entropy, SystemClock, SystemEntropy};
use messaging_core::ports::dns_provider::DnsProvider;
use messaging_core::ports::fetch::{Fetch, NoFetch};
use messaging_core::ports::name_servers::{NameServers, NoNameServers};
use messaging_core::ports::resolver::{NoResolver, Resolver};
use messaging_core::ports::store::CommitObserver;
use messaging_core::ports::{BlobStore, Store, TemporaryStores, Transport, Uploads};
use tokio::sync::Semaphore;

use super::caches::Lookups;
use super::checks::{Checkup, KnownChecks};
use super::compiled_templates::CompiledVersions;
use super::compiled_texts::CompiledTexts;
use super::concurrency_limiter::ConcurrencyLimiter;
use super::counted_sites::CountedSites;
use super::domain_looks::DomainLooks;
use super::event_signal::EventSignal;
use super::fence::KnownFence;
use super::key_uses::KeyUses;
use super::known_urls::KnownUrls;
use super::last_uses::LastUses;
use super::memory_budget::MemoryBudget;
use super::metrics::Metrics;
use super::paths::PathKeeper;
use super::provider_sink::{WeakApp, attach};
use super::receiving::Receiving;
use super::request_log::RequestLogger;
use super::running_keys::RunningKeys;
use super::secret_keys::SecretKeys;
use super::segment_turns::SegmentTurns;
use super::settings::Settings;
use super::signers::Signers;
use super::store_clock::StoreClock;
use super::work_signal::WorkSignal;
use super::write_queues::WriteQueues;
use super::{App, Shared, capacity, news};
use crate::vault::KeyRefused;

/// Interval at which jobs of automations that wait to be woken look for work nevertheless.
const IDLE_INTERVAL: Duration = Duration::from_hours(1);

/// Builder of an [`App`].
pub struct Builder {
    store: Arc<dyn Store>,
    blobs: Option<Arc<dyn BlobStore>>,
    uploads: Option<Arc<dyn Uploads>>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    resolver: Arc<dyn Resolver>,
    name_servers: Arc<dyn NameServers>,
    fetch: Arc<dyn Fetch>,
    dns_providers: HashMap<DnsProviderName, Arc<dyn DnsProvider>>,
    transports: HashMap<(Channel, String), Arc<dyn Transport>>,
    settings: Settings,
    secret_keys: KeyRing,
    temporary_stores: Option<Arc<dyn TemporaryStores>>,
    checkup: Option<Checkup>,
    site_rules: Arc<SiteRules>,
    idle_interval: Duration,
    is_without_log: bool,
    works_inline: bool,
}

impl Builder {
    /// Takes the time from `clock` instead of the machine.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Compiles and renders templates on the calling thread, while other work waits. For simulations, in which nothing
    /// may depend on the speed of threads.
    pub fn work_inline(mut self) -> Self {
        self.works_inline = true;
        self
    }

    /// Takes randomness from `entropy` instead of the operating system.
    pub fn entropy(mut self, entropy: Arc<dyn Entropy>) -> Self {
        self.entropy = entropy;
        self
    }

    /// Stores the bytes of attachments in `blobs` instead of with the store.
    pub fn blobs(mut self, blobs: Arc<dyn BlobStore>) -> Self {
        self.blobs = Some(blobs);
        self
    }

    /// Stores uploaded files in `uploads` instead of with the store.
    pub fn uploads(mut self, uploads: Arc<dyn Uploads>) -> Self {
        self.uploads = Some(uploads);
        self
    }

    /// Looks up the records of sending domains with `resolver`. Without one no domain is ever verified.
    pub fn resolver(mut self, resolver: Arc<dyn Resolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Reads back written records of sending domains by asking the name servers of their zones with `name_servers`.
    /// Without it the resolver is asked, which may remember for minutes that they were missing.
    pub fn name_servers(mut self, name_servers: Arc<dyn NameServers>) -> Self {
        self.name_servers = name_servers;
        self
    }

    /// Calls the web addresses that users configure through `fetch`. Without it none is called.
    pub fn fetch(mut self, fetch: Arc<dyn Fetch>) -> Self {
        self.fetch = fetch;
        self
    }

    /// Writes the records of sending domains at these DNS providers. Without them none are written.
    pub fn dns_providers(
        mut self,
        providers: impl IntoIterator<Item = (DnsProviderName, Arc<dyn DnsProvider>)>,
    ) -> Self {
        self.dns_providers.extend(providers);
        self
    }

    /// Sends messages of `channel` over `transport` for workspaces that choose `provider`; a later transport for both
    /// replaces an earlier one. The name may be one of your own: workspaces choose it like any other, and
    /// [`Transport::settings_schema`] describes its settings.
    pub fn transport(mut self, channel: Channel, provider: &str, transport: Arc<dyn Transport>) -> Self {
        self.transports.insert((channel, provider.to_owned()), transport);
        self
    }

    /// Adds several transports at once.
    pub fn transports(self, transports: impl IntoIterator<Item = (Channel, &'static str, Arc<dyn Transport>)>) -> Self {
        transports
            .into_iter()
            .fold(self, |builder, (channel, provider, transport)| builder.transport(channel, provider, transport))
    }

    /// Sets the settings of the installation; without them the defaults apply.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Makes dry runs of automations in temporary stores from `stores`. Without it there are no dry runs.
    pub fn temporary_stores(mut self, stores: Arc<dyn TemporaryStores>) -> Self {
        self.temporary_stores = Some(stores);
        self
    }

    /// Logs no events, for a simulation.
    pub(crate) fn without_log(mut self) -> Self {
        self.is_without_log = true;
        self
    }

    /// Checks the host with `checkup` for `GET /system` and [`App::check_up`]. Without it these show no checks.
    pub fn checkup(mut self, checkup: Checkup) -> Self {
        self.checkup = Some(checkup);
        self
    }

    /// Interprets the answers of sites (operators of mail exchangers) by `rules`, and limits the mail to them. Without
    /// rules every site counts as unknown.
    pub fn site_rules(mut self, rules: Arc<SiteRules>) -> Self {
        self.site_rules = rules;
        self
    }

    /// Sets the longest time that jobs of automations wait to be woken before they look for work themselves.
    pub(crate) fn idle_interval(mut self, idle_interval: Duration) -> Self {
        self.idle_interval = idle_interval;
        self
    }

    /// Builds the application. Must be called on a Tokio runtime, on which a task follows the news of the store. Fails
    /// if the store's secrets are sealed under another key; a new store adopts this one.
    pub async fn build(self) -> Result<App, KeyRefused> {
        let secret_keys = SecretKeys::open(self.secret_keys, self.store.as_ref(), self.entropy.as_ref()).await?;
        let blobs = self.blobs.unwrap_or_else(|| self.store.blobs());
        let uploads = self.uploads.unwrap_or_else(|| self.store.uploads());
        let clock = Arc::new(StoreClock { own: self.clock, store: Arc::clone(&self.store) });
        let Settings { sources, hostname, .. } = &self.settings;
        let (for_paths, chance) = (Arc::clone(&clock) as Arc<dyn Clock>, Arc::clone(&self.entropy));
        let counted_sites = CountedSites::new(Arc::clone(&self.site_rules));
        let paths = Arc::new(PathKeeper::new(for_paths, chance, self.site_rules, sources, hostname));
        let metrics = Arc::new(Metrics::new());
        self.store.observe(Arc::clone(&metrics) as Arc<dyn CommitObserver>);
        let shared = Arc::new_cyclic(|shared| Shared {
            store: self.store,
            blobs,
            uploads,
            clock,
            entropy: self.entropy,
            resolver: self.resolver,
            name_servers: self.name_servers,
            fetch: self.fetch,
            dns_providers: self.dns_providers,
            own_providers: own_providers(&self.transports),
            transports: self.transports,
            settings: self.settings,
            secret_keys,
            ids: IdSource::default(),
            lookups: Lookups::new(),
            known_urls: KnownUrls::default(),
            recent_clicks: Mutex::default(),
            last_uses: LastUses::default(),
            key_uses: KeyUses::default(),
            request_logger: RequestLogger::default(),
            running_keys: RunningKeys::default(),
            write_queues: WriteQueues::default(),
            passwords: capacity::passwords(),
            sign_on_provider: super::sign_on_provider::SignOnProvider::default(),
            dkim_keys: capacity::dkim_keys(),
            signers: Signers::default(),
            domain_looks: DomainLooks::default(),
            checks: KnownChecks::new(self.checkup),
            segment_turns: SegmentTurns::default(),
            template_work: capacity::template_work(self.works_inline),
            compiled_templates: CompiledVersions::default(),
            compiled_texts: CompiledTexts::default(),
            work: WorkSignal::default(),
            fence: KnownFence::default(),
            account_pauses: Arc::default(),
            chat_order: Arc::default(),
            account_rates: super::account_rates::AccountRates::default(),
            unreadable_answers: super::unreadable_answers::UnreadableAnswers::default(),
            paths,
            counted_sites,
            campaign_pace: super::campaign_pace::CampaignPace::default(),
            form_posts: super::form_posts::FormPosts::default(),
            used_pages: super::used_pages::UsedPages::default(),
            held_lanes: super::held_lanes::HeldLanes::default(),
            callers: super::callers::Callers::default(),
            role_mail_pace: super::role_mail_pace::RoleMailPace::default(),
            events: EventSignal::default(),
            webhook_limiter: ConcurrencyLimiter::default(),
            grouped_commits: Arc::default(),
            metrics: Arc::clone(&metrics),
            queue_look: tokio::sync::Mutex::default(),
            is_without_log: self.is_without_log,
            content_memory: MemoryBudget::new(capacity::CONTENT_MEMORY),
            file_memory: MemoryBudget::new(capacity::FILE_MEMORY),
            parts: Semaphore::new(capacity::PARTS_AT_A_TIME),
            imports: Semaphore::new(capacity::IMPORTS_AT_A_TIME),
            upload_places: capacity::uploads(),
            callback_turns: capacity::callbacks(),
            provider_sink: Arc::new(WeakApp::new(shared)),
            receiving: Receiving::default(),
            temporary_stores: self.temporary_stores,
            dry_runs: capacity::dry_runs(),
            idle_interval: self.idle_interval,
        });
        shared.look_at_fence().await.map_err(KeyRefused::Store)?;
        news::follow(&shared);
        attach(&shared);
        Ok(App(shared))
    }
}

/// Returns the providers that the program adds: those whose transport describes its settings, and those with a name
/// that is not built in.
fn own_providers(
    transports: &HashMap<(Channel, String), Arc<dyn Transport>>,
) -> HashMap<(Channel, String), ProviderKind> {
    let kind = |((channel, name), transport): (&(Channel, String), &Arc<dyn Transport>)| {
        let kind = match transport.settings_schema() {
            Some(schema) => ProviderKind::from_schema(*channel, name, schema),
            None if provider::find(*channel, name).is_none() => ProviderKind::without_settings(*channel, name),
            None => return None,
        };
        Some(((*channel, name.clone()), kind))
    };
    transports.iter().filter_map(kind).collect()
}

impl App {
    /// Begins to build an application over a store, whose secrets are sealed under one of `secret_keys`: a
    /// [`SecretKey`](messaging_core::domain::security::secret_key::SecretKey), the same one at every start, or all
    /// existing ones after a rotation. Replaced keys only open secrets that they sealed, and verify links in sent mail.
    pub fn builder(store: Arc<dyn Store>, secret_keys: impl Into<KeyRing>) -> Builder {
        Builder {
            store,
            blobs: None,
            uploads: None,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy::default()),
            resolver: Arc::new(NoResolver),
            name_servers: Arc::new(NoNameServers),
            fetch: Arc::new(NoFetch),
            dns_providers: HashMap::new(),
            transports: HashMap::new(),
            settings: Settings::default(),
            secret_keys: secret_keys.into(),
            temporary_stores: None,
            checkup: None,
            site_rules: Arc::default(),
            idle_interval: IDLE_INTERVAL,
            is_without_log: false,
            works_inline: false,
        }
    }
}
