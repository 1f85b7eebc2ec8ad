//! The server as a program of its own: data directory, database, keys, signals.

mod background;
pub mod backup;
mod data_directory;
mod open;
mod process;
pub mod rehearsal;
mod start_error;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use messaging_core::ports::store::StoreHealth;
use messaging_engine::App;
use messaging_transport::inbound::{Inbound, InboundOptions};

use self::background::Background;
pub use self::background::THREAD_STACK;
use self::data_directory::{LISTEN, METRICS_LISTEN, SMTP_LISTEN};
pub use self::open::{Role, open};
pub use self::process::stop_signal;
pub use self::start_error::StartError;
use crate::server::{Listener, Server, ServerOptions};
use crate::settings::Settings;

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
pub fn serve(settings: &Settings) -> BoxFuture<'_, Result<(), StartError>> {
    Box::pin(async {
        // Before anything else: a signal that comes while starting must not be lost.
        let stop = stop_signal()?;
        Standalone::start(settings).await?.run(stop).await
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
        let failed = |address| move |source| StartError::Listen { address, source };
        let listener = Listener::bind(settings.listen).map_err(failed(settings.listen))?;
        let address = listener.local_addr().map_err(failed(settings.listen))?;
        let inbound = settings.smtp_listen.map(|address| {
            Inbound::bind(address, InboundOptions::new(settings.engine.hostname.as_str())).map_err(failed(address))
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
    pub fn run<'a>(self, stop: impl Future<Output = ()> + Send + 'a) -> BoxFuture<'a, Result<(), StartError>> {
        self.run_until(Box::pin(stop))
    }

    fn run_until(self, stop: BoxFuture<'_, ()>) -> BoxFuture<'_, Result<(), StartError>> {
        Box::pin(self.answer_until(stop))
    }

    async fn answer_until(self, stop: BoxFuture<'_, ()>) -> Result<(), StartError> {
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
