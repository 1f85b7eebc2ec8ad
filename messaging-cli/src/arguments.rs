//! Arguments that many commands share: the server or database, the output format, the body.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches};
use messaging_core::ports::clock::{Clock as _, SystemClock};

// Ids of the shared arguments, by which clap finds their values.
pub(crate) const URL: &str = "url";
pub(crate) const API_KEY: &str = "api_key";
pub(crate) const WORKSPACE: &str = "workspace";
pub(crate) const DATA: &str = "data";
pub(crate) const DATABASE: &str = "database";
pub(crate) const SECRET_KEY_FILE: &str = "secret_key_file";
pub(crate) const JSON: &str = "json";
pub(crate) const QUIET: &str = "quiet";
pub(crate) const FORMAT: &str = "format";
pub(crate) const JSON_BODY: &str = "json_body";
/// Path of a file whose bytes are the request body.
pub(crate) const FILE_BODY: &str = "file_body";
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency_key";
pub(crate) const PROFILE: &str = "profile";
pub(crate) const ALL: &str = "all";
pub(crate) const YES: &str = "yes";
pub(crate) const EXAMPLE: &str = "example";
pub(crate) const HTML_FILE: &str = "html_file";
pub(crate) const ERRORS: &str = "errors";

/// Data directory if neither `--data` nor `MESSAGING_DATA` is given (contract section 22).
pub(crate) const DEFAULT_DATA: &str = "./messaging-data";

/// Heading in help texts of the arguments that choose a server or a database.
const TARGET: &str = "Target";

/// True if a shared argument has this long name. A flag that is made from a member of a request must not have one.
pub(crate) fn is_taken(long: &str) -> bool {
    let own = [
        "url",
        "api-key",
        "profile",
        "workspace",
        "data",
        "database",
        "secret-key-file",
        "json",
        "quiet",
        "format",
        "json-body",
        "idempotency-key",
        "all",
        "yes",
        "example",
        "html-file",
    ];
    own.contains(&long) || ["help", "version"].contains(&long)
}

/// The arguments that may also precede the command. The help of the program hides them; the help of each command that
/// reads them shows them.
pub(crate) fn anywhere() -> [Arg; 5] {
    [url(), api_key(), profile(), workspace(), json()].map(|arg| arg.global(true).hide(true).help_heading(None::<&str>))
}

/// Arguments that choose the server or database on which an operation runs.
pub(crate) fn target() -> [Arg; 7] {
    [
        with_env(url(), "MESSAGING_URL"),
        with_env(api_key(), "MESSAGING_API_KEY"),
        with_env(profile(), "MESSAGING_PROFILE"),
        with_env(data(), "MESSAGING_DATA").default_value(DEFAULT_DATA),
        with_env(database(), "MESSAGING_DATABASE"),
        secret_key_file(),
        with_env(workspace(), "MESSAGING_WORKSPACE"),
    ]
}

/// Arguments that choose the database, for commands that work without a server.
pub(crate) fn database_target() -> [Arg; 3] {
    [
        with_env(data().help("The data directory"), "MESSAGING_DATA").default_value(DEFAULT_DATA),
        with_env(
            database().help("The database, a path, `sqlite://…` or `postgres://…` [default: DIR/messaging.db]"),
            "MESSAGING_DATABASE",
        ),
        secret_key_file(),
    ]
}

/// `--errors`: the file to which a command that reads rows writes the refused ones.
pub(crate) fn errors() -> Arg {
    Arg::new(ERRORS)
        .long("errors")
        .value_name("FILE")
        .value_parser(ValueParser::path_buf())
        .help("Write the refused rows with their errors to a CSV file")
}

/// `--json`: one JSON document on standard output instead of text.
pub(crate) fn json() -> Arg {
    Arg::new(JSON)
        .long("json")
        .action(ArgAction::SetTrue)
        .help_heading("Output")
        .help("Print one JSON document on standard output, also for errors; all else goes to standard error")
}

