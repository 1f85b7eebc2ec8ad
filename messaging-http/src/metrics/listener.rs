//! The server at `--metrics-listen`: `GET /metrics`, at a separate address so that it is never public by accident, and
//! `GET /health`, for nodes that do not serve the API.

mod scraper;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use messaging_transport::listen::{self, AcceptFailures};
use tokio::net::TcpListener;

use self::scraper::{Scraper, Watched};
use crate::pipeline::Pipeline;

/// Connections that the kernel queues until they are accepted.
const BACKLOG: u32 = 128;

/// Connections open at a time. A new one beyond that replaces the oldest idle one, and is closed if all are busy.
const MAX_CONNECTIONS: usize = 32;

/// Time limit for the head of a request, for the pause between two requests, and for writing a page before the
/// connection counts as idle.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Open connections, the oldest first.
type Open = VecDeque<Arc<Scraper>>;

/// Closes the oldest idle connection if all places are taken.
fn make_room(open: &mut Open) {
    if open.len() >= MAX_CONNECTIONS
        && let Some(at) = open.iter().position(|scraper| !scraper.is_busy(TIMEOUT))
        && let Some(scraper) = open.remove(at)
    {
        scraper.dismiss();
    }
}

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

    /// The address that the listener is bound to.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Accepts connections and answers requests until the future is dropped.
    pub(crate) async fn run(self, pipeline: Arc<Pipeline>) {
        let open = Arc::<Mutex<Open>>::default();
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
        let mut failures = AcceptFailures::default();
        loop {
            let (socket, _) = listen::accept(&self.listener, &mut failures, || false).await;
            let scraper = Arc::<Scraper>::default();
            {
                let mut open = lock(&open);
                make_room(&mut open);
                if open.len() >= MAX_CONNECTIONS {
                    // All connections are busy with a page, which takes milliseconds: the new one is closed.
                    continue;
                }
                open.push_back(Arc::clone(&scraper));
            }
            let (pipeline, answered) = (Arc::clone(&pipeline), Arc::clone(&scraper));
            let service = service_fn(move |request| {
                let (pipeline, answered) = (Arc::clone(&pipeline), Arc::clone(&answered));
                async move {
                    answered.begin();
                    let answer = answer(pipeline, request).await;
                    answered.write();
                    answer
                }
            });
            let connection =
                builder.serve_connection(TokioIo::new(Watched::new(socket, Arc::clone(&scraper))), service);
            let open = Arc::clone(&open);
            tokio::spawn(async move {
                tokio::select! {
                    // An error here is a scraper that closed the connection.
                    _ = connection => {}
                    () = scraper.dismissed() => {}
                }
                lock(&open).retain(|other| !Arc::ptr_eq(other, &scraper));
            });
        }
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_idle_connection_makes_room() {
        let mut open: Open = (0..MAX_CONNECTIONS).map(|_| Arc::default()).collect();
        open[0].begin();
        open[1].begin();
        open[1].write();
        let third = Arc::clone(&open[2]);
        make_room(&mut open);
        assert_eq!(open.len(), MAX_CONNECTIONS - 1);
        assert!(!open.iter().any(|scraper| Arc::ptr_eq(scraper, &third)));
    }
}
