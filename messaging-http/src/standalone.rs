//! The server as a program of its own: data directory, database, keys, signals.

mod data_directory;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use messaging_core::ports::store::StoreHealth;
use messaging_engine::App;
use messaging_engine::vault::KeyRefused;
use messaging_engine::work::Workers;
use messaging_store::FileError;
use messaging_store::key_file::{self, KeyFileError};
use messaging_store::{OpenError, SqliteOptions, SqliteStore};
use messaging_transport::inbound::{Inbound, InboundOptions};
use messaging_transport::{DirectDelivery, Dns, GuardedFetch};
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::server::{Listener, Server, ServerOptions};
use crate::settings::Settings;

/// The file with the address that the server listens at.
const LISTEN: &str = "listen";

/// The file with the address that mail comes back to.
const SMTP_LISTEN: &str = "smtp-listen";

/// The file with the address of the metrics page.
const METRICS_LISTEN: &str = "metrics-listen";

/// Background work gets what requests leave of the processors: under full load about a hundredth, else all
/// it wants.
const BACKGROUND_NICENESS: i32 = 19;

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory or a file in it cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no secret key to start with.
    #[error(transparent)]
    SecretKey(#[from] KeyFileError),
    /// The secret key is another one than that of the database.
    #[error(
        "the secret key {} does not fit the database {}: restore the file that was made with the database from the \
         backup, or name where it is with --secret-key-file; nothing was changed",
        key.display(), database.display()
    )]
    WrongKey {
        /// The key file.
        key: PathBuf,
        /// The database.
        database: PathBuf,
    },
    /// The secret key could not be checked.
    #[error("failed to check the secret key")]
    KeyCheck(#[source] KeyRefused),
    /// The database cannot be opened.
    #[error("failed to open the database {}", path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: OpenError,
    },
    /// An address cannot be listened at.
    #[error("failed to listen at {address}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// After a failed sync the database cannot be written until a new process has read it from the disk.
    #[error("the disk failed and lost what was not synced; start the server again")]
    Broken,
    /// Another server has taken the database over.
    #[error("another messaging server has taken over the database {}; this one has stopped", .0.display())]
    Displaced(PathBuf),
    /// The process cannot get what it runs on.
    #[error("failed to {attempt}")]
    System {
        /// What was attempted.
        attempt: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

impl StartError {
    /// Whether a server works on the database.
    pub const fn is_in_use(&self) -> bool {
        matches!(self, Self::Database { source: OpenError::InUse, .. })
    }
}

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
    let store = SqliteStore::open(options)
        .map_err(|source| StartError::Database { path: settings.database.clone(), source })?;
    let store = Arc::new(store);
    // Once the lock of the database is ours, so that of two servers one makes the key.
    let key = key_file::open_or_create(&settings.secret_key_file, store.as_ref()).await?;
    let transport = messaging_transport::Options {
        hostname: settings.hostname.clone(),
        dns: Dns::new(settings.dns),
        mx_override: settings.mx_override.clone(),
        allow_private: settings.allow_private_targets,
        // A retry is to find out more than that nobody has looked meanwhile.
        rest: settings
            .message_retry
            .first()
            .map_or(DirectDelivery::REST, |first| (*first / 2).min(DirectDelivery::REST)),
    };
    let fetch = GuardedFetch::builder(transport.dns.clone()).allow_private(settings.allow_private_targets).build();
    let built = App::builder(store, key)
        .resolver(Arc::new(transport.dns.clone()))
        .fetch(Arc::new(fetch))
        .transports(messaging_transport::defaults(&transport))
        .settings(messaging_engine::Settings {
            public_url: settings.public_url.clone().unwrap_or_else(|| base.to_owned()),
            hostname: settings.hostname.clone(),
            data_region: settings.data_region.clone(),
            message_retry: settings.message_retry.clone(),
            message_expiry: settings.message_expiry,
            webhook_retry: settings.webhook_retry.clone(),
            segment_refresh: settings.segment_refresh,
            ..messaging_engine::Settings::default()
        })
        .build()
        .await;
    built.map_err(|refused| match refused {
        KeyRefused::WrongKey => {
            StartError::WrongKey { key: settings.secret_key_file.clone(), database: settings.database.clone() }
        }
        KeyRefused::Store(_) => StartError::KeyCheck(refused),
    })
}

/// A server with its workers, ready to run.
#[derive(Debug)]
pub struct Standalone {
    app: App,
    server: Server,
    background: Background,
    inbound: Option<Inbound>,
    database: PathBuf,
    listen_file: PathBuf,
    smtp_listen_file: PathBuf,
    metrics_listen_file: PathBuf,
}

/// Runs a server until the process is told to stop (SIGTERM or SIGINT).
///
/// Must be called within a tokio runtime; the workers get one of their own.
pub async fn serve(settings: &Settings) -> Result<(), StartError> {
    // Before anything else: a signal that comes while starting must not be lost.
    let stop = stop_signal()?;
    Standalone::start(settings).await?.run(stop).await
}

