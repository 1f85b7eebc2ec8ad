//! Settings that change while a server runs (SIGHUP).

use std::sync::{Mutex, PoisonError};

use messaging_core::error::Chain;

use super::{SettingsArgs, SettingsError};
use crate::logging::LogGuard;

/// The settings that take effect without a restart. Certificates are read again before a handshake whenever their files
/// change, with or without a signal.
const LIVE: [&str; 1] = ["log"];

/// Applies settings that are read again to a running server.
#[derive(Debug)]
pub struct Reload {
    log: LogGuard,
    in_force: Mutex<SettingsArgs>,
}

impl Reload {
    /// For a server that was started with these settings, file included, and has this log.
    pub fn new(in_force: SettingsArgs, log: LogGuard) -> Self {
        Self { log, in_force: Mutex::new(in_force) }
    }

    /// Applies the settings that may change, and logs the others that need a restart. Invalid settings change nothing.
    pub fn apply(&self, read: Result<SettingsArgs, SettingsError>) {
        match read.and_then(|read| read.clone().complete().map(|_| read)) {
            Ok(read) => self.take_over(read),
            Err(error) => {
                tracing::error!(error = %Chain(&error), "the settings cannot be used; those before stay in force");
            }
        }
    }

    fn take_over(&self, read: SettingsArgs) {
        let mut in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        let differing = in_force.differing(&read);
        let (live, rest): (Vec<_>, Vec<_>) = differing.into_iter().partition(|name| LIVE.contains(name));
        if !live.is_empty() {
            let filter = read.log.as_deref().unwrap_or(SettingsArgs::DEFAULT_LOG);
            if let Err(error) = self.log.set_filter(filter) {
                tracing::error!(error = %Chain(&error), "the log goes on as before");
                return;
            }
            in_force.log = read.log;
        }
        let flags =
            |names: &[&str]| names.iter().map(|name| format!("--{}", name.replace('_', "-"))).collect::<Vec<_>>();
        let (changed, waiting) = (flags(&live).join(" "), flags(&rest).join(" "));
        if rest.is_empty() {
            tracing::info!(changed, "settings were read again");
        } else {
            tracing::warn!(changed, waiting, "settings were read again; some need a restart");
        }
    }
}
