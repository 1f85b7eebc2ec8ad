//! Workers without a server: a node that runs jobs and answers no requests.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::background::Background;
use super::open::leave;
use super::process::stop_signal;
use super::start_error::StartError;
use super::{Role, data_directory, notify, open, write_address};
use crate::metrics::listener::MetricsListener;
use crate::pipeline::Pipeline;
use crate::service_options::ServiceOptions;
use crate::settings::Settings;

/// Runs jobs until the process is told to stop (SIGTERM or SIGINT). Listens only at `--metrics-listen`, which also
/// answers `/health`.
pub fn work(settings: &Settings) -> BoxFuture<'_, Result<(), StartError>> {
    Box::pin(async {
        if settings.database.file().is_some() {
            return Err(StartError::WorkerNeedsPostgres);
        }
        // Before anything else: a signal that comes while starting must not be lost.
        let stop = stop_signal()?;
        work_until(settings, stop).await
    })
}

async fn work_until(settings: &Settings, stop: impl Future<Output = ()> + Send) -> Result<(), StartError> {
    let failed = |address| move |source| StartError::Listen { flag: "--metrics-listen", address, source };
    let listener = match settings.metrics_listen {
        Some(address) => Some(MetricsListener::bind(address).map_err(failed(address))?),
        None => None,
    };
    let mut stop = Box::pin(stop);
    // It may wait long for the database.
    let app = tokio::select! {
        biased;
        opened = open(settings, Role::Server, "") => opened?,
        () = &mut stop => return Ok(()),
    };
    let background = Background::start(&app);
    if background.is_err() {
        leave(settings, app.store()).await;
    }
    let background = background?;
    let file = settings.data.join(data_directory::METRICS_LISTEN);
    let answering = listener.map(|listener| {
        write_address(&file, listener.local_addr());
        let pipeline = Pipeline::new(app.clone(), ServiceOptions::default());
        tokio::spawn(listener.run(Arc::new(pipeline)))
    });
    tracing::info!(version = env!("CARGO_PKG_VERSION"), database = %settings.database, "working");
    notify::tell(notify::State::Ready);
    let mut health = app.store().watch_health();
    tokio::select! {
        () = stop => {}
        _ = health.wait_for(|health| health.is_final()) => {}
    }
    tracing::info!("stopping");
    notify::tell(notify::State::Stopping);
    app.end_waits();
    background.stop().await;
    app.store().close().await;
    if let Some(answering) = answering {
        answering.abort();
        let _ = std::fs::remove_file(&file);
    }
    tracing::info!("stopped");
    Ok(())
}
