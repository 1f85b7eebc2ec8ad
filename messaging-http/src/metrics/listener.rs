//! `GET /metrics`, on an address of its own so that it is never public by accident; `GET /health` as well, for nodes
//! that answer nothing else.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use messaging_transport::listen;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::pipeline::Pipeline;

/// Scrapers that the kernel keeps for us while all places are taken.
const BACKLOG: u32 = 128;

/// Scrapers at a time.
const MAX_CONNECTIONS: usize = 32;

/// How long a scraper may be quiet.
const PATIENCE: Duration = Duration::from_secs(75);

/// The listener of the metrics page.
#[derive(Debug)]
pub(crate) struct MetricsListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl MetricsListener {
    /// Listens at an address.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = listen::bind(address, BACKLOG)?;
        Ok(Self { address: listener.local_addr()?, listener })
    }

    /// Where it listens.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers until it is dropped.
    pub(crate) async fn run(self, pipeline: Arc<Pipeline>) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let (socket, _) = listen::accept(&self.listener, || false).await;
            let pipeline = Arc::clone(&pipeline);
            let service = service_fn(move |request| answer(Arc::clone(&pipeline), request));
            let connection = builder.serve_connection(TokioIo::new(socket), service);
            tokio::spawn(async move {
                // A scraper that breaks off is no concern of ours.
                let _ = connection.await;
                drop(place);
            });
        }
    }
}

async fn answer(pipeline: Arc<Pipeline>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    let path = request.uri().path();
    if path != "/metrics" && path != "/health" {
        *response.status_mut() = StatusCode::NOT_FOUND;
    } else if request.method() != Method::GET && request.method() != Method::HEAD {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    } else if path == "/health" {
        let health = pipeline.app.store().health();
        if !health.is_healthy() {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        let status = if health.is_healthy() { "ok" } else { health.as_str() };
        *response.body_mut() = format!("{{\"status\":\"{status}\"}}").into();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    } else {
        *response.body_mut() = pipeline.metrics_page().await.into();
        let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, text);
    }
    Ok(response)
}
