//! The application on the database of the settings, without a server.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
#[cfg(feature = "postgres")]
use std::time::Instant;

use messaging_core::domain::delivery::site::SiteRules;
use messaging_core::domain::mail::domain_name::is_fully_qualified;
use messaging_core::domain::security::secret_key::KeyRing;
use messaging_core::error::Chain;
use messaging_core::ports::Store;
use messaging_core::ports::clock::SystemClock;
use messaging_core::ports::fetch::Fetch;
use messaging_engine::app::checks::Checkup;
use messaging_engine::app::sts_policies::StoredPolicies;
use messaging_engine::{App, KeyRefused};
use messaging_store::key_file::{self, KeyFileError};
#[cfg(feature = "s3")]
use messaging_store::{Bucket, BucketError};
use messaging_store::{OpenError, SqliteOptions, SqliteStore, TemporaryDatabases};
#[cfg(feature = "postgres")]
use messaging_store::{PostgresOptions, PostgresStore, PostgresUrl};
use messaging_transport::auto_dns::{self, ApiBases, ZoneServers};
use messaging_transport::{DirectDelivery, Dns, GuardedFetch};

use super::data_directory::{self, EPOCH};
use super::host_probe::{KeyKnown, checkup};
use super::process::raise_file_limit;
use super::start_error::StartError;
use crate::settings::{Database, Settings, bind_each};

/// Time a server waits for a database that does not answer.
#[cfg(feature = "postgres")]
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval between two attempts to open the database.
#[cfg(feature = "postgres")]
const TRY_EVERY: Duration = Duration::from_secs(1);

/// Interval at which the key file is read.
const LOOK_FOR_KEYS_EVERY: Duration = Duration::from_secs(1);

/// The directory for simulations of a server.
const SIMULATIONS: &str = "simulations";
/// Beginning of the names of directories for simulations of commands.
const OF_COMMANDS: &str = "simulations-";

/// The role of a process that opens the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The server, which also runs the jobs.
    Server,
    /// A command, with or without a running server.
    Command,
}

/// Opens the data directory and the database: the application without a server.
///
/// `base` is the beginning of links if the settings have none.
pub async fn open(settings: &Settings, role: Role, base: &str) -> Result<App, StartError> {
    if role == Role::Server && settings.database.file().is_none() && settings.public_url.is_none() {
        return Err(StartError::PublicUrl);
    }
    if role == Role::Server && settings.require_database && !settings.database.exists() {
        return Err(StartError::NoDatabase(settings.database.clone()));
    }
    if role == Role::Server {
        let unusable = |(address, source)| StartError::Source { address, source };
        bind_each(&settings.engine.sources).map_err(unusable)?;
    }
    data_directory::make_private(&settings.data, settings.database.file(), &settings.secret_key_file)?;
    raise_file_limit();
    let store = open_store(settings, role).await?;
    let opened = open_on(settings, role, base, Arc::clone(&store)).await;
    if opened.is_err() {
        leave(settings, &*store).await;
    }
    opened
}

/// Leaves a database that several processes share: a process that fails to start has been given a share of the work,
/// which the others would not do until it counts as dead.
pub(super) async fn leave(settings: &Settings, store: &dyn Store) {
    if settings.database.file().is_none() {
        store.close().await;
    }
}

async fn open_on(settings: &Settings, role: Role, base: &str, store: Arc<dyn Store>) -> Result<App, StartError> {
    // After the lock of the database is held, so that only one of two servers creates the key.
    let key = key_file::open_or_create(&settings.secret_key_file, &*store).await?;
    let checkup = checkup(settings, KeyKnown::Admitted(key.clone()));
    let app = build(settings, role, base, store, key, checkup).await?;
    follow_key_file(&app, settings.secret_key_file.clone());
    Ok(app)
}

/// Adopts the keys that a rotation writes to the key file, or that somebody copies there from another node.
fn follow_key_file(app: &App, file: PathBuf) {
    let told = Mutex::new(None);
    app.follow_secret_keys(LOOK_FOR_KEYS_EVERY, move || {
        let (ring, fault) = match key_file::read(&file) {
            Ok(ring) => (ring, None),
            Err(error) => (None, Some(Chain(&error).to_string())),
        };
        tell_change(&mut told.lock().unwrap_or_else(PoisonError::into_inner), fault);
        ring
    });
}

/// Logs that the key file cannot be read, or can be read again: once for each change.
fn tell_change(told: &mut Option<String>, fault: Option<String>) {
    if *told == fault {
        return;
    }
    if let Some(error) = &fault {
        tracing::warn!(error, "the secret key cannot be read again");
    } else {
        tracing::info!("the secret key can be read again");
    }
    *told = fault;
}

/// Result of [`look_at`]: an installation, or none.
pub(super) enum Opened {
    /// An installation.
    App(Box<App>),
    /// Neither a database nor a key.
    Nothing,
}

/// Opens an existing installation to examine it: nothing is created and no permissions are changed.
pub(super) async fn look_at(
    settings: &Settings,
    base: &str,
    asked: &(dyn Fn(Checkup) -> Checkup + Send + Sync),
) -> Result<Opened, StartError> {
    if !settings.database.exists() {
        return Ok(Opened::Nothing);
    }
    let store = open_store(settings, Role::Command).await?;
    let missing = || KeyFileError::Missing(settings.secret_key_file.clone());
    let key = key_file::read(&settings.secret_key_file)?.ok_or_else(missing)?;
    let mut settings = settings.clone();
    // An examination does not depend on the hostname that the server was started with.
    if !is_fully_qualified(&settings.engine.hostname)
        && let Some(name) = store.installation_name().await.map_err(StartError::Name)?
    {
        settings.engine = settings.engine.hostname(name);
    }
    let checkup = asked(checkup(&settings, KeyKnown::Admitted(key.clone())));
    Ok(Opened::App(Box::new(build(&settings, Role::Command, base, store, key, checkup).await?)))
}

