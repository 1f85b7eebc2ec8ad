//! Answers as HTTP.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, LOCATION, REFERRER_POLICY, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use messaging_core::domain::security::digest::Digest;
use messaging_core::ports::transport::CallbackReply;
use messaging_engine::Error;
use messaging_engine::ops::Answer;
use messaging_engine::ops::operation::JSON;

use crate::rate_limit::Standing;

/// The header with the id of a request.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Media type of pages.
pub(crate) const HTML: &str = "text/html; charset=utf-8";

const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
pub(crate) const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// An answer without the headers that every answer has.
pub(crate) type Reply = Response<Full<Bytes>>;

fn reply(status: StatusCode, content_type: Option<HeaderValue>, body: Bytes) -> Reply {
    // Room for the usual headers: type, length, date, request id, two for the rate limit.
    let mut headers = HeaderMap::with_capacity(6);
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, content_type);
    }
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    *reply.headers_mut() = headers;
    reply
}

/// The answer of an operation.
pub(crate) fn answer(answer: Answer) -> Reply {
    let mut reply = reply(answer.status, answer.content_type.map(HeaderValue::from_static), answer.body);
    if answer.replayed {
        add_replayed(&mut reply);
    }
    reply
}

/// A refusal (contract section 1.4).
pub(crate) fn refusal(error: &Error, request_id: &HeaderValue) -> Reply {
    let request_id = request_id.to_str().unwrap_or_default();
    let mut reply = json(error.status(), error.to_body(request_id).to_string().into());
    add_cause(&mut reply, error);
    reply
}

/// Adds the headers of a refusal that do not depend on its body.
pub(crate) fn add_cause(reply: &mut Reply, error: &Error) {
    let headers = reply.headers_mut();
    if error.status() == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Error::MethodNotAllowed { allow } = error
        && let Ok(allow) = HeaderValue::try_from(allow)
    {
        headers.insert(ALLOW, allow);
    }
    if let Some(seconds) = error.retry_after() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
}

/// Marks the answer to a request that was carried out before.
pub(crate) fn add_replayed(reply: &mut Reply) {
    reply.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
}

/// A body that did not arrive in time. The contract says nothing about it; HTTP has the status 408.
pub(crate) fn timed_out(request_id: &HeaderValue) -> Reply {
    let body = serde_json::json!({"error": {
        "code": "request_timeout",
        "message": "the body did not arrive in time",
        "request_id": request_id.to_str().unwrap_or_default(),
    }});
    json(StatusCode::REQUEST_TIMEOUT, body.to_string().into())
}

/// A status and nothing else.
pub(crate) fn bare(status: StatusCode) -> Reply {
    reply(status, None, Bytes::new())
}

/// The answer to a callback of a provider.
pub(crate) fn callback(answer: CallbackReply) -> Reply {
    let content_type = (!answer.body.is_empty()).then(|| HeaderValue::from_static(answer.content_type));
    let mut reply = reply(answer.status, content_type, answer.body);
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// A file.
pub(crate) fn file(status: StatusCode, content_type: &'static str, body: Bytes) -> Reply {
    reply(status, Some(HeaderValue::from_static(content_type)), body)
}

/// JSON.
pub(crate) fn json(status: StatusCode, body: Bytes) -> Reply {
    reply(status, Some(HeaderValue::from_static(JSON)), body)
}

/// A page for people with this script. Only the script and the page's style sheet may be loaded and run.
pub(crate) fn page(body: Bytes, script: &str) -> Reply {
    let hash = STANDARD.encode(Digest::of(script).as_bytes());
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let policy = HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
    page_under(StatusCode::OK, policy, body)
}

/// A page with a form that may be sent back here; for one person only, so caches and search engines ignore it.
pub(crate) fn private_page(status: StatusCode, body: Bytes) -> Reply {
    const POLICY: &str =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
    let mut reply = page_under(status, HeaderValue::from_static(POLICY), body);
    private(&mut reply);
    reply
}

/// The page of a form, with a logo from one site, a target on another to which the browser goes after the form was
/// sent, and scripts of a source.
pub(crate) fn form_page(
    status: StatusCode,
    body: Bytes,
    logo: Option<&str>,
    target: Option<&str>,
    scripts: &str,
) -> Reply {
    let (logo, target) = (logo.unwrap_or("'none'"), target.unwrap_or_default());
    let policy = format!(
        "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src {logo}; base-uri 'none'; \
         form-action 'self' {target}; frame-ancestors 'none'"
    );
    let policy = HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
    let mut reply = page_under(status, policy, body);
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// Forbids caches to keep an answer, and search engines to list it.
pub(crate) fn private(reply: &mut Reply) {
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_ROBOTS_TAG, HeaderValue::from_static("noindex, nofollow"));
}

/// A transparent image of one pixel.
pub(crate) fn pixel() -> Reply {
    const GIF: &[u8] =
        b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    let mut reply = reply(StatusCode::OK, Some(HeaderValue::from_static("image/gif")), Bytes::from_static(GIF));
    private(&mut reply);
    // Webmail loads it from a page of another origin.
    reply.headers_mut().insert(CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    reply
}

/// A redirect that does not reveal to the target the link it came from.
pub(crate) fn redirect(location: HeaderValue) -> Reply {
    let mut reply = reply(StatusCode::FOUND, None, Bytes::new());
    private(&mut reply);
    let headers = reply.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    reply
}

fn page_under(status: StatusCode, policy: HeaderValue, body: Bytes) -> Reply {
    let mut reply = reply(status, Some(HeaderValue::from_static(HTML)), body);
    let headers = reply.headers_mut();
    headers.insert(http::header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    reply
}

/// The answer of `/health` while the server cannot work.
pub(crate) fn unhealthy() -> Reply {
    let mut reply = json(StatusCode::SERVICE_UNAVAILABLE, Bytes::from_static(br#"{"status":"unavailable"}"#));
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    reply
}

/// Adds the state of the credential's rate limit (contract section 1.6).
pub(crate) fn add_standing(reply: &mut Reply, standing: Standing) {
    let headers = reply.headers_mut();
    headers.insert(RATE_LIMIT, standing.state());
    headers.insert(RATE_LIMIT_POLICY, standing.policy);
}
