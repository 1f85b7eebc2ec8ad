//! Look-ups for the writes about automations in a transaction, made for all of them at once before the first is
//! applied.
//!
//! The results stay true until the writes are applied: the numbers of rows (`n`) never change, nor do the status and
//! node of a run at a given revision, because the statement that changes the run expects that revision. A row that is
//! not found here may be created by the transaction itself later, so it is looked for again when it is needed.

use std::collections::BTreeSet;

use messaging_core::changes::{AutomationWrite, Changes, Expect, PutRun, Write};
use messaging_core::ids::{AutomationId, ContactId, RunId, WorkspaceId};
use uuid::Uuid;

use super::super::fault::Fault;
use super::super::numbers::{automation_number, contact_number};
use super::super::query::{many, one, params};
use super::super::row::{get, id, uuid};
use super::super::transaction::Transaction;
use crate::tables::automations::PriorRun;

/// Looks up what the writes in `all` need to know of automations, contacts, nodes and runs, and keeps it in the
/// transaction's [`LookupCache`](super::LookupCache).
pub(in super::super) async fn look_up(transaction: &mut Transaction, all: &[&Changes]) -> Result<(), Fault> {
    let mut nodes: BTreeSet<(WorkspaceId, AutomationId, &str)> = BTreeSet::new();
    let mut runs = Vec::new();
    for write in all.iter().flat_map(|changes| changes.writes()) {
        match write {
            Write::Automation(AutomationWrite::PutRun(put)) => {
                let of = (put.run.workspace_id, put.run.automation_id);
                let named = put.messages.iter().map(|(_, node)| node).chain(&put.run.node_id);
                nodes.extend(named.map(|node| (of.0, of.1, &**node)));
                runs.push(&**put);
            }
            Write::Automation(AutomationWrite::CountNodes(workspace, automation, counts)) => {
                let branches = counts.branches.iter().map(|((node, _), _)| node);
                let named = counts.entered.iter().map(|(node, _)| node).chain(branches);
                nodes.extend(named.map(|node| (*workspace, *automation, &**node)));
            }
            _ => {}
        }
    }
    if !nodes.is_empty() {
        look_up_nodes(transaction, &nodes).await?;
    }
    if !runs.is_empty() {
        look_up_runs(transaction, &runs).await?;
    }
    Ok(())
}

/// Looks up the numbers of nodes, after giving one to each node that has none.
async fn look_up_nodes(
    transaction: &mut Transaction,
    nodes: &BTreeSet<(WorkspaceId, AutomationId, &str)>,
) -> Result<(), Fault> {
    const MAKE: &str = "INSERT INTO automation_nodes (automation, id)
        SELECT a.n, p.node FROM unnest($1::uuid[], $2::uuid[], $3::text[]) AS p (workspace, automation, node)
        JOIN automations a ON a.workspace = p.workspace AND a.id = p.automation AND NOT a.removed
        WHERE NOT EXISTS (SELECT 1 FROM automation_nodes o WHERE o.automation = a.n AND o.id = p.node)
        ORDER BY a.n, p.node ON CONFLICT DO NOTHING";
    const READ: &str = "SELECT a.workspace, a.id, a.n, o.id, o.n
        FROM unnest($1::uuid[], $2::uuid[], $3::text[]) AS p (workspace, automation, node)
        JOIN automations a ON a.workspace = p.workspace AND a.id = p.automation AND NOT a.removed
        JOIN automation_nodes o ON o.automation = a.n AND o.id = p.node";
    let workspaces: Vec<Uuid> = nodes.iter().map(|(workspace, ..)| uuid(*workspace)).collect();
    let automations: Vec<Uuid> = nodes.iter().map(|(_, automation, _)| uuid(*automation)).collect();
    let names: Vec<String> = nodes.iter().map(|(.., node)| (*node).to_owned()).collect();
    let columns = || params![workspaces.clone(), automations.clone(), names.clone()];
    transaction.run(MAKE, columns());
    // A second statement, so that it also sees rows that another transaction has inserted first.
    let found = many(transaction, READ, columns(), |row| {
        Ok(((id(row, 0)?, id(row, 1)?), get::<i64>(row, 2)?, get::<String>(row, 3)?, get::<i64>(row, 4)?))
    })
    .await?;
    for (automation, n, node, number) in found {
        transaction.looked_up.automations.insert(automation, n);
        transaction.looked_up.nodes.entry(n).or_default().insert(node, number);
    }
    Ok(())
}

