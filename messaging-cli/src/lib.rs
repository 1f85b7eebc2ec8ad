//! The command line `messaging`: the server, a try-out server, the administration of a database, and one
//! command for every API operation.
//!
//! No path, scope or rule is named here. The operation commands are made from [`messaging_engine::ops::all`]:
//! [`command`] turns a row into a clap command, `request` turns the arguments into a request, `target` sends it to a
//! server or runs it in this process, `output` prints the answer.
//! ```
//! let command = messaging_cli::command::root();
//! assert!(command.find_subcommand("message").is_some_and(|message| message.find_subcommand("send").is_some()));
//! ```
//!
//! Standard output belongs to `output` alone; everything that is not the answer goes to standard error.

mod admin;
mod api;
mod arguments;
mod audience;
mod automations;
mod backup;
mod campaign_watch;
pub mod command;
mod completions;
mod config;
mod console;
mod dev;
mod dev_file;
mod doctor;
mod domain_wait;
mod event_log;
mod example;
mod export;
mod failure;
mod files;
mod import;
mod import_from;
mod listen;
mod listing;
mod login;
mod man;
mod members;
mod names;
mod output;
mod profile;
mod progress;
mod raw;
mod reply;
mod request;
mod request_follow;
mod resend;
mod resources;
mod send;
mod serve;
mod sites;
mod source_order;
mod target;
mod templates;
mod terminal;
mod user_files;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::ArgMatches;

use crate::failure::Failure;
use crate::output::Output;

/// Carries out a command line and says how the process shall end.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let root = command::root_for(&arguments);
    if let Some(endpoint) = example::requested_endpoint(&root, &arguments) {
        let printed = output::raw(format!("{:#}\n", example::example_body(endpoint)).as_bytes());
        return printed.map_or_else(|failure| ExitCode::from(failure.exit_code()), |()| ExitCode::SUCCESS);
    }
    let arguments = command::operation::with_joined_booleans(&root, arguments);
    let matches = match root.try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return output::usage(&error),
    };
    let (output, ended) = match Output::chosen(&matches) {
        Ok(output) => (output, carry_out(&matches, output)),
        Err(failure) => (Output::new(false), Err(failure)),
    };
    let Err(failure) = ended else { return ExitCode::SUCCESS };
    output.failure(&failure);
    ExitCode::from(failure.exit_code())
}

fn carry_out(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        Some(("worker", matches)) => serve::work(matches),
        Some(("dev", matches)) => dev::run(matches, output),
        Some(("doctor", matches)) => doctor::run(matches, output),
        Some((config::WORD, matches)) => config::run(matches, output),
        Some(("backup", matches)) => backup::back_up(matches, output),
        Some(("verify", matches)) => backup::verify(matches, output),
        Some(("restore", matches)) => backup::restore(matches, output),
        Some(("admin", matches)) => admin::run(matches, output),
        Some((import_from::WORD, matches)) => import_from::run(matches, output),
        Some((sites::WORD, matches)) => sites::run(matches, output),
        Some((console::WORD, matches)) => console::run(matches, output),
        Some(("completions", matches)) => completions::run(matches, command::root()),
        Some(("man", matches)) => man::run(matches, command::root(), output),
        Some(("login", matches)) => login::run(matches, output),
        Some(("api", matches)) => raw::run(matches, output),
        _ => api::run(matches, output),
    }
}