/// Flags that choose the output format of an operation's answer.
pub(crate) fn output() -> [Arg; 3] {
    let quiet = Arg::new(QUIET)
        .long("quiet")
        .short('q')
        .action(ArgAction::SetTrue)
        .conflicts_with_all([JSON, FORMAT])
        .help_heading("Output")
        .help("Print only the ids, one on each line");
    let format = Arg::new(FORMAT)
        .long("format")
        .value_name("TEMPLATE")
        .conflicts_with(JSON)
        .help_heading("Output")
        .help("Print a line for each item by a template such as '{{ message_id }} {{ explanation.code }}'");
    [json(), quiet, format]
}

/// The arguments of the innermost subcommand: of `send` for `messaging message send`.
pub(crate) fn innermost(matches: &ArgMatches) -> &ArgMatches {
    let mut at = matches;
    while let Some((_, inner)) = at.subcommand() {
        at = inner;
    }
    at
}

/// True if a flag was given; false if it was not, and for commands that do not define it.
pub(crate) fn is_set(matches: &ArgMatches, id: &str) -> bool {
    matches.try_get_one::<bool>(id).ok().flatten().copied().unwrap_or(false)
}

/// The text of an argument. `None` if it was not given, is empty, or the command does not define it.
pub(crate) fn text<'a>(matches: &'a ArgMatches, id: &str) -> Option<&'a str> {
    matches.try_get_one::<String>(id).ok().flatten().map(String::as_str).filter(|text| !text.is_empty())
}

/// The argument with an environment variable as its default. Help pages do not show values of the environment, because
/// one of them is a secret.
fn with_env(arg: Arg, variable: &'static str) -> Arg {
    arg.env(variable).hide_env_values(true)
}

fn url() -> Arg {
    Arg::new(URL)
        .long("url")
        .value_name("URL")
        .help_heading(TARGET)
        .help("The server, such as http://127.0.0.1:8080/v1; without one the database is used in this process")
}

fn api_key() -> Arg {
    Arg::new(API_KEY)
        .long("api-key")
        .value_name("KEY")
        .help_heading(TARGET)
        .help("The API key for the server, or a session token from `auth login`")
}

fn profile() -> Arg {
    Arg::new(PROFILE)
        .long("profile")
        .value_name("NAME")
        .help_heading(TARGET)
        .help("The server and key that `messaging login` has saved under this name [default: default]")
}

/// `--all` of a listing: all pages instead of one.
pub(crate) fn all() -> Arg {
    Arg::new(ALL)
        .long("all")
        .action(ArgAction::SetTrue)
        .help_heading("Query")
        .help("Print all items, page by page; --limit is then the size of a page")
}

/// `--yes` of commands that cannot be undone: no question before the command runs.
pub(crate) fn yes() -> Arg {
    Arg::new(YES)
        .long("yes")
        .short('y')
        .action(ArgAction::SetTrue)
        .help_heading("Request")
        .help("Do not ask for confirmation; without a terminal the command never asks")
}

/// `--example` of a command with a body: prints a body instead of sending one.
pub(crate) fn example() -> Arg {
    Arg::new(EXAMPLE)
        .long("example")
        .action(ArgAction::SetTrue)
        .help_heading("Body")
        .help("Only print an example of a body for --json-body")
}

/// `--html-file`: the HTML of a body from a file, for commands that also have `--html`.
pub(crate) fn html_file() -> Arg {
    Arg::new(HTML_FILE)
        .long("html-file")
        .value_name("FILE")
        .value_parser(ValueParser::path_buf())
        .help_heading("Body")
        .help("Read the HTML from a file")
}

fn data() -> Arg {
    Arg::new(DATA)
        .long("data")
        .value_name("DIR")
        .value_parser(ValueParser::path_buf())
        .help_heading(TARGET)
        .help("The data directory, when no server is named")
}

fn database() -> Arg {
    Arg::new(DATABASE).long("database").value_name("URL").help_heading(TARGET).help(
        "The database, when no server is named: a path, `sqlite://…` or `postgres://…` [default: DIR/messaging.db]",
    )
}

