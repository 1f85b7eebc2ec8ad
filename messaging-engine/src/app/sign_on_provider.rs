//! What this process knows of the single sign-on provider, and how many sign-ins it asks the provider about at one time.

use std::sync::Arc;

use messaging_core::domain::security::oidc::discovery::Discovery;
use messaging_core::domain::security::oidc::keys::KeySet;
use messaging_core::time::Monotonic;
use tokio::sync::Mutex;

use super::capacity;
use crate::fair_semaphore::FairSemaphore;

/// The provider, as this process knows it.
#[derive(Debug)]
pub(crate) struct SignOnProvider {
    /// Held while the provider is asked for a document, so that one request asks for all that wait.
    pub(crate) known: Mutex<KnownProvider>,
    /// Turns to ask the provider about a code, in turn by callers' networks.
    pub(crate) turns: FairSemaphore,
}

/// The documents of the provider.
#[derive(Debug, Default)]
pub(crate) struct KnownProvider {
    /// Its discovery document, and since when it is known.
    pub(crate) discovery: Option<(Monotonic, Arc<Discovery>)>,
    /// Its keys, and since when they are known.
    pub(crate) keys: Option<(Monotonic, Arc<KeySet>)>,
    /// When the keys were asked for last, whether or not they came.
    pub(crate) keys_asked_at: Option<Monotonic>,
    /// When a document did not come last.
    pub(crate) failed_at: Option<Monotonic>,
}

impl Default for SignOnProvider {
    fn default() -> Self {
        Self { known: Mutex::default(), turns: capacity::sign_ons() }
    }
}
