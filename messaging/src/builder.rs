//! Opening an installation with the settings of a program.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::ports::{Store, StsPolicyCache};
use messaging_engine::app::sts_policies::StoredPolicies;
use messaging_engine::work::Workers;
use messaging_engine::{App, Settings, admin, app};
#[cfg(feature = "postgres")]
use messaging_store::{PostgresOptions, PostgresStore, PostgresUrl as Postgres};
use messaging_store::{SqliteOptions, SqliteStore, TemporaryDatabases, key_file};
use messaging_transport::auto_dns::{self, ApiBases, ZoneServers};
use messaging_transport::{GuardedFetch, Options};
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use crate::open_error::OpenError;
use crate::setup::{ChannelConfig, capture, send_from, set_channels};
use crate::workspace::Messaging;

/// Interval at which the key file is read again, so that a rotation is noticed.
const READ_KEYS_EVERY: Duration = Duration::from_secs(1);

/// Name of the workspace unless another is given.
const WORKSPACE: &str = "Default";

/// Stands for the database type without the feature, which has no values.
#[cfg(not(feature = "postgres"))]
enum Postgres {}

/// Function that changes the engine's own builder.
type Configure = Box<dyn FnOnce(app::Builder) -> app::Builder + Send>;

/// Settings of an installation, before it is opened. Begin with [`builder`](crate::builder).
#[must_use = "nothing is opened before `open`"]
pub struct Builder {
    directory: PathBuf,
    workspace: String,
    settings: Settings,
    sender: Option<String>,
    channels: Vec<ChannelConfig>,
    allow_private_targets: bool,
    workers: bool,
    configure: Configure,
    postgres: Option<Postgres>,
}

