//! What the server counts, and how it looks to Prometheus.
//!
//! The routes are known when the server starts, so every counter has its fixed place and counting is
//! one addition; a general registry would look its counters up by name at every request.

pub(crate) mod listener;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::{Method, StatusCode};
use messaging_core::ports::store::{StoreGauges, StoreHealth};

use crate::router::{Slot, Target};

/// Upper bounds of the duration histogram, in microseconds.
const BOUNDS: [u64; 14] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000,
];

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

const DURATION: &str = "messaging_http_request_duration_seconds";

const STORE_HEALTH: &str = "messaging_store_health";

/// The label of requests that no route took.
const UNMATCHED: &str = "unmatched";

/// The counters of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    routes: Vec<Route>,
    pub(crate) in_flight: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) accepted: AtomicU64,
    pub(crate) rate_limited: AtomicU64,
    pub(crate) panics: AtomicU64,
}

/// The counters of one route and method.
#[derive(Debug)]
struct Route {
    path: &'static str,
    method: String,
    by_class: [AtomicU64; CLASSES.len()],
    /// How many took at most as long as the bound of the same place; the last is for those above all.
    by_duration: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// How many there are now.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicI64);

/// One of them; gone when dropped.
#[derive(Debug)]
pub(crate) struct Counted<'a>(&'a Gauge);

impl Gauge {
    /// One more, until the guard is dropped.
    pub(crate) fn enter(&self) -> Counted<'_> {
        self.0.fetch_add(1, Relaxed);
        Counted(self)
    }

    fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

/// Facts that others know, asked for when the page is made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts {
    /// Seconds since the epoch when the server started.
    pub(crate) started: f64,
    /// Jobs waiting; `None` when the store does not say.
    pub(crate) jobs: Option<u64>,
    /// Whether the store takes writes.
    pub(crate) health: StoreHealth,
    /// Sizes of the store.
    pub(crate) store: StoreGauges,
    /// Bytes of bodies in memory.
    pub(crate) body_bytes: u64,
    /// Attempts to deliver that ended without it being known whether the message arrived.
    pub(crate) ambiguous_attempts: u64,
    /// Log lines dropped because the disk or terminal was too slow.
    pub(crate) log_lines_dropped: u64,
}

impl Metrics {
    /// Counters for the targets of a router.
    pub(crate) fn new(targets: &[(Method, Target)]) -> Self {
        let known = targets.iter().map(|(method, target)| Route::new(target.route(), method.as_str()));
        Self {
            routes: known.chain([Route::new(UNMATCHED, "any")]).collect(),
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            accepted: AtomicU64::new(0),
            rate_limited: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        }
    }

    /// Counts an answered request.
    pub(crate) fn answered(&self, slot: Option<Slot>, status: StatusCode, took: Duration) {
        let route = &self.routes[slot.unwrap_or(self.routes.len() - 1)];
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
        route.by_class[class].fetch_add(1, Relaxed);
        route.by_duration[BOUNDS.partition_point(|bound| *bound < micros)].fetch_add(1, Relaxed);
        route.micros.fetch_add(micros, Relaxed);
    }

    /// The page (text format 0.0.4).
    pub(crate) fn page(&self, facts: Facts) -> String {
        let mut page = String::with_capacity(8 * 1024);
        head(&mut page, "messaging_http_requests_total", "counter", "Requests answered.");
        for route in self.routes.iter().filter(|route| route.count() > 0) {
            for (class, count) in CLASSES.iter().zip(&route.by_class) {
                let count = count.load(Relaxed);
                if count > 0 {
                    let labels = route.labels();
                    let _ = writeln!(page, "messaging_http_requests_total{{{labels},status=\"{class}\"}} {count}");
                }
            }
        }
        head(&mut page, DURATION, "histogram", "Time from the end of a request's head to its answer.");
        for route in self.routes.iter().filter(|route| route.count() > 0) {
            route.write_durations(&mut page, DURATION);
        }
        let count = |value: &AtomicU64| value.load(Relaxed).to_string();
        let rows = [
            (
                "messaging_http_requests_in_flight",
                "gauge",
                "Requests being answered.",
                self.in_flight.get().to_string(),
            ),
            ("messaging_http_connections", "gauge", "Open connections.", self.connections.get().to_string()),
            ("messaging_http_connections_total", "counter", "Connections accepted.", count(&self.accepted)),
            ("messaging_http_rate_limited_total", "counter", "Requests over a rate limit.", count(&self.rate_limited)),
            ("messaging_http_panics_total", "counter", "Operations that ended in a bug.", count(&self.panics)),
            ("messaging_http_body_bytes", "gauge", "Memory set aside for long bodies.", facts.body_bytes.to_string()),
            (
                "messaging_attempts_ambiguous_total",
                "counter",
                "Attempts of which it is not known whether the message arrived; it is sent again.",
                facts.ambiguous_attempts.to_string(),
            ),
            ("messaging_log_lines_dropped_total", "counter", "Log lines lost.", facts.log_lines_dropped.to_string()),
            ("messaging_wal_bytes", "gauge", "Length of the write-ahead log.", facts.store.wal_bytes.to_string()),
            ("process_start_time_seconds", "gauge", "When the server started.", format!("{:.3}", facts.started)),
        ];
        let jobs = facts.jobs.map(|jobs| ("messaging_jobs_waiting", "gauge", "Jobs to be done.", jobs.to_string()));
        let free = facts.store.disk_free_bytes;
        let free = free
            .map(|free| ("messaging_disk_free_bytes", "gauge", "Free on the disk of the database.", free.to_string()));
        for (name, kind, help, value) in rows.into_iter().chain(jobs).chain(free) {
            head(&mut page, name, kind, help);
            let _ = writeln!(page, "{name} {value}");
        }
        head(&mut page, STORE_HEALTH, "gauge", "1 for the state that the store is in.");
        for state in StoreHealth::ALL {
            let _ =
                writeln!(page, "{STORE_HEALTH}{{state=\"{}\"}} {}", state.as_str(), u8::from(state == facts.health));
        }
        page
    }
}

