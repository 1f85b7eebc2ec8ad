//! The server as a program: data directory, database, keys, signals.

mod background;
pub mod backup;
mod data_directory;
pub mod doctor;
mod host_probe;
pub mod key_rotation;
mod mail;
#[cfg(feature = "postgres")]
pub mod moving;
mod notify;
mod open;
mod process;
pub mod rehearsal;
mod start_error;
mod worker;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use messaging_core::domain::installation::fence::Fence;
use messaging_core::domain::mail::domain_name::is_fully_qualified;
use messaging_core::error::Chain;
use messaging_core::ports::store::StoreHealth;
use messaging_engine::App;

use self::background::Background;
pub use self::background::THREAD_STACK;
use self::data_directory::{LISTEN, METRICS_LISTEN};
use self::mail::MailListeners;
pub use self::open::{Role, open};
pub use self::process::{reload_on_hangup, stop_signal};
pub use self::start_error::StartError;
pub use self::worker::work;
use crate::console::{self, Console};
use crate::server::{Listener, Server, ServerOptions};
use crate::settings::{Database, InForce, Settings};

/// Time requests wait for the preparation of the installation.
const PREPARE_WITHIN: Duration = Duration::from_secs(10);

/// Time in which the last requests are logged before the store is closed.
const LAST_LOGGED: Duration = Duration::from_secs(2);

/// A server with its workers, ready to run.
#[derive(Debug)]
pub struct Standalone {
    app: App,
    server: Server,
    background: Background,
    mail: MailListeners,
    database: Database,
    data: PathBuf,
    in_force: Option<InForce>,
}

/// Runs a server until the process is told to stop (SIGTERM or SIGINT).
///
/// Must be called within a tokio runtime; the workers get a separate one.
pub fn serve(settings: &Settings) -> BoxFuture<'_, Result<(), StartError>> {
    Box::pin(async {
        // First of all: a signal that comes during the start must not be lost.
        let mut stop = Box::pin(stop_signal()?);
        // A start may wait long for a database.
        let started = tokio::select! {
            biased;
            started = Standalone::start(settings) => started?,
            () = &mut stop => return Ok(()),
        };
        started.run(stop).await
    })
}

impl Standalone {
    /// Opens everything and starts the workers. Requests are answered once it runs.
    ///
    /// Boxed, like [`Self::run`], because the body of an async function is compiled into every crate that polls it.
    pub fn start(settings: &Settings) -> BoxFuture<'_, Result<Self, StartError>> {
        Box::pin(Self::open_all(settings))
    }

    async fn open_all(settings: &Settings) -> Result<Self, StartError> {
        if let Console::Directory(directory) = &settings.console {
            let unusable = |source| StartError::Console { directory: directory.clone(), source };
            console::check(directory).map_err(unusable)?;
        }
        let failed = |flag, address| move |source| StartError::Listen { flag, address, source };
        let listener = Listener::bind(settings.listen).map_err(failed("--listen", settings.listen))?;
        let address = listener.local_addr().map_err(failed("--listen", settings.listen))?;
        let mail = MailListeners::bind(settings)?;
        let app = open(settings, Role::Server, &format!("http://{address}")).await?;
        let started = Box::pin(Self::start_on(settings, app.clone(), listener, mail)).await;
        if started.is_err() {
            open::leave(settings, app.store()).await;
        }
        started
    }

    async fn start_on(
        settings: &Settings,
        app: App,
        listener: Listener,
        mail: MailListeners,
    ) -> Result<Self, StartError> {
        let failed = |flag, address| move |source| StartError::Listen { flag, address, source };
        prepare(&app).await;
        warn_of_names(settings, &app).await?;
        let options = ServerOptions {
            metrics_listen: settings.metrics_listen,
            trusted_proxies: settings.trusted_proxy.clone(),
            console: settings.console.clone(),
            ..ServerOptions::new(settings.listen)
        };
        let metrics_address = settings.metrics_listen.unwrap_or(settings.listen);
        let server = Server::on(listener, app.clone(), options).map_err(failed("--metrics-listen", metrics_address))?;
        let background = Background::start(&app)?;
        tell_start(settings, &server, &mail, app.fence());
        let (database, data) = (settings.database.clone(), settings.data.clone());
        let in_force = tell_settings(settings);
        Ok(Self { app, server, background, mail, database, data, in_force })
    }

    /// The application.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// The address that the API listens at.
    pub fn local_addr(&self) -> std::net::SocketAddr {
        self.server.local_addr()
    }

    /// Address of the SMTP listener for returned mail; `None` if it is off.
    pub fn smtp_addr(&self) -> Option<std::net::SocketAddr> {
        self.mail.smtp_addr()
    }

    /// Address of the SMTP listener for submissions; `None` if it is off.
    pub fn submission_addr(&self) -> Option<std::net::SocketAddr> {
        self.mail.submission_addr()
    }

    /// Answers until `stop` is done; then finishes running requests and attempts concurrently. Fails if this process
    /// cannot write the database any more.
    pub fn run<'a>(self, stop: impl Future<Output = ()> + Send + 'a) -> BoxFuture<'a, Result<(), StartError>> {
        self.run_until(Box::pin(stop))
    }

    fn run_until(self, stop: BoxFuture<'_, ()>) -> BoxFuture<'_, Result<(), StartError>> {
        Box::pin(self.answer_until(stop))
    }

    async fn answer_until(self, stop: BoxFuture<'_, ()>) -> Result<(), StartError> {
        let Self { app, server, background, mail, database, data, in_force } = self;
        let mut files = mail.files(&data);
        files.extend(server.metrics_addr().map(|address| (data.join(METRICS_LISTEN), address)));
        // Last, so that a reader who finds this file finds everything else as well.
        files.push((data.join(LISTEN), server.local_addr()));
        for (file, address) in &files {
            write_address(file, *address);
        }
        // After the files, so that a reader of this line finds them.
        let (address, metrics) = (server.local_addr(), server.metrics_addr().map(tracing::field::display));
        tracing::info!(%address, metrics, "listening");
        mail.announce();
        notify::tell(notify::State::Ready);
        let (stopping, mut stopped) = tokio::sync::watch::channel(false);
        let mail = mail.run(&app, server.submission_sink(), stopping.subscribe());
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
            notify::tell(notify::State::Stopping);
            app.end_waits();
            stopping.send_replace(true);
        };
        let workers = async {
            // An error means that `stop` is gone, which has the same effect.
            let _ = stopped.wait_for(|stopping| *stopping).await;
            background.stop().await;
        };
        tokio::join!(server.run(stop), workers, mail);
        let end = app.store().health();
        // Entries that a hanging store does not accept are lost.
        let _ = tokio::time::timeout(LAST_LOGGED, app.requests_written()).await;
        let _ = tokio::time::timeout(LAST_LOGGED, app.write_key_uses()).await;
        app.store().close().await;
        // A stale address would mislead programs that look for a running server.
        for (file, _) in files {
            let _ = fs::remove_file(file);
        }
        drop(in_force);
        tracing::info!("stopped");
        match end {
            StoreHealth::Broken => Err(StartError::Broken),
            StoreHealth::Displaced => Err(StartError::Displaced(database)),
            _ => Ok(()),
        }
    }
}