async fn open_store(settings: &Settings, role: Role) -> Result<Arc<dyn Store>, StartError> {
    let opened: Result<Arc<dyn Store>, OpenError> = match &settings.database {
        Database::Sqlite(path) => open_sqlite(settings, path, role).map(|store| Arc::new(store) as _),
        #[cfg(feature = "postgres")]
        Database::Postgres(url) => {
            let mut options = PostgresOptions::new(url.clone());
            #[cfg(feature = "s3")]
            {
                options.bucket = open_bucket(settings, role).await?;
            }
            options.name.clone_from(&settings.engine.hostname);
            options.create = role == Role::Server && !settings.require_database;
            options.works = role == Role::Server;
            open_postgres(options, url, role).await.map(|store| Arc::new(store) as _)
        }
    };
    opened.map_err(|source| match source {
        OpenError::Empty if role == Role::Server => StartError::NoDatabase(settings.database.clone()),
        source => StartError::Database { database: settings.database.clone(), source },
    })
}

fn open_sqlite(settings: &Settings, path: &Path, role: Role) -> Result<SqliteStore, OpenError> {
    let mut options = SqliteOptions::new(path);
    options.exclusive = role == Role::Server;
    options.disk_reserve = settings.disk_reserve;
    options.epoch = Some(settings.data.join(EPOCH));
    SqliteStore::open(options)
}

/// A server waits a while for a database that does not answer yet: both may have been started at the same moment.
#[cfg(feature = "postgres")]
async fn open_postgres(options: PostgresOptions, url: &PostgresUrl, role: Role) -> Result<PostgresStore, OpenError> {
    let began = Instant::now();
    let mut is_told = false;
    loop {
        match PostgresStore::open(options.clone()).await {
            Err(OpenError::NoAnswer { source }) if role == Role::Server && began.elapsed() < PATIENCE => {
                if !std::mem::replace(&mut is_told, true) {
                    let (error, seconds) = (Chain(source.as_ref()), PATIENCE.as_secs());
                    tracing::warn!(database = %url, %error, seconds, "the database does not answer; it is tried for a while");
                }
                tokio::time::sleep(TRY_EVERY).await;
            }
            opened => return opened,
        }
    }
}

/// The bucket of the settings. A server tries it once, so that it does not start without access to it.
#[cfg(feature = "s3")]
async fn open_bucket(settings: &Settings, role: Role) -> Result<Option<Bucket>, BucketError> {
    let Some(url) = &settings.blobs else { return Ok(None) };
    let bucket = Bucket::new(url.clone(), std::env::vars())?;
    if role == Role::Server {
        bucket.check().await?;
    }
    Ok(Some(bucket))
}

async fn build(
    settings: &Settings,
    role: Role,
    base: &str,
    store: Arc<dyn Store>,
    key: KeyRing,
    checkup: Checkup,
) -> Result<App, StartError> {
    let dns = if settings.dns_trust_ad { Dns::trusting_ad(settings.dns) } else { Dns::new(settings.dns) };
    let fetch = GuardedFetch::builder(dns.clone()).allow_private(settings.allow_private_targets).build();
    let fetch: Arc<dyn Fetch> = Arc::new(fetch);
    let transport = messaging_transport::Options {
        hostname: settings.engine.hostname.clone(),
        sources: settings.engine.sources.clone(),
        dns,
        mx_override: settings.mx_override.clone(),
        allow_private: settings.allow_private_targets,
        // A retry must find out more than that nobody has tried meanwhile.
        rest: settings
            .engine
            .message_retry
            .first()
            .map_or(DirectDelivery::REST, |first| (*first / 2).min(DirectDelivery::REST)),
        fetch: Arc::clone(&fetch),
        sts_policies: Some(Arc::new(StoredPolicies::new(Arc::clone(&store)))),
        clock: Arc::new(SystemClock),
    };
    let public_url = settings.public_url.clone().unwrap_or_else(|| base.to_owned());
    let built = App::builder(store, key)
        .resolver(Arc::new(transport.dns.clone()))
        .name_servers(Arc::new(ZoneServers::new(&transport)))
        .fetch(fetch)
        .transports(messaging_transport::defaults(&transport))
        .dns_providers(auto_dns::providers(&transport, &ApiBases::new()))
        .temporary_stores(Arc::new(TemporaryDatabases::new(simulations(&settings.data, role))))
        .site_rules(settings.site_rules.clone().unwrap_or_else(SiteRules::embedded))
        .settings(settings.engine.clone().public_url(public_url))
        .checkup(checkup)
        .build()
        .await;
    built.map_err(|refused| match refused {
        KeyRefused::WrongKey => {
            StartError::WrongKey { key: settings.secret_key_file.clone(), database: settings.database.clone() }
        }
        KeyRefused::Store(_) => StartError::KeyCheck(refused),
    })
}

/// Directory for simulations: the server has one, and so has each command.
fn simulations(data: &Path, role: Role) -> PathBuf {
    match role {
        Role::Server => {
            // Directories of commands that did not end in order.
            let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(OF_COMMANDS)) {
                if let Err(error) = std::fs::remove_dir_all(entry.path()) {
                    tracing::warn!(path = %entry.path().display(), %error, "what a command left cannot be removed");
                }
            }
            data.join(SIMULATIONS)
        }
        Role::Command => data.join(format!("{OF_COMMANDS}{}", std::process::id())),
    }
}
