//! What the writer remembers of workspaces, so that a change finds out at once who wants to hear of it: dynamic segments
//! and automations.

use messaging_core::changes::Changes;
use messaging_core::changes::Write;
use rusqlite::Connection;

use super::fault::Fault;
use super::lanes::LaneIndex;
use super::listeners::{Listeners, Mark};
use super::segments::ReadMasks;

/// Who wants to hear of changes.
#[derive(Debug, Default)]
pub(super) struct ChangeSubscribers {
    /// Dynamic segments.
    pub(super) read_masks: ReadMasks,
    /// Automations.
    pub(super) listeners: Listeners,
}

impl ChangeSubscribers {
    /// Begins a set of changes; answers the place for [`ChangeSubscribers::undo_to`].
    pub(super) fn begin(&mut self, changes: &Changes) -> Mark {
        self.caused_at(0);
        self.listeners.begin(changes.writes().iter().find_map(Write::claim))
    }

    /// What follows was caused by so many automations in a row.
    pub(super) const fn caused_at(&mut self, depth: u8) {
        self.read_masks.depth = depth;
        self.listeners.depth = depth;
    }

    /// By how many automations what follows was caused.
    pub(super) const fn depth(&self) -> u8 {
        self.listeners.depth
    }

    /// Forgets what was remembered since the mark, and all that may be wrong now.
    pub(super) fn undo_to(&mut self, mark: Mark) {
        self.read_masks.forget_all();
        self.listeners.undo_to(mark);
    }

    /// Forgets everything: something was undone, or another program has written.
    pub(super) fn forget_all(&mut self) {
        self.read_masks.forget_all();
        self.listeners.forget_all();
    }

    /// Writes what is written once for all; before the transaction's commit. Answers whether jobs became due by it.
    pub(super) fn settle(&mut self, connection: &Connection, index: &mut LaneIndex) -> Result<bool, Fault> {
        self.listeners.settle(connection, index)
    }
}
