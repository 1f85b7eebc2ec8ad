//! Requests of the API that were logged.
//!
//! Contract section 24. Owner and admins see all requests of their workspace, an API key its own. The workspace's
//! setting `request_log` chooses the part of each that is kept (core: `domain/security/request_log.rs`).

use std::net::IpAddr;

use http::{Method, StatusCode};
use messaging_core::domain::limits::MAX_PAGE_SIZE;
use messaging_core::domain::security::redaction::Redactor;
use messaging_core::domain::security::request_log::{LoggedBodies, LoggedRequest, RequestFilter, statuses};
use messaging_core::ids::{ApiKeyId, UserId, WorkspaceId};
use messaging_core::input::{Empty, Input, PageQuery};
use messaging_core::scope::{Access, Scope};
use messaging_core::time::Timestamp;
use messaging_core::validate::{Setters, Validate};
use messaging_core::violation::{FieldCode, Violations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::caller::Caller;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::operation::{Call, InWorkspace, Operation};
use crate::ops::page::Page;

/// Access that is required to see requests.
const ACCESS: Access = Access::ScopeOrAdmin(Scope::AnalyticsRead);

/// A request and how it was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Request")]
#[non_exhaustive]
pub struct RequestView {
    /// Its id, as in `X-Request-Id` of the answer.
    pub id: String,
    /// When it was answered.
    pub at: Timestamp,
    /// HTTP method.
    pub method: String,
    /// Path below `/v1`, without the query.
    pub path: String,
    /// The operation, such as `sendMessage`.
    pub operation: String,
    /// HTTP status of the answer.
    pub status: u16,
    /// Code of the error; null where it succeeded.
    pub code: Option<String>,
    /// Time that it took, in milliseconds.
    pub duration_ms: u64,
    /// Length of its body.
    pub request_bytes: u64,
    /// API key that it was made with; null for a session.
    pub key_id: Option<ApiKeyId>,
    /// Person who made it; null for an API key.
    pub user_id: Option<UserId>,
    /// Address of the caller.
    pub ip: Option<IpAddr>,
    /// User agent of the caller.
    pub user_agent: Option<String>,
    /// Its Idempotency-Key.
    pub idempotency_key: Option<String>,
    /// Id of the resource that its path names, or that it created.
    pub resource_id: Option<String>,
}

impl RequestView {
    fn of(request: LoggedRequest, redactor: Redactor) -> Self {
        Self {
            id: request.id,
            at: request.at,
            method: request.method,
            path: redactor.text(request.path),
            operation: request.operation,
            status: request.status,
            code: request.code,
            duration_ms: request.duration_ms,
            request_bytes: request.request_bytes,
            key_id: request.key_id,
            user_id: request.user_id,
            ip: request.ip,
            user_agent: request.user_agent,
            idempotency_key: request.idempotency_key.map(|key| redactor.text(key)),
            resource_id: request.resource_id,
        }
    }
}

/// A request with its bodies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RequestWithBodies")]
#[non_exhaustive]
pub struct RequestDetails {
    /// The request.
    #[serde(flatten)]
    pub summary: RequestView,
    /// Body of the request, without secrets; null where there is none, or it was not kept.
    pub request: Option<Value>,
    /// Body of the answer, without secrets; null where there is none, or it was not kept.
    pub response: Option<Value>,
}

/// Query of the listing of requests.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema, Validate, Setters)]
#[non_exhaustive]
pub struct RequestQuery {
    /// Only requests with this API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<ApiKeyId>,
    /// Only requests of this person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// Only requests with this HTTP method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 10))]
    pub method: Option<String>,
    /// Only requests whose path below `/v1` begins with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 500))]
    pub path: Option<String>,
    /// Only requests that were answered with this status, such as `422`, or class of statuses, such as `4xx`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Only requests at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Only requests before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Only requests with this Idempotency-Key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(length(min = 1, max = 64))]
    pub idempotency_key: Option<String>,
    /// At most this many items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[validate(range(min = 1, max = MAX_PAGE_SIZE))]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

impl Input for RequestQuery {
    fn check(&self, violations: &mut Violations) {
        if self.status.as_deref().is_some_and(|status| statuses(status).is_none()) {
            violations.add_parameter(
                "status",
                FieldCode::InvalidFormat,
                "must be a status such as 422, or a class of statuses such as 4xx",
            );
        }
        if self.since.zip(self.until).is_some_and(|(since, until)| until <= since) {
            violations.add_parameter("until", FieldCode::OutOfRange, "must be later than `since`");
        }
    }
}

/// Returns the API key whose requests alone the caller may see; `None` for a caller who may see all.
fn only_of(caller: &Caller) -> Option<ApiKeyId> {
    match caller {
        Caller::Key(key) => Some(key.id),
        Caller::Anonymous | Caller::Session(_) | Caller::Operator(_) => None,
    }
}

/// `GET /workspaces/{workspace_id}/requests`
pub struct ListRequests;

impl Operation for ListRequests {
    const ID: &'static str = "listRequests";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/requests";
    const ACCESS: Access = ACCESS;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "request list";
    const SUMMARY: &'static str =
        "List the API requests of the last seven days, newest first; an API key sees only its own";
    type Path = InWorkspace;
    type Query = RequestQuery;
    type Body = Empty;
    type Output = Page<RequestView>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<RequestView>, Error> {
        let RequestQuery { key_id, user_id, method, path, status, since, until, idempotency_key, limit, cursor } =
            call.query;
        let page = cx.page(&PageQuery::of(limit, cursor))?;
        let own = only_of(cx.caller);
        if own.zip(key_id).is_some_and(|(own, wanted)| own != wanted) {
            return Ok(Page::only(Vec::new()));
        }
        let filter = RequestFilter {
            key_id: own.or(key_id),
            user_id,
            method: method.map(|method| method.to_ascii_uppercase()),
            path,
            status: status.as_deref().and_then(statuses),
            since,
            until,
            idempotency_key,
        };
        let slice = cx.store().logged_requests(call.path.workspace_id, &filter, page).await?;
        let redactor = cx.redactor();
        Ok(cx.answer_page(slice, |request| RequestView::of(request, redactor)))
    }
}

/// The path of a request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RequestPath {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The id in `X-Request-Id`.
    pub id: String,
}

/// `GET /workspaces/{workspace_id}/requests/{id}`
pub struct GetRequest;

impl Operation for GetRequest {
    const ID: &'static str = "getRequest";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/workspaces/{workspace_id}/requests/{id}";
    const ACCESS: Access = ACCESS;
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "request get";
    const SUMMARY: &'static str = "Show an API request with the bodies of request and answer, if they were kept";
    type Path = RequestPath;
    type Query = Empty;
    type Body = Empty;
    type Output = RequestDetails;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<RequestDetails, Error> {
        let RequestPath { workspace_id, id } = call.path;
        let (request, bodies) = cx.store().logged_request(workspace_id, &id).await?.ok_or(Error::NotFound)?;
        if only_of(cx.caller).is_some_and(|own| request.key_id != Some(own)) {
            return Err(Error::NotFound);
        }
        let redactor = cx.redactor();
        let LoggedBodies { request: sent, response } = bodies;
        let shown = |text: Option<String>| {
            text.and_then(|text| serde_json::from_str(&text).ok()).map(|value| redactor.value(value))
        };
        Ok(RequestDetails {
            request: shown(sent),
            response: shown(response),
            summary: RequestView::of(request, redactor),
        })
    }
}
