//! The secret keys that this process holds.
//!
//! The database determines under which of them secrets are sealed, by its check value, so that all processes change at
//! the same time; the key file only says which keys there are. A key is held before it is announced, and switched to
//! only once all processes have announced it: a process that meets a secret sealed with it can open it.

use std::sync::{Arc, PoisonError, RwLock};

use messaging_core::domain::mail::link_token::LinkKey;
use messaging_core::domain::security::page_cursor::CursorKey;
use messaging_core::domain::security::secret_key::KeyRing;
use messaging_core::ports::Store;
use messaging_core::ports::clock::Entropy;

use crate::vault::{self, KeyRefused, Vault};

/// The secret keys that this process holds.
pub(crate) struct SecretKeys {
    held: RwLock<Arc<HeldKeys>>,
    /// Fingerprints of the keys that were announced last.
    announced: tokio::sync::Mutex<Vec<String>>,
}

/// A ring, and what is made of its keys.
pub(crate) struct HeldKeys {
    pub(crate) ring: KeyRing,
    pub(crate) vault: Arc<Vault>,
    pub(crate) link_key: Arc<LinkKey>,
    pub(crate) cursor_key: Arc<CursorKey>,
}

impl HeldKeys {
    fn of(ring: KeyRing) -> Arc<Self> {
        Arc::new(Self {
            vault: Arc::new(Vault::of(&ring)),
            link_key: Arc::new(LinkKey::of(&ring)),
            cursor_key: Arc::new(CursorKey::of(&ring)),
            ring,
        })
    }
}

impl SecretKeys {
    /// Announces the keys of a ring, and finds out which of them the secrets of the store are sealed under.
    pub(crate) async fn open(ring: KeyRing, store: &dyn Store, entropy: &dyn Entropy) -> Result<Self, KeyRefused> {
        // Before the look at the check value: from now on no key is switched to that is not in the ring.
        let keys = Self { held: RwLock::new(HeldKeys::of(ring)), announced: tokio::sync::Mutex::default() };
        keys.take(None, store, entropy).await?;
        Ok(keys)
    }

    pub(crate) fn held(&self) -> Arc<HeldKeys> {
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes further keys and goes by the check value. Answers whether anything changed.
    pub(crate) async fn take(
        &self,
        more: Option<&KeyRing>,
        store: &dyn Store,
        entropy: &dyn Entropy,
    ) -> Result<bool, KeyRefused> {
        let mut announced = self.announced.lock().await;
        let before = self.held().ring.clone();
        let mut ring = more.map_or_else(|| before.clone(), |more| before.clone().and(more));
        self.hold(&ring);
        announce(&ring, &mut announced, store).await?;
        ring = vault::lead(ring, store, entropy).await?;
        self.hold(&ring);
        announce(&ring, &mut announced, store).await?;
        Ok(ring != before)
    }

    fn hold(&self, ring: &KeyRing) {
        if self.held().ring != *ring {
            *self.held.write().unwrap_or_else(PoisonError::into_inner) = HeldKeys::of(ring.clone());
        }
    }
}

/// Tells the store which keys are held, unless it knows.
async fn announce(ring: &KeyRing, announced: &mut Vec<String>, store: &dyn Store) -> Result<(), KeyRefused> {
    let ids = ring.ids();
    if *announced != ids {
        store.announce_keys(&ids).await?;
        *announced = ids;
    }
    Ok(())
}
