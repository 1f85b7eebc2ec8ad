//! `serve`: the server with its workers.

use std::future::Future;
use std::sync::Arc;

use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use messaging_core::error::Chain;
use messaging_http::settings::{Reload, SettingsError};
use messaging_http::{Settings, SettingsArgs, logging, standalone};

use crate::failure::Failure;

/// The command.
pub(crate) fn command() -> Command {
    with_settings(Command::new("serve"), "Run the server with its workers")
}

/// The command `worker`.
pub(crate) fn worker_command() -> Command {
    const NOTES: &str = "\
A worker accepts no API requests: it does jobs beside servers and other workers on one PostgreSQL database. All of them need the \
same --secret-key-file and --public-url. It listens only at --metrics-listen, which also answers /health.

Examples:
  messaging worker --database postgres://messaging@db/messaging --public-url https://mail.example.org --data /var/lib/messaging";
    with_settings(
        Command::new("worker").after_help(NOTES),
        "Run a node that sends waiting messages and does other jobs, without an API, on a shared PostgreSQL database",
    )
}

/// Carries `worker` out; returns when it has stopped.
pub(crate) fn work(matches: &ArgMatches) -> Result<(), Failure> {
    let settings = settings(matches)?;
    run_server(matches, &settings, standalone::work(&settings))
}

/// Adds every setting of the server to a command.
pub(crate) fn with_settings(command: Command, about: &'static str) -> Command {
    // The derived settings arguments bring their own description.
    let command = SettingsArgs::augment_args(command).about(about).long_about(None);
    command.mut_args(|arg| arg.hide_env_values(true).help_heading("Settings"))
}

/// Carries it out; returns when the server has stopped.
pub(crate) fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let settings = settings(matches)?;
    run_server(matches, &settings, standalone::serve(&settings))
}

/// The settings that the arguments of a command give.
pub(crate) fn settings(matches: &ArgMatches) -> Result<Settings, Failure> {
    given(matches)?.resolve().map_err(unusable)
}

/// The settings as flags and environment give them.
pub(crate) fn given(matches: &ArgMatches) -> Result<SettingsArgs, Failure> {
    SettingsArgs::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))
}

/// Settings that cannot be used.
pub(crate) fn unusable(error: SettingsError) -> Failure {
    Failure::usage(Chain(&error).to_string())
}

/// Starts the log and runs a server to its end on separate threads. SIGHUP makes it read its settings again.
pub(crate) fn run_server<E>(
    matches: &ArgMatches,
    settings: &Settings,
    work: impl Future<Output = Result<(), E>>,
) -> Result<(), Failure>
where
    Failure: From<E>,
{
    let given = given(matches)?;
    let log = logging::start(&settings.log, settings.log_format)
        .map_err(|error| Failure::usage(Chain(&error).to_string()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("http")
        .thread_stack_size(standalone::THREAD_STACK)
        .enable_all()
        .build()
        .map_err(|error| Failure::unreachable("cannot start the server's threads", &error))?;
    let reload = Arc::new(Reload::new(given.clone().with_file().map_err(unusable)?, log));
    let ended = runtime.block_on(async {
        standalone::reload_on_hangup(&reload, given)?;
        Ok(work.await?)
    });
    runtime.shutdown_background();
    ended
}
