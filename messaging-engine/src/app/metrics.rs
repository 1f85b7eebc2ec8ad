//! Counters of an application, and their Prometheus page.
//!
//! Each application has its own registry, so that several in one process do not mix their counts; and counters are
//! found by index, so that counting is one addition. Effects of a commit are counted by the thread that commits
//! ([`CommitObserver`]): not twice if a commit is tried again, and also if its caller has gone away meanwhile.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use messaging_core::changes::{Changes, MessageObservation, Observation, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::bounce::BounceClass;
use messaging_core::domain::installation::checkup::{CheckReport, CheckStatus};
use messaging_core::domain::message::EventKind;
use messaging_core::ports::store::{CommitBatch, CommitObserver, StoreHealth};
use prometheus::core::Collector;
use prometheus::{
    Gauge, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

use super::paths::ShownPath;
use super::unknown_kinds::UnknownKinds;

/// Buckets of durations, from a tenth of a millisecond to some seconds.
const SECONDS: [f64; 14] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];
/// Buckets of the number of commits that are made durable together.
const ITEMS: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// Largest number of checks shown.
const MAX_CHECKS: usize = 1000;

const CHANNELS: usize = Channel::ALL.len();
const CLASSES: usize = BounceClass::ALL.len();

/// One counter for each channel.
type PerChannel = [IntCounter; CHANNELS];

/// The counters of an application.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    accepted: PerChannel,
    sent: PerChannel,
    delivered: PerChannel,
    deferred: PerChannel,
    bounced: [[IntCounter; CLASSES]; CHANNELS],
    complained: PerChannel,
    webhook_deliveries: IntCounter,
    webhook_failures: IntCounter,
    imports: IntCounter,
    quarantined: IntCounter,
    commit_items: Histogram,
    commit_wait: Histogram,
    commit_sync: Histogram,
    /// Attempts that ended without it being known whether the message arrived.
    pub(crate) ambiguous: IntCounter,
    pub(crate) tls_policy_failures: IntCounter,
    /// Incoming mail and messages.
    pub(crate) inbound: IntCounter,
    pub(crate) budget_waits: IntCounter,
    /// API requests that were not logged, because there was no room or no store.
    pub(crate) request_log_dropped: IntCounter,
    pub(crate) queue_messages: Gauge,
    pub(crate) queue_oldest: Gauge,
    pub(crate) queue_overdue: Gauge,
    pub(crate) webhook_lag: Gauge,
    pub(crate) segment_lag: Gauge,
    pub(crate) nodes_alive: Gauge,
    pub(crate) places_owned: Gauge,
    pub(crate) oldest_due_job: Gauge,
    pub(crate) event_log_lag: Gauge,
    pub(crate) clock_offset: Gauge,
    pub(crate) fenced: IntCounter,
    pub(crate) commits_unknown: IntCounter,
    pub(crate) store_transactions: IntCounter,
    pub(crate) store_round_trips: IntCounter,
    pub(crate) jobs_unknown_kind: Gauge,
    /// Jobs counted in the gauge of unknown kinds.
    pub(crate) unknown_kinds: UnknownKinds,
    pub(crate) jobs_waiting: Gauge,
    pub(crate) wal_bytes: Gauge,
    pub(crate) database_bytes: Gauge,
    pub(crate) disk_free_bytes: Gauge,
    lanes_paused: IntGauge,
    store_health: IntGaugeVec,
    checks: IntGaugeVec,
    paths: IntGaugeVec,
    /// Held while checks or paths are replaced, so that no page shows half of them.
    replacing: Mutex<()>,
}

