//! Options for answering requests, with any listener.

use std::time::Duration;

use ipnet::IpNet;

use crate::body::BodyTimes;
use crate::console::Console;

/// Bytes a second for which a body gets more time, beyond the first pause. A slower body is cut off.
const LEAST_BODY_RATE: u64 = 500;

/// Options of a service that answers requests of the API.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServiceOptions {
    /// The path that it is mounted at, such as `/mail`; empty for the root.
    pub prefix: String,
    /// Peers whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Longest time without a byte of a body.
    pub body_stall_timeout: Duration,
    /// Longest time for a whole body.
    pub body_timeout: Duration,
    /// Bytes of long bodies in memory at a time; further requests wait.
    pub body_budget: u64,
    /// The console at `/console`.
    pub console: Console,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            trusted_proxies: Vec::new(),
            body_stall_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_mins(5),
            body_budget: 64 << 20,
            console: Console::default(),
        }
    }
}

impl ServiceOptions {
    /// The options of a service that is mounted at a path. The path is removed from requests that still have it, and
    /// documents contain it; links use the `public_url` of the application's settings.
    pub fn mounted_at(prefix: &str) -> Self {
        let inner = prefix.trim_matches('/');
        let prefix = if inner.is_empty() { String::new() } else { format!("/{inner}") };
        Self { prefix, ..Self::default() }
    }

    /// Trusts the `X-Forwarded-For` of these peers.
    #[must_use]
    pub fn trusted_proxies(self, trusted_proxies: impl IntoIterator<Item = IpNet>) -> Self {
        Self { trusted_proxies: trusted_proxies.into_iter().collect(), ..self }
    }

    /// Bounds the memory of long bodies, in bytes.
    #[must_use]
    pub fn body_budget(self, body_budget: u64) -> Self {
        Self { body_budget, ..self }
    }

    /// Serves this console at `/console`; it finds the API relative to itself, whatever the prefix.
    #[must_use]
    pub fn console(self, console: Console) -> Self {
        Self { console, ..self }
    }

    pub(crate) const fn body_times(&self) -> BodyTimes {
        BodyTimes { stall: self.body_stall_timeout, total: self.body_timeout, least_rate: LEAST_BODY_RATE }
    }
}
