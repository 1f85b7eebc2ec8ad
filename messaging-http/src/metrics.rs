//! Counters of the server, in the format of Prometheus.
//!
//! The routes are known when the server starts, so every counter has a fixed place and counting is one addition. A
//! place is made when it is first counted in: most routes of most servers are never requested, and a page with a
//! histogram of zeros for each would be a quarter of a megabyte.

pub(crate) mod listener;

use std::sync::OnceLock;
use std::time::Duration;

use http::{Method, StatusCode};
use prometheus::core::Collector;
use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

use crate::router::{Slot, Target};

/// Upper bounds of the duration histogram, in seconds.
const BOUNDS: [f64; 14] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The label of requests without a route.
pub(crate) const UNMATCHED: &str = "unmatched";

/// The counters of a server, in a registry of its own.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    routes: Vec<Route>,
    requests: IntCounterVec,
    durations: HistogramVec,
    pub(crate) in_flight: IntGauge,
    pub(crate) connections: IntGauge,
    pub(crate) accepted: IntCounter,
    pub(crate) rate_limited: IntCounter,
    pub(crate) panics: IntCounter,
    body_bytes: IntGauge,
    log_lines_dropped: IntCounter,
}

/// The counters of one route and method.
#[derive(Debug)]
struct Route {
    path: &'static str,
    method: String,
    by_class: [OnceLock<IntCounter>; CLASSES.len()],
    duration: OnceLock<Histogram>,
}

/// One unit of a gauge, removed when dropped.
#[derive(Debug)]
pub(crate) struct GaugeGuard<'a>(&'a IntGauge);

impl<'a> GaugeGuard<'a> {
    /// Adds one to the gauge, until the guard is dropped.
    pub(crate) fn enter(gauge: &'a IntGauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Counters for the targets of a router, and for a server that started at this time, in seconds since the epoch.
    pub(crate) fn new(targets: &[(Method, Target)], started: f64) -> Self {
        let registry = Registry::new();
        let counter = |name, help| register(&registry, IntCounter::new(name, help));
        let gauge = |name, help| register(&registry, IntGauge::new(name, help));
        let start = register(&registry, Gauge::new("process_start_time_seconds", "When the server started."));
        start.set(started);
        let requests = Opts::new("messaging_http_requests_total", "Requests answered.");
        let requests = IntCounterVec::new(requests, &["route", "method", "status"]);
        let help = "Time from the end of a request's head to its answer.";
        let durations = HistogramOpts::new("messaging_http_request_duration_seconds", help).buckets(BOUNDS.to_vec());
        let known = targets.iter().map(|(method, target)| Route::new(target.route(), method.as_str()));
        let metrics = Self {
            routes: known.chain([Route::new(UNMATCHED, "any")]).collect(),
            requests: register(&registry, requests),
            durations: register(&registry, HistogramVec::new(durations, &["route", "method"])),
            in_flight: gauge("messaging_http_requests_in_flight", "Requests being answered."),
            connections: gauge("messaging_http_connections", "Open connections."),
            accepted: counter("messaging_http_connections_total", "Connections accepted."),
            rate_limited: counter("messaging_http_rate_limited_total", "Requests over a rate limit."),
            panics: counter("messaging_http_panics_total", "Operations that ended in a bug."),
            body_bytes: gauge("messaging_http_body_bytes", "Memory set aside for long bodies."),
            log_lines_dropped: counter("messaging_log_lines_dropped_total", "Log lines lost."),
            registry,
        };
        // So that the families exist before the first request.
        let unmatched = &metrics.routes[metrics.routes.len() - 1];
        metrics.count_of(unmatched, StatusCode::NOT_FOUND);
        metrics.duration_of(unmatched);
        metrics
    }

    /// Counts an answered request.
    pub(crate) fn answered(&self, slot: Option<Slot>, status: StatusCode, took: Duration) {
        let route = &self.routes[slot.unwrap_or(self.routes.len() - 1)];
        self.count_of(route, status).inc();
        self.duration_of(route).observe(took.as_secs_f64());
    }

    fn count_of<'a>(&self, route: &'a Route, status: StatusCode) -> &'a IntCounter {
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
        let labels = [route.path, route.method.as_str(), CLASSES[class]];
        route.by_class[class].get_or_init(|| self.requests.with_label_values(&labels))
    }

    fn duration_of<'a>(&self, route: &'a Route) -> &'a Histogram {
        route.duration.get_or_init(|| self.durations.with_label_values(&[route.path, route.method.as_str()]))
    }

    /// The page (text format 0.0.4), with the memory that long bodies hold and the number of dropped log lines.
    pub(crate) fn page(&self, body_bytes: u64, log_lines_dropped: u64) -> String {
        self.body_bytes.set(i64::try_from(body_bytes).unwrap_or(i64::MAX));
        self.log_lines_dropped.inc_by(log_lines_dropped.saturating_sub(self.log_lines_dropped.get()));
        let mut page = String::with_capacity(16 * 1024);
        TextEncoder::new().encode_utf8(&self.registry.gather(), &mut page).expect("what is registered has values");
        page
    }
}

