//! Remembered answers to requests that may be repeated.

use bytes::Bytes;

use crate::time::Timestamp;

/// The remembered answer to a request with an Idempotency-Key (contract section 1.7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Scope of the key: credential, method, path.
    pub key: ReplyKey,
    /// Fingerprint of query and body.
    pub fingerprint: u128,
    /// HTTP status, always 2xx.
    pub status: u16,
    /// Content type of the body.
    pub content_type: String,
    /// The body as it was answered.
    pub body: Bytes,
    /// Time from which it may be deleted.
    pub expires_at: Timestamp,
    /// Now; an older reply whose `expires_at` is not after it is replaced.
    pub created_at: Timestamp,
}

/// The scope of an Idempotency-Key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReplyKey {
    /// The 16 bytes of the API key's or user's id.
    pub credential: [u8; 16],
    /// Method and path, `POST /messages`, without the version prefix.
    pub route: String,
    /// The key as sent.
    pub key: String,
}

impl ReplyKey {
    /// Returns the key of the result of a part of the request; no path has this form.
    #[must_use]
    pub fn of_part(&self, part: usize) -> Self {
        Self { route: format!("{} #{part}", self.route), ..self.clone() }
    }
}
