//! Counters of automations against their rows.

use messaging_core::domain::automation::run::RunStatus;
use messaging_core::ids::{AutomationId, WorkspaceId};
use messaging_core::ports::store::verification::Verified;

use crate::database::Query;
use crate::database::open_commit::Answers;
use crate::fault::Fault;
use crate::row::{get, id, numbered};
use crate::sql::{Sql, key, params, sql};

/// Selects a stored counter and the number of its rows, for each automation and each value of a column.
macro_rules! each {
    ($what:literal, $kept:literal, $runs:literal, $with:literal) => {
        concat!(
            "SELECT a.id, ",
            $what,
            ", ",
            $kept,
            ", (SELECT count(*) FROM automation_runs r WHERE r.automation = a.n AND ",
            $runs,
            ") FROM automations a JOIN ",
            $with,
            " WHERE a.workspace = $1 AND NOT a.removed ORDER BY a.n, 2"
        )
    };
}

/// Compares open runs by state, runs by version, and runs by node. Ended runs cannot be compared, because their rows
/// are removed some time after the end.
pub(super) async fn verify(
    on: &mut impl Answers,
    workspace: WorkspaceId,
    verified: &mut Verified,
) -> Result<(), Fault> {
    // Active and waiting: the open ones.
    const RUNS: Sql = sql!(each!(
        "open.status",
        "(SELECT CAST(coalesce(sum(c.runs), 0) AS bigint) FROM automation_run_counts c
            WHERE c.automation = a.n AND c.status = open.status)",
        "r.status = open.status",
        "(SELECT 0 AS status UNION ALL SELECT 1) AS open ON true"
    ));
    const VERSIONS: Sql = sql!(
        sqlite: each!(
            "v.version",
            "v.runs",
            "r.version = v.version",
            "automation_versions v ON v.automation = a.n"
        ),
        postgres: each!(
            "v.version",
            "(SELECT coalesce(sum(c.runs), 0)::bigint FROM automation_version_counts c
                WHERE c.automation = a.n AND c.version = v.version)",
            "r.version = v.version",
            "automation_versions v ON v.automation = a.n"
        ),
    );
    const NODES: Sql = sql!(
        sqlite: each!(
            "node.id",
            "node.waiting",
            "r.node = node.n AND r.ended_at IS NULL",
            "automation_nodes node ON node.automation = a.n"
        ),
        postgres: each!(
            "node.id",
            "(SELECT coalesce(sum(c.waiting), 0)::bigint FROM automation_node_counts c WHERE c.node = node.n)",
            "r.node = node.n AND r.ended_at IS NULL",
            "automation_nodes node ON node.automation = a.n"
        ),
    );
    let runs = Query::new(RUNS, params![key(workspace)], |row| {
        let status = numbered(&RunStatus::ALL, get(row, 1)?)?;
        Ok((id::<AutomationId>(row, 0)?, status, get(row, 2)?, get(row, 3)?))
    });
    for (automation, status, stored, counted) in on.many(runs).await? {
        verified.compare(|| format!("{automation}: {status:?} runs"), stored, counted);
    }
    let versions = Query::new(VERSIONS, params![key(workspace)], |row| {
        Ok((id::<AutomationId>(row, 0)?, get::<i64>(row, 1)?, get(row, 2)?, get(row, 3)?))
    });
    for (automation, version, stored, counted) in on.many(versions).await? {
        verified.compare(|| format!("{automation}: runs of version {version}"), stored, counted);
    }
    let nodes = Query::new(NODES, params![key(workspace)], |row| {
        Ok((id::<AutomationId>(row, 0)?, get::<String>(row, 1)?, get(row, 2)?, get(row, 3)?))
    });
    for (automation, node, stored, counted) in on.many(nodes).await? {
        verified.compare(|| format!("{automation}: runs at {node}"), stored, counted);
    }
    Ok(())
}
