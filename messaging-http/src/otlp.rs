//! Spans for a collector, by OTLP over HTTP.
//!
//! Requests, commits, attempts and calls of webhooks make spans of the target [`TARGET`]; only these are exported, if
//! the variables of OpenTelemetry name a collector. A separate thread sends the gathered spans. The queue is bounded,
//! and spans are dropped if the collector is too slow.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use messaging_engine::spans::TARGET;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::{Builder, Runtime};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::client::{Trust, connector_for};
use crate::logging::LogError;

/// Time limit of a call of the collector.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest answer of a collector that is read.
const MAX_ANSWER: usize = 64 << 10;

/// Time the end of the process waits for the last spans to be sent.
const LAST_SPANS: Duration = Duration::from_secs(3);

/// The name of the service unless `OTEL_SERVICE_NAME` gives another.
const SERVICE: &str = "messaging";

/// Exports spans; sends the remaining ones when dropped.
#[derive(Debug)]
pub(crate) struct Traces(SdkTracerProvider);

impl Drop for Traces {
    fn drop(&mut self) {
        // A collector that does not answer does not delay the end.
        let _ = self.0.shutdown_with_timeout(LAST_SPANS);
    }
}

impl Traces {
    /// Begins to export, to the collector of the variables.
    pub(crate) fn start() -> Result<Self, LogError> {
        let client = Collector::new()?;
        let exporter = SpanExporter::builder().with_http().with_http_client(client).build();
        let exporter = exporter.map_err(|error| LogError::Traces(Box::new(error)))?;
        let mut resource = Resource::builder();
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(SERVICE);
        }
        Ok(Self(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build()))
    }

    /// The tracing layer that hands the spans of this program over to the exporter.
    pub(crate) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        let layer = tracing_opentelemetry::layer().with_tracer(self.0.tracer(SERVICE));
        let layer = layer.with_location(false).with_threads(false).with_tracked_inactivity(false);
        layer.with_filter(filter_fn(|metadata| metadata.is_span() && metadata.target() == TARGET))
    }
}

/// Calls the collector, on a separate runtime: the thread that exports has none, and may block.
#[derive(Debug)]
struct Collector {
    runtime: Option<Runtime>,
    client: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Collector {
    fn new() -> Result<Self, LogError> {
        let failed = |error: std::io::Error| LogError::Traces(Box::new(error));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let is_tls = std::env::vars_os().any(|(name, value)| {
            let name = name.to_string_lossy();
            name.starts_with("OTEL_EXPORTER_OTLP") && value.to_string_lossy().starts_with("https:")
        });
        let trust = if is_tls { Trust::SystemRoots } else { Trust::NoRoots };
        let connector = connector_for(trust).map_err(|error| LogError::Traces(Box::new(error)))?;
        let client = legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { runtime: Some(runtime), client })
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let Some(runtime) = &self.runtime else { return Err("the exporter has ended".into()) };
        runtime.block_on(async {
            let exchange = async {
                let (head, body) = self.client.request(request.map(Full::new)).await?.into_parts();
                let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
                Ok(Response::from_parts(head, body))
            };
            tokio::time::timeout(PATIENCE, exchange).await.map_err(|_| "the collector did not answer in time")?
        })
    }
}
