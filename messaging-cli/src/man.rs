//! `man`: the manual pages of all commands.

use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Command};

use crate::arguments;
use crate::failure::Failure;
use crate::files::unwritable;
use crate::output::Output;

const DIRECTORY: &str = "directory";

/// The command.
pub(crate) fn command() -> Command {
    Command::new("man")
        .about("Write the manual pages of all commands into a directory")
        .after_help("Example:\n  messaging man ~/.local/share/man/man1 && man messaging-message-send")
        .arg(
            Arg::new(DIRECTORY)
                .value_name("DIR")
                .required(true)
                .value_parser(ValueParser::path_buf())
                .help("Made where it is missing"),
        )
        .arg(arguments::json())
}

/// Carries it out.
pub(crate) fn run(matches: &ArgMatches, root: Command, output: Output) -> Result<(), Failure> {
    let directory = matches.get_one::<PathBuf>(DIRECTORY).expect("required");
    std::fs::create_dir_all(directory).map_err(|error| unwritable(directory, error))?;
    // The first page of help is laid out for a terminal; a manual page lists its commands by itself.
    let root = root.help_template("{about}");
    clap_mangen::generate_to(root, directory).map_err(|error| unwritable(directory, error))?;
    let pages = std::fs::read_dir(directory).map_err(|error| unwritable(directory, error))?.count();
    let document = serde_json::json!({"directory": directory, "files": pages});
    output.line(&document, &format!("{pages} pages are in {}", directory.display()))
}
