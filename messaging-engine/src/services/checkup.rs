//! Checks of the operator, as `messaging doctor` prints and `GET /system` shows them (contract section 22).
//!
//! The checks look here, concurrently and each with a time limit; core's `domain/installation/checkup.rs` judges. A
//! server runs them when results are requested and those it has are older than `FRESH`, never by itself: only the first
//! request waits for them.

mod domains;
pub mod host;
mod sources;

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::installation::checkup::{
    CheckId, CheckReport, NodeFacts, judge_api_keys, judge_fence, judge_node_clock,
};
use messaging_core::domain::security::api_key::expiry;
use messaging_core::ports::store::{NodeView, StoreError};

use crate::app::App;
use crate::app::checks::Known;
use host::{Host, check_host};

/// Largest number of API keys that end soon and are checked.
const MAX_KEYS: usize = 1000;

/// Time results are shown before the checks run again.
const FRESH: Duration = Duration::from_mins(5);

impl App {
    /// Runs all checks now. Takes some seconds, at most a minute; empty if the application has no means to check its
    /// host (see `Builder::checkup`).
    pub async fn check_up(&self) -> Result<Vec<CheckReport>, StoreError> {
        let Some(checkup) = &self.0.checks.checkup else { return Ok(Vec::new()) };
        let installation = self.store().installation_name().await?;
        let host = Host {
            resolver: self.resolver(),
            probe: checkup.probe.as_ref(),
            options: &checkup.options,
            hostname: &self.settings().hostname,
            installation: installation.as_deref(),
            public_url: &self.settings().public_url,
        };
        let (mut reports, of_domains) = tokio::join!(Box::pin(check_host(&host)), Box::pin(self.check_domains()));
        let after_clock = reports.iter().rposition(|report| report.id == CheckId::Clock).map_or(0, |at| at + 1);
        reports.splice(after_clock..after_clock, self.check_nodes().await?);
        reports.push(judge_fence(&checkup.options.database, self.store().fence().await?));
        reports.push(self.check_api_keys().await?);
        reports.extend(self.check_sign_on().await?);
        reports.extend(self.check_sources().await?);
        reports.extend(of_domains?);
        Ok(reports)
    }

    /// Checks the API keys of all workspaces for ones that end soon.
    async fn check_api_keys(&self) -> Result<CheckReport, StoreError> {
        let now = self.now();
        let mut ending = self.store().api_keys_ending(now, now + expiry::SOON, MAX_KEYS + 1).await?;
        let more = ending.len() > MAX_KEYS;
        ending.truncate(MAX_KEYS);
        Ok(judge_api_keys(&ending, more, now))
    }

    /// Checks the clocks of the processes that work on the database, if there are several.
    async fn check_nodes(&self) -> Result<Vec<CheckReport>, StoreError> {
        let nodes = self.store().cluster().await?.map_or_else(Vec::new, |cluster| cluster.nodes);
        let judge = |node: &NodeView| {
            let is_idle_for_it = node.state == "clock";
            judge_node_clock(NodeFacts { name: &node.name, clock_offset_ms: node.clock_offset_ms, is_idle_for_it })
        };
        Ok(nodes.iter().filter(|node| node.works).map(judge).collect())
    }

    /// Returns the latest results, for metrics; at most some minutes old if called that often. Does not wait; if the
    /// results are too old, begins the checks. Must be called on a runtime.
    pub fn checks(&self) -> Arc<[CheckReport]> {
        self.look_when_old();
        self.known_checks().map_or_else(|| Arc::from([]), |known| known.reports)
    }

    /// Returns the latest results, after waiting up to `patience` for the first ones.
    pub async fn checks_within(&self, patience: Duration) -> Arc<[CheckReport]> {
        let mut latest = self.0.checks.latest.subscribe();
        self.look_when_old();
        if self.0.checks.checkup.is_some() {
            // Results that have not come by then are shown the next time.
            let _ = tokio::time::timeout(patience, latest.wait_for(Option::is_some)).await;
        }
        self.known_checks().map_or_else(|| Arc::from([]), |known| known.reports)
    }

    fn known_checks(&self) -> Option<Known> {
        self.0.checks.latest.borrow().clone()
    }

    /// Begins the checks, unless the results are fresh or checks are running.
    fn look_when_old(&self) {
        let is_fresh = self.known_checks().is_some_and(|known| self.monotonic().since(known.at) < FRESH);
        if is_fresh || self.0.checks.checkup.is_none() {
            return;
        }
        let Ok(turn) = Arc::clone(&self.0.checks.turn).try_acquire_owned() else { return };
        let app = self.clone();
        tokio::spawn(async move {
            match app.check_up().await {
                Ok(reports) => {
                    let known = Known { at: app.monotonic(), reports: reports.into() };
                    app.0.checks.latest.send_replace(Some(known));
                }
                Err(error) => tracing::warn!(%error, "the installation could not be checked"),
            }
            drop(turn);
        });
    }
}
