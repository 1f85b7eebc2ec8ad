//! A client of the API: typed by operation, or by method and path.
//!
//! ```no_run
//! # async fn example() -> Result<(), messaging_http::ClientError> {
//! use messaging_engine::ops::workspaces::ListWorkspaces;
//!
//! let client = messaging_http::Client::new("http://127.0.0.1:8080/v1")?.token("mk_live_…")?;
//! let page = client.run(ListWorkspaces).send().await?;
//! # Ok(())
//! # }
//! ```

mod error;
mod upload;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use messaging_engine::dispatch::{Prepared, Remote, Run};
use messaging_engine::ops::{self, BodyKind, Input, Operation, Output};
use rustls_platform_verifier::BuilderVerifierExt as _;

pub use error::{ClientError, Refusal};

use crate::router::BASE;

/// The longest answer that is read, in bytes; a longer one is an error.
const MAX_ANSWER: usize = 256 << 20;

/// Longest time for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time for an answer, unless [`Client::timeout`] sets another.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Time for which an unused connection is kept.
const POOL_IDLE: Duration = Duration::from_secs(30);

/// A client of one server. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Client {
    /// The URL that paths are appended to, without a slash at its end.
    base: String,
    authorization: Option<HeaderValue>,
    http: Http,
    timeout: Duration,
}

/// The HTTP client below, of one type for `http` and `https`: a second type would compile pool, HTTP/1 and HTTP/2 once
/// more, which is a third of a megabyte.
type Http = legacy::Client<HttpsConnector<HttpConnector>, Body>;

/// Body of a request: bytes in memory, or a stream that is read while it is sent.
type Body = Either<Full<Bytes>, UnsyncBoxBody<Bytes, std::io::Error>>;

/// An answer with a status of 2xx.
#[derive(Debug, Clone)]
pub struct Success {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Client {
    /// A client of the server at a URL. Without a path, `/v1` is meant.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        let uri: Uri = url.parse().map_err(|_| ClientError::Url)?;
        if uri.host().is_none_or(str::is_empty) || uri.query().is_some() {
            return Err(ClientError::Url);
        }
        let connector = match uri.scheme_str() {
            Some("http") => connector_for(Trust::NoRoots)?,
            Some("https") => connector_for(Trust::SystemRoots)?,
            _ => return Err(ClientError::Url),
        };
        let http = legacy_builder().build(connector);
        let mut base = url.trim_end_matches('/').to_owned();
        if uri.path() == "/" {
            base.push_str(BASE);
        }
        Ok(Self { base, authorization: None, http, timeout: TIMEOUT })
    }

    /// Sends an API key or a session token with every call, as a bearer token (RFC 6750).
    pub fn token(mut self, token: &str) -> Result<Self, ClientError> {
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| ClientError::Token)?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    /// Sets the longest time for a call until the last byte of its answer; one minute unless set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The URL that paths are appended to, such as `http://localhost:8080/v1`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Begins a call of an operation, to be finished by [`Run::send`].
    pub fn run<O: Operation>(&self, _: O) -> Run<&Self, O> {
        Run::new(self)
    }

    /// Sends a request to a path below the base, query included. A body is sent as JSON, unless `headers` say
    /// otherwise. An answer with another status than 2xx is a [`ClientError::Refused`].
    pub async fn request(
        &self,
        method: Method,
        path_and_query: &str,
        body: Option<Bytes>,
        mut headers: HeaderMap,
    ) -> Result<Success, ClientError> {
        if body.is_some() {
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        }
        self.exchange(method, path_and_query, Either::Left(Full::new(body.unwrap_or_default())), headers).await
    }

