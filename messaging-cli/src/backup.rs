//! `backup`, `verify` and `restore`: one file with everything of an installation, and back.

use std::path::{Path, PathBuf};

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_core::error::Chain;
use messaging_core::ports::clock::{Clock as _, SystemClock};
use messaging_core::time::Timestamp;
use messaging_http::standalone::backup::{self, BackupError};

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};
use crate::{arguments, target};

const FILE: &str = "file";
const OVERWRITE: &str = "overwrite";
const DIRECTORY: &str = "dir";
const KEEP: &str = "keep";

/// Beginning and end of the names of files that `--dir` makes, around the time.
const DATED: (&str, &str) = ("messaging-", ".tar");

const BACKUP: &str = "\
Copies database, attachments, uploads and secret key into one file that only you can read, while the server goes on \
accepting and sending. FILE is complete or does not exist, and ends with a checksum. The directory of FILE needs space for two \
copies of the database while the backup is made.

Anybody who has FILE has everything, including the passwords of providers and the DKIM keys: keep it as safe as those. It is a \
tar archive; `tar tf FILE` lists it.

Examples:
  messaging backup --dir /backup --keep 14 --data /var/lib/messaging   (every night)
  messaging backup nightly.tar --overwrite --data /var/lib/messaging --json | jq -r .sha256";

const VERIFY: &str = "\
Exit code 1 if the file is damaged, incomplete or no backup. To check the content of the database, restore it and run \
`messaging admin verify`.

Example:
  messaging verify /backup/messaging-2026-01-31T020000Z.tar";

const RESTORE: &str = "\
All of FILE is checked before anything is written to its place; a damaged file changes nothing. The directory must have no \
database yet.

A restored server is fenced, because only you can know what was sent since FILE was made: it accepts requests and holds every \
message, webhook and campaign. Decide about the waiting messages with `admin resume`:

  messaging restore messaging-2026-11-22.tar --data ./messaging-data
  messaging serve --data ./messaging-data
  messaging admin resume --queued cancel --data ./messaging-data   (or --queued send)";

/// The command `backup`.
pub(crate) fn backup_command() -> Command {
    Command::new("backup")
        .about("Copy everything of an installation into one file, also while its server runs")
        .after_help(BACKUP)
        .arg(file("The file to make").required(false).required_unless_present(DIRECTORY))
        .arg(
            Arg::new(DIRECTORY)
                .long("dir")
                .value_name("DIRECTORY")
                .value_parser(ValueParser::path_buf())
                .conflicts_with_all([FILE, OVERWRITE])
                .help("Make a file in this directory that is named after the time, such as messaging-2026-01-31T020000Z.tar"),
        )
        .arg(
            Arg::new(KEEP)
                .long("keep")
                .value_name("N")
                .value_parser(clap::value_parser!(u16).range(1..))
                .requires(DIRECTORY)
                .help("Remove all but the newest N of these files, once the new one is complete [default: none is removed]"),
        )
        .arg(
            Arg::new(OVERWRITE)
                .long("overwrite")
                .action(ArgAction::SetTrue)
                .help("Replace FILE if it is there already; without this it is left alone and the exit code is 1"),
        )
        .args(arguments::database_target())
        .arg(arguments::json())
}

/// The command `verify`.
pub(crate) fn verify_command() -> Command {
    Command::new("verify")
        .about("Check a backup file: read all of it and compare its checksum, without restoring anything")
        .after_help(VERIFY)
        .arg(file("The file that `messaging backup` made"))
        .arg(arguments::json())
}

/// The command `restore`.
pub(crate) fn restore_command() -> Command {
    let [data, ..] = arguments::database_target();
    Command::new("restore")
        .about("Restore an installation from a backup file into a new directory; it sends nothing until you resume it")
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
    let directory = matches.get_one::<PathBuf>(DIRECTORY);
    let file = directory.map_or_else(|| file_of(matches), |directory| directory.join(dated(SystemClock.now())));
    let made = backup::back_up(&settings, file, matches.get_flag(OVERWRITE), &mut |told| show(&bar, &told));
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
    if let (Some(directory), Some(keep)) = (directory, matches.get_one::<u16>(KEEP)) {
        remove_older(directory, usize::from(*keep), &report.file)?;
    }
    output.resource(&report)
}

/// Name of a backup file made at `now`.
fn dated(now: Timestamp) -> String {
    // To the second, without colons.
    let time: String = now.to_string().chars().take(19).filter(|c| *c != ':').collect();
    format!("{}{time}Z{}", DATED.0, DATED.1)
}

/// Returns true if [`dated`] could have made the name.
fn is_dated(name: &str) -> bool {
    let time = name.strip_prefix(DATED.0).and_then(|rest| rest.strip_suffix(DATED.1)).unwrap_or_default();
    let form: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    form == "0000-00-00T000000Z"
}

/// Removes all but the newest `keep` backups that were named after their time. The one just made stays, also if the
/// clock was set back.
fn remove_older(directory: &Path, keep: usize, made: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, error: &std::io::Error| {
        Failure::Failed(format!("the backup is made, but {} cannot be removed: {error}", path.display()))
    };
    let read = std::fs::read_dir(directory).map_err(|error| failed(directory, &error))?;
    let names = read.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| is_dated(name) && *made != directory.join(name)).collect();
    names.sort();
    names.truncate(names.len().saturating_sub(keep - 1));
    for name in names {
        let path = directory.join(name);
        std::fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
        output::note(&format!("removed {}", path.display()));
    }
    Ok(())
}

/// Reads a backup.
pub(crate) fn verify(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let file = file_of(matches);
    readable(&file)?;
    let bar = Progress::new("", Unit::Bytes);
    let read = backup::verify(&file, &mut |told| show(&bar, &told));
    bar.end();
    output.resource(&read.map_err(|error| Failure::Failed(Chain(&error).to_string()))?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_after_the_time_sort_by_it_and_no_other_file_has_one() {
        let name = |text: &str| dated(text.parse().unwrap());
        assert_eq!(name("2026-01-31T02:00:00.123Z"), "messaging-2026-01-31T020000Z.tar");
        assert!(name("2026-01-31T02:00:00Z") < name("2026-01-31T10:00:00Z"));
        assert!(is_dated(&name("2026-01-31T02:00:00Z")));
        for other in ["messaging-2026-01-31.tar", "messaging-2026-01-31T020000Z.tar.gz", "messaging-.tar", "x.tar", ""]
        {
            assert!(!is_dated(other), "{other}");
        }
    }
}
