//! Stored state of sources and paths: read when a process begins to work, written in batches.
//!
//! Paths that warm up or are braked are written soon after they changed, the others once an hour: of those only the
//! time of the last message matters. If a row was written elsewhere, by the operator or by another node that also has
//! the default source, the batch conflicts; then the rows are read again, and the operator's changes have precedence
//! over the state of this node.

use std::collections::HashSet;
use std::time::Duration;

use messaging_core::changes::{Changes, Expect, SourceWrite, Write};
use messaging_core::domain::delivery::ip_pool::source::{PathRow, SourceRow, SourceStatus};
use messaging_core::domain::delivery::path::{PathState, PathStatus};
use messaging_core::domain::delivery::site::{SiteLimits, SiteName};
use messaging_core::domain::delivery::warm_up::Stage;
use messaging_core::ports::store::{Store, StoreError, Stored};
use messaging_core::time::Timestamp;

use super::{KeptPath, KeptSource, MAX_PATHS, PathKeeper, PathKey, State};

/// Interval at which changes are written.
pub(crate) const SAVE_EVERY: Duration = Duration::from_secs(5);

/// Maximum number of paths in one commit, and of rows in one read.
const ROWS: usize = 500;

/// Interval at which a path that neither warms up nor is braked is written.
const QUIET_EVERY: Duration = Duration::from_hours(1);

/// Interval at which the last use of a source is written.
const SOURCE_EVERY: Duration = Duration::from_mins(1);

/// Time after its latest message during which a path counts for the state of its source.
const IN_USE: Duration = Duration::from_hours(24);

const DAY_MILLIS: i64 = 86_400_000;

/// Rows to write, and the paths and sources that they describe.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) changes: Changes,
    paths: Vec<PathKey>,
    sources: Vec<(usize, SourceRow)>,
}

impl Batch {
    /// Returns true if nothing has to be written.
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.sources.is_empty()
    }
}

impl PathKeeper {
    /// Reads the stored state of this node's sources. A source that warms up, or has no stored state yet, becomes warm
    /// if `warm` returns true for its index.
    pub(crate) async fn load(
        &self,
        store: &dyn Store,
        warm: impl Fn(usize) -> bool + Send + Sync,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut loaded = State { is_loaded: true, ..State::default() };
        for (at, source) in self.sources.iter().enumerate() {
            let stored = store.source_row(source.ip).await?;
            let (mut row, revision) = match stored {
                Some(Stored { record, revision }) => (record, Some(revision)),
                None => (SourceRow::new(source.ip, now), None),
            };
            let becomes_warm = warm(at) && row.status == SourceStatus::Warming;
            if becomes_warm {
                row.status = SourceStatus::Warm;
            }
            loaded.sources.push(KeptSource { row, revision, is_changed: becomes_warm || revision.is_none() });
            for Stored { record, revision } in self.read_paths(store, at, loaded.paths.len()).await? {
                let Ok(site) = SiteName::parse(&record.site) else { continue };
                loaded.paths.insert((at, site), KeptPath::stored(read(&record), revision, now));
            }
            loaded.heed_order(at, now);
        }
        let mut state = self.lock();
        if !state.is_loaded {
            *state = loaded;
        }
        Ok(())
    }

    pub(super) async fn read_paths(
        &self,
        store: &dyn Store,
        source: usize,
        known: usize,
    ) -> Result<Vec<Stored<PathRow>>, StoreError> {
        let mut rows: Vec<Stored<PathRow>> = Vec::new();
        while known + rows.len() < MAX_PATHS {
            let after = rows.last().map(|stored| stored.record.site.clone());
            let page = store.path_rows(self.sources[source].ip, after.as_deref(), ROWS).await?;
            let is_last = page.len() < ROWS;
            rows.extend(page);
            if is_last {
                break;
            }
        }
        Ok(rows)
    }