    /// Adds the headers that every request has, sends the request, and waits for the answer at most for the timeout.
    async fn exchange(
        &self,
        method: Method,
        path_and_query: &str,
        body: Body,
        mut headers: HeaderMap,
    ) -> Result<Success, ClientError> {
        let uri: Uri = format!("{}{path_and_query}", self.base).parse().map_err(|_| ClientError::Url)?;
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json, */*;q=0.5"));
        headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!("messaging/", env!("CARGO_PKG_VERSION"))));
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        tokio::time::timeout(self.timeout, self.send(request)).await.map_err(|_| ClientError::TimedOut)?
    }

    /// Sends a request and reads the whole answer.
    async fn send(&self, request: Request<Body>) -> Result<Success, ClientError> {
        let response = self.http.request(request).await.map_err(|error| ClientError::Unreachable(error.into()))?;
        let (head, body) = response.into_parts();
        let body = read(body).await?;
        if head.status.is_success() {
            return Ok(Success { status: head.status, headers: head.headers, body });
        }
        Err(ClientError::Refused(Box::new(Refusal::read(head.status, &head.headers, &body))))
    }
}

impl Remote for Client {
    type Error = ClientError;

    async fn carry_out<O: Operation>(&self, prepared: Prepared<O>) -> Result<O::Output, ClientError> {
        let Prepared { call, workspace, idempotency_key } = prepared;
        let target = target::<O>(&call.path, &call.query).map_err(ClientError::Input)?;
        let mut headers = HeaderMap::new();
        let body = match (<O::Body as Input>::BODY, call.body.as_file()) {
            (BodyKind::None, _) => None,
            (_, Some(file)) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.content_type));
                Some(file.bytes.clone())
            }
            (_, None) => Some(serde_json::to_vec(&call.body).map_err(ClientError::Input)?.into()),
        };
        if let Some(key) = idempotency_key {
            let key = HeaderValue::try_from(key).map_err(|_| ClientError::IdempotencyKey)?;
            headers.insert(HeaderName::from_static("idempotency-key"), key);
        }
        if let Some(workspace) = workspace {
            let workspace = HeaderValue::try_from(workspace.to_string()).map_err(|_| ClientError::Workspace)?;
            headers.insert(HeaderName::from_static("x-workspace-id"), workspace);
        }
        let success = self.request(O::METHOD, &target, body, headers).await?;
        O::Output::from_body(&success.body).map_err(|source| ClientError::Answer { status: success.status, source })
    }

    fn no_workspace() -> ClientError {
        ClientError::Workspace
    }
}

/// Reads the body of an answer, at most [`MAX_ANSWER`] bytes.
async fn read(body: Incoming) -> Result<Bytes, ClientError> {
    Limited::new(body, MAX_ANSWER)
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .map_err(ClientError::Unreachable)
}

/// The path and query of a call, such as `/workspaces?limit=2`.
fn target<O: Operation>(path: &O::Path, query: &O::Query) -> Result<String, serde_json::Error> {
    let mut target = ops::fill_path(O::PATH, &ops::parameters(path)?);
    let query = ops::query_string(&ops::parameters(query)?);
    if !query.is_empty() {
        target.push('?');
        target.push_str(&query);
    }
    Ok(target)
}

/// The settings of the HTTP client: it closes connections that are not used.
fn legacy_builder() -> legacy::Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(POOL_IDLE);
    builder
}

/// The certificate authorities that the client trusts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// None: for `http` URLs, for which TLS is not spoken.
    NoRoots,
    /// Those that the operating system trusts: for `https` URLs.
    SystemRoots,
}

/// The connector for `http` URLs with [`Trust::NoRoots`], for `https` URLs alone with [`Trust::SystemRoots`]; of one
/// type, as [`Http`] needs it.
pub(crate) fn connector_for(trust: Trust) -> Result<HttpsConnector<HttpConnector>, ClientError> {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_nodelay(true);
    // It makes the connections below TLS as well, and would refuse `https` URLs otherwise.
    connector.enforce_http(false);
    let failed = |error: rustls::Error| ClientError::Tls(error.into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(failed)?;
    let config = match trust {
        Trust::NoRoots => config.with_root_certificates(rustls::RootCertStore::empty()),
        Trust::SystemRoots => config.with_platform_verifier().map_err(failed)?,
    };
    let https = HttpsConnectorBuilder::new().with_tls_config(config.with_no_client_auth());
    Ok(match trust {
        Trust::NoRoots => https.https_or_http(),
        Trust::SystemRoots => https.https_only(),
    }
    .enable_http1()
    .wrap_connector(connector))
}

#[cfg(test)]
mod tests {
    use messaging_engine::ops::workspaces::{ListWorkspaces, UpdateWorkspace};
    use messaging_engine::ops::{Empty, InWorkspace, PageQuery};

    use super::*;

    #[test]
    fn a_url_without_a_path_means_the_first_version() {
        for (url, base) in [
            ("http://localhost:8080", "http://localhost:8080/v1"),
            ("http://localhost:8080/", "http://localhost:8080/v1"),
            ("http://localhost:8080/v1/", "http://localhost:8080/v1"),
            ("http://localhost/mail/api/v1", "http://localhost/mail/api/v1"),
        ] {
            assert_eq!(Client::new(url).unwrap().base(), base);
        }
        for bad in ["localhost:8080", "ftp://localhost", "http://", "", "http://localhost/?a=b"] {
            assert!(matches!(Client::new(bad), Err(ClientError::Url)), "{bad}");
        }
    }

    #[test]
    fn targets_are_filled_in() {
        let query = PageQuery::new().limit(2).cursor("a b");
        assert_eq!(target::<ListWorkspaces>(&Empty::default(), &query).unwrap(), "/workspaces?cursor=a+b&limit=2");
        let path = InWorkspace { workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap() };
        assert_eq!(
            target::<UpdateWorkspace>(&path, &Empty::default()).unwrap(),
            "/workspaces/wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"
        );
    }

    #[test]
    fn the_token_is_not_shown() {
        let client = Client::new("http://localhost").unwrap().token("mk_live_secret").unwrap();
        assert!(!format!("{client:?}").contains("mk_live_secret"));
    }
}
