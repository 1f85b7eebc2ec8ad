//! What a transaction carries for automations until it is written.

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
    /// Where the contact may not enter, it is kept if an open run of the contact has one of these versions.
    pub(super) versions: Vec<i64>,
}

/// What a transaction knows of listeners, and what it is to do for them before it ends. Nothing of it is true later.
#[derive(Debug, Default)]
pub(in super::super) struct Hearing {
    /// The workspaces whose locks are held.
    pub(super) locked: HashSet<WorkspaceId>,
    pub(super) known: HashMap<WorkspaceId, OfWorkspace>,
    pub(super) lanes: HashMap<i64, Arc<[Lane]>>,
    pub(super) notes: Vec<NewNote>,
    /// Jobs that become due, and when.
    pub(super) wakes: BTreeMap<(i64, u8), (Lane, Timestamp)>,
}

impl Hearing {
    /// Forgets what is known of a workspace.
    pub(in super::super) fn forget(&mut self, workspace: WorkspaceId) {
        self.known.remove(&workspace);
    }

    /// Has the job of a share of the contacts run at a moment, or before if it is to anyway.
    pub(super) fn wake(&mut self, automation: i64, shard: u8, at: Timestamp) {
        let Some(lane) = self.lanes.get(&automation).and_then(|lanes| lanes.get(usize::from(shard))) else { return };
        let wake = self.wakes.entry((automation, shard)).or_insert_with(|| (lane.clone(), at));
        wake.1 = wake.1.min(at);
    }
}
