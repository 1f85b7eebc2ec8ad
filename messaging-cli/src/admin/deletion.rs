//! `admin delete-workspace` and `admin delete-user`.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{ArgMatches, Args};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::StoreError;
use messaging_engine::{App, Error, admin};
use tokio::time::Instant;

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::target;

/// What is said of `delete-workspace` below its flags.
pub(super) const HELP: &str = "What there is can be taken along first, also while the workspace is under deletion:
  messaging contact list --all --json > contacts.json
  messaging contact export --id con_… > contact.json
  messaging suppression list --all --json > suppressions.json
  messaging message list --all --json > messages.json
  messaging template list --all --json > templates.json

`messaging workspace restore` takes the deletion back until its date. Backups that were made before keep the workspace: remove
them, or let them expire.

Examples:
  messaging admin delete-workspace --id wsp_…
  messaging admin delete-workspace --id wsp_… --now";

#[derive(Debug, Args)]
pub(super) struct DeleteWorkspace {
    /// The workspace
    #[arg(long, value_name = "ID")]
    id: String,
    /// Remove everything now, not in seven days; nothing takes that back
    #[arg(long)]
    now: bool,
}

#[derive(Debug, Args)]
pub(super) struct DeleteUser {
    /// The sign-in name
    #[arg(long, value_name = "EMAIL")]
    pub(super) email: String,
}

/// How often it is looked whether a server has removed everything.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long it is waited for a server to do so; it goes on by itself.
const PATIENCE: Duration = Duration::from_mins(30);
/// How often it is looked whether the server of a database that one process works on is still there.
const OPEN_EVERY: Duration = Duration::from_secs(10);
/// A server that is started again is there again after this.
const RESTART: Duration = Duration::from_secs(30);
/// Said where nobody removes the workspace.
const NOBODY_WORKS: &str = "no server works on the database: everything of the workspace is removed as soon as `messaging \
                            serve` or `messaging worker` runs, and nothing takes that back";
/// After so many more rows it is told how many are gone.
const TELL_EVERY: u64 = 100_000;

pub(super) async fn delete_workspace(
    matches: &ArgMatches,
    flags: &DeleteWorkspace,
    output: Output,
) -> Result<(), Failure> {
    let id = flags.id.parse::<WorkspaceId>().map_err(|_| Failure::usage("--id is not a workspace id"))?;
    let (mut app, mut is_alone) = target::open_to_work(matches).await?;
    let refused = |error: Error| target::refused(&app, error);
    let mut report = admin::delete_workspace(&app, id, flags.now).await.map_err(refused)?;
    if flags.now {
        if !is_alone {
            output::note("the server removes the workspace; this takes half a minute at least");
        }
        let started = Instant::now();
        while !is_alone && !is_removed_by_a_server(&app, id, started).await? {
            app.store().close().await;
            (app, is_alone) = target::open_to_work(matches).await?;
        }
        if is_alone {
            report.removed = remove(&app, id).await?;
        }
    } else {
        output::note(
            "until then the workspace can be read and exported, and `messaging workspace restore` takes the deletion back",
        );
    }
    app.store().close().await;
    output.resource(&report)
}

/// Removes everything of a workspace, where no server does.
async fn remove(app: &App, id: WorkspaceId) -> Result<BTreeMap<String, u64>, Failure> {
    let mut told = 0;
    let mut note = |removed: u64| {
        if removed >= told + TELL_EVERY {
            told = removed;
            output::note(&format!("{removed} rows and files removed so far"));
        }
    };
    admin::remove_workspace(app, id, &mut note).await.map_err(|error| target::refused(app, error))
}

/// Waits until a server has removed a workspace. False where the server may have ended meanwhile, which shows when the
/// database is opened again; processes on a database that several share see each other, and where none works this fails.
async fn is_removed_by_a_server(app: &App, id: WorkspaceId, started: Instant) -> Result<bool, Failure> {
    let (began, mut worked_at) = (Instant::now(), None);
    let failed = |error: StoreError| target::refused(app, error.into());
    while app.store().workspace(id).await.map_err(failed)?.is_some() {
        if started.elapsed() > PATIENCE {
            return Err(Failure::Failed("the workspace is still being removed; the server goes on".to_owned()));
        }
        match app.store().cluster().await.map_err(failed)? {
            Some(cluster) if cluster.nodes.iter().any(|node| node.works) => worked_at = Some(Instant::now()),
            Some(_) if worked_at.is_none_or(|at| at.elapsed() > RESTART) => {
                return Err(Failure::Failed(NOBODY_WORKS.to_owned()));
            }
            None if began.elapsed() > OPEN_EVERY => return Ok(false),
            Some(_) | None => {}
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(true)
}
