//! `contact export`, `message export` and `suppression export`: everything that a listing has, as CSV or JSON lines.
//!
//! Rows are written as pages come, one page in memory at a time.

mod csv;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_core::domain::audience::custom_field::FieldType;
use messaging_engine::ops::Endpoint;
use messaging_engine::ops::contacts::{ExportContact, ListContacts};
use messaging_engine::ops::custom_fields::ListCustomFields;
use messaging_engine::ops::messages::ListMessages;
use messaging_engine::ops::suppressions::ListSuppressions;
use serde_json::Value;
use serde_json::value::RawValue;

use self::csv::Columns;

pub(crate) use self::csv::{ATTRIBUTES_AS_JSON, ONLY_EXPORTED, TAGS_AS_JSON};
use crate::arguments;
use crate::command::operation::{self, Part};
use crate::failure::Failure;
use crate::listing::Pages;
use crate::names;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::request::Request;
use crate::target::Target;

/// The words of a command, and how it is made.
type Entry = (&'static [&'static str], fn() -> Command);

/// The commands.
pub(crate) const COMMANDS: &[Entry] = &[(CONTACTS, contacts), (MESSAGES, messages), (SUPPRESSIONS, suppressions)];

const CONTACTS: &[&str] = &["contact", "export"];
const MESSAGES: &[&str] = &["message", "export"];
const SUPPRESSIONS: &[&str] = &["suppression", "export"];

/// The command line's `--format` of an export, which is none of an answer.
const FORMAT: &str = "export_format";
const JSON_LINES: &str = "jsonl";
const FOR_SPREADSHEET: &str = "for_spreadsheet";

const HELP: &str = "Writes to standard output, page by page, newest first. In CSV a list is one cell with `;` between its items; JSON \
lines are what the API shows. Use --for-spreadsheet for a file that you open in a spreadsheet: otherwise a text that \
a contact chose may be a formula there. If the export breaks off, the exit code is not 0, and the command says how to \
continue.";

fn contacts() -> Command {
    let id =
        Arg::new(Part::Path.id("id")).value_name("ID").help("Show everything that is kept about this contact instead");
    let filters = operation::filters(Endpoint::row::<ListContacts>());
    let filters = filters.into_iter().map(|arg| arg.conflicts_with(Part::Path.id("id")));
    command("Write all contacts, or show everything that is kept about one").arg(id).args(filters).after_help(format!(
        "{HELP}

The CSV is one that `contact import` takes, for contacts as they were. Custom fields have a column each; other \
attributes stand in `attributes` as JSON, and tags with `;` or `|` in them in `tags_json`.

Examples:
  messaging contact export > contacts.csv
  messaging contact export --for-spreadsheet > contacts-to-look-at.csv
  messaging contact export --list News --format jsonl | jq -r .email
  messaging contact export con_…"
    ))
}

fn messages() -> Command {
    command("Write all messages").args(operation::filters(Endpoint::row::<ListMessages>())).after_help(format!(
        "{HELP}

Examples:
  messaging message export --status failed,bounced --since 30d > failed.csv
  messaging message export --since 7d --format jsonl | jq -r .explanation.code | sort | uniq -c"
    ))
}

fn suppressions() -> Command {
    command("Write all suppressions")
        .args(operation::filters(Endpoint::row::<ListSuppressions>()))
        .after_help(format!("{HELP}\n\nExamples:\n  messaging suppression export > suppressions.csv"))
}

fn command(about: &'static str) -> Command {
    let format = Arg::new(FORMAT)
        .long("format")
        .value_name("WORD")
        .default_value("csv")
        .value_parser(PossibleValuesParser::new(["csv", JSON_LINES]))
        .help_heading("Output")
        .help("What is written");
    let for_spreadsheet =
        Arg::new(FOR_SPREADSHEET).long("for-spreadsheet").action(ArgAction::SetTrue).help_heading("Output").help(
            "Put an apostrophe before what a spreadsheet would take for a formula; no import takes it away again",
        );
    Command::new("export")
        .about(about)
        .arg(format)
        .arg(for_spreadsheet)
        .args(arguments::target())
        .arg(arguments::json().hide(true))
}

