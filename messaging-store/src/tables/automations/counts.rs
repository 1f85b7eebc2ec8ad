//! Numbers of runs by state and node, and of visits of nodes.

use messaging_core::ports::store::{AutomationCounts, NodeCounts, StoreError};

use super::keys::{Of, automation, key_of};
use crate::database::{Database, Query};
use crate::fault::Fault;
use crate::row::{self, Row, count};
use crate::sql::{Sql, sql};

/// A row of the counts.
enum CountRow {
    Runs(u8, u64),
    Node(NodeCounts),
    /// A branch of the node before it.
    Branch(String, u64),
}

fn counted(row: &dyn Row) -> Result<CountRow, Fault> {
    Ok(match row::get::<i64>(row, 0)? {
        0 => CountRow::Runs(row::get(row, 1)?, count(row, 3)?),
        1 => {
            let (entered, waiting) = (count(row, 3)?, count(row, 4)?);
            CountRow::Node(NodeCounts { node_id: row::get(row, 2)?, entered, waiting, branches: Vec::new() })
        }
        _ => CountRow::Branch(row::get(row, 2)?, count(row, 3)?),
    })
}

pub(super) async fn get(database: &impl Database, of: Of) -> Result<AutomationCounts, StoreError> {
    macro_rules! select {
        ($($columns:literal $group:literal),*) => {
            concat!($($columns, " WHERE automation = ", automation!(), $group),*)
        };
    }
    // Branches follow their nodes. One query, for one moment.
    const SQL: Sql = sql!(
        sqlite: select!(
            "SELECT 0, status, NULL, runs, 0 FROM automation_run_counts" "",
            " UNION ALL SELECT 1, n, id, entered, waiting FROM automation_nodes" "",
            " UNION ALL SELECT 2, node, branch, taken, 0 FROM automation_nodes CROSS JOIN automation_branches ON node = n"
            " AND taken <> 0 ORDER BY 2, 1"
        ),
        postgres: select!(
            "SELECT 0, status, NULL, sum(runs)::bigint, 0 FROM automation_run_counts" " GROUP BY status",
            " UNION ALL SELECT 1, n, id, coalesce(sum(entered), 0)::bigint, coalesce(sum(waiting), 0)::bigint
             FROM automation_nodes LEFT JOIN automation_node_counts ON node = n" " GROUP BY n",
            " UNION ALL SELECT 2, node, branch, sum(taken)::bigint, 0
             FROM automation_nodes JOIN automation_branches ON node = n"
            " GROUP BY node, branch HAVING sum(taken) <> 0 ORDER BY 2, 1"
        ),
    );
    let mut counts = AutomationCounts::default();
    for counted in database.many(Query::new(SQL, key_of(of), counted)).await? {
        match counted {
            CountRow::Runs(status, runs) => {
                let place = counts.runs.get_mut(usize::from(status));
                *place.ok_or(Fault::Malformed("a number stands for nothing"))? = runs;
            }
            CountRow::Node(node) => counts.nodes.push(node),
            CountRow::Branch(branch, taken) => {
                let node = counts.nodes.last_mut().ok_or(Fault::Malformed("a branch is of no node"))?;
                node.branches.push((branch, taken));
            }
        }
    }
    for node in &mut counts.nodes {
        node.branches.sort();
    }
    Ok(counts)
}
