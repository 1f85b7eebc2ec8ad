//! `admin quarantine`: jobs that were put aside because the database permanently refuses to store their result.

use clap::{Args, Subcommand};
use messaging_core::ids::JobId;
use messaging_engine::admin::{self, LeftReport, ReleaseReport};
use messaging_engine::{App, Error};

use super::parts::Confirmation;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::target;

#[derive(Debug, Subcommand)]
pub(super) enum Quarantine {
    /// List the jobs in quarantine, newest first
    List,
    /// Try jobs again at once. A message that was handed over already is sent a second time
    Release(Selection),
    /// Delete jobs from quarantine; they are not tried again
    Drop(Dropping),
}

#[derive(Debug, Args)]
pub(super) struct Dropping {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    confirmation: Confirmation,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Selection {
    /// Ids that `messaging admin quarantine list` shows
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// All jobs in quarantine
    #[arg(long)]
    all: bool,
}

impl Selection {
    /// The ids; `None` for all.
    fn ids(&self) -> Result<Option<Vec<JobId>>, Failure> {
        if self.all {
            return Ok(None);
        }
        let read = |text: &String| {
            text.parse().map_err(|_| {
                Failure::usage(format!("{text} is not an id; `messaging admin quarantine list` shows the ids"))
            })
        };
        self.ids.iter().map(read).collect::<Result<_, _>>().map(Some)
    }
}

/// Runs the command.
pub(super) async fn carry_out(app: &App, quarantine: Quarantine, output: Output) -> Result<(), Failure> {
    let refused = |error: Error| target::refused(app, error);
    let report = match quarantine {
        Quarantine::List => return output.resource(&admin::list_quarantined(app).await.map_err(refused)?),
        Quarantine::Release(selection) => {
            admin::release_quarantined(app, selection.ids()?.as_deref()).await.map_err(refused)?
        }
        Quarantine::Drop(Dropping { selection, confirmation }) => {
            let ids = selection.ids()?;
            let which = ids.as_ref().map_or_else(|| "all jobs".to_owned(), |ids| format!("{} jobs", ids.len()));
            confirmation.ask(&format!("Delete {which} from quarantine? They are not tried again."))?;
            admin::drop_quarantined(app, ids.as_deref()).await.map_err(refused)?
        }
    };
    print_report(&report, output)
}

/// Prints the result for each job; a failure when some stay in quarantine.
fn print_report(report: &ReleaseReport, output: Output) -> Result<(), Failure> {
    if output.is_json() {
        output.resource(report)?;
    } else {
        for id in &report.done {
            output::raw(format!("{id} done\n").as_bytes())?;
        }
        for LeftReport { id, reason, .. } in &report.left {
            output::raw(format!("{id} stays: {reason}\n").as_bytes())?;
        }
    }
    match report.left.len() {
        0 => Ok(()),
        left => Err(Failure::Unsuccessful(format!("{left} jobs stay in quarantine"))),
    }
}
