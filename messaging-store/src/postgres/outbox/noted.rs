//! Changes for segments that a transaction gathers until they are written.

use std::collections::{BTreeMap, HashMap, HashSet};

use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, WorkspaceId};

/// Read masks that a transaction knows, and the changes it has gathered for segments.
#[derive(Debug, Default)]
pub(in super::super) struct Outbox {
    /// Read masks of the segments of workspaces. They do not change while the transaction holds the locks.
    pub(super) masks: HashMap<WorkspaceId, ReadMask>,
    /// The workspaces whose locks are held.
    pub(super) locked: HashSet<WorkspaceId>,
    /// Changes of contacts, by their numbers, each with the number of automations in a row that led to it.
    pub(super) contacts: BTreeMap<i64, (ReadMask, u8)>,
    /// Changes of contacts by their ids; whether a segment reads them is checked when they are written.
    pub(super) by_id: BTreeMap<(WorkspaceId, ContactId), (ReadMask, u8)>,
}
