//! `console export`: the files of the console, for whoever wants to change them.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use clap::{ArgMatches, Command};
use serde_json::json;

use crate::arguments;
use crate::failure::Failure;
use crate::files::{directory, directory_argument, unreadable, unwritable};
use crate::output::Output;

/// Name of the command.
pub(crate) const WORD: &str = "console";

const EXAMPLES: &str = "\
The browser runs the files of the console as they are: edit a file and reload the page. operations.js, \
schemas.js and providers.js describe the API and are exported for reading only: a server always serves \
its own.

Example:
  messaging console export ./console && messaging dev --console-dir ./console";

/// Builds the `console` command.
pub(crate) fn command() -> Command {
    Command::new(WORD)
        .about("Write the files of the console into a directory, to change them")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(
            Command::new("export")
                .about("Write the files of the console that is built in")
                .after_help(EXAMPLES)
                .arg(directory_argument("Where they go; made where it is missing, and must be empty"))
                .arg(arguments::json()),
        )
}

/// Runs `console export`.
pub(crate) fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let (_, matches) = matches.subcommand().expect("required");
    let directory = directory(matches)?;
    if !is_free(&directory)? {
        let text = format!("{} is not empty: nothing was written, name another directory", directory.display());
        return Err(Failure::usage(text));
    }
    let mut count = 0;
    for (path, bytes) in messaging_http::console::files() {
        let path = directory.join(path);
        let folder = path.parent().unwrap_or(&directory);
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
        fs::write(&path, bytes).map_err(|error| unwritable(&path, error))?;
        count += 1;
    }
    let shown = directory.display();
    let document = json!({"directory": directory, "files": count});
    output
        .line(&document, &format!("{count} files are in {shown}; serve them with: messaging dev --console-dir {shown}"))
}

/// Returns true if a directory is empty or does not exist, so that writing to it replaces no file.
fn is_free(directory: &Path) -> Result<bool, Failure> {
    match fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(unreadable(directory, error)),
    }
}
