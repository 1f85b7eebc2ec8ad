//! Latest results of the operator's checks, and the means to run them.

use std::sync::Arc;

use messaging_core::domain::delivery::ip_pool::source::NamedSource;
use messaging_core::domain::installation::checkup::CheckReport;
use messaging_core::ports::HostProbe;
use messaging_core::time::Monotonic;
use messaging_core::validate::Setters;
use tokio::sync::{Semaphore, watch};

/// Options of the checks; all of them are for display, or may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Setters)]
#[setters(default)]
#[non_exhaustive]
pub struct CheckOptions {
    /// Domain that receives mail, to whose mail server a connection is tried at port 25.
    pub probe: Option<String>,
    /// Addresses that mail leaves from, if they were named.
    pub sources: Vec<NamedSource>,
    /// Host and port that take the place of every mail server.
    pub mx_override: Option<(String, u16)>,
    /// Zones of blocklists.
    pub blocklists: Vec<String>,
    /// Time server to query; `None` to query none.
    pub time_server: Option<String>,
    /// Name of the resolver, for display.
    pub resolver: String,
    /// Name of the data directory, for display.
    pub data: String,
    /// Name of the database, for display.
    pub database: String,
    /// Name of the file of the secret key, for display.
    pub secret_key: String,
}

/// Means and options to check the host.
#[derive(Debug, Clone)]
pub struct Checkup {
    /// Access to sockets, files and the clock.
    pub probe: Arc<dyn HostProbe>,
    /// Options of the checks, such as blocklists and the time server; all of them may be left out.
    pub options: CheckOptions,
}

/// Latest results of the operator's checks, with the means to run them again.
#[derive(Debug)]
pub(crate) struct KnownChecks {
    /// Means to check the host; without them there are no checks.
    pub(crate) checkup: Option<Checkup>,
    pub(crate) latest: watch::Sender<Option<Known>>,
    /// Permit for one run of the checks at a time.
    pub(crate) turn: Arc<Semaphore>,
}

/// Results of one run of the checks, and the time of it.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) at: Monotonic,
    pub(crate) reports: Arc<[CheckReport]>,
}

impl KnownChecks {
    pub(crate) fn new(checkup: Option<Checkup>) -> Self {
        Self { checkup, latest: watch::Sender::new(None), turn: Arc::new(Semaphore::new(1)) }
    }
}
