//! What is counted of automations against their rows.

use messaging_core::domain::automation::run::RunStatus;
use messaging_core::ids::{AutomationId, WorkspaceId};
use messaging_core::ports::store::verification::Verified;

use super::super::fault::Fault;
use super::super::query::{Queries, many, params};
use super::super::row::{get, id, number, numbered, uuid};

/// Compares open runs by state, runs by version, and runs by node. How many have ended cannot be told by rows, which go
/// some time after the end.
pub(super) async fn verify(
    on: &mut impl Queries,
    workspace: WorkspaceId,
    verified: &mut Verified,
) -> Result<(), Fault> {
    const RUNS: &str = "SELECT a.id, open.status,
            (SELECT coalesce(sum(c.runs), 0)::bigint FROM automation_run_counts c
                WHERE c.automation = a.n AND c.status = open.status),
            (SELECT count(*) FROM automation_runs r WHERE r.automation = a.n AND r.status = open.status)
        FROM automations a CROSS JOIN unnest($2::bigint[]) AS open (status)
        WHERE a.workspace = $1 AND NOT a.removed ORDER BY a.n, open.status";
    const VERSIONS: &str = "SELECT a.id, v.version::bigint,
            (SELECT coalesce(sum(c.runs), 0)::bigint FROM automation_version_counts c
                WHERE c.automation = a.n AND c.version = v.version),
            (SELECT count(*) FROM automation_runs r WHERE r.automation = a.n AND r.version = v.version)
        FROM automations a JOIN automation_versions v ON v.automation = a.n
        WHERE a.workspace = $1 AND NOT a.removed ORDER BY a.n, v.version";
    const NODES: &str = "SELECT a.id, node.id,
            (SELECT coalesce(sum(c.waiting), 0)::bigint FROM automation_node_counts c WHERE c.node = node.n),
            (SELECT count(*) FROM automation_runs r
                WHERE r.automation = a.n AND r.node = node.n AND r.ended_at IS NULL)
        FROM automations a JOIN automation_nodes node ON node.automation = a.n
        WHERE a.workspace = $1 AND NOT a.removed ORDER BY a.n, node.n";
    let open = RunStatus::ALL.into_iter().filter(|status| status.is_open());
    let open: Vec<i64> = open.map(|status| number(&RunStatus::ALL, &status)).collect();
    let runs = many(on, RUNS, params![uuid(workspace), open], |row| {
        let status = numbered(&RunStatus::ALL, get(row, 1)?)?;
        Ok((id::<AutomationId>(row, 0)?, status, get(row, 2)?, get(row, 3)?))
    });
    for (automation, status, stored, counted) in runs.await? {
        verified.compare(|| format!("{automation}: {status:?} runs"), stored, counted);
    }
    let versions = many(on, VERSIONS, params![uuid(workspace)], |row| {
        Ok((id::<AutomationId>(row, 0)?, get::<i64>(row, 1)?, get(row, 2)?, get(row, 3)?))
    });
    for (automation, version, stored, counted) in versions.await? {
        verified.compare(|| format!("{automation}: runs of version {version}"), stored, counted);
    }
    let nodes = many(on, NODES, params![uuid(workspace)], |row| {
        Ok((id::<AutomationId>(row, 0)?, get::<String>(row, 1)?, get(row, 2)?, get(row, 3)?))
    });
    for (automation, node, stored, counted) in nodes.await? {
        verified.compare(|| format!("{automation}: runs at {node}"), stored, counted);
    }
    Ok(())
}
