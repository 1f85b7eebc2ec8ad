//! Wakes those who wait for events of a workspace when some were committed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use messaging_core::changes::{Changes, Write};
use messaging_core::ids::WorkspaceId;
use tokio::sync::watch;

/// Registry of those who wait for events, by workspace; a commit of events wakes them.
#[derive(Debug, Default)]
pub(crate) struct EventSignal {
    /// Those who wait, so that a commit nobody waits for costs one look.
    waiting: AtomicUsize,
    workspaces: Mutex<HashMap<WorkspaceId, Waited>>,
    /// Nobody is to wait any longer.
    ended: watch::Sender<bool>,
}

#[derive(Debug)]
struct Waited {
    by: usize,
    /// Counts the commits with events.
    commits: watch::Sender<u64>,
}

/// Somebody who waits. What is committed after it was made is not missed.
#[derive(Debug)]
pub(crate) struct EventWait<'a> {
    signal: &'a EventSignal,
    workspace: WorkspaceId,
    commits: watch::Receiver<u64>,
    ended: watch::Receiver<bool>,
}

impl EventSignal {
    /// The workspaces in which changes log events.
    pub(crate) fn concerned(changes: &Changes) -> Vec<WorkspaceId> {
        let mut workspaces: Vec<_> = changes
            .writes()
            .iter()
            .filter_map(|write| match write {
                Write::LogEvent(event) => Some(event.workspace_id),
                _ => None,
            })
            .collect();
        workspaces.dedup();
        workspaces
    }

    /// Events of these workspaces were committed.
    pub(crate) fn announce(&self, workspaces: &[WorkspaceId]) {
        if workspaces.is_empty() || self.waiting.load(Ordering::Acquire) == 0 {
            return;
        }
        let waited = self.lock();
        for workspace in workspaces {
            if let Some(waited) = waited.get(workspace) {
                waited.commits.send_modify(|count| *count += 1);
            }
        }
    }

    /// Events of any workspaces were committed.
    pub(crate) fn announce_all(&self) {
        for waited in self.lock().values() {
            waited.commits.send_modify(|count| *count += 1);
        }
    }

    /// Begins to wait.
    pub(crate) fn wait(&self, workspace: WorkspaceId) -> EventWait<'_> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let mut workspaces = self.lock();
        let waited = workspaces.entry(workspace).or_insert_with(|| Waited { by: 0, commits: watch::Sender::new(0) });
        waited.by += 1;
        let commits = waited.commits.subscribe();
        EventWait { signal: self, workspace, commits, ended: self.ended.subscribe() }
    }

    /// Lets everybody go, now and later.
    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkspaceId, Waited>> {
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventWait<'_> {
    /// Returns when events were committed since the last call; `false` when nobody is to wait any longer.
    pub(crate) async fn changed(&mut self) -> bool {
        tokio::select! {
            biased;
            changed = self.commits.changed() => changed.is_ok(),
            _ = self.ended.wait_for(|ended| *ended) => false,
        }
    }
}

impl Drop for EventWait<'_> {
    fn drop(&mut self) {
        let mut workspaces = self.signal.lock();
        if let Some(waited) = workspaces.get_mut(&self.workspace) {
            waited.by -= 1;
            if waited.by == 0 {
                workspaces.remove(&self.workspace);
            }
        }
        self.signal.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
