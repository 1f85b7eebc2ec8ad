//! Sources of mail: those of the running nodes, with their stored state.

use std::collections::HashMap;
use std::net::IpAddr;

use messaging_core::domain::delivery::ip_pool::source::{NodeSource, PathRow, SourceAddress, SourceRow, SourceStatus};
use messaging_core::domain::delivery::path::{PathReport, PathState, PathStatus};
use messaging_core::domain::delivery::site::{SiteLimits, SiteName, SiteRules};
use messaging_core::ports::store::{Store, StoreError};
use messaging_core::time::Timestamp;

use crate::app::App;

/// Number of rows that are read at a time.
const READ_AT_ONCE: usize = 500;

/// Largest number of rows that are read in all; sources of an installation beyond it appear to have no stored state.
const MAX_ROWS: usize = 20_000;

/// The sources of the running nodes, with the stored state of each.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownSources {
    live: Vec<NodeSource>,
    rows: HashMap<SourceAddress, SourceRow>,
}

impl KnownSources {
    /// Sources of the running nodes, by node.
    pub(crate) fn live(&self) -> &[NodeSource] {
        &self.live
    }

    /// Returns the stored state of a source; `None` before there is any.
    pub(crate) fn row(&self, ip: SourceAddress) -> Option<&SourceRow> {
        self.rows.get(&ip)
    }

    /// State of a source; one without a stored state warms up.
    pub(crate) fn status(&self, ip: SourceAddress) -> SourceStatus {
        self.row(ip).map(SourceRow::shown).unwrap_or_default()
    }

    /// State of an address; `None` if no running node has it.
    pub(crate) fn status_of(&self, ip: IpAddr) -> Option<SourceStatus> {
        let ip = SourceAddress::from(ip);
        self.live.iter().any(|live| live.source.ip == ip).then(|| self.status(ip))
    }
}

impl App {
    /// Reads the sources of the running nodes, with the stored state of each.
    pub(crate) async fn known_sources(&self) -> Result<KnownSources, StoreError> {
        let live = self.store().live_sources().await?;
        let rows = if live.is_empty() { HashMap::new() } else { all_rows(self.store()).await? };
        Ok(KnownSources { live, rows })
    }
}

/// Number of the UTC day of a time since 1970-01-01.
pub(crate) const fn day_of(time: Timestamp) -> i64 {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    time.as_millis().div_euclid(DAY)
}

/// Returns the state in the row of a path. One that cannot be parsed counts as the state of a path over which nothing
/// was sent.
pub(crate) fn path_state(row: &PathRow) -> PathState {
    serde_json::from_str(&row.state).unwrap_or_default()
}

/// Returns the report on a path, by the limits in `rules`.
pub(crate) fn path_report(rules: &SiteRules, row: &PathRow, now: Timestamp) -> PathReport {
    path_state(row).report(&limits_of(rules, &row.site), now)
}

/// Returns the row of a path with another state, and with the columns that follow from the state.
pub(crate) fn with_state(rules: &SiteRules, row: PathRow, state: &PathState, now: Timestamp) -> PathRow {
    PathRow {
        state: serde_json::to_string(state).expect("a state has text keys and plain values"),
        sent_today: state.report(&limits_of(rules, &row.site), now).sent_today.into(),
        day: day_of(now),
        is_stopped: state.status(now) == PathStatus::Stopped,
        updated_at: now,
        ..row
    }
}

/// Returns the row of a path with a complaint that was not reported to the node which uses the path.
pub(crate) fn with_complaint(rules: &SiteRules, row: PathRow, now: Timestamp) -> PathRow {
    let mut state = path_state(&row);
    state.complained_elsewhere(&limits_of(rules, &row.site), now);
    with_state(rules, row, &state, now)
}

/// Returns the limits of a site for one source.
fn limits_of(rules: &SiteRules, site: &str) -> SiteLimits {
    SiteName::parse(site).map_or_else(|_| rules.unknown(), |site| rules.limits(&site))
}

async fn all_rows(store: &dyn Store) -> Result<HashMap<SourceAddress, SourceRow>, StoreError> {
    let mut rows = HashMap::new();
    let mut after = None;
    while rows.len() < MAX_ROWS {
        let page = store.source_rows(after, READ_AT_ONCE).await?;
        let is_last = page.len() < READ_AT_ONCE;
        after = page.last().map(|stored| stored.record.ip);
        rows.extend(page.into_iter().map(|stored| (stored.record.ip, stored.record)));
        if is_last {
            break;
        }
    }
    Ok(rows)
}
