//! Second factors of users, their recovery codes, and sign-ins that wait for a factor.

use async_trait::async_trait;

use super::{PageRequest, Slice, StoreError, Stored};
use crate::domain::security::digest::Digest;
use crate::domain::security::factor::{Factor, PendingSignIn};
use crate::ids::{FactorId, UserId};

/// Reads of second factors.
#[async_trait]
pub trait SecondFactors {
    /// The factors of a user, newest first, those among them that were never confirmed.
    async fn factors_of(&self, user: UserId, page: PageRequest) -> Result<Slice<Stored<Factor>>, StoreError>;
    /// A factor of a user, confirmed or not.
    async fn factor(&self, user: UserId, id: FactorId) -> Result<Option<Stored<Factor>>, StoreError>;
    /// All factors of the installation, newest first.
    async fn factors(&self, page: PageRequest) -> Result<Slice<Factor>, StoreError>;
    /// True while a recovery code of a user is good, by its digest.
    async fn has_recovery_code(&self, user: UserId, code: &Digest) -> Result<bool, StoreError>;
    /// Number of recovery codes that a user has left.
    async fn recovery_code_count(&self, user: UserId) -> Result<u64, StoreError>;
    /// A sign-in by the digest of its token, over or not, with the number of codes that were tried in it.
    async fn pending_sign_in(&self, token: &Digest) -> Result<Option<(PendingSignIn, u32)>, StoreError>;
}
