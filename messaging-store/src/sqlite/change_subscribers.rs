//! Subscribers of changes, cached by the writer, so that a change finds them at once: dynamic segments and automations.

use messaging_core::changes::Changes;
use messaging_core::changes::Write;
use rusqlite::Connection;

use super::fault::Fault;
use super::lanes::LaneIndex;
use super::listeners::{Listeners, Mark};
use super::segments::ReadMasks;

/// Subscribers of changes by workspace.
#[derive(Debug, Default)]
pub(super) struct ChangeSubscribers {
    /// Dynamic segments.
    pub(super) read_masks: ReadMasks,
    /// Automations.
    pub(super) listeners: Listeners,
}

impl ChangeSubscribers {
    /// Begins a set of changes; returns the mark for [`ChangeSubscribers::undo_to`].
    pub(super) fn begin(&mut self, changes: &Changes) -> Mark {
        self.caused_at(0);
        self.listeners.begin(changes.writes().iter().find_map(Write::claim))
    }

    /// Sets the number of automations in a row that led to the changes that follow.
    pub(super) const fn caused_at(&mut self, depth: u8) {
        self.read_masks.depth = depth;
        self.listeners.depth = depth;
    }

    /// Number of automations in a row that led to the present changes.
    pub(super) const fn depth(&self) -> u8 {
        self.listeners.depth
    }

    /// Drops the work added after the mark, and all caches that may be wrong now.
    pub(super) fn undo_to(&mut self, mark: Mark) {
        self.read_masks.forget_all();
        self.listeners.undo_to(mark);
    }

    /// Drops all caches and pending work: a change was undone, or another program has written.
    pub(super) fn forget_all(&mut self) {
        self.read_masks.forget_all();
        self.listeners.forget_all();
    }

    /// Writes what all changes of the transaction share, before its commit. Returns true if jobs became due.
    pub(super) fn settle(&mut self, connection: &Connection, index: &mut LaneIndex) -> Result<bool, Fault> {
        self.listeners.settle(connection, index)
    }
}
