//! What open campaigns and active automations hold: lists, segments, templates and sending domains that cannot be removed
//! meanwhile. So does whatever a version of an automation names that has open runs: they finish on it.

use std::collections::BTreeSet;

use messaging_core::domain::campaign::Reference;
use messaging_core::ids::{AutomationId, CampaignId, DomainId, Id, ListId, SegmentId, TemplateId, WorkspaceId};
use rusqlite::{Connection, params};

use super::fault::Fault;
use super::numbers::{list_number, segment_number};
use super::query::{many, one};
use super::row::{id, sql_limit};

const LIST: i64 = 0;
const SEGMENT: i64 = 1;
const TEMPLATE: i64 = 2;
const DOMAIN: i64 = 3;

/// Who holds something, by number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Holder {
    Campaign(i64),
    Automation(i64),
}

impl Holder {
    /// The kind and the number, as stored.
    const fn key(self) -> (i64, i64) {
        match self {
            Self::Campaign(n) => (0, n),
            Self::Automation(n) => (1, n),
        }
    }
}

/// The kind and the id of what is named, as stored.
fn key(reference: Reference) -> (i64, [u8; 16]) {
    match reference {
        Reference::List(id) => (LIST, id.to_bytes()),
        Reference::Segment(id) => (SEGMENT, id.to_bytes()),
        Reference::Template(id) => (TEMPLATE, id.to_bytes()),
        Reference::Domain(id) => (DOMAIN, id.to_bytes()),
    }
}

fn of_key(kind: i64, id: [u8; 16]) -> Result<Reference, Fault> {
    match kind {
        LIST => Ok(Reference::List(ListId::from_bytes(id))),
        SEGMENT => Ok(Reference::Segment(SegmentId::from_bytes(id))),
        TEMPLATE => Ok(Reference::Template(TemplateId::from_bytes(id))),
        DOMAIN => Ok(Reference::Domain(DomainId::from_bytes(id))),
        _ => Err(Fault::Malformed("a number stands for nothing")),
    }
}

/// Holds what somebody needs from now on, and lets go what is needed no more. A conflict when something is to be held
/// that is gone; what is held already cannot be.
pub(super) fn follow(
    connection: &Connection,
    workspace: WorkspaceId,
    holder: Holder,
    wanted: &BTreeSet<Reference>,
) -> Result<(), Fault> {
    let (holder_kind, n) = holder.key();
    let sql = "SELECT kind, id FROM holds INDEXED BY holds_by_holder WHERE holder_kind = ?1 AND holder = ?2";
    let held = many(connection, sql, [holder_kind, n], |row| of_key(row.get(0)?, row.get(1)?))?;
    let held: BTreeSet<Reference> = held.into_iter().collect();
    for reference in held.difference(wanted) {
        let (kind, id) = key(*reference);
        connection
            .prepare_cached(
                "DELETE FROM holds WHERE workspace = ?1 AND kind = ?2 AND id = ?3 AND holder_kind = ?4 AND holder = ?5",
            )?
            .execute(params![workspace.to_bytes(), kind, id, holder_kind, n])?;
    }
    for reference in wanted.difference(&held) {
        if !is_there(connection, workspace, *reference)? {
            return Err(Fault::Conflict);
        }
        let (kind, id) = key(*reference);
        connection
            .prepare_cached("INSERT INTO holds (workspace, kind, id, holder_kind, holder) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![workspace.to_bytes(), kind, id, holder_kind, n])?;
    }
    Ok(())
}

/// Lets go everything that somebody holds.
pub(super) fn let_go(connection: &Connection, holder: Holder) -> Result<(), Fault> {
    let (kind, n) = holder.key();
    connection.prepare_cached("DELETE FROM holds WHERE holder_kind = ?1 AND holder = ?2")?.execute([kind, n])?;
    Ok(())
}

fn is_there(connection: &Connection, workspace: WorkspaceId, reference: Reference) -> Result<bool, Fault> {
    Ok(match reference {
        Reference::List(id) => list_number(connection, workspace, id)?.is_some(),
        Reference::Segment(id) => segment_number(connection, workspace, id)?.is_some(),
        Reference::Template(id) => connection
            .prepare_cached("SELECT 1 FROM templates WHERE workspace = ?1 AND id = ?2 AND removed_at IS NULL")?
            .exists([workspace.to_bytes(), id.to_bytes()])?,
        Reference::Domain(id) => connection
            .prepare_cached("SELECT 1 FROM sending_domains WHERE workspace = ?1 AND id = ?2")?
            .exists([workspace.to_bytes(), id.to_bytes()])?,
    })
}

/// A conflict while somebody holds this.
pub(super) fn expect_unused(
    connection: &Connection,
    workspace: WorkspaceId,
    reference: Reference,
) -> Result<(), Fault> {
    let (kind, id) = key(reference);
    let held = connection
        .prepare_cached("SELECT 1 FROM holds WHERE workspace = ?1 AND kind = ?2 AND id = ?3")?
        .exists(params![workspace.to_bytes(), kind, id])?;
    if held || !by_runs(connection, workspace, reference)?.is_empty() { Err(Fault::Conflict) } else { Ok(()) }
}

/// The automations, by number, that have open runs on a version which names this.
fn by_runs(connection: &Connection, workspace: WorkspaceId, reference: Reference) -> Result<Vec<i64>, Fault> {
    const SQL: &str = "SELECT a.n FROM automations a WHERE a.workspace = ?1 AND a.removed = 0 AND EXISTS (
            SELECT 1 FROM automation_versions v CROSS JOIN automation_runs r
                ON r.automation = v.automation AND r.version = v.version AND r.status IN (0, 1)
            WHERE v.automation = a.n AND instr(v.doc, ?2) > 0)
        ORDER BY a.n";
    many(connection, SQL, params![workspace.to_bytes(), reference.id_text()], |row| Ok(row.get(0)?))
}

/// The campaigns that hold this.
pub(super) fn campaigns(
    connection: &Connection,
    workspace: WorkspaceId,
    reference: Reference,
    limit: usize,
) -> Result<Vec<CampaignId>, Fault> {
    const SQL: &str = "SELECT c.id FROM holds h JOIN campaigns c ON c.n = h.holder
        WHERE h.workspace = ?1 AND h.kind = ?2 AND h.id = ?3 AND h.holder_kind = 0 ORDER BY h.holder LIMIT ?4";
    let (kind, held) = key(reference);
    many(connection, SQL, params![workspace.to_bytes(), kind, held, sql_limit(limit)], |row| id(row, 0))
}

/// The automations that hold this.
pub(super) fn automations(
    connection: &Connection,
    workspace: WorkspaceId,
    reference: Reference,
    limit: usize,
) -> Result<Vec<AutomationId>, Fault> {
    const HELD: &str = "SELECT holder FROM holds WHERE workspace = ?1 AND kind = ?2 AND id = ?3 AND holder_kind = 1";
    let (kind, held) = key(reference);
    let mut found = many(connection, HELD, params![workspace.to_bytes(), kind, held], |row| Ok(row.get(0)?))?;
    found.extend(by_runs(connection, workspace, reference)?);
    found.sort_unstable();
    found.dedup();
    found.truncate(limit);
    let mut ids = Vec::with_capacity(found.len());
    for n in found {
        ids.extend(one(connection, "SELECT id FROM automations WHERE n = ?1", [n], |row| id::<AutomationId>(row, 0))?);
    }
    Ok(ids)
}
