//! The API without a listener: a service to be mounted in another server.

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use messaging_engine::App;

use crate::body::Erased;
use crate::pipeline::Pipeline;
use crate::service_options::ServiceOptions;

/// The address that a request comes from. The server in which the service is mounted puts it into the request's
/// extensions.
///
/// A request without one counts as one from 0.0.0.0: keys with an address allowlist are refused, and all such requests
/// share the places and the memory of one network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// Future of the service's answer to a request.
pub type Answering = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send>>;

/// The HTTP API as a service: a [`tower_service::Service`] and a [`hyper::service::Service`].
///
/// Clones share their rate limits and budgets. It never fails and is always ready. The server in which it is mounted
/// handles connections, their timeouts and the size of heads, and passes the address of a request as a [`PeerAddress`].
///
/// ```
/// # async fn example(app: messaging_engine::App) {
/// use http::Request;
/// use http_body_util::Full;
/// use messaging_http::{ApiService, ServiceOptions};
/// use tower_service::Service as _;
///
/// let mut service = ApiService::new(app, ServiceOptions::mounted_at("/mail"));
/// let request = Request::get("/mail/v1/health").body(Full::<bytes::Bytes>::default()).unwrap();
/// let Ok(response) = service.call(request).await;
/// assert_eq!(response.status(), 200);
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ApiService(Arc<Pipeline>);

impl ApiService {
    /// The service of an application.
    pub fn new(app: App, options: ServiceOptions) -> Self {
        Self(Arc::new(Pipeline::new(app, options)))
    }

    /// Keeps the rate limits of API keys in step with other processes on the same PostgreSQL database, as the server
    /// does by itself. Never ends if there can be other processes: spawn it. Without it each process has separate
    /// limits.
    pub async fn share_limits(&self) {
        self.0.share_limits().await;
    }

    /// The page for Prometheus.
    pub async fn metrics(&self) -> String {
        self.0.metrics_page().await
    }

    fn answer<B>(&self, request: Request<B>) -> Answering
    where
        B: Body<Data: Send> + Send + 'static,
    {
        let pipeline = Arc::clone(&self.0);
        let (head, body) = request.into_parts();
        let peer = head.extensions.get::<PeerAddress>();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0);
        let mut body = Erased(Box::pin(body));
        Box::pin(async move { Ok(pipeline.serve_mounted(&head, &mut body, peer).await) })
    }
}

impl<B> tower_service::Service<Request<B>> for ApiService
where
    B: Body<Data: Send> + Send + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering {
        self.answer(request)
    }
}

impl<B> hyper::service::Service<Request<B>> for ApiService
where
    B: Body<Data: Send> + Send + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<B>) -> Answering {
        self.answer(request)
    }
}
