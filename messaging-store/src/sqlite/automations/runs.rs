//! Runs, counts of nodes, and moments of dates, as they are written.

use messaging_core::changes::{CountNodes, Expect, PutDateFires, PutRun};
use messaging_core::ids::{AutomationId, Id as _, WorkspaceId};
use rusqlite::{Connection, params};

use super::super::fault::Fault;
use super::super::listeners::Listeners;
use super::super::numbers::{automation_number, contact_number};
use super::super::query::one;
use crate::counter_deltas::{AutomationCounter, CounterDeltas};
use crate::tables::automations::{NumberedRun, PriorRun, write_run};

pub(in super::super) fn put(
    connection: &Connection,
    deltas: &mut CounterDeltas,
    listeners: &mut Listeners,
    put: &PutRun,
) -> Result<(), Fault> {
    let run = &put.run;
    let workspace = run.workspace_id;
    let automation = automation_number(connection, workspace, run.automation_id)?.ok_or(Fault::Conflict)?;
    let contact = contact_number(connection, workspace, run.contact_id)?.ok_or(Fault::Conflict)?;
    let before = match put.expect {
        Expect::Absent => None,
        Expect::Revision(revision) => {
            let key = params![automation, run.id.to_bytes(), revision, contact];
            let found = one(connection, PriorRun::SQL.sqlite, key, |row| PriorRun::read(row, 0))?;
            Some(found.ok_or(Fault::Conflict)?)
        }
    };
    let mut number = |node: &String| listeners.node(connection, automation, node);
    let node = run.node_id.as_ref().map(&mut number).transpose()?;
    let senders = put.messages.iter().map(|(_, node)| number(node)).collect::<Result<_, _>>()?;
    let numbered = NumberedRun { put, automation, contact, before, node, senders };
    write_run(&mut &*connection, &numbered)?;
    numbered.count(deltas);
    match run.due_at {
        Some(due_at) => listeners.due(connection, workspace, automation, contact, due_at),
        None => Ok(()),
    }
}

pub(in super::super) fn count_nodes(
    connection: &Connection,
    deltas: &mut CounterDeltas,
    listeners: &mut Listeners,
    (workspace, automation): (WorkspaceId, AutomationId),
    counts: &CountNodes,
) -> Result<(), Fault> {
    // Nothing is counted for one that is gone.
    let Some(automation) = automation_number(connection, workspace, automation)? else { return Ok(()) };
    for (node, entered) in &counts.entered {
        let node = listeners.node(connection, automation, node)?;
        deltas.add_automation(AutomationCounter::Entered(node), i64::from(*entered));
    }
    for ((node, branch), taken) in &counts.branches {
        let node = listeners.node(connection, automation, node)?;
        deltas.add_automation(AutomationCounter::Branch(node, branch.clone()), i64::from(*taken));
    }
    Ok(())
}

pub(in super::super) fn put_date_fires(
    connection: &Connection,
    listeners: &mut Listeners,
    put: &PutDateFires,
) -> Result<(), Fault> {
    const SQL: &str =
        "INSERT OR IGNORE INTO automation_date_fires (automation, contact, due_at, taken) VALUES (?1, ?2, ?3, 0)";
    let workspace = put.workspace_id;
    let automation = automation_number(connection, workspace, put.automation_id)?.ok_or(Fault::Conflict)?;
    for fire in &put.fires {
        let Some(contact) = contact_number(connection, workspace, fire.contact_id)? else { continue };
        let kept = connection.prepare_cached(SQL)?.execute(params![automation, contact, fire.due_at.as_millis()])?;
        if kept == 1 {
            listeners.due(connection, workspace, automation, contact, fire.due_at)?;
        }
    }
    Ok(())
}
