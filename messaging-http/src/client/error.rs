//! Errors of the client.

use std::error::Error;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::reply::X_REQUEST_ID;

/// Error of a call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL is not that of a server.
    #[error("the URL must be http:// or https://, a host, and at most a path")]
    Url,
    /// The token cannot be sent in a header.
    #[error("the API key or token has characters that are not allowed in a header")]
    Token,
    /// The Idempotency-Key cannot be sent in a header.
    #[error("the Idempotency-Key has characters that are not allowed in a header")]
    IdempotencyKey,
    /// The operation needs a workspace, and the call names none.
    #[error("no workspace is named: give one with `workspace(id)`")]
    Workspace,
    /// The input cannot be written as JSON.
    #[error("the request cannot be written")]
    Input(#[source] serde_json::Error),
    /// The file to send cannot be read.
    #[error("the file cannot be read")]
    File(#[source] Box<dyn Error + Send + Sync>),
    /// TLS cannot be set up on this machine.
    #[error("TLS cannot be set up; are the system's root certificates installed?")]
    Tls(#[source] Box<dyn Error + Send + Sync>),
    /// The server could not be reached, or the connection broke.
    #[error("the server cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// The server did not answer in time. It may have carried out the request.
    #[error("the server did not answer in time")]
    TimedOut,
    /// The server refused the request.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The server answered with success, but the body cannot be read.
    #[error("the answer to a request ({status}) is not understood")]
    Answer {
        /// The status of the answer.
        status: StatusCode,
        /// The error of reading the body as JSON.
        #[source]
        source: serde_json::Error,
    },
}

impl ClientError {
    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Returns true if there was no answer at all: no server, no connection, no time.
    pub const fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::TimedOut | Self::Tls(_))
    }
}

/// A refusal as the server put it (contract section 1.4).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({code}, {status})", status = .status.as_u16())]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// The code; `scope_required` for the one refusal that has none, and `unknown` when something
    /// other than the server answered.
    pub code: String,
    /// The message for people.
    pub message: String,
    /// Id of the request in the server's log.
    pub request_id: Option<String>,
    /// Details of the error; with `validation_failed`, the member `errors`.
    pub details: Option<Value>,
    /// Seconds to wait before trying again.
    pub retry_after: Option<u64>,
    /// The body as it was received.
    pub body: Option<Value>,
}

impl Refusal {
    pub(super) fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let body: Option<Value> = serde_json::from_slice(body).ok();
        let error = body.as_ref().map_or(&Value::Null, |body| &body["error"]);
        let text = |member: &str| error[member].as_str().map(ToOwned::to_owned);
        let (code, message) = match error {
            Value::String(sentence) => (Some("scope_required".to_owned()), Some(sentence.clone())),
            _ => (text("code"), text("message")),
        };
        let reason = status.canonical_reason().unwrap_or("no reason given");
        Self {
            status,
            code: code.unwrap_or_else(|| "unknown".to_owned()),
            message: message.unwrap_or_else(|| reason.to_owned()),
            request_id: text("request_id").or_else(|| header(X_REQUEST_ID).map(ToOwned::to_owned)),
            details: error.get("details").cloned(),
            retry_after: header(RETRY_AFTER).and_then(|seconds| seconds.parse().ok()),
            body,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_every_form_are_understood() {
        let read = |body: &str| Refusal::read(StatusCode::FORBIDDEN, &HeaderMap::new(), body.as_bytes());
        let usual = read(r#"{"error":{"code":"ip_not_allowed","message":"no","request_id":"r","details":{"a":1}}}"#);
        assert_eq!((usual.code.as_str(), usual.message.as_str()), ("ip_not_allowed", "no"));
        assert_eq!(usual.request_id.as_deref(), Some("r"));
        assert_eq!(usual.details.unwrap()["a"], 1);
        let scope = read(r#"{"error":"scope required: *"}"#);
        assert_eq!(scope.to_string(), "scope required: * (scope_required, 403)");
        assert_eq!(read("<html>").to_string(), "Forbidden (unknown, 403)");
    }
}
