//! Automations that listen, and the events they listen for.

use std::sync::Arc;

use messaging_core::domain::automation::note::RunSubscription;
use messaging_core::domain::delivery::lane::Lane;
use messaging_core::ids::WorkspaceId;

use crate::database::Query;
use crate::database::open_commit::Answers;
use crate::fault::Fault;
use crate::happened::EntersBy;
use crate::row::{Row, get, record};
use crate::sql::{Sql, key, params, sql};

/// An automation that listens.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) n: i64,
    /// Events by which contacts enter, while the automation is active.
    pub(crate) entry: Option<EntersBy>,
    /// Events that the runs of each version wait for; versions that wait for none are left out.
    pub(crate) runs: Vec<(u32, RunSubscription)>,
    pub(crate) lanes: Arc<[Lane]>,
}

impl Listener {
    /// Returns true if any change of a contact may move or end one of its runs.
    pub(crate) fn hears_changes(&self) -> bool {
        self.runs.iter().any(|(_, subscription)| subscription.everything)
    }
}

/// An automation that listens, with the subscription of the runs of one of its versions.
pub(crate) type ListenerOfVersion = (Listener, Option<(u32, RunSubscription)>);

/// Selects the columns that [`listener`] reads.
macro_rules! listening {
    ($columns:literal $condition:literal) => {
        concat!(
            "SELECT a.n, a.lanes, a.entry, v.version, v.interest",
            $columns,
            " FROM automations a
              LEFT JOIN automation_versions v ON v.automation = a.n AND v.interest <> ''
              WHERE ",
            $condition,
            " AND NOT a.removed AND a.lanes <> '[]' ORDER BY a.n, v.version"
        )
    };
}

/// Like `listening`, for several workspaces, with the workspace in the last column; SQLite reads one workspace at a
/// time.
#[cfg(feature = "postgres")]
pub(crate) const LISTENING_ANYWHERE: Sql =
    sql!(sqlite: "", postgres: listening!(", a.workspace" "a.workspace = ANY ($1)"));

/// Automations of a workspace that listen, in the order of their numbers.
pub(crate) async fn listeners(on: &mut impl Answers, workspace: WorkspaceId) -> Result<Vec<Listener>, Fault> {
    const SQL: Sql = sql!(listening!("" "a.workspace = $1"));
    Ok(joined(on.many(Query::new(SQL, params![key(workspace)], listener)).await?))
}

/// Reads a listening automation from the columns n, lanes, entry, version and interest.
pub(crate) fn listener(row: &dyn Row) -> Result<ListenerOfVersion, Fault> {
    let entry = get::<Option<&str>>(row, 2)?.map(EntersBy::read).transpose()?;
    let lanes: Vec<Lane> = record(row, 1)?;
    let run = match get::<Option<u32>>(row, 3)? {
        Some(version) => Some((version, record::<RunSubscription>(row, 4)?)),
        None => None,
    };
    Ok((Listener { n: get(row, 0)?, entry, runs: Vec::new(), lanes: lanes.into() }, run))
}

/// Joins the versions of each automation, which follow one another.
pub(crate) fn joined(found: Vec<ListenerOfVersion>) -> Vec<Listener> {
    let mut listeners: Vec<Listener> = Vec::new();
    for (listener, run) in found {
        match listeners.last_mut() {
            Some(last) if last.n == listener.n => last.runs.extend(run),
            _ => listeners.push(Listener { runs: run.into_iter().collect(), ..listener }),
        }
    }
    listeners
}
