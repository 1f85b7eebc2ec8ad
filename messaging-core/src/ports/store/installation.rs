//! Port for values that apply to the whole database, such as the installation's name, its fence and its secret key.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::installation::fence::Fence;
use crate::domain::installation::quarantine::Quarantined;

/// Values of the whole installation: the check value of its
/// [`SecretKey`](crate::domain::security::secret_key::SecretKey), its name and fence, quarantined work and sealed
/// secrets.
#[async_trait]
pub trait Installation {
    /// Returns the check value of the secret key, as [`Write::PutKeyCheck`](crate::changes::Write::PutKeyCheck) stored
    /// it.
    async fn key_check(&self) -> Result<Option<String>, StoreError>;
    /// Returns the name of the installation, as
    /// [`Write::PutInstallationName`](crate::changes::Write::PutInstallationName) stored it: it is the same on every
    /// process and machine.
    async fn installation_name(&self) -> Result<Option<String>, StoreError>;
    /// Returns the fence of the installation: as [`Write::PutFence`](crate::changes::Write::PutFence) stored it, or the
    /// store itself when it detected that it is a copy.
    async fn fence(&self) -> Result<Option<Fence>, StoreError>;
    /// Returns the newest records of quarantined work, at most `limit`, and the number of all.
    async fn quarantined(&self, limit: usize) -> Result<(u64, Vec<Quarantined>), StoreError>;
    /// Announces the ids of the secret keys that this process holds, the one that it encrypts with first. After this
    /// returns, [`Write::SwitchSecretKey`](crate::changes::Write::SwitchSecretKey) counts this process among the
    /// holders. On SQLite only the process that does jobs has to be counted.
    async fn announce_keys(&self, keys: &[String]) -> Result<(), StoreError>;
    /// Returns the processes that work on the database, with the secret keys that they hold.
    async fn key_holders(&self) -> Result<Vec<KeyHolder>, StoreError>;
    /// Returns up to `limit` secrets that are sealed under the key, of any workspace and in any order.
    async fn sealed_secrets(&self, limit: usize) -> Result<Vec<SealedSecret>, StoreError>;
}

/// A process that works on the database, and the secret keys that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyHolder {
    /// Name of the process.
    pub name: String,
    /// Ids of its keys, the one that it seals under first; `None` if it has not announced them yet.
    pub keys: Option<Vec<String>>,
}

impl KeyHolder {
    /// True if the process can decrypt with a key.
    pub fn holds(&self, key: &str) -> bool {
        self.keys.iter().flatten().any(|held| held == key)
    }

    /// True if the process seals and signs with the key.
    pub fn seals_under(&self, key: &str) -> bool {
        self.keys.iter().flatten().next().is_some_and(|first| first == key)
    }
}

/// A secret as the vault sealed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// The place that it was sealed for.
    pub place: String,
    /// The sealed text, which begins with [`SEALED_MARKER`](crate::domain::security::secret_key::SEALED_MARKER).
    pub sealed: String,
}

/// True if a store holds secrets that only its own key decrypts. A store without secrets may be used with any key.
pub async fn needs_its_key(store: &dyn super::Store) -> Result<bool, StoreError> {
    Ok(store.key_check().await?.is_some() || !store.sealed_secrets(1).await?.is_empty())
}