impl Standalone {
    /// Opens everything and starts the workers. Requests are answered once it runs.
    pub async fn start(settings: &Settings) -> Result<Self, StartError> {
        let failed = |address| move |source| StartError::Listen { address, source };
        let listener = Listener::bind(settings.listen).map_err(failed(settings.listen))?;
        let address = listener.local_addr().map_err(failed(settings.listen))?;
        let inbound = settings.smtp_listen.map(|address| {
            Inbound::bind(address, InboundOptions::new(settings.hostname.as_str())).map_err(failed(address))
        });
        let inbound = inbound.transpose()?;
        let app = open(settings, Role::Server, &format!("http://{address}")).await?;
        let options = ServerOptions {
            metrics_listen: settings.metrics_listen,
            trusted_proxies: settings.trusted_proxy.clone(),
            ..ServerOptions::new(settings.listen)
        };
        let metrics_address = settings.metrics_listen.unwrap_or(settings.listen);
        let server = Server::on(listener, app.clone(), options).map_err(failed(metrics_address))?;
        let listen_file = settings.data.join(LISTEN);
        let smtp_listen_file = settings.data.join(SMTP_LISTEN);
        let metrics_listen_file = settings.data.join(METRICS_LISTEN);
        let background = Background::start(&app)?;
        tracing::info!(%address, metrics = server.metrics_addr().map(tracing::field::display), "listening");
        if let Some(inbound) = &inbound {
            tracing::info!(address = %inbound.local_addr(), "listening for returned mail");
        }
        let database = settings.database.clone();
        Ok(Self { app, server, background, inbound, database, listen_file, smtp_listen_file, metrics_listen_file })
    }

    /// The application.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Where the API is.
    pub fn local_addr(&self) -> std::net::SocketAddr {
        self.server.local_addr()
    }

    /// Where mail comes back to, if anywhere.
    pub fn smtp_addr(&self) -> Option<std::net::SocketAddr> {
        self.inbound.as_ref().map(Inbound::local_addr)
    }

    /// Answers until `stop` is done; then finishes what runs, requests and attempts side by side. Fails when the
    /// database cannot be written any more by this process.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), StartError> {
        let Self { app, server, background, inbound, database, listen_file, smtp_listen_file, metrics_listen_file } =
            self;
        if let Some(inbound) = &inbound {
            write_address(&smtp_listen_file, inbound.local_addr());
        }
        if let Some(metrics) = server.metrics_addr() {
            write_address(&metrics_listen_file, metrics);
        }
        // Last, so that whoever finds it finds everything else as well.
        write_address(&listen_file, server.local_addr());
        let (stopping, mut stopped) = tokio::sync::watch::channel(false);
        let mut stopped_for_mail = stopping.subscribe();
        let mut health = app.store().watch_health();
        let broken = async {
            if health.wait_for(|health| health.is_final()).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let stop = async {
            tokio::select! {
                () = stop => {}
                () = broken => {}
            }
            tracing::info!("stopping");
            app.end_waits();
            stopping.send_replace(true);
        };
        let workers = async {
            // An error means that `stop` is gone, which is as good.
            let _ = stopped.wait_for(|stopping| *stopping).await;
            background.stop().await;
        };
        let returned_mail = async {
            if let Some(inbound) = inbound {
                let stop = async { drop(stopped_for_mail.wait_for(|stopping| *stopping).await) };
                inbound.run(Arc::new(app.clone()), stop).await;
            }
        };
        tokio::join!(server.run(stop), workers, returned_mail);
        let end = app.store().health();
        app.store().close().await;
        // A stale address would mislead whoever looks for a running server.
        for file in [listen_file, smtp_listen_file, metrics_listen_file] {
            let _ = fs::remove_file(file);
        }
        tracing::info!("stopped");
        match end {
            StoreHealth::Broken => Err(StartError::Broken),
            StoreHealth::Displaced => Err(StartError::Displaced(database)),
            _ => Ok(()),
        }
    }
}

fn write_address(file: &Path, address: std::net::SocketAddr) {
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)
        .and_then(|mut file| file.write_all(format!("{address}\n").as_bytes()));
    if let Err(error) = written {
        tracing::error!(file = %file.display(), %error, "the address could not be written");
    }
}

/// The workers, on threads that give way to those that answer requests.
#[derive(Debug)]
struct Background {
    workers: Option<Workers>,
    runtime: Option<runtime::Runtime>,
}

impl Background {
    fn start(app: &App) -> Result<Self, StartError> {
        let runtime = runtime::Builder::new_multi_thread()
            .thread_name("work")
            .thread_stack_size(THREAD_STACK)
            .enable_all()
            .on_thread_start(give_way)
            .build()
            .map_err(|source| StartError::System { attempt: "start the threads of the workers", source })?;
        Ok(Self { workers: Some(Workers::start(app, runtime.handle())), runtime: Some(runtime) })
    }

    async fn stop(mut self) {
        if let Some(workers) = self.workers.take() {
            workers.stop().await;
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // A runtime must not be waited for where another one runs.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The stack of our threads: nothing here recurses deeply.
pub const THREAD_STACK: usize = 1 << 20;

/// Lowers the priority of the calling thread. On Linux a thread can be named where a process is meant.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), BACKGROUND_NICENESS) {
        tracing::debug!(%error, "a worker thread keeps its priority");
    }
}

/// Done when the process is told to stop.
pub fn stop_signal() -> Result<impl Future<Output = ()>, StartError> {
    let listen = |kind| signal(kind).map_err(|source| StartError::System { attempt: "listen for signals", source });
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Allows the process as many open files as the system lets it: a connection is one.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
