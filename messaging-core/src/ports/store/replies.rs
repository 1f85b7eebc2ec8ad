//! Remembered answers to requests with an Idempotency-Key.

use async_trait::async_trait;

use super::StoreError;
use crate::changes::{Reply, ReplyKey};
use crate::time::Timestamp;

/// Reads of remembered replies.
#[async_trait]
pub trait Replies {
    /// The reply remembered under a key, unless it expired before `now`.
    async fn reply(&self, key: &ReplyKey, now: Timestamp) -> Result<Option<Reply>, StoreError>;
    /// Removes up to `limit` replies that expired, and with them sessions, tickets, sign-ins that wait and second factors that
    /// nobody has confirmed; answers how many.
    async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
