//! Keeping what is known of paths: read before a process works, written in batches while it does and when it ends.

use std::time::Duration;

use messaging_core::domain::delivery::ip_pool::source::{NamedSource, SourceAddress};
use messaging_core::error::Chain;
use messaging_core::ports::store::{CommitError, StoreError};
use tokio::sync::watch;

use crate::app::App;
use crate::app::paths::{KEPT_FOR, SAVE_EVERY};

/// Batches of one turn: more than that wait for the next one.
const BATCHES: usize = 20;

/// Batches at the end of a process.
const LAST_BATCHES: usize = 200;

/// Interval at which old paths are forgotten.
const FORGET_EVERY: Duration = Duration::from_hours(1);

/// Sending domains among which one is looked for that mail was sent from.
const LOOKED_AT: usize = 1000;

/// Paths that metrics show.
const SHOWN: usize = 1000;

impl App {
    /// Says which sources this process has, and reads what is kept of them and their paths; once.
    ///
    /// The address that mail left from before paths were kept needs no warm-up: on an installation that is older than
    /// that, the source whose address the system chooses is known to sites. What is older has a name, a domain that was
    /// verified and no rows of sources, so a new installation gets its rows before its name.
    pub(super) async fn open_paths(&self) -> Result<(), StoreError> {
        if !self.paths().is_loaded() {
            self.read_paths().await?;
            self.paths().look_who_uses_what(self.store()).await?;
        }
        if !self.paths().has_rows() {
            save(self, false).await;
        }
        if !self.paths().has_rows() && self.store().installation_name().await?.is_none() {
            return Err(StoreError::Unavailable);
        }
        Ok(())
    }

    async fn read_paths(&self) -> Result<(), StoreError> {
        let store = self.store();
        let sources: Vec<NamedSource> =
            self.paths().sources().iter().map(|source| NamedSource::clone(source)).collect();
        store.announce_sources(&sources).await?;
        let is_older = self.is_older_than_paths().await?;
        let given = &self.settings().warm_sources;
        let is_warm = |at: usize| match sources[at].ip {
            SourceAddress::Default => is_older,
            SourceAddress::Ip(ip) => given.iter().any(|warm| warm.to_canonical() == ip),
        };
        self.paths().load(store, is_warm).await
    }

    /// A name alone says nothing: the operator may give it before the first start.
    async fn is_older_than_paths(&self) -> Result<bool, StoreError> {
        let store = self.store();
        if store.installation_name().await?.is_none() || !store.source_rows(None, 1).await?.is_empty() {
            return Ok(false);
        }
        let domains = store.all_domains(LOOKED_AT).await?;
        Ok(domains.iter().any(|domain| domain.verified_at.is_some()))
    }
}

/// Writes what changes until the process is told to stop.
pub(super) async fn keep(app: App, mut stopped: watch::Receiver<bool>) {
    let mut forgotten = app.monotonic();
    while !*stopped.borrow() {
        tokio::select! {
            biased;
            _ = stopped.changed() => return,
            () = app.clock().sleep(SAVE_EVERY) => {}
        }
        if app.store().health().takes_work()
            && let Err(error) = app.paths().look_who_uses_what(app.store()).await
        {
            tracing::warn!(error = %Chain(&error), "it is not known which nodes have an address of this one");
        }
        save(&app, false).await;
        app.0.metrics.tell_paths(&app.paths().shown(SHOWN));
        if app.monotonic().since(forgotten) >= FORGET_EVERY {
            forgotten = app.monotonic();
            // Their rows are forgotten by the sweep of paths.
            app.paths().forget(app.now() - KEPT_FOR);
        }
    }
}

/// Writes all that has changed: the process ends.
pub(super) async fn save_all(app: &App) {
    save(app, true).await;
}

async fn save(app: &App, all: bool) {
    let store = app.store();
    for _ in 0..if all { LAST_BATCHES } else { BATCHES } {
        if !store.health().takes_work() {
            return;
        }
        let batch = app.paths().batch(all);
        if batch.is_empty() {
            return;
        }
        match app.commit_in_background(batch.changes.clone()).await {
            Ok(()) => app.paths().written(batch),
            Err(CommitError::Conflict) => {
                app.paths().unwritten(&batch);
                if let Err(error) = app.paths().look_again(store).await {
                    tracing::warn!(error = %Chain(&error), "what is kept of paths cannot be read");
                    return;
                }
            }
            Err(error) => {
                app.paths().unwritten(&batch);
                tracing::warn!(error = %Chain(&error), "what is known of paths is not written yet");
                return;
            }
        }
    }
}

/// Keeps paths on a task of its own.
pub(super) fn spawn(app: &App, stopped: &watch::Receiver<bool>) -> tokio::task::JoinHandle<()> {
    tokio::spawn(keep(app.clone(), stopped.clone()))
}