    /// Reads the rows again, because some were written elsewhere: by the operator, whose changes replace the state of
    /// this node, or by another node with the same address. Of that node's state only the stop of a path and complaints
    /// are taken over; the counts of this node stay.
    pub(crate) async fn look_again(&self, store: &dyn Store) -> Result<(), StoreError> {
        if !self.lock().is_loaded {
            return Ok(());
        }
        for (at, source) in self.sources.iter().enumerate() {
            let row = store.source_row(source.ip).await?;
            let paths = self.read_paths(store, at, 0).await?;
            let now = self.clock.now();
            let mut heard = Vec::new();
            let mut state = self.lock();
            let mut is_ordered = false;
            if let (Some(Stored { record, revision }), Some(kept)) = (row, state.sources.get_mut(at)) {
                is_ordered = kept.row.status != record.status;
                kept.revision = Some(revision);
                kept.row.status = record.status;
            }
            let mut found = HashSet::new();
            for Stored { record, revision } in paths {
                let Ok(site) = SiteName::parse(&record.site) else { continue };
                found.insert(site.clone());
                let (key, limits, stored) = ((at, site.clone()), self.rules.limits(&site), read(&record));
                state.go_on_from(&key, &stored, &limits, now);
                state.take_row(key.clone(), (stored.clone(), revision), now);
                if let Some(path) = state.paths.get_mut(&key) {
                    let changes = path.state.hear_complaints(&stored, &limits, now);
                    heard.extend(changes.into_iter().map(|change| (key.clone(), change)));
                }
            }
            for ((_, site), path) in state.paths.iter_mut().filter(|((of, _), _)| *of == at) {
                // A row that is gone is written again.
                if !found.contains(site) {
                    path.revision = None;
                }
                // Turns depended on the earlier state of the source.
                if is_ordered {
                    path.next_turn = None;
                }
            }
            state.heed_order(at, now);
            drop(state);
            for (key, change) in &heard {
                self.tell(key, Some(change));
            }
        }
        Ok(())
    }

    /// Returns true once every source has a row.
    pub(crate) fn has_rows(&self) -> bool {
        let state = self.lock();
        state.is_loaded && state.sources.iter().all(|kept| kept.revision.is_some())
    }

    /// Returns the rows to write now; with `all` also those that can wait. They count as written until
    /// [`Self::unwritten`] is called.
    pub(crate) fn batch(&self, all: bool) -> Batch {
        let now = self.clock.now();
        let mut state = self.lock();
        let mut batch = Batch::default();
        if !state.is_loaded {
            return batch;
        }
        let is_due = |(key, path): &(&PathKey, &KeptPath)| {
            path.is_changed && self.uses_at(key.0) && (all || self.is_due(key, path, now))
        };
        for (key, path) in state.paths.iter().filter(is_due).take(ROWS) {
            let row = Box::new(self.row(key, &path.state, now));
            batch.changes.push(Write::Source(SourceWrite::PutPath(row, expect(path.revision))));
            batch.paths.push(key.clone());
        }
        let is_soon = |kept: &KeptSource| all || is_over(kept.row.updated_at, now, SOURCE_EVERY);
        let used = if state.sources.iter().any(|kept| kept.is_changed || is_soon(kept)) {
            self.used_sources(&state, now)
        } else {
            Vec::new()
        };
        for (at, (kept, used)) in state.sources.iter().zip(used).enumerate() {
            // Only the node that uses a source writes its row, unless there is no row yet.
            if !self.uses_at(at) && kept.revision.is_some() {
                continue;
            }
            let row = used.row(&kept.row, now);
            if !kept.is_changed && (!is_soon(kept) || is_same(&row, &kept.row)) {
                continue;
            }
            batch.changes.push(Write::Source(SourceWrite::PutSource(row.clone(), expect(kept.revision))));
            batch.sources.push((at, row));
        }
        for key in &batch.paths {
            if let Some(path) = state.paths.get_mut(key) {
                path.is_changed = false;
            }
        }
        for (at, _) in &batch.sources {
            state.sources[*at].is_changed = false;
        }
        batch
    }

