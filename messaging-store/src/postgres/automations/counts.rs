//! How many runs are where, and how often nodes were reached.

use messaging_core::changes::CountNodes;
use messaging_core::ids::{AutomationId, WorkspaceId};
use messaging_core::ports::store::{AutomationCounts, NodeCounts, StoreError};

use super::super::fault::Fault;
use super::super::listeners;
use super::super::numbers::automation_number;
use super::super::query::{Queries, many, params};
use super::super::reads::Reads;
use super::super::row::{count, get as column, small};
use super::super::transaction::Transaction;
use super::look_up;
use super::runs::Of;
use crate::counter_deltas::AutomationCounter;

pub(in super::super) async fn count_nodes(
    transaction: &mut Transaction,
    (workspace, automation): Of,
    counts: &CountNodes,
) -> Result<(), Fault> {
    listeners::share(transaction, workspace);
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

pub(super) async fn get(
    reads: &Reads,
    workspace: WorkspaceId,
    automation: AutomationId,
) -> Result<AutomationCounts, StoreError> {
    let mut snapshot = reads.snapshot().await?;
    let counts = match automation_number(&mut snapshot, workspace, automation).await? {
        Some(n) => of_automation(&mut snapshot, n).await?,
        None => AutomationCounts::default(),
    };
    snapshot.end().await?;
    Ok(counts)
}

async fn of_automation(on: &mut impl Queries, n: i64) -> Result<AutomationCounts, Fault> {
    const RUNS: &str =
        "SELECT status, sum(runs)::bigint FROM automation_run_counts WHERE automation = $1 GROUP BY status";
    const NODES: &str = "SELECT n, id, coalesce(sum(entered), 0)::bigint, coalesce(sum(waiting), 0)::bigint
        FROM automation_nodes LEFT JOIN automation_node_counts ON node = n
        WHERE automation = $1 GROUP BY n ORDER BY n";
    const BRANCHES: &str = "SELECT node, branch, sum(taken)::bigint
        FROM automation_nodes JOIN automation_branches ON node = n
        WHERE automation = $1 GROUP BY node, branch HAVING sum(taken) <> 0 ORDER BY node, branch";
    let mut counts = AutomationCounts::default();
    for (status, runs) in many(on, RUNS, params![n], |row| Ok((small::<usize>(row, 0)?, count(row, 1)?))).await? {
        let place = counts.runs.get_mut(status).ok_or(Fault::Malformed("a number stands for nothing"))?;
        *place = runs;
    }
    let nodes = many(on, NODES, params![n], |row| {
        let (entered, waiting) = (count(row, 2)?, count(row, 3)?);
        Ok((column::<i64>(row, 0)?, NodeCounts { node_id: column(row, 1)?, entered, waiting, branches: Vec::new() }))
    })
    .await?;
    let branches =
        many(on, BRANCHES, params![n], |row| Ok((column::<i64>(row, 0)?, (column::<String>(row, 1)?, count(row, 2)?))))
            .await?;
    let mut branches = branches.into_iter().peekable();
    for (n, mut node) in nodes {
        while let Some((_, branch)) = branches.next_if(|(of, _)| *of == n) {
            node.branches.push(branch);
        }
        counts.nodes.push(node);
    }
    Ok(counts)
}
