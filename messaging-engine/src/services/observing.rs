//! Reports on the running application: log lines about commits, and the Prometheus page.
//!
//! A line contains no address, subject or other text of a user: only an [`Observation`].

use std::time::Instant;

use messaging_core::changes::{Changes, ImportObservation, MessageObservation, Observation, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::ids::{MessageId, WorkspaceId};
use messaging_core::ports::store::{Queued, Queues};
use messaging_core::time::Timestamp;

use crate::app::App;
use crate::jobs::lanes;

/// Part of the time, one in this number, that summing up the queue may take: a slow sum is made less often.
const QUEUE_SHARE: u32 = 20;

impl App {
    /// Renders the page for Prometheus (text format 0.0.4). `waits` is the number of times that requests have waited
    /// for memory or another bounded resource of that server since it started.
    pub async fn metrics_page(&self, waits: u64) -> String {
        let metrics = &self.0.metrics;
        let store = self.store();
        let gauges = store.gauges();
        metrics.wal_bytes.set(gauge(gauges.wal_bytes));
        metrics.database_bytes.set(gauge(gauges.database_bytes));
        metrics.disk_free_bytes.set(gauges.disk_free_bytes.map_or(f64::NAN, gauge));
        metrics.tell_health(store.health());
        let waits = waits + self.memory_waits();
        metrics.budget_waits.inc_by(waits.saturating_sub(metrics.budget_waits.get()));
        if let Ok(jobs) = store.job_count().await {
            metrics.jobs_waiting.set(gauge(jobs));
        }
        metrics.tell_checks(&self.checks());
        self.look_at_queues().await;
        self.look_at_cluster().await;
        metrics.page()
    }

    /// Sets the metrics of the processes that work on the database.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of an offset are few")]
    async fn look_at_cluster(&self) {
        let metrics = &self.0.metrics;
        metrics.clock_offset.set(self.store().clock_offset_ms() as f64 / 1000.0);
        metrics.jobs_unknown_kind.set(gauge(metrics.unknown_kinds.count(self.monotonic()) as u64));
        let Ok(found) = self.store().cluster().await else { return };
        let Some(cluster) = found else { return metrics.nodes_alive.set(1.0) };
        let places = cluster.nodes.iter().filter(|node| node.is_this).map(|node| node.places).sum();
        metrics.nodes_alive.set(gauge(cluster.nodes.len() as u64));
        metrics.places_owned.set(gauge(places));
        metrics.oldest_due_job.set(cluster.oldest_due_job.map_or(0.0, |(_, age)| age.as_secs_f64()));
        metrics.event_log_lag.set(cluster.event_log_lag.as_secs_f64());
        for (counter, now) in [
            (&metrics.fenced, cluster.fenced),
            (&metrics.commits_unknown, cluster.unknown_commits),
            (&metrics.store_transactions, cluster.transactions),
            (&metrics.store_round_trips, cluster.round_trips),
        ] {
            counter.inc_by(now.saturating_sub(counter.get()));
        }
    }

    /// Sets the gauges that need a look at all jobs, unless that takes long and was done just now.
    async fn look_at_queues(&self) {
        let mut rest = self.0.queue_look.lock().await;
        if rest.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let began = Instant::now();
        let Ok(queues) = self.store().queues(0).await else { return };
        let took = began.elapsed();
        *rest = (took >= std::time::Duration::from_millis(50)).then(|| Instant::now() + took * QUEUE_SHARE);
        let (metrics, now) = (&self.0.metrics, self.now());
        let messages = sum(&queues, Channel::ALL.map(Channel::as_str));
        metrics.queue_messages.set(gauge(messages.map_or(0, |queued| queued.jobs)));
        metrics.queue_oldest.set(age(messages, now));
        metrics.queue_overdue.set(messages.map_or(0.0, |queued| now.since(queued.due).as_secs_f64()));
        let backlog = sum(&queues, [lanes::WEBHOOK, lanes::BACKLOG].map(|lane| lane.trim_end_matches(':')));
        metrics.webhook_lag.set(age(backlog, now));
        metrics.segment_lag.set(age(sum(&queues, [lanes::SEGMENT_CHANGES, lanes::SEGMENTS]), now));
    }

    /// Logs the effects of a commit.
    pub(crate) fn tell_log(&self, changes: &Changes) {
        if self.0.is_without_log {
            return;
        }
        for write in changes.writes() {
            if let Write::Observe(observation) = write {
                tell(observation);
            }
        }
    }

    /// Logs and counts a mail, or a message of a recipient, that came in and was understood.
    pub(crate) fn note_inbound(
        &self,
        workspace: WorkspaceId,
        channel: Channel,
        message: Option<MessageId>,
        kind: &'static str,
    ) {
        self.0.metrics.inbound.inc();
        tracing::info!(
            workspace_id = %workspace,
            message_id = message.map(tracing::field::display),
            channel = channel.as_str(),
            kind,
            "inbound"
        );
    }
}

fn tell(observation: &Observation) {
    match observation {
        Observation::Message(observed) => tell_of_message(observed),
        Observation::WebhookCall(_) => {}
        Observation::WebhookDisabled(workspace, webhook) => tracing::warn!(
            workspace_id = %workspace,
            webhook_id = %webhook,
            "a webhook is disabled: its receiver is gone or has failed for days"
        ),
        Observation::ImportBegan(workspace, import, rows) => {
            tracing::info!(workspace_id = %workspace, import_id = %import, rows, "an import begins");
        }
        Observation::ImportEnded(ended) => {
            let ImportObservation { workspace_id, import_id, status, created, updated, failed } = ended;
            tracing::info!(%workspace_id, %import_id, status, created, updated, failed, "an import ended");
        }
    }
}

fn tell_of_message(observed: &MessageObservation) {
    if observed.is_implied {
        return;
    }
    tracing::info!(
        message_id = %observed.message_id,
        workspace_id = %observed.workspace_id,
        domain = observed.domain.as_deref(),
        channel = observed.channel.as_str(),
        status = observed.status(),
        class = observed.class.as_deref(),
        code = observed.code.as_deref(),
        attempt = observed.attempt,
        mx = observed.mx.as_deref(),
        duration_ms = observed.duration_ms,
        "message"
    );
}

/// Sums up the waiting jobs of these kinds.
fn sum<const N: usize>(queues: &Queues, kinds: [&str; N]) -> Option<Queued> {
    let found = kinds.iter().filter_map(|kind| queues.sums.get(*kind)).copied();
    found.reduce(|one, other| Queued {
        jobs: one.jobs + other.jobs,
        oldest: one.oldest.min(other.oldest),
        due: one.due.min(other.due),
    })
}

fn age(queued: Option<Queued>, now: Timestamp) -> f64 {
    queued.map_or(0.0, |queued| now.since(queued.oldest).as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "a gauge")]
fn gauge(value: u64) -> f64 {
    value as f64
}