    /// Records that a batch was written. Later changes are written with the next one.
    pub(crate) fn written(&self, batch: Batch) {
        let now = self.clock.now();
        let next = |revision: Option<u32>| Some(revision.map_or(FIRST_REVISION, |revision| revision + 1));
        let mut state = self.lock();
        for (at, row) in batch.sources {
            let kept = &mut state.sources[at];
            kept.revision = next(kept.revision);
            // A change by the operator since the batch was made is kept.
            kept.row = SourceRow { status: kept.row.status, ..row };
        }
        for key in &batch.paths {
            if let Some(path) = state.paths.get_mut(key) {
                path.revision = next(path.revision);
                path.saved_at = Some(now);
            }
        }
    }

    /// Records that a batch was not written.
    pub(crate) fn unwritten(&self, batch: &Batch) {
        let mut state = self.lock();
        for (at, _) in &batch.sources {
            state.sources[*at].is_changed = true;
        }
        for key in &batch.paths {
            if let Some(path) = state.paths.get_mut(key) {
                path.is_changed = true;
            }
        }
    }

    /// Drops paths over which nothing was sent since `before`; stopped ones stay.
    pub(crate) fn forget(&self, before: Timestamp) {
        let now = self.clock.now();
        let is_used = |path: &KeptPath| path.state.last_used().or(path.saved_at).is_none_or(|last| last >= before);
        self.lock().paths.retain(|_, path| is_used(path) || path.state.status(now) == PathStatus::Stopped);
    }

    fn is_due(&self, (_, site): &PathKey, path: &KeptPath, now: Timestamp) -> bool {
        let is_quiet =
            path.state.status(now) == PathStatus::Ok && !path.state.warm_up(&self.rules.limits(site), now).is_warming();
        !is_quiet || path.saved_at.is_none_or(|saved| is_over(saved, now, QUIET_EVERY))
    }

    fn row(&self, (source, site): &PathKey, state: &PathState, now: Timestamp) -> PathRow {
        let report = state.report(&self.rules.limits(site), now);
        PathRow {
            ip: self.sources[*source].ip,
            site: site.as_str().to_owned(),
            state: serde_json::to_string(state).expect("a state is text and numbers"),
            sent_today: report.sent_today.into(),
            day: now.as_millis().div_euclid(DAY_MILLIS),
            is_stopped: report.status == PathStatus::Stopped,
            updated_at: now,
        }
    }

    /// Returns the progress of each source by its paths, which are iterated once, however many sources there are.
    fn used_sources(&self, state: &State, now: Timestamp) -> Vec<UsedSource> {
        let mut used = vec![UsedSource::default(); self.sources.len()];
        for ((source, site), path) in &state.paths {
            let warm_up = path.state.warm_up(&self.rules.limits(site), now);
            let known = &mut used[*source];
            known.level = known.level.max(warm_up.level().into());
            known.last = known.last.max(warm_up.last_used());
            if warm_up.last_used().is_some_and(|used| now.since(used) < IN_USE) {
                known.in_use.push((path.state.status(now), warm_up.is_warming()));
            }
        }
        used
    }
}

/// Progress of a source: the highest level of its paths, the time of its latest message, and its paths in use.
#[derive(Debug, Clone, Default)]
struct UsedSource {
    level: u32,
    last: Option<Timestamp>,
    /// Status of each path in use, and true if the path is warming up.
    in_use: Vec<(PathStatus, bool)>,
}

impl UsedSource {
    fn row(self, kept: &SourceRow, now: Timestamp) -> SourceRow {
        let last_used_at = self.last.or(kept.last_used_at);
        let found = SourceStatus::of_paths(&self.in_use);
        SourceRow { level: self.level, last_used_at, found, updated_at: now, ..kept.clone() }
    }
}

/// Returns true if `span` has passed since a time, or if the clock was set back to before that time.
fn is_over(since: Timestamp, now: Timestamp, span: Duration) -> bool {
    since > now || now.since(since) >= span
}

