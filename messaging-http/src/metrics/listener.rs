//! `GET /metrics`, on an address of its own so that it is never public by accident; `GET /health` as well, for nodes
//! that answer nothing else.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
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
use messaging_transport::listen;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::pipeline::Pipeline;

/// Scrapers that the kernel keeps for us until they are taken.
const BACKLOG: u32 = 128;

/// Connections at a time. Whoever comes when all are taken gets the place of the one that has waited for longest.
const MAX_CONNECTIONS: usize = 32;

/// How long the head of a request may take, and a scraper may be quiet between two.
const PATIENCE: Duration = Duration::from_secs(10);

/// Open connections, the oldest first.
type Open = VecDeque<Arc<Scraper>>;

/// A connection.
#[derive(Debug, Default)]
struct Scraper {
    /// Whether a page is being made for it.
    is_answered: AtomicBool,
    leave: Notify,
}

/// Takes the oldest connection away that nothing is being made for.
fn make_room(open: &mut Open) {
    if open.len() >= MAX_CONNECTIONS
        && let Some(at) = open.iter().position(|scraper| !scraper.is_answered.load(Ordering::Relaxed))
        && let Some(scraper) = open.remove(at)
    {
        scraper.leave.notify_one();
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

    /// Where it listens.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers until it is dropped.
    pub(crate) async fn run(self, pipeline: Arc<Pipeline>) {
        let open = Arc::<Mutex<Open>>::default();
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
        loop {
            let (socket, _) = listen::accept(&self.listener, || false).await;
            let scraper = Arc::<Scraper>::default();
            {
                let mut open = lock(&open);
                make_room(&mut open);
                if open.len() >= MAX_CONNECTIONS {
                    // Pages are being made for all of them, which takes milliseconds.
                    continue;
                }
                open.push_back(Arc::clone(&scraper));
            }
            let (pipeline, answered) = (Arc::clone(&pipeline), Arc::clone(&scraper));
            let service = service_fn(move |request| {
                let (pipeline, answered) = (Arc::clone(&pipeline), Arc::clone(&answered));
                async move {
                    answered.is_answered.store(true, Ordering::Relaxed);
                    let answer = answer(pipeline, request).await;
                    answered.is_answered.store(false, Ordering::Relaxed);
                    answer
                }
            });
            let connection = builder.serve_connection(TokioIo::new(socket), service);
            let open = Arc::clone(&open);
            tokio::spawn(async move {
                tokio::select! {
                    // A scraper that breaks off is no concern of ours.
                    _ = connection => {}
                    () = scraper.leave.notified() => {}
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