/// Looks up the numbers of the automations and contacts of runs, and the status and node of each run at the revision
/// that its write expects.
async fn look_up_runs(transaction: &mut Transaction, runs: &[&PutRun]) -> Result<(), Fault> {
    const SQL: &str = "SELECT p.place, a.n, c.n, r.status, r.node, r.untold
        FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bigint[])
            WITH ORDINALITY AS p (workspace, automation, contact, run, revision, place)
        JOIN automations a ON a.workspace = p.workspace AND a.id = p.automation AND NOT a.removed
        JOIN workspace_numbers w ON w.workspace = p.workspace
        JOIN contacts c ON c.workspace_number = w.number AND c.id = p.contact
        LEFT JOIN automation_runs r ON r.automation = a.n AND r.id = p.run AND r.revision = p.revision
            AND r.contact = c.n";
    let columns = params![
        runs.iter().map(|put| uuid(put.run.workspace_id)).collect::<Vec<_>>(),
        runs.iter().map(|put| uuid(put.run.automation_id)).collect::<Vec<_>>(),
        runs.iter().map(|put| uuid(put.run.contact_id)).collect::<Vec<_>>(),
        runs.iter().map(|put| uuid(put.run.id)).collect::<Vec<_>>(),
        runs.iter().map(|put| revision(put.expect)).collect::<Vec<_>>(),
    ];
    let found = many(transaction, SQL, columns, |row| {
        let before = if get::<Option<i64>>(row, 3)?.is_some() { Some(PriorRun::read(row, 3)?) } else { None };
        Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?, get::<i64>(row, 2)?, before))
    })
    .await?;
    for (at, automation, contact, before) in found {
        let put = usize::try_from(at - 1).ok().and_then(|at| runs.get(at));
        let put = put.ok_or(Fault::Malformed("a row is of no run"))?;
        let (run, looked_up) = (&put.run, &mut transaction.looked_up);
        looked_up.automations.insert((run.workspace_id, run.automation_id), automation);
        looked_up.contacts.insert((run.workspace_id, run.contact_id), contact);
        if let (Some(before), Expect::Revision(revision)) = (before, put.expect) {
            looked_up.runs.insert((automation, run.id, revision), before);
        }
    }
    Ok(())
}

/// The expected revision as a parameter; for a run that must not exist it is 0, which no row has.
fn revision(expect: Expect) -> i64 {
    match expect {
        Expect::Absent => 0,
        Expect::Revision(revision) => revision.into(),
    }
}

/// The number of an automation; `None` if there is none. If the transaction holds the lock of the workspace's
/// automations, no other one removes it meanwhile.
pub(super) async fn automation(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    id: AutomationId,
) -> Result<Option<i64>, Fault> {
    if let Some(known) = transaction.looked_up.automations.get(&(workspace, id)) {
        return Ok(Some(*known));
    }
    let found = automation_number(transaction, workspace, id).await?;
    transaction.looked_up.automations.extend(found.map(|n| ((workspace, id), n)));
    Ok(found)
}

/// The number of a contact; `None` if the contact is gone.
pub(super) async fn contact(
    transaction: &mut Transaction,
    workspace: WorkspaceId,
    id: ContactId,
) -> Result<Option<i64>, Fault> {
    if let Some(known) = transaction.looked_up.contacts.get(&(workspace, id)) {
        return Ok(Some(*known));
    }
    let found = contact_number(transaction, workspace, id).await?;
    transaction.looked_up.contacts.extend(found.map(|n| ((workspace, id), n)));
    Ok(found)
}

/// The number of a node, after giving it one if it has none.
pub(super) async fn node(transaction: &mut Transaction, automation: i64, id: &str) -> Result<i64, Fault> {
    const MAKE: &str = "INSERT INTO automation_nodes (automation, id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    const READ: &str = "SELECT n FROM automation_nodes WHERE automation = $1 AND id = $2";
    if let Some(known) = transaction.looked_up.nodes.get(&automation).and_then(|nodes| nodes.get(id)) {
        return Ok(*known);
    }
    transaction.run(MAKE, params![automation, id.to_owned()]);
    let found = one(transaction, READ, params![automation, id.to_owned()], |row| get(row, 0)).await?;
    let n = found.ok_or(Fault::Malformed("a node has no number"))?;
    transaction.looked_up.nodes.entry(automation).or_default().insert(id.to_owned(), n);
    Ok(n)
}

/// The state of a contact's run before a change that expects a revision; `Fault::Conflict` if there is no such run.
pub(super) async fn before(
    transaction: &mut Transaction,
    automation: i64,
    (run, contact): (RunId, i64),
    revision: u32,
) -> Result<PriorRun, Fault> {
    if let Some(known) = transaction.looked_up.runs.get(&(automation, run, revision)) {
        return Ok(*known);
    }
    let wanted = params![automation, uuid(run), revision, contact];
    one(transaction, PriorRun::SQL.postgres, wanted, |row| PriorRun::read(row, 0)).await?.ok_or(Fault::Conflict)
}