/// True if the words of a command name an export.
pub(crate) fn is_ours(words: &[&str]) -> bool {
    COMMANDS.iter().any(|(ours, _)| *ours == words)
}

/// Carries one out.
pub(crate) async fn run(words: &[&str], matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    if words == CONTACTS && arguments::text(matches, &Part::Path.id("id")).is_some() {
        return of_one_contact(matches, output).await;
    }
    if output.is_json() {
        return Err(Failure::usage("an export is not one JSON document: give --format jsonl in place of --json"));
    }
    let endpoint = match words {
        ["contact", ..] => Endpoint::row::<ListContacts>(),
        ["message", ..] => Endpoint::row::<ListMessages>(),
        _ => Endpoint::row::<ListSuppressions>(),
    };
    let target = Target::choose(matches, endpoint.access).await?;
    let mut request = Request::read(endpoint, matches)?;
    names::resolve(&target, &mut request, matches).await?;
    let is_csv = arguments::text(matches, FORMAT) != Some(JSON_LINES);
    let disarms = arguments::is_set(matches, FOR_SPREADSHEET);
    let columns = match words {
        _ if !is_csv => None,
        ["contact", ..] => Some(Columns::of_contacts(custom_fields(&target).await?, disarms)),
        ["message", ..] => Some(Columns::of_messages(disarms)),
        _ => Some(Columns::of_suppressions(disarms)),
    };
    write(Pages::new(&target, request), columns.as_ref()).await
}

async fn of_one_contact(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let endpoint = Endpoint::row::<ExportContact>();
    let target = Target::choose(matches, endpoint.access).await?;
    let request = Request::read(endpoint, matches)?;
    output.reply(target.call(&request).await?)
}

/// Writes all pages.
async fn write(mut pages: Pages<'_>, columns: Option<&Columns>) -> Result<(), Failure> {
    if let Some(columns) = columns {
        output::foreign(columns.header().as_bytes())?;
    }
    // On a terminal rows and bar would overwrite each other.
    let bar = (!output::is_terminal()).then(|| Progress::counting("exported"));
    let ended = loop {
        match pages.next().await {
            Ok(Some(items)) => {
                output::foreign(lines(&items, columns)?.as_bytes())?;
                if let Some(bar) = &bar {
                    bar.count(items.len() as u64);
                }
            }
            Ok(None) => break Ok(()),
            Err(failure) => break Err(failure),
        }
    };
    if let Some(bar) = &bar {
        bar.end();
    }
    if let (Err(_), Some(cursor)) = (&ended, pages.cursor()) {
        output::note(&format!("the rest is missing; it begins at --cursor {cursor}"));
    }
    ended
}

/// The lines of some items.
fn lines(items: &[Box<RawValue>], columns: Option<&Columns>) -> Result<String, Failure> {
    let mut text = String::new();
    for item in items {
        if let Some(columns) = columns {
            let item: Value = serde_json::from_str(item.get()).map_err(std::io::Error::from)?;
            text.push_str(&columns.line(&item));
        } else {
            text.push_str(item.get());
            text.push('\n');
        }
    }
    Ok(text)
}

/// The workspace's custom fields with their types, the oldest first.
async fn custom_fields(target: &Target) -> Result<Vec<(String, FieldType)>, Failure> {
    let mut pages = Pages::new(target, Request::new(Endpoint::row::<ListCustomFields>()));
    let mut fields = Vec::new();
    while let Some(items) = pages.next().await? {
        for item in items {
            let mut field: Value = serde_json::from_str(item.get()).unwrap_or_default();
            let kind = serde_json::from_value(field["type"].take());
            fields.extend(field["key"].as_str().map(ToOwned::to_owned).zip(kind.ok()));
        }
    }
    fields.reverse();
    Ok(fields)
}
