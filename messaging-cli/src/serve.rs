//! `serve`: the server with its workers.

use std::future::Future;

use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use messaging_core::error::Chain;
use messaging_http::{Settings, SettingsArgs, logging, standalone};

use crate::failure::Failure;

/// The command.
pub(crate) fn command() -> Command {
    with_settings(Command::new("serve"), "Run the server with its workers")
}

/// The command `worker`.
pub(crate) fn worker_command() -> Command {
    const NOTES: &str = "\
A node that takes no requests: it sends what waits, side by side with servers and other workers on one PostgreSQL database.
They have the same --secret-key-file and --public-url. It listens only at --metrics-listen, which also answers /health.

Examples:
  messaging worker --database postgres://messaging@db/messaging --public-url https://mail.example.org --data /var/lib/messaging";
    with_settings(
        Command::new("worker").after_help(NOTES),
        "Send what waits, beside servers on one PostgreSQL database",
    )
}

/// Carries `worker` out; returns when it has stopped.
pub(crate) fn work(matches: &ArgMatches) -> Result<(), Failure> {
    let settings = settings(matches)?;
    run_server(&settings, standalone::work(&settings))
}

/// Adds every setting of the server to a command.
pub(crate) fn with_settings(command: Command, about: &'static str) -> Command {
    // The settings bring a description of their own.
    let command = SettingsArgs::augment_args(command).about(about).long_about(None);
    command.mut_args(|arg| arg.hide_env_values(true).help_heading("Settings"))
}

/// Carries it out; returns when the server has stopped.
pub(crate) fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let settings = settings(matches)?;
    run_server(&settings, standalone::serve(&settings))
}

/// The settings that the arguments of a command give.
pub(crate) fn settings(matches: &ArgMatches) -> Result<Settings, Failure> {
    let given = SettingsArgs::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))?;
    given.resolve().map_err(|error| Failure::usage(Chain(&error).to_string()))
}

/// Logs, and runs a server to its end on threads of its own.
pub(crate) fn run_server<E>(settings: &Settings, work: impl Future<Output = Result<(), E>>) -> Result<(), Failure>
where
    Failure: From<E>,
{
    let _log = logging::start(&settings.log, settings.log_format)
        .map_err(|error| Failure::usage(Chain(&error).to_string()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("http")
        .thread_stack_size(standalone::THREAD_STACK)
        .enable_all()
        .build()
        .map_err(|error| Failure::unreachable("cannot start the server's threads", &error))?;
    let ended = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(ended?)
}