impl Builder {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            workspace: WORKSPACE.to_owned(),
            settings: Settings::default(),
            sender: None,
            channels: Vec::new(),
            allow_private_targets: false,
            workers: true,
            configure: Box::new(|builder| builder),
            postgres: None,
        }
    }

    /// Keeps everything in a PostgreSQL database instead of SQLite; several processes may share it. The directory still
    /// holds the secret key, which all of them need.
    #[cfg(feature = "postgres")]
    pub fn postgres(mut self, url: Postgres) -> Self {
        self.postgres = Some(url);
        self
    }

    /// Sets the name of the workspace, "Default" unless set; it is created at the first start.
    pub fn workspace(mut self, name: impl Into<String>) -> Self {
        self.workspace = name.into();
        self
    }

    /// Sets the name of this machine, such as `mail.example.com`, by which it introduces itself to mail servers. It
    /// must have an address and a reverse DNS entry if mail is delivered directly.
    pub fn hostname(mut self, hostname: impl Into<String>) -> Self {
        self.settings.hostname = hostname.into();
        self
    }

    /// Sets the base URL of links in messages, such as `https://mail.example.com`: needed for tracking, unsubscribing
    /// and callbacks of providers, which the API answers (feature `http`).
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.settings = self.settings.public_url(url.into());
        self
    }

    /// Sets the address that email comes from if a message names none. Its domain is added to the workspace; mail is
    /// sent once its [DNS records](Messaging::dns_records) are published. Needs a fully qualified
    /// [`hostname`](Self::hostname).
    pub fn sender(mut self, address: impl Into<String>) -> Self {
        self.sender = Some(address.into());
        self
    }

    /// Sets the provider of a channel, with its settings: `smtp` sends email through a relay, `{"host":
    /// "smtp.example.net", "port": 587, "username": "…", "password": "…"}`. `docs/channels` describes the others. The
    /// settings replace the stored ones; a channel that is not set stays as it is.
    pub fn channel(mut self, channel: Channel, provider: impl Into<String>, config: Map<String, Value>) -> Self {
        self.channels.push((channel, provider.into(), config));
        self
    }

    /// Allows relays, webhooks and providers at addresses that are not public, such as `127.0.0.1`.
    pub fn allow_private_targets(mut self, allow: bool) -> Self {
        self.allow_private_targets = allow;
        self
    }

    /// Sets if this process sends, which it does unless set. Without workers, accepted messages wait for another
    /// process, or for [`App::run_until_idle`], which tests call.
    pub fn workers(mut self, workers: bool) -> Self {
        self.workers = workers;
        self
    }

    /// Sets the settings of the installation beyond those named here; they replace the host name and the public URL set
    /// before.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Changes the engine's own [builder](app::Builder) right before the application is built: transports of your own,
    /// a clock for tests, the storage of attachments.
    pub fn configure(mut self, configure: impl FnOnce(app::Builder) -> app::Builder + Send + 'static) -> Self {
        self.configure = Box::new(configure);
        self
    }

    /// Opens the database, creates it if it does not exist, and starts the workers. Must be called on a tokio runtime.
    ///
    /// A directory is open in one process at a time; the commands of `messaging --data DIRECTORY` may work beside it.
    pub async fn open(self) -> Result<Messaging, OpenError> {
        let Self {
            directory, workspace, settings, sender, channels, allow_private_targets, workers, configure, ..
        } = self;
        if sender.as_deref().is_some_and(|address| EmailAddress::parse(address).is_err()) {
            return Err(OpenError::Sender);
        }
        let store: Arc<dyn Store> = match self.postgres {
            Some(url) => open_postgres(url, &settings.hostname).await?,
            None => open_sqlite(&directory)?,
        };
        let key_file = directory.join("secret.key");
        let keys = key_file::open_or_create(&key_file, store.as_ref()).await?;
        let transport = transport_options(&settings, allow_private_targets, &store);
        let app = App::builder(store, keys)
            .resolver(Arc::new(transport.dns.clone()))
            .name_servers(Arc::new(ZoneServers::new(&transport)))
            .fetch(Arc::clone(&transport.fetch))
            .transports(messaging_transport::defaults(&transport))
            .dns_providers(auto_dns::providers(&transport, &ApiBases::new()))
            .temporary_stores(Arc::new(TemporaryDatabases::new(directory.join("simulations"))))
            .settings(settings);
        let app = configure(app).build().await?;
        app.follow_secret_keys(READ_KEYS_EVERY, move || key_file::read(&key_file).unwrap_or_default());
        app.prepare_to_work().await?;

        let workspace = admin::embedded_workspace(&app, &workspace).await?;
        set_channels(&app, workspace, channels).await?;
        match &sender {
            Some(address) => send_from(&app, workspace, address).await?,
            None => capture(&app, workspace).await?,
        }
        let workers = workers.then(|| Workers::start(&app, &Handle::current()));
        Ok(Messaging::new(app, workers, workspace, sender))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("directory", &self.directory)
            .field("sender", &self.sender)
            .finish_non_exhaustive()
    }
}

/// Opens the database of a directory as `messaging serve --data` does, so that one can take the other's place.
fn open_sqlite(directory: &Path) -> Result<Arc<dyn Store>, messaging_store::OpenError> {
    let mut options = SqliteOptions::new(directory.join("messaging.db"));
    options.epoch = Some(directory.join("epoch"));
    Ok(Arc::new(SqliteStore::open(options)?))
}

#[cfg(feature = "postgres")]
async fn open_postgres(url: Postgres, hostname: &str) -> Result<Arc<dyn Store>, messaging_store::OpenError> {
    let mut options = PostgresOptions::new(url);
    options.name = hostname.to_owned();
    options.create = true;
    options.works = true;
    Ok(Arc::new(PostgresStore::open(options).await?))
}

#[cfg(not(feature = "postgres"))]
async fn open_postgres(url: Postgres, _: &str) -> Result<Arc<dyn Store>, messaging_store::OpenError> {
    match url {}
}

fn transport_options(settings: &Settings, allow_private: bool, store: &Arc<dyn Store>) -> Options {
    let defaults = Options::new(&settings.hostname);
    let fetch = GuardedFetch::builder(defaults.dns.clone()).allow_private(allow_private).build();
    let sts_policies: Arc<dyn StsPolicyCache> = Arc::new(StoredPolicies::new(Arc::clone(store)));
    Options { allow_private, fetch: Arc::new(fetch), sts_policies: Some(sts_policies), ..defaults }
}