impl Metrics {
    /// Creates all metrics at zero.
    pub(crate) fn new() -> Self {
        let registry = Registry::new();
        let families = Families(&registry);
        let build = families.gauge_of("messaging_build_info", "1, with the version as a label.", &["version"]);
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let store_health =
            families.gauge_of("messaging_store_health", "1 for the state that the store is in.", &["state"]);
        let metrics = Self {
            accepted: families.per_channel("messaging_messages_accepted_total", "Messages accepted."),
            sent: families
                .per_channel("messaging_messages_sent_total", "Recipients handed over to a server or provider."),
            delivered: families
                .per_channel("messaging_messages_delivered_total", "Recipients whose server or provider confirmed."),
            deferred: families
                .per_channel("messaging_messages_deferred_total", "Attempts put off for later, by recipient."),
            bounced: families.bounced(),
            complained: families.per_channel("messaging_messages_complained_total", "Complaints of recipients."),
            webhook_deliveries: families
                .counter("messaging_webhook_deliveries_total", "Events that receivers of webhooks took."),
            webhook_failures: families.counter("messaging_webhook_failures_total", "Calls of webhooks that failed."),
            imports: families.counter("messaging_imports_total", "Imports that ended, whichever way."),
            quarantined: families.counter(
                "messaging_quarantined_total",
                "Items that were put aside because the database refuses their outcome for good.",
            ),
            request_log_dropped: families.counter(
                "messaging_request_log_dropped_total",
                "Requests of the API that were not logged because they came faster than they were written.",
            ),
            commit_items: families.histogram(
                "messaging_commit_items",
                "Commits of requests and jobs made durable by one sync.",
                &ITEMS,
            ),
            commit_wait: families.histogram(
                "messaging_commit_wait_seconds",
                "Time from handing over a commit until it is durable.",
                &SECONDS,
            ),
            commit_sync: families.histogram(
                "messaging_commit_sync_seconds",
                "Time that making commits durable takes.",
                &SECONDS,
            ),
            ambiguous: families.counter(
                "messaging_attempts_ambiguous_total",
                "Attempts of which it is not known whether the message arrived; it is sent again.",
            ),
            tls_policy_failures: families.counter(
                "messaging_tls_policy_failures_total",
                "Attempts at exchangers that lack what an MTA-STS policy in mode testing asks for; mail is sent there.",
            ),
            inbound: families.counter(
                "messaging_inbound_total",
                "Returned mail and messages of recipients that came in and were understood.",
            ),
            budget_waits: families.counter(
                "messaging_budget_waits_total",
                "Requests and messages that waited for memory or for another bounded resource.",
            ),
            queue_messages: families.gauge(
                "messaging_queue_messages",
                "Messages waiting or being sent; one counts once for each domain of its recipients.",
            ),
            queue_oldest: families.gauge("messaging_queue_oldest_seconds", "Age of the oldest of them; 0 for none."),
            queue_overdue: families
                .gauge("messaging_queue_overdue_seconds", "For how long the first of them has been due; 0 for none."),
            lanes_paused: families.whole_gauge(
                "messaging_lanes_paused",
                "Lanes left alone because their provider asked for a pause or refuses the account.",
            ),
            webhook_lag: families.gauge(
                "messaging_webhook_lag_seconds",
                "Age of the oldest event that its webhook has yet to take, retries included; 0 for none.",
            ),
            segment_lag: families.gauge(
                "messaging_segment_lag_seconds",
                "Age of the oldest change that segments have yet to follow; 0 for none.",
            ),
            nodes_alive: families.gauge("messaging_nodes_alive", "Processes that work on the database."),
            places_owned: families.gauge(
                "messaging_places_owned",
                "Of the places by which work is divided among processes, how many are this one's; 0 on SQLite.",
            ),
            oldest_due_job: families.gauge(
                "messaging_oldest_due_job_seconds",
                "For how long the oldest job has been due; only on PostgreSQL, 0 for none.",
            ),
            event_log_lag: families.gauge(
                "messaging_event_log_lag_seconds",
                "For how long the event log has waited for a transaction that is open; only on PostgreSQL.",
            ),
            clock_offset: families.gauge(
                "messaging_clock_offset_seconds",
                "By how much the clock of the database is ahead of this process's.",
            ),
            fenced: families.counter(
                "messaging_fenced_total",
                "How often others took the work of this process, because it was not heard of.",
            ),
            commits_unknown: families.counter(
                "messaging_commits_unknown_total",
                "Commits of which nobody knows whether they are kept, because the connection was lost.",
            ),
            store_transactions: families.counter(
                "messaging_store_transactions_total",
                "Transactions that this process has committed; only on PostgreSQL.",
            ),
            store_round_trips: families.counter(
                "messaging_store_round_trips_total",
                "How often a transaction that writes waited for the database; only on PostgreSQL.",
            ),
            jobs_unknown_kind: families.gauge(
                "messaging_jobs_unknown_kind",
                "Jobs that a newer version wrote and this one has met lately; they wait for a process of that version.",
            ),
            unknown_kinds: UnknownKinds::default(),
            jobs_waiting: families.gauge("messaging_jobs_waiting", "Jobs to be done, of all kinds."),
            wal_bytes: families.gauge("messaging_wal_bytes", "Length of the write-ahead log."),
            database_bytes: families.gauge("messaging_database_bytes", "Length of the database without its log."),
            disk_free_bytes: families.gauge(
                "messaging_disk_free_bytes",
                "Free on the disk of the database; NaN when the system does not say.",
            ),
            store_health,
            checks: families.gauge_of(
                "messaging_check_ok",
                "0 when the check found a fault, as `messaging doctor` tells it.",
                &["check", "subject"],
            ),
            paths: families.gauge_of(
                "messaging_path_state",
                "1 for each path that is slowed, rests or is stopped, and for those to known sites.",
                &["source", "site", "status"],
            ),
            replacing: Mutex::default(),
            registry,
        };
        metrics.tell_health(StoreHealth::Healthy);
        metrics
    }

