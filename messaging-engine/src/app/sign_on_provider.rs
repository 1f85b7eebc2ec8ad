//! Cached documents of the single sign-on provider, and the limit on concurrent sign-ins with it.

use std::sync::Arc;

use messaging_core::domain::security::oidc::discovery::Discovery;
use messaging_core::domain::security::oidc::keys::KeySet;
use messaging_core::time::Monotonic;
use tokio::sync::Mutex;

use super::capacity;
use crate::fair_semaphore::FairSemaphore;

/// The provider as this process knows it.
#[derive(Debug)]
pub(crate) struct SignOnProvider {
    /// Held while a document is requested from the provider, so that one request serves all that wait.
    pub(crate) known: Mutex<KnownProvider>,
    /// Turns to exchange a code at the provider, by callers' networks.
    pub(crate) turns: FairSemaphore,
}

/// The documents of the provider.
#[derive(Debug, Default)]
pub(crate) struct KnownProvider {
    /// Discovery document, and the time when it was read.
    pub(crate) discovery: Option<(Monotonic, Arc<Discovery>)>,
    /// Keys of the provider, and the time when they were read.
    pub(crate) keys: Option<(Monotonic, Arc<KeySet>)>,
    /// Time of the last request for the keys, successful or not.
    pub(crate) keys_asked_at: Option<Monotonic>,
    /// Time of the last failed request for a document.
    pub(crate) failed_at: Option<Monotonic>,
}

impl Default for SignOnProvider {
    fn default() -> Self {
        Self { known: Mutex::default(), turns: capacity::sign_ons() }
    }
}
