//! Hosts that offer STARTTLS but fail in the handshake.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Time for which mail to a host goes in plain text after a failed handshake, so that not every message pays for one.
const REMEMBERED: Duration = Duration::from_mins(10);

/// Maximum number of hosts that are remembered.
const MAX_HOSTS: usize = 1000;

/// Hosts whose TLS handshake failed recently, each with the time of the failure.
#[derive(Default)]
pub(super) struct PlainHosts(Mutex<HashMap<String, Instant>>);

impl PlainHosts {
    pub(super) fn contains(&self, host: &str) -> bool {
        self.lock().get(host).is_some_and(|since| since.elapsed() < REMEMBERED)
    }

    /// Remembers a host, unless there are too many: then its next handshake fails again.
    pub(super) fn insert(&self, host: &str) {
        let mut hosts = self.lock();
        if hosts.len() >= MAX_HOSTS {
            hosts.retain(|_, since| since.elapsed() < REMEMBERED);
        }
        if hosts.len() < MAX_HOSTS {
            hosts.insert(host.to_owned(), Instant::now());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn hosts_are_remembered_for_a_while() {
        let hosts = PlainHosts::default();
        for number in 0..MAX_HOSTS {
            hosts.insert(&number.to_string());
        }
        hosts.insert("one more");
        assert!(hosts.contains("0") && !hosts.contains("one more"));
        tokio::time::advance(REMEMBERED).await;
        assert!(!hosts.contains("0"));
        hosts.insert("one more");
        assert!(hosts.contains("one more"));
    }
}
