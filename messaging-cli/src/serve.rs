//! `serve`: the server with its workers.

use clap::{ArgMatches, Command};

use crate::failure::Failure;

/// The command.
pub(crate) fn command() -> Command {
    Command::new("serve").about("Run the server with its workers")
}

/// Carries it out; returns when the server has stopped.
pub(crate) fn run(_matches: &ArgMatches) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
