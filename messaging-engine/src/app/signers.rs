//! DKIM keys opened for signing.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use messaging_core::domain::mail::dkim::Signer;
use messaging_core::ids::DomainId;

/// Domains whose opened keys are kept; a key is some kilobytes.
pub(crate) const CAPACITY: usize = 4_096;

/// Keys opened for signing, by domain and selector. `None` is one that does not open: it is reported
/// once, not with every message.
#[derive(Debug, Default)]
pub(crate) struct Signers(pub(crate) RwLock<HashMap<DomainId, Opened>>);

pub(crate) type Opened = Vec<(String, Option<Arc<Signer>>)>;

impl Signers {
    /// Forgets all of them: they are opened anew.
    pub(crate) fn clear(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
