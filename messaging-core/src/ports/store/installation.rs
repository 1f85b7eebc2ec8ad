//! What holds for the database as a whole, whatever workspaces are in it.

use async_trait::async_trait;

use super::StoreError;

/// What the secret key of the installation is checked against; see [`crate::vault`].
#[async_trait]
pub trait Installation {
    /// The check value of the secret key, as [`Write::PutKeyCheck`](crate::changes::Write::PutKeyCheck) stored it.
    async fn key_check(&self) -> Result<Option<String>, StoreError>;
    /// Up to `limit` secrets that are sealed under the key, of any workspace and in any order.
    async fn sealed_secrets(&self, limit: usize) -> Result<Vec<SealedSecret>, StoreError>;
}

/// A secret as the vault sealed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// The place that it was sealed for.
    pub place: String,
    /// What [`Vault::seal`](crate::vault::Vault::seal) made of it.
    pub sealed: String,
}
