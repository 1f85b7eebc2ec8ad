//! How many runs are where, and how often nodes were reached.

use messaging_core::changes::CountNodes;
use messaging_core::ids::{AutomationId, WorkspaceId};
use messaging_core::ports::store::{AutomationCounts, NodeCounts};
use rusqlite::Connection;

use super::super::fault::Fault;
use super::super::listeners::Listeners;
use super::super::numbers::automation_number;
use super::super::query::many;
use super::super::row::count;
use super::runs::Of;
use crate::counter_deltas::{AutomationCounter, CounterDeltas};

pub(in super::super) fn count_nodes(
    connection: &Connection,
    deltas: &mut CounterDeltas,
    listeners: &mut Listeners,
    (workspace, automation): Of,
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

pub(super) fn get(
    connection: &Connection,
    workspace: WorkspaceId,
    automation: AutomationId,
) -> Result<AutomationCounts, Fault> {
    const RUNS: &str = "SELECT status, runs FROM automation_run_counts WHERE automation = ?1";
    const NODES: &str = "SELECT id, entered, waiting, n FROM automation_nodes WHERE automation = ?1 ORDER BY n";
    const BRANCHES: &str =
        "SELECT branch, taken FROM automation_branches WHERE node = ?1 AND taken <> 0 ORDER BY branch";
    // One transaction: of one moment.
    let connection = &*connection.unchecked_transaction()?;
    let mut counts = AutomationCounts::default();
    let Some(n) = automation_number(connection, workspace, automation)? else { return Ok(counts) };
    for (status, runs) in many(connection, RUNS, [n], |row| Ok((usize::from(row.get::<_, u8>(0)?), count(row, 1)?)))? {
        let place = counts.runs.get_mut(status).ok_or(Fault::Malformed("a number stands for nothing"))?;
        *place = runs;
    }
    let nodes = many(connection, NODES, [n], |row| {
        let node =
            NodeCounts { node_id: row.get(0)?, entered: count(row, 1)?, waiting: count(row, 2)?, branches: Vec::new() };
        Ok((node, row.get::<_, i64>(3)?))
    })?;
    for (mut node, n) in nodes {
        node.branches = many(connection, BRANCHES, [n], |row| Ok((row.get(0)?, count(row, 1)?)))?;
        counts.nodes.push(node);
    }
    Ok(counts)
}