/// Revision of a new row.
const FIRST_REVISION: u32 = 1;

fn expect(revision: Option<u32>) -> Expect {
    revision.map_or(Expect::Absent, Expect::Revision)
}

/// Returns true if two rows have the same content, whenever they were written.
fn is_same(one: &SourceRow, other: &SourceRow) -> bool {
    let SourceRow { status, found, level, last_used_at, .. } = one;
    (*status, *found, *level, *last_used_at) == (other.status, other.found, other.level, other.last_used_at)
}

/// Parses the state of a row. If that fails, because a newer program wrote the row, the path begins anew.
pub(super) fn read(row: &PathRow) -> PathState {
    serde_json::from_str(&row.state).unwrap_or_else(|error| {
        tracing::warn!(source = %row.ip, site = row.site, %error, "the state of a path cannot be read; it begins anew");
        PathState::default()
    })
}

impl KeptPath {
    /// Returns a path with the state of its row.
    pub(super) fn stored(state: PathState, revision: u32, now: Timestamp) -> Self {
        Self { state, revision: Some(revision), saved_at: Some(now), ..Self::default() }
    }
}

impl State {
    /// Takes over a row that was written elsewhere if the path is not known yet, or if the row has a newer order of the
    /// operator or stops the path. Otherwise the path keeps its state, which is written again.
    pub(super) fn take_row(&mut self, key: PathKey, (stored, revision): (PathState, u32), now: Timestamp) {
        let Some(path) = self.paths.get_mut(&key) else {
            self.paths.insert(key, KeptPath::stored(stored, revision, now));
            return;
        };
        if path.revision == Some(revision) {
            return;
        }
        path.revision = Some(revision);
        // A change by the operator is recognised by the number of orders, after its notification or after a conflict.
        let is_ordered = stored.orders() > path.state.orders();
        let is_stopped = stored.orders() == path.state.orders()
            && stored.status(now) == PathStatus::Stopped
            && path.state.status(now) != PathStatus::Stopped;
        if is_ordered || is_stopped {
            *path = KeptPath::stored(stored, revision, now);
        } else {
            path.is_changed = true;
        }
    }

    /// Continues a path from its row, if the path began again because it was dropped for lack of room: the messages
    /// sent since then are added to the stored counts.
    pub(super) fn go_on_from(&mut self, key: &PathKey, stored: &PathState, limits: &SiteLimits, now: Timestamp) {
        let is_new = |path: &&mut KeptPath| path.revision.is_none() && path.state.status(now) == PathStatus::Ok;
        let Some(path) = self.paths.get_mut(key).filter(is_new) else { return };
        let sent = path.state.report(limits, now).sent_today;
        path.state = stored.clone();
        for _ in 0..sent {
            path.state.sent(limits, now);
        }
    }

    /// Marks the paths of a source as known to sites if the source is warm, and as not known if it is warming up.
    pub(super) fn heed_order(&mut self, source: usize, now: Timestamp) {
        let status = self.status_of(source);
        for (_, path) in self.paths.iter_mut().filter(|((of, _), _)| *of == source) {
            let is_known = path.state.warm_up(&SiteLimits::default(), now).stage() == Stage::Known;
            match status {
                SourceStatus::Warm if !is_known => path.state.set_known(true),
                SourceStatus::Warming if is_known => path.state.set_known(false),
                _ => continue,
            }
            path.is_changed = true;
        }
    }
}

#[cfg(test)]
impl Batch {
    /// Returns the sites of the paths that the batch writes.
    pub(super) fn paths(&self) -> Vec<&str> {
        self.paths.iter().map(|(_, site)| site.as_str()).collect()
    }

    /// Returns the found state of the first source that the batch writes.
    pub(super) fn found(&self) -> Option<SourceStatus> {
        self.sources.first().and_then(|(_, row)| row.found)
    }
}
