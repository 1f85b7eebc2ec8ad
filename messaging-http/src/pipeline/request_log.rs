//! Entries of the log of requests, made from requests and their answers.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::HeaderName;
use http::header::USER_AGENT;
use http::request::Parts;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use messaging_core::domain::security::request_log::MAX_BODY;
use messaging_core::ids::WorkspaceId;
use messaging_engine::ops::Endpoint;
use messaging_engine::{AnsweredRequest, Caller};

use super::headers::IDEMPOTENCY_KEY;
use crate::reply::Reply;
use crate::router::RouteMatch;

/// The longest Idempotency-Key (contract section 20); a longer one is refused, and not kept.
const MAX_KEY: usize = 66;

/// The entry of a request in a workspace, before it is carried out.
pub(super) fn begun(
    head: &Parts,
    matched: &RouteMatch<'_>,
    endpoint: &'static Endpoint,
    (caller, workspace): (&Caller, WorkspaceId),
    (request_id, client): (&str, IpAddr),
) -> AnsweredRequest {
    let text = |name: &HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
    let resource = matched.parameters.iter().rev().find(|(name, _)| name != "workspace_id");
    let mut request = AnsweredRequest::new(
        workspace,
        request_id.to_owned(),
        head.method.clone(),
        matched.path.to_owned(),
        endpoint.id,
    );
    request.is_write = !endpoint.only_reads();
    match caller {
        Caller::Key(key) => request.key_id = Some(key.id),
        Caller::Session(session) => request.user_id = Some(session.user.id),
        Caller::Anonymous | Caller::Operator(_) => {}
    }
    request.ip = Some(client);
    request.user_agent = text(&USER_AGENT);
    request.idempotency_key = text(&IDEMPOTENCY_KEY).filter(|key| key.len() <= MAX_KEY);
    request.resource_id = resource.map(|(_, id)| id.clone());
    request
}

/// A body for the log: empty if it is longer than `MAX_BODY`.
pub(super) fn kept(body: &Bytes) -> Bytes {
    if body.len() <= MAX_BODY { body.clone() } else { Bytes::new() }
}

/// The entry of the request with its answer.
pub(super) fn answered(request: AnsweredRequest, reply: &Reply, took: Duration) -> AnsweredRequest {
    let mut request = request;
    request.status = reply.status().as_u16();
    request.took = took;
    let is_short = reply.body().size_hint().exact().is_some_and(|length| length <= MAX_BODY as u64);
    if is_short {
        // A whole body is available at once.
        let frame = reply.body().clone().frame().now_or_never().flatten();
        request.response = frame.and_then(Result::ok).and_then(|frame| frame.into_data().ok()).unwrap_or_default();
    }
    request
}