    /// Sets the state of the store.
    pub(crate) fn tell_health(&self, health: StoreHealth) {
        for state in StoreHealth::ALL {
            self.store_health.with_label_values(&[state.as_str()]).set(i64::from(state == health));
        }
    }

    /// Replaces the results of the installation's checks: 0 for a fault, and no value for a skipped check. Checks
    /// beyond [`MAX_CHECKS`] are left out.
    pub(crate) fn tell_checks(&self, found: &[CheckReport]) {
        let _replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        self.checks.reset();
        let looked_at = found.iter().filter(|check| check.status != CheckStatus::Skipped);
        for check in looked_at.take(MAX_CHECKS) {
            let labels = [check.id.as_str(), check.subject.as_str()];
            self.checks.with_label_values(&labels).set(i64::from(!check.is_fault()));
        }
    }

    /// Replaces the states of paths.
    pub(crate) fn tell_paths(&self, paths: &[ShownPath]) {
        let _replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        self.paths.reset();
        for ShownPath { source, site, status } in paths {
            self.paths.with_label_values(&[source.as_str(), site.as_str(), status.as_str()]).set(1);
        }
    }

    /// Sets the number of lanes that were paused at the latest claim of jobs.
    pub(crate) fn tell_paused(&self, lanes: usize) {
        self.lanes_paused.set(i64::try_from(lanes).unwrap_or(i64::MAX));
    }

    /// Renders the page (text format 0.0.4).
    pub(crate) fn page(&self) -> String {
        let _whole = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut page = String::with_capacity(16 * 1024);
        TextEncoder::new().encode_utf8(&self.registry.gather(), &mut page).expect("what is registered has values");
        page
    }

    fn count(&self, observed: &MessageObservation) {
        let channel = observed.channel as usize;
        let family = match observed.kind {
            EventKind::Sent => &self.sent,
            EventKind::Delivered => &self.delivered,
            EventKind::Deferred => &self.deferred,
            EventKind::Complaint => &self.complained,
            EventKind::Bounce => {
                let class = observed.bounce_class().unwrap_or(BounceClass::Unknown);
                return self.bounced[channel][class as usize].inc();
            }
            _ => return,
        };
        family[channel].inc();
    }
}

impl CommitObserver for Metrics {
    fn committed(&self, changes: &Changes, waited: Duration) {
        for write in changes.writes() {
            match write {
                Write::InsertMessage(message, _) => self.accepted[message.channel as usize].inc(),
                Write::InsertWaiting(_, _, waiting) => {
                    for new in waiting {
                        self.accepted[new.message.channel as usize].inc();
                    }
                }
                Write::Quarantine(_) => self.quarantined.inc(),
                Write::Observe(observation) => match &**observation {
                    Observation::Message(observed) => self.count(observed),
                    Observation::WebhookCall(true) => self.webhook_deliveries.inc(),
                    Observation::WebhookCall(false) => self.webhook_failures.inc(),
                    Observation::ImportEnded(_) => self.imports.inc(),
                    Observation::WebhookDisabled(..) | Observation::ImportBegan(..) => {}
                },
                _ => {}
            }
        }
        self.commit_wait.observe(waited.as_secs_f64());
    }

    fn synced(&self, batch: CommitBatch) {
        #[expect(clippy::cast_precision_loss, reason = "a batch has hundreds at most")]
        self.commit_items.observe(batch.commits as f64);
        self.commit_sync.observe(batch.sync.as_secs_f64());
    }
}

/// Creates metrics and registers them. The names are constants, so that none is refused.
struct Families<'a>(&'a Registry);

