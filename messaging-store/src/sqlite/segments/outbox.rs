//! The change outbox: which contacts changed in what a dynamic segment reads.
//!
//! An entry is part of the transaction of the change, so none is ever missing. What the segments of a workspace read
//! stands with its number and is remembered by the writer: a workspace without dynamic segments pays for a look into a
//! map.

use std::collections::HashMap;

use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, Id as _, WorkspaceId};
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::numbers::contact_number;
use super::super::query::one;

/// Workspaces whose read mask is remembered; beyond that the memory starts anew.
const MAX_KNOWN: usize = 10_000;

/// What the dynamic segments of workspaces read, as the writer last saw it.
#[derive(Debug, Default)]
pub(in super::super) struct ReadMasks {
    known: HashMap<WorkspaceId, WorkspaceReadMask>,
    /// By how many automations in a row the present changes were caused.
    pub(in super::super) depth: u8,
}

/// What the dynamic segments of a workspace read.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct WorkspaceReadMask {
    mask: ReadMask,
    /// What is noted was caused by so many automations in a row.
    depth: u8,
}

impl WorkspaceReadMask {
    /// What the dynamic segments of a workspace read at the moment.
    pub(in super::super) fn of_workspace_number(connection: &Connection, workspace_number: i64) -> Result<Self, Fault> {
        let sql = "SELECT read_mask FROM workspace_numbers WHERE number = ?1";
        let mask = one(connection, sql, [workspace_number], |row| Ok(ReadMask::from_bits(row.get(0)?)))?;
        Ok(Self { mask: mask.unwrap_or(ReadMask::NONE), depth: 0 })
    }

    /// The same for what was caused by so many automations in a row.
    pub(in super::super) const fn caused_at(self, depth: u8) -> Self {
        Self { depth, ..self }
    }

    /// What of a mask is read.
    pub(in super::super) fn in_any(self, mask: ReadMask) -> ReadMask {
        self.mask & mask
    }
}

impl ReadMasks {
    /// What the dynamic segments of a workspace read; `None` when it has none.
    pub(in super::super) fn of(
        &mut self,
        connection: &Connection,
        workspace: WorkspaceId,
    ) -> Result<Option<WorkspaceReadMask>, Fault> {
        let read_mask = if let Some(known) = self.known.get(&workspace) {
            *known
        } else {
            let read_mask = stored(connection, workspace)?;
            if self.known.len() >= MAX_KNOWN {
                self.known.clear();
            }
            self.known.insert(workspace, read_mask);
            read_mask
        };
        let read_mask = WorkspaceReadMask { depth: self.depth, ..read_mask };
        Ok((!read_mask.mask.is_empty()).then_some(read_mask))
    }

    /// The read mask of a workspace, if it meets some mask; `None` when nobody reads any of them.
    pub(in super::super) fn in_mask(
        &mut self,
        connection: &Connection,
        workspace: WorkspaceId,
        mask: ReadMask,
    ) -> Result<Option<WorkspaceReadMask>, Fault> {
        Ok(self.of(connection, workspace)?.filter(|read_mask| !read_mask.in_any(mask).is_empty()))
    }

    /// Forgets what is remembered of a workspace.
    pub(super) fn forget(&mut self, workspace: WorkspaceId) {
        self.known.remove(&workspace);
    }

    /// Forgets everything: something was undone, or another program has written.
    pub(in super::super) fn forget_all(&mut self) {
        self.known.clear();
    }

    /// Notes a change of a contact, if a dynamic segment reads any of it.
    pub(in super::super) fn note(
        &mut self,
        connection: &Connection,
        workspace: WorkspaceId,
        contact: ContactId,
        mask: ReadMask,
    ) -> Result<(), Fault> {
        if let Some(read_mask) = self.in_mask(connection, workspace, mask)?
            && let Some(n) = contact_number(connection, workspace, contact)?
        {
            note(connection, read_mask, n, mask)?;
        }
        Ok(())
    }
}

/// What the dynamic segments of a workspace read, as it stands with the number of the workspace.
fn stored(connection: &Connection, workspace: WorkspaceId) -> Result<WorkspaceReadMask, Fault> {
    let sql = "SELECT read_mask FROM workspace_numbers WHERE workspace = ?1";
    let found = one(connection, sql, [workspace.to_bytes()], |row| Ok(ReadMask::from_bits(row.get(0)?)))?;
    Ok(WorkspaceReadMask { mask: found.unwrap_or(ReadMask::NONE), depth: 0 })
}

/// Notes a change of a contact by its number, if a dynamic segment reads any of it.
pub(in super::super) fn note(
    connection: &Connection,
    read_mask: WorkspaceReadMask,
    contact: i64,
    mask: ReadMask,
) -> Result<(), Fault> {
    let mask = read_mask.in_any(mask);
    if !mask.is_empty() {
        connection
            .prepare_cached(
                "INSERT INTO changed_contacts (contact, read_mask, mark, depth) VALUES (?1, ?2, 1, ?3)
                 ON CONFLICT (contact) DO UPDATE SET read_mask = read_mask | excluded.read_mask, mark = mark + 1,
                     depth = max(depth, excluded.depth)",
            )?
            .execute(params![contact, mask.bits(), read_mask.depth])?;
    }
    Ok(())
}
