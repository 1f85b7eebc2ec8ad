//! Interface through which an import calls the API.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

/// The operations that an import calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the API document")]
pub enum Operation {
    ListLists,
    CreateList,
    ListCustomFields,
    BulkUpsertContacts,
    CreateSuppression,
    ListTemplates,
    CreateTemplate,
    UpdateTemplate,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 8] = [
        Self::ListLists,
        Self::CreateList,
        Self::ListCustomFields,
        Self::BulkUpsertContacts,
        Self::CreateSuppression,
        Self::ListTemplates,
        Self::CreateTemplate,
        Self::UpdateTemplate,
    ];

    /// Returns the `operationId` in the API document.
    pub const fn id(self) -> &'static str {
        match self {
            Self::ListLists => "listLists",
            Self::CreateList => "createList",
            Self::ListCustomFields => "listCustomFields",
            Self::BulkUpsertContacts => "bulkUpsertContacts",
            Self::CreateSuppression => "createSuppression",
            Self::ListTemplates => "listTemplates",
            Self::CreateTemplate => "createTemplate",
            Self::UpdateTemplate => "updateTemplate",
        }
    }
}

/// A call of an operation with a JSON body.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// The `id` of its path, if there is one.
    pub id: Option<String>,
    /// The body.
    pub body: Value,
}

/// Answer of the API to a call, a success or a refusal.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// Returns the body as JSON; `null` if it is none.
    pub(crate) fn document(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns true if the server only puts the call off: 429 or 503.
    pub(crate) fn is_put_off(&self) -> bool {
        [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&self.status)
    }
}

/// The API of one workspace, over HTTP or in the same process.
pub trait Api: Send + Sync + 'static {
    /// Reason why a call has no answer.
    type Error: std::error::Error + Send + 'static;

    /// Makes a call. It must be safe to repeat the call if its answer is unknown; the calls of an import are.
    fn call(&self, call: &Call) -> impl Future<Output = Result<Answer, Self::Error>> + Send;

    /// Returns everything that a listing shows, over all its pages. `listing` is one of the operations whose name
    /// begins with `List`.
    fn all(&self, listing: Operation) -> impl Future<Output = Result<Vec<Value>, Self::Error>> + Send;

    /// Returns true if there was no answer: a server that is down for a moment is called again.
    fn is_unreachable(error: &Self::Error) -> bool;
}
