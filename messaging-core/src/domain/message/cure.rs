//! Remedies for a message that waits or was not sent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::domain::delivery::queue::QueueScope;

/// Remedy for a message that waits or was not sent: a call of the API, or something that only a person can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessageCure")]
#[non_exhaustive]
pub struct Cure {
    /// The remedy in words for people.
    pub text: String,
    /// Id of the operation of the API; null if none is the remedy.
    pub operation: Option<String>,
    /// Path to call, below the version.
    pub path: Option<String>,
    /// The body to send.
    pub body: Option<Value>,
}

/// Returns the remedy of a call of the API.
pub(super) fn call(text: &str, operation: &str, path: String, body: Option<Value>) -> Cure {
    let (text, operation) = (text.to_owned(), Some(operation.to_owned()));
    Cure { text, operation, path: Some(path), body }
}

/// Returns the remedy that ends the suspension of a part of the queue.
pub(super) fn resume(scope: &QueueScope) -> Cure {
    let text = format!("Run `messaging queue resume {}`; only operators of the server can.", scope.flags());
    call(&text, "resumeQueue", "/system/queue/resume".to_owned(), Some(json!(scope)))
}

/// Returns advice that no call of the API carries out.
pub(super) fn advice(text: &str) -> Cure {
    Cure { text: text.to_owned(), operation: None, path: None, body: None }
}
