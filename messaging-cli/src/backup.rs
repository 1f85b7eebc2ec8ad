//! `backup` and `restore`: one file with everything of an installation, and back.

use std::path::{Path, PathBuf};

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_core::error::Chain;
use messaging_http::standalone::backup::{self, BackupError};

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};
use crate::{arguments, target};

const FILE: &str = "file";
const OVERWRITE: &str = "overwrite";

const BACKUP: &str = "\
Copies database, attachments, uploads and secret key into one file that only you can read, while the server goes on
accepting and sending. FILE is there completely or not at all, and ends with a checksum. It needs room for the database
twice: beside FILE while it is made, and in FILE.

FILE opens everything that the installation knows, provider passwords and DKIM keys as well: keep it where you would keep
those. It is a tar archive; `tar tf FILE` lists it.

Examples:
  messaging backup /backup/messaging-$(date +%F).tar
  messaging backup nightly.tar --overwrite --data /var/lib/messaging --json | jq -r .sha256";

const RESTORE: &str = "\
Checks FILE to its last byte before anything becomes visible; a damaged one leaves nothing behind. The directory must have
no database yet.

A restored server is fenced, because nobody but you knows what was sent since FILE was made: it takes requests and holds
every message, webhook and campaign. When you know, say what becomes of what waits:

  messaging restore messaging-2026-11-22.tar --data ./messaging-data
  messaging serve --data ./messaging-data
  messaging admin resume --queued cancel --data ./messaging-data   (or --queued send)";

/// The command `backup`.
pub(crate) fn backup_command() -> Command {
    Command::new("backup")
        .about("Copy everything of an installation into one file, also while its server runs")
        .after_help(BACKUP)
        .arg(file("The file to make"))
        .arg(
            Arg::new(OVERWRITE)
                .long("overwrite")
                .action(ArgAction::SetTrue)
                .help("Replace FILE if it is there already; without this it is left alone and the exit code is 1"),
        )
        .args(arguments::database_target())
        .arg(arguments::json())
}

/// The command `restore`.
pub(crate) fn restore_command() -> Command {
    let [data, ..] = arguments::database_target();
    Command::new("restore")
        .about("Put an installation back from such a file, into a directory without one; it sends nothing until told")
        .after_help(RESTORE)
        .arg(file("The file that `messaging backup` made"))
        .arg(data.help("The data directory to make"))
        .arg(arguments::json())
}

fn file(help: &'static str) -> Arg {
    Arg::new(FILE).value_name("FILE").required(true).value_parser(ValueParser::path_buf()).help(help)
}

fn file_of(matches: &ArgMatches) -> PathBuf {
    matches.get_one::<PathBuf>(FILE).cloned().expect("required")
}

/// Makes a backup.
pub(crate) fn back_up(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let settings = target::existing(matches)?;
    let bar = Progress::new("", Unit::Bytes);
    let made = backup::back_up(&settings, file_of(matches), matches.get_flag(OVERWRITE), &mut |told| show(&bar, &told));
    bar.end();
    let report = made.map_err(|error| match error {
        BackupError::NotAFile => Failure::usage(error.to_string()),
        error => Failure::Failed(Chain(&error).to_string()),
    })?;
    if !output.is_json() {
        output::note("keep it safe: it opens everything that the installation knows");
    }
    if let Some(first) = report.missing.first() {
        output::note(&format!(
            "{} of the files that the database names are missing beside it, and so in the backup; the first: {}",
            report.missing.len(),
            first.display()
        ));
    }
    output.resource(&report)
}

/// Puts a backup back.
pub(crate) fn restore(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let (file, data) = (file_of(matches), arguments::data_directory(matches));
    readable(&file)?;
    let bar = Progress::new("", Unit::Bytes);
    let restored = backup::restore(&file, &data, &mut |told| show(&bar, &told));
    bar.end();
    let report = restored.map_err(|error| Failure::Failed(Chain(&error).to_string()))?;
    if !output.is_json() {
        output::note(&format!(
            "a server on it takes requests and sends nothing until: messaging admin resume --queued cancel --data {0}\n\
             (or --queued send, if the server that the backup is of has sent nothing since)",
            data.display()
        ));
    }
    output.resource(&report)
}

fn readable(file: &Path) -> Result<(), Failure> {
    let unreadable = |error: std::io::Error| Failure::usage(format!("cannot read {}: {error}", file.display()));
    std::fs::File::open(file).map(drop).map_err(unreadable)
}

fn show(bar: &Progress, told: &backup::Progress) {
    bar.message(told.doing);
    bar.set(told.done, told.total);
}
