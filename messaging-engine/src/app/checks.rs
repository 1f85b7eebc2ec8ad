//! What the checks of the operator found last, and with what they look.

use std::sync::Arc;

use messaging_core::domain::delivery::ip_pool::source::NamedSource;
use messaging_core::domain::installation::checkup::CheckReport;
use messaging_core::ports::HostProbe;
use messaging_core::time::Monotonic;
use messaging_core::validate::Setters;
use tokio::sync::{Semaphore, watch};

/// What the checks are told; all of it is for showing, or optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Setters)]
#[setters(default)]
#[non_exhaustive]
pub struct CheckOptions {
    /// A domain that receives mail, to whose mail server a connection is tried at port 25.
    pub probe: Option<String>,
    /// Addresses that mail leaves from, where they were named.
    pub sources: Vec<NamedSource>,
    /// Host and port that take the place of every mail server.
    pub mx_override: Option<(String, u16)>,
    /// Zones of blocklists.
    pub blocklists: Vec<String>,
    /// The time server to ask; none is asked without.
    pub time_server: Option<String>,
    /// The resolver, as it is shown.
    pub resolver: String,
    /// The data directory, as it is shown.
    pub data: String,
    /// The database, as it is shown.
    pub database: String,
    /// The file of the secret key, as it is shown.
    pub secret_key: String,
}

/// With what the host is looked at.
#[derive(Debug, Clone)]
pub struct Checkup {
    /// Sockets, files and the clock.
    pub probe: Arc<dyn HostProbe>,
    /// Options of the checks, such as blocklists and the time server; all of them may be left out.
    pub options: CheckOptions,
}

/// Latest results of the operator's checks, with the means to run them again.
#[derive(Debug)]
pub(crate) struct KnownChecks {
    /// Without it there is no host to be looked at, and nothing is.
    pub(crate) checkup: Option<Checkup>,
    pub(crate) latest: watch::Sender<Option<Known>>,
    /// One look at a time.
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
