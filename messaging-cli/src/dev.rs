//! `dev`: a server to try things out, with everything in place.

use std::path::Path;

use clap::{ArgMatches, Command};
use serde_json::Value;

use crate::failure::Failure;
use crate::output::Output;

/// What `dev` tells other programs, in the data directory.
const FILE: &str = "dev.json";

/// The command.
pub(crate) fn command() -> Command {
    Command::new("dev")
        .about("Try it out: a server with a workspace, an API key and a captured mailbox, ready at once")
}

/// Carries it out; returns when the server has stopped.
pub(crate) fn run(_matches: &ArgMatches, _output: &Output) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}

/// The workspace of a data directory that `dev` has prepared.
pub(crate) fn workspace_of(data: &Path) -> Option<String> {
    let text = std::fs::read(data.join(FILE)).ok()?;
    let document: Value = serde_json::from_slice(&text).ok()?;
    document["workspace_id"].as_str().map(ToOwned::to_owned)
}
