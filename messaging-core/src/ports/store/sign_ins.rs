//! Failed sign-ins.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::security::login_attempts::{SignInAttempt, SignInBlocks};
use crate::time::Timestamp;

/// Reads of failed sign-ins.
#[async_trait]
pub trait SignIns {
    /// The limits that the failures before an attempt use up.
    async fn sign_in_blocks(&self, attempt: &SignInAttempt) -> Result<SignInBlocks, StoreError>;
    /// Removes up to `limit` failures that count no more at `now`, or are dated so late that a wrong clock must have
    /// done it; tells how many.
    async fn forget_sign_ins(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
