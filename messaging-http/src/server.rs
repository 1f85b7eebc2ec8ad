//! The server: a listener, its connections, and their end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use ipnet::IpNet;
use messaging_engine::App;
use messaging_transport::listen::{self, AcceptFailures};
use messaging_transport::submission::SubmissionSink;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::connection::activity::QuietTimeouts;
use crate::connection::{self, Phase};
use crate::connection_limiter::ConnectionLimiter;
use crate::console::Console;
use crate::metrics::GaugeGuard;
use crate::metrics::listener::MetricsListener;
use crate::pipeline::Pipeline;
use crate::service_options::ServiceOptions;
use crate::submission::MailSubmissionSink;

/// Connections that the kernel queues until they are accepted.
const BACKLOG: u32 = 1024;

/// Header lines of a request, at most.
const MAX_HEADERS: usize = 100;

/// Bytes of a request's head, and of a body that are read at once, at most.
const MAX_HEAD: usize = 64 * 1024;

/// Requests of one HTTP/2 connection that are answered concurrently.
const MAX_STREAMS: u32 = 128;

/// Bytes that a request of an HTTP/2 connection may send before the server has read them.
const STREAM_WINDOW: u32 = 256 * 1024;

/// Bytes that all requests of an HTTP/2 connection may send before the server has read them.
const CONNECTION_WINDOW: u32 = 1 << 20;

/// Addresses and limits of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Address to listen at; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Address of the page `/metrics` for Prometheus; `None` for no page.
    pub metrics_listen: Option<SocketAddr>,
    /// Peers whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Connections at a time, fewer if the process may open fewer files. One network holds at most half of them; if
    /// there are too many, the oldest idle connection of the network with most of them is closed.
    pub max_connections: usize,
    /// Longest time for the head of a request.
    pub head_timeout: Duration,
    /// Longest time a connection may be without a request.
    pub idle_timeout: Duration,
    /// Longest time without a byte of a body.
    pub body_stall_timeout: Duration,
    /// Longest time for a whole body.
    pub body_timeout: Duration,
    /// Bytes of long bodies in memory at a time; further requests wait.
    pub body_budget: u64,
    /// Time in which running requests may finish once the server is to stop.
    pub stop_grace: Duration,
    /// The console at `/console`.
    pub console: Console,
}

impl ServerOptions {
    /// The options of a server that listens at an address.
    pub fn new(listen: SocketAddr) -> Self {
        let ServiceOptions { trusted_proxies, body_stall_timeout, body_timeout, body_budget, console, .. } =
            ServiceOptions::default();
        Self {
            listen,
            metrics_listen: None,
            trusted_proxies,
            max_connections: 4096,
            head_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(75),
            body_stall_timeout,
            body_timeout,
            body_budget,
            stop_grace: Duration::from_secs(10),
            console,
        }
    }

    /// The options that concern requests, not connections.
    fn service(&self) -> ServiceOptions {
        let Self { trusted_proxies, body_stall_timeout, body_timeout, body_budget, console, .. } = self.clone();
        let prefix = String::new();
        ServiceOptions { prefix, trusted_proxies, body_stall_timeout, body_timeout, body_budget, console }
    }
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    metrics: Option<MetricsListener>,
    address: SocketAddr,
    pipeline: Arc<Pipeline>,
    options: ServerOptions,
}

/// A listening socket, opened before there is an application: links contain its address.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// Listens at an address.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        listen::bind(address, BACKLOG).map(Self)
    }

    /// The address, with the port that was assigned.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl Server {
    /// Listens at the address of the options.
    ///
    /// Must be called within a tokio runtime, like everything in this module.
    pub fn bind(app: App, options: ServerOptions) -> io::Result<Self> {
        Self::on(Listener::bind(options.listen)?, app, options)
    }

    /// Takes over a socket that listens already.
    pub fn on(listener: Listener, app: App, options: ServerOptions) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let metrics = options.metrics_listen.map(MetricsListener::bind).transpose()?;
        let pipeline = Pipeline::new(app, options.service());
        Ok(Self { listener: listener.0, metrics, address, pipeline: Arc::new(pipeline), options })
    }

    /// The address that the API listens at.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Sink for messages submitted as mail, with the keys, limits and budgets of this server.
    pub fn submission_sink(&self) -> Arc<dyn SubmissionSink> {
        Arc::new(MailSubmissionSink::new(Arc::clone(&self.pipeline)))
    }

    /// The address of the metrics page for Prometheus; `None` if it is off.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(MetricsListener::local_addr)
    }

    /// Answers requests until `shutdown` is done; then accepts no further ones, finishes the running ones within
    /// [`ServerOptions::stop_grace`], and returns.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { listener, metrics, pipeline, options, .. } = self;
        let builder = Arc::new(builder());
        let timeouts = QuietTimeouts { head: options.head_timeout, idle: options.idle_timeout };
        let limiter = ConnectionLimiter::new(affordable(options.max_connections), options.trusted_proxies);
        // Dropped by every connection when it ends.
        let (open, mut all_over) = mpsc::channel::<()>(1);
        let (phase, _) = watch::channel(Phase::Running);
        let metrics = metrics.map(|metrics| tokio::spawn(metrics.run(Arc::clone(&pipeline))));

        let sharing = {
            let pipeline = Arc::clone(&pipeline);
            tokio::spawn(async move { pipeline.share_limits().await })
        };
        let accepting = async {
            let mut failures = AcceptFailures::default();
            loop {
                let (socket, peer) = listen::accept(&listener, &mut failures, || limiter.evict()).await;
                pipeline.metrics.accepted.inc();
                // Without a place the socket is closed at once.
                let Some(permit) = limiter.admit(peer.ip()) else { continue };
                let (builder, shared) = (Arc::clone(&builder), Arc::clone(&pipeline));
                let connection = connection::serve(socket, permit, builder, shared, timeouts, phase.subscribe());
                let (pipeline, open) = (Arc::clone(&pipeline), open.clone());
                tokio::spawn(async move {
                    let _counted = GaugeGuard::enter(&pipeline.metrics.connections);
                    connection.await;
                    drop(open);
                });
            }
        };
        tokio::select! {
            () = accepting => {}
            () = shutdown => {}
        }
        drop(listener);
        phase.send_replace(Phase::Stopping);
        drop(open);
        if timeout(options.stop_grace, all_over.recv()).await.is_err() {
            tracing::warn!("requests were still running when the time to stop was up");
            phase.send_replace(Phase::Aborting);
        }
        sharing.abort();
        if let Some(metrics) = metrics {
            metrics.abort();
        }
    }
}

/// Number of connections that the process may have, at most `wanted`: a quarter of the files that it may open is for
/// others.
fn affordable(wanted: usize) -> usize {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    let affordable = wanted.min(files - files / 4).max(1);
    if affordable < wanted {
        tracing::warn!(wanted, affordable, "the process may open too few files for so many connections");
    }
    affordable
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        // See `connection` for the timeouts.
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX));
    builder
}