/// Registers a family. The names are constants, so none is refused.
fn register<C: Collector + Clone + 'static>(registry: &Registry, family: prometheus::Result<C>) -> C {
    let family = family.expect("names are well formed");
    registry.register(Box::new(family.clone())).expect("names differ");
    family
}

impl Route {
    fn new(path: &'static str, method: &str) -> Self {
        Self { path, method: method.to_owned(), by_class: Default::default(), duration: OnceLock::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_class_and_duration() {
        let health = messaging_engine::ops::all().iter().find(|endpoint| endpoint.path == "/health").unwrap();
        let metrics = Metrics::new(&[(Method::GET, Target::Operation(health))], 1.5);
        let untouched = metrics.page(0, 0);
        assert!(untouched.contains(r#"messaging_http_requests_total{method="any",route="unmatched",status="4xx"} 0"#));
        assert!(untouched.contains(r#"_duration_seconds_count{method="any",route="unmatched"} 0"#), "{untouched}");
        metrics.answered(Some(0), StatusCode::OK, Duration::from_micros(500));
        metrics.answered(Some(0), StatusCode::SERVICE_UNAVAILABLE, Duration::from_millis(70));
        metrics.answered(None, StatusCode::NOT_FOUND, Duration::from_mins(1));
        let _one = GaugeGuard::enter(&metrics.in_flight);
        let page = metrics.page(3, 2);
        for line in [
            r#"messaging_http_requests_total{method="GET",route="/health",status="2xx"} 1"#,
            r#"messaging_http_requests_total{method="GET",route="/health",status="5xx"} 1"#,
            r#"messaging_http_requests_total{method="any",route="unmatched",status="4xx"} 1"#,
            r#"messaging_http_request_duration_seconds_bucket{method="GET",route="/health",le="0.0005"} 1"#,
            r#"messaging_http_request_duration_seconds_bucket{method="GET",route="/health",le="0.1"} 2"#,
            r#"messaging_http_request_duration_seconds_bucket{method="any",route="unmatched",le="10"} 0"#,
            r#"messaging_http_request_duration_seconds_bucket{method="any",route="unmatched",le="+Inf"} 1"#,
            "messaging_http_requests_in_flight 1",
            "messaging_http_body_bytes 3",
            "messaging_log_lines_dropped_total 2",
            "process_start_time_seconds 1.5",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
        // A sum of fractions, which may end in the last digit of a double.
        let sum = r#"messaging_http_request_duration_seconds_sum{method="GET",route="/health"} 0.0705"#;
        assert!(page.lines().any(|found| found.starts_with(sum)), "{page}");
        assert_eq!(metrics.page(3, 2), page, "what is looked up for a page counts once");
    }
}
