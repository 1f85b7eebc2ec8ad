//! What is counted of automations against their rows.

use messaging_core::domain::automation::run::RunStatus;
use messaging_core::ids::{AutomationId, Id as _, WorkspaceId};
use messaging_core::ports::store::verification::Verified;
use rusqlite::Connection;

use super::super::fault::Fault;
use super::super::query::many;
use super::super::row::{id, number};

/// Compares open runs by state, runs by version, and runs by node. How many have ended cannot be told by rows, which go
/// some time after the end.
pub(super) fn verify(connection: &Connection, workspace: WorkspaceId, verified: &mut Verified) -> Result<(), Fault> {
    const AUTOMATIONS: &str = "SELECT n, id FROM automations WHERE workspace = ?1 AND removed = 0";
    const RUNS: &str =
        "SELECT coalesce((SELECT runs FROM automation_run_counts WHERE automation = ?1 AND status = ?2), 0),
        (SELECT count(*) FROM automation_runs WHERE automation = ?1 AND status = ?2)";
    const VERSIONS: &str = "SELECT version, runs,
            (SELECT count(*) FROM automation_runs r WHERE r.automation = ?1 AND r.version = v.version)
        FROM automation_versions v WHERE automation = ?1";
    const NODES: &str = "SELECT node.id, node.waiting,
            (SELECT count(*) FROM automation_runs r WHERE r.automation = ?1 AND r.node = node.n AND r.ended_at IS NULL)
        FROM automation_nodes node WHERE automation = ?1";
    let automations =
        many(connection, AUTOMATIONS, [workspace.to_bytes()], |row| Ok((row.get(0)?, id::<AutomationId>(row, 1)?)))?;
    for (n, automation) in automations {
        for status in RunStatus::ALL.into_iter().filter(|status| status.is_open()) {
            let key: [i64; 2] = [n, number(&RunStatus::ALL, &status)];
            for (stored, counted) in many(connection, RUNS, key, |row| Ok((row.get(0)?, row.get(1)?)))? {
                verified.compare(|| format!("{automation}: {status:?} runs"), stored, counted);
            }
        }
        let versions = many(connection, VERSIONS, [n], |row| Ok((row.get::<_, u32>(0)?, row.get(1)?, row.get(2)?)))?;
        for (version, stored, counted) in versions {
            verified.compare(|| format!("{automation}: runs of version {version}"), stored, counted);
        }
        let nodes = many(connection, NODES, [n], |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?)))?;
        for (node, stored, counted) in nodes {
            verified.compare(|| format!("{automation}: runs at {node}"), stored, counted);
        }
    }
    Ok(())
}
