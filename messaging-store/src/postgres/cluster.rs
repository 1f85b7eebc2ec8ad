//! View of the processes of an installation, for display.

use std::sync::atomic::Ordering;
use std::time::Duration;

use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ports::store::{ClusterView, NodeView, StoreError};

use super::PostgresStore;
use super::fault::Fault;
use super::query::{many, one};
use crate::row::{count, get, time};
use crate::sql::params;

impl PostgresStore {
    /// Returns the processes of the installation.
    pub(super) async fn cluster_view(&self) -> Result<ClusterView, StoreError> {
        Ok(self.look_at_cluster().await?)
    }

    async fn look_at_cluster(&self) -> Result<ClusterView, Fault> {
        const NODES: &str = "SELECT name, term, version, state, works, seen_at, clock_offset_ms,
                (SELECT count(*) FROM places WHERE places.term = nodes.term) FROM nodes ORDER BY term DESC";
        const FREE: &str = "SELECT count(*), count(*) FILTER (WHERE nodes.term IS NULL),
                current_setting('server_version'), (SELECT timeline_id::bigint FROM pg_control_checkpoint()),
                (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start) * 1000), 0)::bigint
                    FROM pg_stat_activity WHERE backend_xid IS NOT NULL)
            FROM places LEFT JOIN nodes ON nodes.term = places.term";
        const OLDEST: &str = "SELECT due.lane, now_ms() - due.due_at FROM places
            CROSS JOIN (VALUES (false), (true)) AS class (bulk)
            CROSS JOIN LATERAL (SELECT lane, due_at FROM jobs WHERE jobs.place = places.place AND jobs.bulk = class.bulk
                AND due_at <= now_ms() ORDER BY due_at LIMIT 1) AS due ORDER BY due.due_at LIMIT 1";
        let own = self.writes.term();
        let mut reads = self.reads.clone();
        let nodes = many(&mut reads, NODES, params![], |row| {
            let state = match get::<i16>(row, 3)? {
                0 => "working",
                1 => "idle",
                2 => "draining",
                3 => "fenced",
                _ => "clock",
            };
            let term = get(row, 1)?;
            Ok(NodeView {
                name: get(row, 0)?,
                term,
                version: get(row, 2)?,
                state,
                works: get(row, 4)?,
                is_this: term == own,
                places: count(row, 7)?,
                seen_at: time(row, 5)?,
                clock_offset_ms: get(row, 6)?,
            })
        })
        .await?;
        let read = |row: &tokio_postgres::Row| {
            let lag = Duration::from_millis(get::<i64>(row, 4)?.unsigned_abs());
            Ok((count(row, 0)?, count(row, 1)?, get(row, 2)?, get(row, 3)?, lag))
        };
        let found = one(&mut reads, FREE, params![], read).await?;
        let (places, free_places, server_version, timeline, event_log_lag) =
            found.ok_or(Fault::Malformed("there are no places"))?;
        let oldest_due_job = one(&mut reads, OLDEST, params![], |row| {
            Ok((Lane::parse(get(row, 0)?), Duration::from_millis(get::<i64>(row, 1)?.unsigned_abs())))
        })
        .await?;
        let counters = &self.writes.0.counters;
        Ok(ClusterView {
            nodes,
            places,
            free_places,
            oldest_due_job,
            event_log_lag,
            server_version,
            timeline,
            fenced: self.membership.fenced.load(Ordering::Relaxed),
            unknown_commits: counters.unknown.load(Ordering::Relaxed),
            transactions: counters.transactions.load(Ordering::Relaxed),
            round_trips: counters.round_trips.load(Ordering::Relaxed),
        })
    }
}
