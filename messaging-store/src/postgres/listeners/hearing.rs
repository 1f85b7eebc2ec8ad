//! Notes for automations that a transaction gathers until they are written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ids::WorkspaceId;
use messaging_core::time::Timestamp;

use crate::tables::automations::listening::Listener;

/// The automations of a workspace that listen.
pub(super) type OfWorkspace = Arc<Vec<Listener>>;

/// A note that was not written yet.
#[derive(Debug)]
pub(super) struct NewNote {
    pub(super) automation: i64,
    pub(super) contact: i64,
    pub(super) at: Timestamp,
    pub(super) kind: i64,
    pub(super) depth: u8,
    pub(super) may_enter: bool,
    pub(super) event: Option<i64>,
    pub(super) what: Vec<u8>,
    /// If the contact may not enter, the note is kept only if an open run of the contact has one of these versions.
    pub(super) versions: Vec<i64>,
}

/// Listeners that a transaction knows, and the work it does for them before it ends. Valid for the transaction alone.
#[derive(Debug, Default)]
pub(in super::super) struct Hearing {
    /// The workspaces whose locks are held.
    pub(super) locked: HashSet<WorkspaceId>,
    pub(super) known: HashMap<WorkspaceId, OfWorkspace>,
    pub(super) lanes: HashMap<i64, Arc<[Lane]>>,
    pub(super) notes: Vec<NewNote>,
    /// Jobs that become due, with their due times.
    pub(super) wakes: BTreeMap<(i64, u8), (Lane, Timestamp)>,
}

impl Hearing {
    /// Drops the listeners of a workspace.
    pub(in super::super) fn forget(&mut self, workspace: WorkspaceId) {
        self.known.remove(&workspace);
    }

    /// Makes the job of a shard of the contacts due at a moment, if it is not due earlier.
    pub(super) fn wake(&mut self, automation: i64, shard: u8, at: Timestamp) {
        let Some(lane) = self.lanes.get(&automation).and_then(|lanes| lanes.get(usize::from(shard))) else { return };
        let wake = self.wakes.entry((automation, shard)).or_insert_with(|| (lane.clone(), at));
        wake.1 = wake.1.min(at);
    }
}