/// Writes the settings in force for commands beside the server.
fn tell_settings(settings: &Settings) -> Option<InForce> {
    let told = InForce::tell(settings);
    match &told {
        Ok(Some(_)) => {}
        Ok(None) => {
            let data = settings.data.display();
            tracing::warn!(%data, "`messaging doctor` must be given the settings: another server uses the same data directory");
        }
        Err(error) => {
            tracing::warn!(%error, "`messaging doctor` must be given the settings: they cannot be written to the data directory");
        }
    }
    told.ok().flatten()
}

/// Logs one line with the program, its database, and the parts that are off.
fn tell_start(settings: &Settings, server: &Server, mail: &MailListeners, fence: Option<Fence>) {
    let (smtp, submission) = (mail.smtp_addr(), mail.submission_addr());
    let off = [
        ("smtp-listen", smtp.is_none()),
        ("submission-listen", submission.is_none()),
        ("metrics-listen", server.metrics_addr().is_none()),
        ("console", !settings.console.is_on()),
    ];
    let off: Vec<_> = off.iter().filter(|(_, is_off)| *is_off).map(|(name, _)| *name).collect();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        database = %settings.database,
        hostname = settings.engine.hostname,
        listen = %server.local_addr(),
        smtp_listen = smtp.map(tracing::field::display),
        submission_listen = submission.map(tracing::field::display),
        metrics_listen = server.metrics_addr().map(tracing::field::display),
        off = off.join(","),
        fenced_since = fence.map(|fence| tracing::field::display(fence.since)),
        "starting"
    );
}

/// Prepares the installation for work before the first request. If it fails now, the workers retry until it succeeds.
async fn prepare(app: &App) {
    match tokio::time::timeout(PREPARE_WITHIN, app.prepare_to_work()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(error = %Chain(&error), "the installation is not prepared for work yet"),
        Err(_) => tracing::warn!("the installation is not prepared for work yet: the database takes long"),
    }
}

/// Warns if others cannot look up the names of this machine or of the installation.
async fn warn_of_names(settings: &Settings, app: &App) -> Result<(), StartError> {
    let hostname = settings.engine.hostname.as_str();
    // A trial sends no mail.
    if is_fully_qualified(hostname) || settings.engine.allow_unqualified_name {
        return Ok(());
    }
    tracing::warn!(
        hostname,
        "mail leaves under a name that nobody can look up, and many receivers refuse it: give a fully qualified --hostname \
         such as mx.example.org"
    );
    let name = app.store().installation_name().await.map_err(StartError::Name)?;
    if !name.is_some_and(|name| is_fully_qualified(&name)) {
        tracing::warn!(
            "the installation has no fully qualified name for DNS records: no sending domain can be added before it is started \
             with such a --hostname"
        );
    }
    Ok(())
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
