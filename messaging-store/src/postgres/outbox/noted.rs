//! What a transaction carries for segments until it is written.

use std::collections::{BTreeMap, HashMap, HashSet};

use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, WorkspaceId};

/// What a transaction knows of segments, and what it notes for them.
#[derive(Debug, Default)]
pub(in super::super) struct Outbox {
    /// What the segments of workspaces read. It does not change while the transaction holds their locks.
    pub(super) masks: HashMap<WorkspaceId, ReadMask>,
    /// The workspaces whose locks are held.
    pub(super) locked: HashSet<WorkspaceId>,
    /// What changed of contacts, by their numbers, and how deep that was caused.
    pub(super) contacts: BTreeMap<i64, (ReadMask, u8)>,
    /// The same by their ids; whether somebody reads it is found out as it is written.
    pub(super) by_id: BTreeMap<(WorkspaceId, ContactId), (ReadMask, u8)>,
}
