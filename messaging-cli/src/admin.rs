//! `admin`: users, workspaces and API keys, straight on the database, also while a server works on it.

use clap::{ArgMatches, Command};

use crate::failure::Failure;
use crate::output::Output;

/// The command.
pub(crate) fn command() -> Command {
    Command::new("admin").about("Create users, workspaces and API keys straight on the database")
}

/// Carries it out.
pub(crate) fn run(_matches: &ArgMatches, _output: &Output) -> Result<(), Failure> {
    Err(Failure::usage("not yet"))
}