impl Route {
    fn new(path: &'static str, method: &str) -> Self {
        Self {
            path,
            method: method.to_owned(),
            by_class: Default::default(),
            by_duration: Default::default(),
            micros: AtomicU64::new(0),
        }
    }

    fn count(&self) -> u64 {
        self.by_class.iter().map(|count| count.load(Relaxed)).sum()
    }

    fn labels(&self) -> String {
        format!("method=\"{}\",route=\"{}\"", self.method, self.path)
    }

    fn write_durations(&self, page: &mut String, name: &str) {
        let labels = self.labels();
        let mut sum = 0;
        for (place, count) in self.by_duration.iter().enumerate() {
            sum += count.load(Relaxed);
            let bound = BOUNDS.get(place).map_or_else(|| "+Inf".to_owned(), |micros| seconds(*micros));
            let _ = writeln!(page, "{name}_bucket{{{labels},le=\"{bound}\"}} {sum}");
        }
        let _ = writeln!(page, "{name}_sum{{{labels}}} {}", seconds(self.micros.load(Relaxed)));
        let _ = writeln!(page, "{name}_count{{{labels}}} {sum}");
    }
}

fn seconds(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn head(page: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route_class_and_duration() {
        let health = messaging_engine::ops::all().iter().find(|endpoint| endpoint.path == "/health").unwrap();
        let metrics = Metrics::new(&[(Method::GET, Target::Operation(health))]);
        metrics.answered(Some(0), StatusCode::OK, Duration::from_micros(500));
        metrics.answered(Some(0), StatusCode::SERVICE_UNAVAILABLE, Duration::from_millis(70));
        metrics.answered(None, StatusCode::NOT_FOUND, Duration::from_mins(1));
        let _one = metrics.in_flight.enter();
        let store = StoreGauges { wal_bytes: 77, disk_free_bytes: Some(99) };
        let health = StoreHealth::Full;
        let page = metrics.page(Facts {
            started: 1.5,
            jobs: Some(3),
            ambiguous_attempts: 2,
            health,
            store,
            ..Facts::default()
        });
        for line in [
            r#"messaging_http_requests_total{method="GET",route="/health",status="2xx"} 1"#,
            r#"messaging_http_requests_total{method="GET",route="/health",status="5xx"} 1"#,
            r#"messaging_http_requests_total{method="any",route="unmatched",status="4xx"} 1"#,
            r#"messaging_http_request_duration_seconds_bucket{method="GET",route="/health",le="0.0005"} 1"#,
            r#"messaging_http_request_duration_seconds_bucket{method="GET",route="/health",le="0.1"} 2"#,
            r#"messaging_http_request_duration_seconds_bucket{method="any",route="unmatched",le="10"} 0"#,
            r#"messaging_http_request_duration_seconds_bucket{method="any",route="unmatched",le="+Inf"} 1"#,
            r#"messaging_http_request_duration_seconds_sum{method="GET",route="/health"} 0.0705"#,
            "messaging_http_requests_in_flight 1",
            "messaging_jobs_waiting 3",
            "messaging_attempts_ambiguous_total 2",
            "messaging_wal_bytes 77",
            "messaging_disk_free_bytes 99",
            r#"messaging_store_health{state="full"} 1"#,
            r#"messaging_store_health{state="healthy"} 0"#,
            "process_start_time_seconds 1.500",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
    }
}
