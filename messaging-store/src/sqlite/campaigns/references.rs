//! What open campaigns hold: lists, segments and templates that cannot be removed meanwhile.

use std::collections::BTreeSet;

use messaging_core::domain::campaign::{Campaign, Reference};
use messaging_core::ids::{CampaignId, Id, ListId, SegmentId, TemplateId, WorkspaceId};
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::numbers::{list_number, segment_number};
use super::super::query::many;
use super::super::row::{id, sql_limit};

const LIST: i64 = 0;
const SEGMENT: i64 = 1;
const TEMPLATE: i64 = 2;

/// The kind and the id of what is named, as stored.
fn key(reference: Reference) -> (i64, [u8; 16]) {
    match reference {
        Reference::List(id) => (LIST, id.to_bytes()),
        Reference::Segment(id) => (SEGMENT, id.to_bytes()),
        Reference::Template(id) => (TEMPLATE, id.to_bytes()),
    }
}

fn of_key(kind: i64, id: [u8; 16]) -> Result<Reference, Fault> {
    match kind {
        LIST => Ok(Reference::List(ListId::from_bytes(id))),
        SEGMENT => Ok(Reference::Segment(SegmentId::from_bytes(id))),
        TEMPLATE => Ok(Reference::Template(TemplateId::from_bytes(id))),
        _ => Err(Fault::Malformed("a number stands for nothing")),
    }
}

/// Holds what a campaign needs from now on, and lets go what it needs no more. A conflict when something is to be held
/// that is gone; what is held already cannot be.
pub(super) fn follow(connection: &Connection, n: i64, campaign: &Campaign) -> Result<(), Fault> {
    let workspace = campaign.workspace_id;
    let wanted: BTreeSet<Reference> = if campaign.status.holds_references() {
        campaign.plan.references().into_iter().map(|(_, reference)| reference).collect()
    } else {
        BTreeSet::new()
    };
    let sql = "SELECT kind, id FROM campaign_references INDEXED BY campaign_references_by_campaign WHERE campaign = ?1";
    let held = many(connection, sql, [n], |row| of_key(row.get(0)?, row.get(1)?))?;
    let held: BTreeSet<Reference> = held.into_iter().collect();
    for reference in held.difference(&wanted) {
        let (kind, id) = key(*reference);
        connection
            .prepare_cached(
                "DELETE FROM campaign_references WHERE workspace = ?1 AND kind = ?2 AND id = ?3 AND campaign = ?4",
            )?
            .execute(params![workspace.to_bytes(), kind, id, n])?;
    }
    for reference in wanted.difference(&held) {
        if !is_there(connection, workspace, *reference)? {
            return Err(Fault::Conflict);
        }
        let (kind, id) = key(*reference);
        connection
            .prepare_cached("INSERT INTO campaign_references (workspace, kind, id, campaign) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![workspace.to_bytes(), kind, id, n])?;
    }
    Ok(())
}

/// Lets go everything that a campaign holds.
pub(super) fn delete(connection: &Connection, n: i64) -> Result<(), Fault> {
    connection.prepare_cached("DELETE FROM campaign_references WHERE campaign = ?1")?.execute([n])?;
    Ok(())
}

fn is_there(connection: &Connection, workspace: WorkspaceId, reference: Reference) -> Result<bool, Fault> {
    Ok(match reference {
        Reference::List(id) => list_number(connection, workspace, id)?.is_some(),
        Reference::Segment(id) => segment_number(connection, workspace, id)?.is_some(),
        Reference::Template(id) => connection
            .prepare_cached("SELECT 1 FROM templates WHERE workspace = ?1 AND id = ?2 AND removed_at IS NULL")?
            .exists([workspace.to_bytes(), id.to_bytes()])?,
    })
}

/// A conflict while a campaign holds this.
pub(in super::super) fn expect_unused(
    connection: &Connection,
    workspace: WorkspaceId,
    reference: Reference,
) -> Result<(), Fault> {
    let (kind, id) = key(reference);
    let held = connection
        .prepare_cached("SELECT 1 FROM campaign_references WHERE workspace = ?1 AND kind = ?2 AND id = ?3")?
        .exists(params![workspace.to_bytes(), kind, id])?;
    if held { Err(Fault::Conflict) } else { Ok(()) }
}

pub(super) fn holders(
    connection: &Connection,
    workspace: WorkspaceId,
    reference: Reference,
    limit: usize,
) -> Result<Vec<CampaignId>, Fault> {
    const SQL: &str = "SELECT c.id FROM campaign_references r JOIN campaigns c ON c.n = r.campaign
        WHERE r.workspace = ?1 AND r.kind = ?2 AND r.id = ?3 ORDER BY r.campaign LIMIT ?4";
    let (kind, reference) = key(reference);
    many(connection, SQL, params![workspace.to_bytes(), kind, reference, sql_limit(limit)], |row| id(row, 0))
}
