//! The secret keys that this process holds.
//!
//! Which of them secrets are sealed under is the database's to say, by its check value, so that all processes change at the
//! same time; the key file only says which keys there are. A key is held before it is announced, and switched to only once
//! all processes have announced it: whoever meets something that was made with it can read it.

use std::error::Error as _;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use messaging_core::domain::link_token::LinkKey;
use messaging_core::domain::page_cursor::CursorKey;
use messaging_core::domain::secret_key::KeyRing;
use messaging_core::error::Chain;
use messaging_core::ports::Store;
use messaging_core::ports::clock::Entropy;

use super::App;
use crate::vault::{self, KeyRefused, Vault};

/// The secret keys that this process holds.
pub(crate) struct SecretKeys {
    held: RwLock<Arc<HeldKeys>>,
    /// What was announced last.
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
    async fn take(
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

impl App {
    /// The secret keys that this process holds, the one that it seals under first.
    pub fn secret_keys(&self) -> KeyRing {
        self.0.secret_keys.held().ring.clone()
    }

    /// Takes further keys, those of a key file that was changed, and seals from now on under the key that the database
    /// says. Keys that are held already stay.
    pub async fn take_secret_keys(&self, ring: &KeyRing) -> Result<(), KeyRefused> {
        let store = self.store();
        if self.0.secret_keys.take(Some(ring), store, self.entropy()).await? {
            // One that did not open may do so now.
            self.signer_cache().clear();
            tracing::info!(key = self.secret_keys().first().id(), "the secret keys were read again");
        }
        Ok(())
    }

    /// Takes whatever keys `read` answers, every so often, for as long as there is the application. `read` is to answer
    /// quickly, and `None` where there is nothing to take.
    pub fn follow_secret_keys(&self, every: Duration, read: impl Fn() -> Option<KeyRing> + Send + Sync + 'static) {
        let app = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                let Some(app) = app.upgrade().map(App) else { return };
                let Some(ring) = read() else { continue };
                if let Err(error) = app.take_secret_keys(&ring).await {
                    match error.source() {
                        None => tracing::error!(%error, "copy the secret key file of another node over that of this one"),
                        Some(_) => tracing::debug!(error = %Chain(&error), "the secret keys are not known to be current"),
                    }
                }
            }
        });
    }
}
