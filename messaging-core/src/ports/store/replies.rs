//! Remembered answers to requests with an Idempotency-Key.

use async_trait::async_trait;

use super::StoreError;
use crate::changes::{Reply, ReplyKey};
use crate::time::Timestamp;

/// Reads of remembered replies.
#[async_trait]
pub trait Replies {
    /// Returns the reply remembered under a key, unless it expired before `now`.
    async fn reply(&self, key: &ReplyKey, now: Timestamp) -> Result<Option<Reply>, StoreError>;
    /// Deletes up to `limit` expired replies, and with them expired sessions, tickets, pending sign-ins and unconfirmed
    /// second factors; returns how many.
    async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError>;
}
