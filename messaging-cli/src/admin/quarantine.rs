//! `admin quarantine`: what was put aside because the database refuses its outcome for good.

use clap::{Args, Subcommand};
use messaging_core::ids::JobId;
use messaging_engine::admin::{self, LeftReport, ReleaseReport};
use messaging_engine::{App, Error};

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::target;

#[derive(Debug, Subcommand)]
pub(super) enum Quarantine {
    /// List what was put aside, newest first
    List,
    /// Have items tried again at once. A message that was handed over already is sent once more
    Release(Chosen),
    /// Give items up: they are forgotten here and not tried again
    Drop(Chosen),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Chosen {
    /// Ids of the list
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// All of them
    #[arg(long)]
    all: bool,
}

impl Chosen {
    /// The ids; `None` for all.
    fn ids(&self) -> Result<Option<Vec<JobId>>, Failure> {
        if self.all {
            return Ok(None);
        }
        let read = |text: &String| {
            text.parse().map_err(|_| Failure::usage(format!("{text} is no id of `messaging admin quarantine list`")))
        };
        self.ids.iter().map(read).collect::<Result<_, _>>().map(Some)
    }
}

/// Carries it out.
pub(super) async fn carry_out(app: &App, quarantine: Quarantine, output: Output) -> Result<(), Failure> {
    let refused = |error: Error| target::refused(app, error);
    let report = match quarantine {
        Quarantine::List => return output.resource(&admin::list_quarantined(app).await.map_err(refused)?),
        Quarantine::Release(chosen) => {
            admin::release_quarantined(app, chosen.ids()?.as_deref()).await.map_err(refused)?
        }
        Quarantine::Drop(chosen) => admin::drop_quarantined(app, chosen.ids()?.as_deref()).await.map_err(refused)?,
    };
    told(&report, output)
}

/// Prints what became of the records; a failure when some stay that were named.
fn told(report: &ReleaseReport, output: Output) -> Result<(), Failure> {
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
        left => Err(Failure::Unsuccessful(format!("{left} records stay as they were"))),
    }
}
