//! The application: the ports put together, and what every operation and job finds through it.
//!
//! An [`App`] is a handle; clones share everything. A front end calls [`App::call`] or an
//! [`Endpoint`](crate::ops::Endpoint); whoever wants the background work done starts
//! [`Workers`](crate::work::Workers) or, in tests, calls [`App::run_until_idle`].

mod builder;
mod cache;
mod consent;
mod dkim;
mod domain_looks;
mod event_signal;
pub(crate) mod events;
pub(crate) mod filters;
mod gates;
mod heavy_work;
mod importing;
pub(crate) mod ingesting;
mod known_urls;
mod last_uses;
mod lookups;
mod memory_budget;
mod passwords;
mod reports;
mod segments;
mod settings;
mod sign_ins;
mod suppressing;
mod templates;
mod unsubscribe;
mod until_committed;
mod uploading;
pub(crate) mod upserting;
mod visits;
pub(crate) mod write_queues;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use messaging_core::changes::{Changes, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::link_token::LinkKey;
use messaging_core::domain::machine::RecentClicks;
use messaging_core::domain::page_cursor::CursorKey;
use messaging_core::domain::secret_key::channel_secret_place;
use messaging_core::domain::settings::ChannelSettings;
use messaging_core::ids::{Id, IdSource, WebhookId, WorkspaceId};
use messaging_core::ports::clock::{Clock, Entropy};
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::resolver::Resolver;
use messaging_core::ports::store::{CommitError, Priority};
use messaging_core::ports::{Store, Transport};
use messaging_core::time::{Monotonic, Timestamp};
use serde_json::{Map, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::caller::Caller;
use crate::error::Error;
use crate::fair_semaphore::FairSemaphore;
use crate::ops::invoke::RunningKeys;
use crate::ops::{Operation, Output as _, Request};
use crate::vault::Vault;
use crate::work::signal::WorkSignal;

pub use builder::Builder;
pub(crate) use dkim::KeyPair;
use dkim::Signers;
pub use dkim::UnusableKey;
use domain_looks::DomainLooks;
use event_signal::{EventSignal, EventWait};
use gates::Gates;
use heavy_work::HeavyWork;
use known_urls::KnownUrls;
use last_uses::LastUses;
pub use lookups::Provider;
use lookups::{Lookups, Touched};
pub(crate) use lookups::{MAX_LOOKED_AT, SESSION_MARKER};
use memory_budget::MemoryBudget;
use segments::SegmentTurns;
pub use settings::Settings;
use templates::CompiledVersions;
pub(crate) use templates::Unrendered;
use uploading::Receiving;
pub use uploading::Uploading;
pub use visits::{Click, Visitor};
use write_queues::WriteQueues;

/// Bytes of stored contents, and of what is made of them for sending, that may be in memory at one time.
const CONTENT_MEMORY: u64 = 32 << 20;
/// The same for attachments.
const FILE_MEMORY: u64 = 56 << 20;

/// A handle to the application.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    resolver: Arc<dyn Resolver>,
    fetch: Arc<dyn Fetch>,
    transports: HashMap<(Channel, String), Arc<dyn Transport>>,
    settings: Settings,
    vault: Vault,
    link_key: LinkKey,
    cursor_key: CursorKey,
    ids: IdSource,
    lookups: Lookups,
    known_urls: KnownUrls,
    recent_clicks: Mutex<RecentClicks>,
    last_uses: LastUses,
    running_keys: RunningKeys,
    write_queues: WriteQueues,
    passwords: FairSemaphore,
    dkim_keys: HeavyWork,
    signers: Signers,
    domain_looks: DomainLooks,
    segment_turns: SegmentTurns,
    template_work: HeavyWork,
    compiled_templates: CompiledVersions,
    work: WorkSignal,
    events: EventSignal,
    gates: Gates,
    /// Attempts that ended without anybody knowing whether the message arrived.
    ambiguous_attempts: AtomicU64,
    /// Room for contents of messages in work.
    content_memory: Arc<MemoryBudget>,
    /// Room for attachments of messages in work.
    file_memory: Arc<MemoryBudget>,
    /// Parts of long lists that may be committed at one time.
    parts: Semaphore,
    /// Imports whose rows are read at one time.
    imports: Semaphore,
    /// Files that are received at one time.
    uploads: FairSemaphore,
    /// Imports whose file is being received.
    receiving: Receiving,
}

impl App {
    /// Carries out an operation in this process, without HTTP. `path` holds the path's parameters.
    pub async fn call<O: Operation>(
        &self,
        caller: &Caller,
        path: &O::Path,
        query: &O::Query,
        body: &O::Body,
    ) -> Result<O::Output, Error> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        let members = |value: Value| match value {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        let path_parameters: Vec<_> = members(serde_json::to_value(path).map_err(Error::internal)?)
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect();
        // Made at once, because the serializer cannot go along to another thread.
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(
                members(serde_json::to_value(query).map_err(Error::internal)?)
                    .iter()
                    .map(|(name, value)| (name, text(value))),
            )
            .finish();
        let in_path = path_parameters.iter().find(|(name, _)| name == "workspace_id").map(|(_, id)| id.as_str());
        let (caller, workspace) = self.admit(caller.clone(), O::ACCESS, in_path, None).await?;
        let path = crate::ops::fill_path(O::PATH, &path_parameters);
        let answer = crate::ops::invoke::invoke::<O>(Request {
            app: self,
            caller: &caller,
            workspace,
            path: &path,
            query: &query,
            body: serde_json::to_vec(body).map_err(Error::internal)?.into(),
            path_parameters,
            idempotency_key: None,
            client: None,
            lenient: false,
        })
        .await?;
        O::Output::from_body(&answer.body).map_err(Error::internal)
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        self.0.store.as_ref()
    }

