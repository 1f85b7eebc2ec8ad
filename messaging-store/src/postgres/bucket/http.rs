//! The HTTP client for the bucket of an object store.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

/// Time limit for connecting.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Time limit for a request until its answer begins.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);
/// Time an idle connection is kept.
const IDLE: Duration = Duration::from_mins(1);
/// Maximum number of idle connections.
const MAX_IDLE: usize = 8;

/// Creates clients of the HTTP and TLS libraries of this program.
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_PATIENCE));
        tcp.set_nodelay(true);
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(BuilderVerifierExt::with_platform_verifier)
            .map_err(|source| object_store::Error::Generic { store: "S3", source: source.into() })?
            .with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MAX_IDLE)
            .build(connector);
        Ok(HttpClient::new(Pooled(client)))
    }
}

/// A client with its pool of connections.
#[derive(Debug)]
struct Pooled(Client<HttpsConnector<TcpConnector>, HttpRequestBody>);

#[async_trait]
impl HttpService for Pooled {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = tokio::time::timeout(ANSWER_PATIENCE, self.0.request(request)).await;
        let answer = answer.map_err(|elapsed| HttpError::new(HttpErrorKind::Timeout, elapsed))?;
        let answer = answer.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { kind_of(&error) };
            HttpError::new(kind, error)
        })?;
        Ok(answer.map(|body| HttpResponseBody::new(body.map_err(|error| HttpError::new(kind_of(&error), error)))))
    }
}

/// The kind of a failed request, by which the client of the bucket decides whether to retry it.
fn kind_of(error: &(dyn StdError + 'static)) -> HttpErrorKind {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<hyper::Error>() {
            if error.is_timeout() {
                return HttpErrorKind::Timeout;
            }
            if error.is_closed() || error.is_incomplete_message() || error.is_body_write_aborted() {
                return HttpErrorKind::Request;
            }
        }
        if error.downcast_ref::<io::Error>().is_some() {
            return HttpErrorKind::Interrupted;
        }
        cause = error.source();
    }
    HttpErrorKind::Unknown
}
