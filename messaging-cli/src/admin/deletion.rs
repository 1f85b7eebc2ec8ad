//! `admin delete-workspace` and `admin delete-user`.

use std::time::Duration;

use clap::{ArgMatches, Args};
use messaging_core::ids::WorkspaceId;
use messaging_engine::{App, Error, admin};

use super::parts::Confirmation;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::target;

/// Help text of `delete-workspace`, printed below its flags.
pub(super) const HELP: &str = "You can export the data first, also while the workspace is under deletion:
  messaging contact export > contacts.csv
  messaging suppression export > suppressions.csv
  messaging message export --format jsonl > messages.jsonl
  messaging template list --all --json > templates.json

`messaging workspace restore` undoes the deletion until its date. Backups that were made before still contain the workspace: \
remove them, or let them expire.

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
    #[command(flatten)]
    confirmation: Confirmation,
}

#[derive(Debug, Args)]
pub(super) struct DeleteUser {
    /// The sign-in name
    #[arg(long, value_name = "EMAIL")]
    pub(super) email: String,
    #[command(flatten)]
    pub(super) confirmation: Confirmation,
}

/// Interval at which the command checks if a server has removed everything.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Longest time the command waits for a server to remove everything; the server continues without it.
const PATIENCE: Duration = Duration::from_mins(30);
/// Number of removed rows between two progress notes.
const TELL_EVERY: u64 = 100_000;

pub(super) async fn delete_workspace(
    matches: &ArgMatches,
    flags: &DeleteWorkspace,
    output: Output,
) -> Result<(), Failure> {
    let id = flags.id.parse::<WorkspaceId>().map_err(|_| {
        Failure::usage("--id is not the id of a workspace (wsp_…): `messaging admin list-workspaces` shows them")
    })?;
    if flags.now {
        flags
            .confirmation
            .ask(&format!("Delete the workspace {id} with everything in it now? Nothing takes that back."))?;
    }
    let (app, is_alone) = target::open_to_work(matches).await?;
    let refused = |error: Error| target::refused(&app, error);
    let mut report = admin::delete_workspace(&app, id, flags.now).await.map_err(refused)?;
    if !flags.now {
        output::note(
            "until then the workspace can be read and exported, and `messaging workspace restore` undoes the deletion",
        );
    } else if is_alone {
        let mut told = 0;
        let mut note = |removed: u64| {
            if removed >= told + TELL_EVERY {
                told = removed;
                output::note(&format!("{removed} rows and files removed so far"));
            }
        };
        report.removed = admin::remove_workspace(&app, id, &mut note).await.map_err(refused)?;
    } else {
        output::note("the server removes the workspace; this takes half a minute at least");
        wait_for_the_end(&app, id).await?;
    }
    app.store().close().await;
    output.resource(&report)
}

/// Waits until a server has removed a workspace.
async fn wait_for_the_end(app: &App, id: WorkspaceId) -> Result<(), Failure> {
    let started = tokio::time::Instant::now();
    while app.store().workspace(id).await.map_err(|error| target::refused(app, error.into()))?.is_some() {
        if started.elapsed() > PATIENCE {
            return Err(Failure::Failed("the workspace is still being removed; the server goes on".to_owned()));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(())
}
