//! The change outbox: contacts with changes in data that dynamic segments read.
//!
//! An entry is part of the transaction of the change, so none is ever missing. The read mask of the segments of a
//! workspace is stored with its number and cached by the writer: a workspace without dynamic segments pays for a look
//! into a map.

use std::collections::HashMap;

use messaging_core::domain::segment::reads::ReadMask;
use messaging_core::ids::{ContactId, Id as _, WorkspaceId};
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::numbers::contact_number;
use super::super::query::one;

/// Maximum number of workspaces whose read mask is cached; beyond that the cache starts anew.
const MAX_KNOWN: usize = 10_000;

/// Read masks of workspaces, as the writer last saw them.
#[derive(Debug, Default)]
pub(in super::super) struct ReadMasks {
    known: HashMap<WorkspaceId, WorkspaceReadMask>,
    /// Number of automations in a row that led to the present changes.
    pub(in super::super) depth: u8,
}

/// Read mask of a workspace: the data that its dynamic segments read.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct WorkspaceReadMask {
    mask: ReadMask,
    /// Number of automations in a row that led to the noted changes.
    depth: u8,
}

impl WorkspaceReadMask {
    /// Reads the current read mask of a workspace by its number.
    pub(in super::super) fn of_workspace_number(connection: &Connection, workspace_number: i64) -> Result<Self, Fault> {
        let sql = "SELECT read_mask FROM workspace_numbers WHERE number = ?1";
        let mask = one(connection, sql, [workspace_number], |row| Ok(ReadMask::from_bits(row.get(0)?)))?;
        Ok(Self { mask: mask.unwrap_or(ReadMask::NONE), depth: 0 })
    }

    /// Returns the same mask for changes that this many automations in a row led to.
    pub(in super::super) const fn caused_at(self, depth: u8) -> Self {
        Self { depth, ..self }
    }

    /// Returns the part of `mask` that the dynamic segments read.
    pub(in super::super) fn in_any(self, mask: ReadMask) -> ReadMask {
        self.mask & mask
    }
}

impl ReadMasks {
    /// Returns the read mask of a workspace; `None` if it has no dynamic segments.
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

    /// Returns the read mask of a workspace if it overlaps `mask`; `None` if no segment reads any of it.
    pub(in super::super) fn in_mask(
        &mut self,
        connection: &Connection,
        workspace: WorkspaceId,
        mask: ReadMask,
    ) -> Result<Option<WorkspaceReadMask>, Fault> {
        Ok(self.of(connection, workspace)?.filter(|read_mask| !read_mask.in_any(mask).is_empty()))
    }

    /// Drops the cached read mask of a workspace.
    pub(super) fn forget(&mut self, workspace: WorkspaceId) {
        self.known.remove(&workspace);
    }

    /// Drops all cached read masks: a change was undone, or another program has written.
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

/// Reads the read mask of a workspace, which is stored with its number.
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
