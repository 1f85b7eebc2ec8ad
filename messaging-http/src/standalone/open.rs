//! The application on the database that the settings name, without a server.

use std::sync::Arc;

use messaging_core::ports::clock::SystemClock;
use messaging_core::ports::fetch::Fetch;
use messaging_engine::{App, KeyRefused};
use messaging_store::{SqliteOptions, SqliteStore, key_file};
use messaging_transport::{DirectDelivery, Dns, GuardedFetch};

use super::data_directory::{self, EPOCH};
use super::process::raise_file_limit;
use super::start_error::StartError;
use crate::settings::Settings;

/// Who works on the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one server, which also does the jobs.
    Server,
    /// A command beside it, or without it.
    Command,
}

/// Opens the data directory and the database: the application without a server.
///
/// `base` is where links point when the settings do not say.
pub async fn open(settings: &Settings, role: Role, base: &str) -> Result<App, StartError> {
    data_directory::make_private(&settings.data, &settings.database, &settings.secret_key_file)?;
    raise_file_limit();
    let mut options = SqliteOptions::new(&settings.database);
    options.exclusive = role == Role::Server;
    options.disk_reserve = settings.disk_reserve;
    options.epoch = Some(settings.data.join(EPOCH));
    let store = SqliteStore::open(options)
        .map_err(|source| StartError::Database { path: settings.database.clone(), source })?;
    let store = Arc::new(store);
    // Once the lock of the database is ours, so that of two servers one makes the key.
    let key = key_file::open_or_create(&settings.secret_key_file, store.as_ref()).await?;
    let dns = Dns::new(settings.dns);
    let fetch = GuardedFetch::builder(dns.clone()).allow_private(settings.allow_private_targets).build();
    let fetch: Arc<dyn Fetch> = Arc::new(fetch);
    let transport = messaging_transport::Options {
        hostname: settings.engine.hostname.clone(),
        dns,
        mx_override: settings.mx_override.clone(),
        allow_private: settings.allow_private_targets,
        // A retry is to find out more than that nobody has looked meanwhile.
        rest: settings
            .engine
            .message_retry
            .first()
            .map_or(DirectDelivery::REST, |first| (*first / 2).min(DirectDelivery::REST)),
        fetch: Arc::clone(&fetch),
        clock: Arc::new(SystemClock),
    };
    let public_url = settings.public_url.clone().unwrap_or_else(|| base.to_owned());
    let built = App::builder(store, key)
        .resolver(Arc::new(transport.dns.clone()))
        .fetch(fetch)
        .transports(messaging_transport::defaults(&transport))
        .settings(settings.engine.clone().public_url(public_url))
        .build()
        .await;
    built.map_err(|refused| match refused {
        KeyRefused::WrongKey => {
            StartError::WrongKey { key: settings.secret_key_file.clone(), database: settings.database.clone() }
        }
        KeyRefused::Store(_) => StartError::KeyCheck(refused),
    })
}
