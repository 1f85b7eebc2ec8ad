//! The lanes of all recipient domains.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use messaging_core::ports::transport::RouteState;
use tokio::time::Instant;

use super::lane::{Lane, Pace};

/// Time without use after which a lane is removed, with everything learned about the domain.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(10);

/// Interval at which unused lanes are removed.
const SWEEP: Duration = Duration::from_mins(1);

/// Number of lanes from which unused ones are removed at once.
const MAX_LANES: usize = 50_000;

/// The lanes of a process.
pub(super) struct Lanes {
    pace: Pace,
    table: Mutex<Table>,
}

struct Table {
    by_domain: HashMap<String, Arc<Lane>>,
    last_sweep: Instant,
}

impl Lanes {
    pub(super) fn new(pace: Pace) -> Self {
        let table = Table { by_domain: HashMap::new(), last_sweep: Instant::now() };
        Self { pace, table: Mutex::new(table) }
    }

    /// Returns the state of the lane of a domain; it is empty for a domain without a lane, to which nothing was sent
    /// recently.
    pub(super) fn state(&self, domain: &str) -> RouteState {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.by_domain.get(domain).map(|lane| lane.state()).unwrap_or_default()
    }

    /// Lets a domain that could not be reached be tried again at once.
    pub(super) fn forget_unreachable(&self, domain: &str) {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = table.by_domain.get(domain) {
            lane.forget_unreachable();
        }
    }

    /// Returns the lane of a domain.
    pub(super) fn lane(&self, domain: &str) -> Arc<Lane> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = table.by_domain.get(domain) {
            return Arc::clone(lane);
        }
        let now = Instant::now();
        let is_crowded = table.by_domain.len() >= MAX_LANES;
        if is_crowded || now.duration_since(table.last_sweep) >= SWEEP {
            table.last_sweep = now;
            table.by_domain.retain(|_, lane| {
                let is_recent = || now.duration_since(lane.last_used()) < FORGOTTEN_AFTER;
                Arc::strong_count(lane) > 1 || (!is_crowded && is_recent())
            });
        }
        let lane = Arc::new(Lane::new(self.pace));
        table.by_domain.insert(domain.to_owned(), Arc::clone(&lane));
        lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn idle_lanes_are_forgotten() {
        let lanes = Lanes::new(Pace { start: 1, most: 1, rest: Duration::from_secs(1) });
        let used = lanes.lane("used.test");
        lanes.lane("idle.test");
        tokio::time::advance(FORGOTTEN_AFTER).await;
        lanes.lane("new.test");
        let table = lanes.table.lock().unwrap();
        let mut known: Vec<_> = table.by_domain.keys().map(String::as_str).collect();
        known.sort_unstable();
        assert_eq!(known, ["new.test", "used.test"]);
        assert!(Arc::ptr_eq(&used, &table.by_domain["used.test"]));
    }
}
