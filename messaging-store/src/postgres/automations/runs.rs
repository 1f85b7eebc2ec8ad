//! Runs, counts of nodes, and moments of dates, as they are written.

use messaging_core::changes::{CountNodes, Expect, PutDateFires, PutRun};
use messaging_core::ids::{AutomationId, WorkspaceId};
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::listeners;
use super::super::query::{many, params};
use super::super::row::{get as column, time, uuid};
use super::super::transaction::Transaction;
use super::look_up;
use crate::counter_deltas::AutomationCounter;
use crate::tables::automations::{NumberedRun, write_run};

pub(in super::super) async fn put(transaction: &mut Transaction, put: &PutRun) -> Result<(), Fault> {
    let run = &put.run;
    let workspace = run.workspace_id;
    listeners::write_notes(transaction).await?;
    let automation = look_up::automation(transaction, workspace, run.automation_id).await?.ok_or(Fault::Conflict)?;
    let contact = look_up::contact(transaction, workspace, run.contact_id).await?.ok_or(Fault::Conflict)?;
    let before = match put.expect {
        Expect::Absent => None,
        Expect::Revision(revision) => {
            Some(look_up::before(transaction, automation, (run.id, contact), revision).await?)
        }
    };
    let node = match &run.node_id {
        Some(node) => Some(look_up::node(transaction, automation, node).await?),
        None => None,
    };
    let mut senders = Vec::with_capacity(put.messages.len());
    for (_, node) in &put.messages {
        senders.push(look_up::node(transaction, automation, node).await?);
    }
    let numbered = NumberedRun { put, automation, contact, before, node, senders };
    write_run(transaction, &numbered)?;
    numbered.count(&mut transaction.deltas);
    match run.due_at {
        Some(due_at) => listeners::due(transaction, workspace, automation, contact, due_at).await,
        None => Ok(()),
    }
}

pub(in super::super) async fn count_nodes(
    transaction: &mut Transaction,
    (workspace, automation): (WorkspaceId, AutomationId),
    counts: &CountNodes,
) -> Result<(), Fault> {
    // Nothing is counted for one that is gone.
    let Some(automation) = look_up::automation(transaction, workspace, automation).await? else { return Ok(()) };
    for (node, entered) in &counts.entered {
        let node = look_up::node(transaction, automation, node).await?;
        transaction.deltas.add_automation(AutomationCounter::Entered(node), i64::from(*entered));
    }
    for ((node, branch), taken) in &counts.branches {
        let node = look_up::node(transaction, automation, node).await?;
        transaction.deltas.add_automation(AutomationCounter::Branch(node, branch.clone()), i64::from(*taken));
    }
    Ok(())
}

pub(in super::super) async fn put_date_fires(transaction: &mut Transaction, put: &PutDateFires) -> Result<(), Fault> {
    const SQL: &str = "WITH people AS (
            SELECT n, id FROM contacts WHERE id = ANY ($3)
                AND workspace_number = (SELECT number FROM workspace_numbers WHERE workspace = $2)
            ORDER BY n FOR KEY SHARE
        )
        INSERT INTO automation_date_fires (automation, contact, due_at, taken)
        SELECT $1, people.n, fire.due_at, false FROM unnest($3::uuid[], $4::bigint[]) AS fire (contact, due_at)
        JOIN people ON people.id = fire.contact ORDER BY people.n, fire.due_at
        ON CONFLICT DO NOTHING RETURNING contact, due_at";
    let workspace = put.workspace_id;
    let automation = look_up::automation(transaction, workspace, put.automation_id).await?.ok_or(Fault::Conflict)?;
    let people: Vec<Uuid> = put.fires.iter().map(|fire| uuid(fire.contact_id)).collect();
    let times: Vec<i64> = put.fires.iter().map(|fire| fire.due_at.as_millis()).collect();
    let columns = params![automation, uuid(workspace), people, times];
    let kept = many(transaction, SQL, columns, |row| Ok((column(row, 0)?, time(row, 1)?))).await?;
    for (contact, due_at) in kept {
        listeners::due(transaction, workspace, automation, contact, due_at).await?;
    }
    Ok(())
}