impl Families<'_> {
    fn register<C: Collector + Clone + 'static>(&self, family: prometheus::Result<C>) -> C {
        let family = family.expect("names are well formed");
        self.0.register(Box::new(family.clone())).expect("names differ");
        family
    }

    fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.register(IntCounter::new(name, help))
    }

    fn gauge(&self, name: &str, help: &str) -> Gauge {
        self.register(Gauge::new(name, help))
    }

    fn whole_gauge(&self, name: &str, help: &str) -> IntGauge {
        self.register(IntGauge::new(name, help))
    }

    fn gauge_of(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.register(IntGaugeVec::new(Opts::new(name, help), labels))
    }

    fn histogram(&self, name: &str, help: &str, bounds: &[f64]) -> Histogram {
        self.register(Histogram::with_opts(HistogramOpts::new(name, help).buckets(bounds.to_vec())))
    }

    fn per_channel(&self, name: &str, help: &str) -> PerChannel {
        let family = self.register(IntCounterVec::new(Opts::new(name, help), &["channel"]));
        Channel::ALL.map(|channel| family.with_label_values(&[channel.as_str()]))
    }

    fn bounced(&self) -> [[IntCounter; CLASSES]; CHANNELS] {
        let opts = Opts::new("messaging_messages_bounced_total", "Recipients refused for good.");
        let family = self.register(IntCounterVec::new(opts, &["channel", "class"]));
        Channel::ALL
            .map(|channel| BounceClass::ALL.map(|class| family.with_label_values(&[channel.as_str(), class.as_str()])))
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::domain::installation::checkup::{judge_clock, judge_name, judge_resolver};

    use super::*;

    #[test]
    fn places_of_channels_and_classes_are_those_of_their_lists() {
        assert!(Channel::ALL.iter().enumerate().all(|(place, channel)| *channel as usize == place));
        assert!(BounceClass::ALL.iter().enumerate().all(|(place, class)| *class as usize == place));
    }

    fn check_lines(metrics: &Metrics) -> Vec<String> {
        let page = metrics.page();
        let mut lines: Vec<_> = page.lines().filter(|line| line.starts_with("messaging_check_ok{")).collect();
        lines.sort_unstable();
        lines.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn checks_are_replaced_as_a_whole_and_bounded() {
        let metrics = Metrics::new();
        assert_eq!(check_lines(&metrics), [""; 0]);
        metrics
            .tell_checks(&[judge_name("mail.example.org", None), judge_resolver("a.example", &Err("silent".into()))]);
        let name = r#"messaging_check_ok{check="name",subject="mail.example.org"} 1"#;
        assert_eq!(check_lines(&metrics), [name, r#"messaging_check_ok{check="resolver",subject="a.example"} 0"#]);
        metrics.tell_checks(&[judge_resolver("a.example", &Ok(()))]);
        assert_eq!(check_lines(&metrics), [r#"messaging_check_ok{check="resolver",subject="a.example"} 1"#]);
        let many: Vec<_> = (0..MAX_CHECKS + 5).map(|number| judge_name(&number.to_string(), None)).collect();
        metrics.tell_checks(&many);
        assert_eq!(check_lines(&metrics).len(), MAX_CHECKS);
    }

    #[test]
    fn a_fault_is_zero_and_what_was_skipped_is_absent() {
        let metrics = Metrics::new();
        metrics.tell_checks(&[
            judge_name("vm", None),
            judge_name("mx.example.org", None),
            judge_clock("-", None),
            judge_resolver("a\"b\\c", &Ok(())),
        ]);
        assert_eq!(
            check_lines(&metrics),
            [
                r#"messaging_check_ok{check="name",subject="mx.example.org"} 1"#,
                r#"messaging_check_ok{check="name",subject="vm"} 0"#,
                r#"messaging_check_ok{check="resolver",subject="a\"b\\c"} 1"#,
            ]
        );
        metrics.tell_checks(&[]);
        assert_eq!(check_lines(&metrics), [""; 0], "what is not looked at any more is gone");
    }

    #[test]
    fn two_applications_do_not_count_for_each_other() {
        let (one, other) = (Metrics::new(), Metrics::new());
        one.inbound.inc();
        let line = |metrics: &Metrics| metrics.page().lines().any(|line| line == "messaging_inbound_total 1");
        assert_eq!((line(&one), line(&other)), (true, false));
    }
}
