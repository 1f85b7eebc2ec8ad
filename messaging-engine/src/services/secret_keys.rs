//! Taking further secret keys while everything goes on.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::security::secret_key::KeyRing;
use messaging_core::error::Chain;

use crate::app::App;
use crate::vault::KeyRefused;

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
                        None => {
                            tracing::error!(%error, "copy the secret key file of another node over that of this one");
                        }
                        Some(_) => {
                            tracing::debug!(error = %Chain(&error), "the secret keys are not known to be current");
                        }
                    }
                }
            }
        });
    }
}