fn secret_key_file() -> Arg {
    let arg = Arg::new(SECRET_KEY_FILE)
        .long("secret-key-file")
        .value_name("FILE")
        .value_parser(ValueParser::path_buf())
        .help_heading(TARGET)
        .help("The file with the key that encrypts secrets in the database [default: DIR/secret.key]");
    with_env(arg, "MESSAGING_SECRET_KEY_FILE")
}

fn workspace() -> Arg {
    Arg::new(WORKSPACE)
        .long("workspace")
        .value_name("ID")
        .help_heading(TARGET)
        .help("The workspace; an API key already names one")
}

/// The value of `--secret-key-file`; `None` if it was not given.
pub(crate) fn secret_key_path(matches: &ArgMatches) -> Option<PathBuf> {
    matches.try_get_one::<PathBuf>(SECRET_KEY_FILE).ok().flatten().cloned()
}

/// The value of `--data`. [`DEFAULT_DATA`] for commands that do not define the flag.
pub(crate) fn data_directory(matches: &ArgMatches) -> PathBuf {
    matches.try_get_one::<PathBuf>(DATA).ok().flatten().cloned().unwrap_or_else(|| PathBuf::from(DEFAULT_DATA))
}

/// Reads a time that may be relative to now: `90m`, `36h` or `7d` ago, `+7d` from now. Returns RFC 3339; any other text
/// is returned unchanged, so that the server reports what is wrong with it. Fails for more than a hundred years.
pub(crate) fn time_or_age(text: &str) -> Result<String, String> {
    let (is_ahead, duration) = match text.strip_prefix('+') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let Some(duration) = duration_of(duration)? else { return Ok(text.to_owned()) };
    let now = SystemClock.now();
    Ok(if is_ahead { now + duration } else { now - duration }.to_string())
}

/// Like [`time_or_age`] for a time in the future: fails for `7d`, which is a time ago.
pub(crate) fn time_ahead(text: &str) -> Result<String, String> {
    match duration_of(text)? {
        Some(_) => Err(format!("{text} is a time ago; +{text} is one ahead")),
        None => time_or_age(text),
    }
}

/// Reads a number with the unit `s`, `m`, `h`, `d` or `w`, such as `90m`. `None` if the text has another form; fails if
/// it is longer than [`LONGEST_AGE`].
fn duration_of(text: &str) -> Result<Option<Duration>, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        _ => return Ok(None),
    };
    if number.is_empty() {
        return Ok(None);
    }
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    match seconds.filter(|seconds| *seconds <= LONGEST_AGE) {
        Some(seconds) => Ok(Some(Duration::from_secs(seconds))),
        None => Err(format!("{text} is longer than a hundred years; give a shorter time")),
    }
}

/// Seconds in a hundred years of 366 days.
const LONGEST_AGE: u64 = 100 * 366 * 24 * 3600;

#[cfg(test)]
mod tests {
    use messaging_core::time::Timestamp;

    use super::*;

    #[test]
    fn a_time_may_be_how_long_ago_it_was() {
        let now = SystemClock.now();
        for (text, seconds) in [("30s", 30), ("90m", 5400), ("36h", 129_600), ("7d", 604_800), ("2w", 1_209_600)] {
            let given: Timestamp = time_or_age(text).unwrap().parse().unwrap();
            let ago = now.since(given).as_secs();
            assert!((seconds - 5..=seconds).contains(&ago), "{text}: {ago}");
        }
        for text in ["2026-01-31T09:00:00Z", "yesterday", "h", "", "7", "1.5h", "+h", "+2026-01-31T09:00:00Z"] {
            assert_eq!(time_or_age(text).unwrap(), text);
            assert_eq!(time_ahead(text).unwrap(), text);
        }
        assert!(time_or_age("99999999999999999999h").is_err() && time_or_age("9999999d").is_err());
        for read in [time_or_age, time_ahead] {
            let ahead: Timestamp = read("+2h").unwrap().parse().unwrap();
            assert!((7190..=7200).contains(&ahead.since(now).as_secs()), "{ahead}");
        }
        assert!(time_ahead("2h").unwrap_err().contains("+2h"));
    }
}
