//! Noting which contacts changed in what a dynamic segment reads.
//!
//! The note is part of the transaction of the change, so none is ever missing. Whether anybody is interested
//! stands with the audience and is remembered by the writer: a workspace without dynamic segments pays for a
//! look into a map.

use std::collections::HashMap;

use messaging_core::domain::segment::reads::Aspects;
use messaging_core::ids::{ContactId, Id as _, WorkspaceId};
use rusqlite::{Connection, params};

use super::super::contacts::contact_number;
use super::super::fault::Fault;
use super::super::query::one;

/// Workspaces whose interest is remembered; beyond that the memory starts anew.
const MAX_KNOWN: usize = 10_000;

/// What the dynamic segments of workspaces read, as the writer last saw it.
#[derive(Debug, Default)]
pub(in super::super) struct Interests(HashMap<WorkspaceId, Interest>);

/// What the dynamic segments of a workspace read.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Interest {
    /// The number of the workspace; 0 when it has none.
    pub(in super::super) audience: i64,
    aspects: Aspects,
}

impl Interest {
    /// What the dynamic segments of an audience read at the moment.
    pub(in super::super) fn of_audience(connection: &Connection, audience: i64) -> Result<Self, Fault> {
        let sql = "SELECT interest FROM audiences WHERE number = ?1";
        let aspects = one(connection, sql, [audience], |row| Ok(Aspects::from_bits(row.get(0)?)))?;
        Ok(Self { audience, aspects: aspects.unwrap_or(Aspects::NONE) })
    }

    /// Which of some aspects are read.
    pub(in super::super) fn in_any(self, aspects: Aspects) -> Aspects {
        self.aspects & aspects
    }
}

impl Interests {
    /// What the dynamic segments of a workspace read; `None` when it has none.
    pub(in super::super) fn of(
        &mut self,
        connection: &Connection,
        workspace: WorkspaceId,
    ) -> Result<Option<Interest>, Fault> {
        let interest = if let Some(known) = self.0.get(&workspace) {
            *known
        } else {
            let interest = stored(connection, workspace)?;
            if self.0.len() >= MAX_KNOWN {
                self.0.clear();
            }
            self.0.insert(workspace, interest);
            interest
        };
        Ok((!interest.aspects.is_empty()).then_some(interest))
    }

    /// The interest in some aspects; `None` when nobody reads any of them.
    pub(in super::super) fn in_aspects(
        &mut self,
        connection: &Connection,
        workspace: WorkspaceId,
        aspects: Aspects,
    ) -> Result<Option<Interest>, Fault> {
        Ok(self.of(connection, workspace)?.filter(|interest| !interest.in_any(aspects).is_empty()))
    }

    /// Forgets what is remembered of a workspace.
    pub(super) fn forget(&mut self, workspace: WorkspaceId) {
        self.0.remove(&workspace);
    }

    /// Forgets everything: something was undone, or another program has written.
    pub(in super::super) fn forget_all(&mut self) {
        self.0.clear();
    }

    /// Notes a change of a contact, if a dynamic segment reads any of it.
    pub(in super::super) fn note(
        &mut self,
        connection: &Connection,
        workspace: WorkspaceId,
        contact: ContactId,
        aspects: Aspects,
    ) -> Result<(), Fault> {
        if let Some(interest) = self.in_aspects(connection, workspace, aspects)?
            && let Some(n) = contact_number(connection, workspace, contact)?
        {
            note(connection, interest, n, aspects)?;
        }
        Ok(())
    }
}

/// What the dynamic segments of a workspace read, as it stands with the audience.
fn stored(connection: &Connection, workspace: WorkspaceId) -> Result<Interest, Fault> {
    let sql = "SELECT number, interest FROM audiences WHERE workspace = ?1";
    let found = one(connection, sql, [workspace.to_bytes()], |row| {
        Ok(Interest { audience: row.get(0)?, aspects: Aspects::from_bits(row.get(1)?) })
    })?;
    Ok(found.unwrap_or(Interest { audience: 0, aspects: Aspects::NONE }))
}

/// Notes a change of a contact by its number, if a dynamic segment reads any of it.
pub(in super::super) fn note(
    connection: &Connection,
    interest: Interest,
    contact: i64,
    aspects: Aspects,
) -> Result<(), Fault> {
    let aspects = interest.in_any(aspects);
    if !aspects.is_empty() {
        connection
            .prepare_cached(
                "INSERT INTO changed_contacts (contact, aspects, mark) VALUES (?1, ?2, 1)
                 ON CONFLICT (contact) DO UPDATE SET aspects = aspects | excluded.aspects, mark = mark + 1",
            )?
            .execute(params![contact, aspects.bits()])?;
    }
    Ok(())
}
