//! Answers of the API, from a server or from this process.

use bytes::Bytes;
use http::StatusCode;

/// An answer of the API.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) content_type: Option<String>,
    pub(crate) retry_after: Option<String>,
    /// True if it repeats the answer to an earlier request with the same Idempotency-Key.
    pub(crate) replayed: bool,
    pub(crate) body: Bytes,
}

impl Reply {
    /// True if the content type of the body is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.content_type.as_deref().is_some_and(|kind| kind.starts_with("application/json"))
    }
}
