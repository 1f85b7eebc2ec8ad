//! Moments that follow from dates of contacts.

use messaging_core::changes::{DateFire, PutDateFires};
use messaging_core::ids::{AutomationId, Id as _, WorkspaceId};
use messaging_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::super::fault::{Fault, expect_one};
use super::super::listeners::Listeners;
use super::super::numbers::{automation_number, contact_number};
use super::super::query::{many, one};
use super::super::row::{id, sql_limit, time};
use super::runs::Of;

pub(in super::super) fn put(
    connection: &Connection,
    listeners: &mut Listeners,
    put: &PutDateFires,
) -> Result<(), Fault> {
    let workspace = put.workspace_id;
    let automation = automation_number(connection, workspace, put.automation_id)?.ok_or(Fault::Conflict)?;
    for fire in &put.fires {
        let Some(contact) = contact_number(connection, workspace, fire.contact_id)? else { continue };
        let is_new = connection
            .prepare_cached(
                "INSERT OR IGNORE INTO automation_date_fires (automation, contact, due_at, taken) VALUES (?1, ?2, ?3, 0)",
            )?
            .execute(params![automation, contact, fire.due_at.as_millis()])?;
        if is_new == 1 {
            listeners.due(connection, workspace, automation, contact, fire.due_at)?;
        }
    }
    Ok(())
}

pub(in super::super) fn take(
    connection: &Connection,
    workspace: WorkspaceId,
    automation: AutomationId,
    fire: &DateFire,
) -> Result<(), Fault> {
    let automation = automation_number(connection, workspace, automation)?.ok_or(Fault::Conflict)?;
    let contact = contact_number(connection, workspace, fire.contact_id)?.ok_or(Fault::Conflict)?;
    let taken = connection
        .prepare_cached(
            "UPDATE automation_date_fires SET taken = 1
             WHERE automation = ?1 AND contact = ?2 AND due_at = ?3 AND taken = 0",
        )?
        .execute(params![automation, contact, fire.due_at.as_millis()])?;
    expect_one(taken)
}

pub(super) fn due(
    connection: &Connection,
    of: Of,
    shard: u8,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<DateFire>, Fault> {
    const SQL: &str = "SELECT c.id, f.due_at FROM automation_date_fires f INDEXED BY automation_date_fires_due
        CROSS JOIN contacts c ON c.n = f.contact
        WHERE f.automation = (SELECT n FROM automations WHERE workspace = ?1 AND id = ?2 AND removed = 0)
            AND f.contact & 3 = ?3 AND f.due_at <= ?4 AND f.taken = 0 ORDER BY f.due_at, f.contact LIMIT ?5";
    let bounds = params![of.0.to_bytes(), of.1.to_bytes(), shard, now.as_millis(), sql_limit(limit)];
    many(connection, SQL, bounds, |row| Ok(DateFire { contact_id: id(row, 0)?, due_at: time(row, 1)? }))
}

pub(super) fn next_due(connection: &Connection, automation: i64, shard: u8) -> Result<Option<Timestamp>, Fault> {
    const SQL: &str = "SELECT f.due_at FROM automation_date_fires f INDEXED BY automation_date_fires_due
        CROSS JOIN contacts c ON c.n = f.contact
        WHERE f.automation = ?1 AND f.contact & 3 = ?2 AND f.taken = 0 ORDER BY f.due_at LIMIT 1";
    one(connection, SQL, params![automation, shard], |row| time(row, 0))
}