    /// What the installation was told.
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

    /// Seals and opens secrets.
    pub fn vault(&self) -> &Vault {
        &self.0.vault
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
    pub fn link_key(&self) -> &LinkKey {
        &self.0.link_key
    }

    /// How many attempts at a recipient ended, since this process started, without it being known whether the message
    /// arrived: the reply to the content was lost, or a process ended while the transaction was open. The latter are
    /// counted when they are found.
    pub fn ambiguous_attempts(&self) -> u64 {
        self.0.ambiguous_attempts.load(Ordering::Relaxed)
    }

    /// Counts ambiguous attempts.
    pub(crate) fn count_ambiguous(&self, attempts: u64) {
        self.0.ambiguous_attempts.fetch_add(attempts, Ordering::Relaxed);
    }

    /// Seals and opens the cursors of listings.
    pub(crate) fn cursor_key(&self) -> &CursorKey {
        &self.0.cursor_key
    }

    /// Commits the changes of a request.
    pub(crate) async fn commit(&self, changes: Changes) -> Result<(), CommitError> {
        self.commit_as(changes, Priority::Foreground).await
    }

    /// Commits the changes of background work.
    pub(crate) async fn commit_in_background(&self, changes: Changes) -> Result<(), CommitError> {
        self.commit_as(changes, Priority::Background).await
    }

    async fn commit_as(&self, mut changes: Changes, priority: Priority) -> Result<(), CommitError> {
        self.have_changes_followed(&mut changes).await;
        let touched = Touched::by(&changes);
        let urls = KnownUrls::keys(&changes);
        let removed_urls = KnownUrls::removed(&changes);
        let told = EventSignal::concerned(&changes);
        let due = changes
            .writes()
            .iter()
            .filter_map(|write| match write {
                Write::Enqueue(job) | Write::EnqueueOnce(job) => Some(job.due_at),
                Write::RescheduleJob(_, next) => Some(next.due_at),
                Write::PutJobBack(_, to) => Some(to.due_at),
                _ => None,
            })
            .min();
        self.0.store.commit(changes, priority).await?;
        self.0.lookups.forget(touched);
        self.0.known_urls.add(urls);
        self.0.known_urls.forget(removed_urls);
        self.0.events.announce(&told);
        if let Some(due) = due {
            self.0.work.announce(due);
        }
        Ok(())
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
        self.0.gates.pass(webhook).await
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

    /// Waits for the turn to commit a part of a long list.
    pub(crate) async fn part(&self) -> SemaphorePermit<'_> {
        self.0.parts.acquire().await.expect("the semaphore is never closed")
    }

    /// Puts calls that change one resource in order.
    pub(crate) fn write_queues(&self) -> &WriteQueues {
        &self.0.write_queues
    }

    pub(crate) fn running_keys(&self) -> &RunningKeys {
        &self.0.running_keys
    }

    /// The clicks of the last moment.
    fn recent_clicks<T>(&self, look: impl FnOnce(&mut RecentClicks) -> T) -> T {
        look(&mut self.0.recent_clicks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn known_urls(&self) -> &KnownUrls {
        &self.0.known_urls
    }

    fn passwords(&self) -> &FairSemaphore {
        &self.0.passwords
    }

    fn dkim_keys(&self) -> &HeavyWork {
        &self.0.dkim_keys
    }

    fn signer_cache(&self) -> &Signers {
        &self.0.signers
    }

    fn domain_looks(&self) -> &DomainLooks {
        &self.0.domain_looks
    }

    fn segment_turns(&self) -> &SegmentTurns {
        &self.0.segment_turns
    }

    fn template_work(&self) -> &HeavyWork {
        &self.0.template_work
    }

    fn compiled_templates(&self) -> &CompiledVersions {
        &self.0.compiled_templates
    }

    fn lookups(&self) -> &Lookups {
        &self.0.lookups
    }

    fn last_uses(&self) -> &LastUses {
        &self.0.last_uses
    }

    /// A channel's settings with their secrets in clear. A secret that does not open (the key file was
    /// exchanged) is left out, and the provider then says what it misses.
    pub(crate) fn open_secrets(&self, settings: &ChannelSettings) -> Map<String, Value> {
        let mut config = settings.config.clone();
        for member in messaging_core::domain::provider::secret_members(settings.channel, &settings.provider) {
            let Some(Value::String(sealed)) = config.get(*member) else { continue };
            match self.vault().open(&channel_secret_place(settings, member), sealed) {
                Ok(secret) => config.insert((*member).to_owned(), Value::String(secret)),
                Err(error) => {
                    tracing::error!(channel = %settings.channel, member, %error, "a channel secret is unusable");
                    config.remove(*member)
                }
            };
        }
        config
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}
