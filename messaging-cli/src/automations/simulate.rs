//! `automation simulate`: an automation in a file, tried out in this process without a server.
//!
//! The engine simulates; this module reads the files, and prints the result or compares it with a snapshot.

mod answer;
mod past;
mod refusal;
mod snapshot;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_core::domain::automation::history::StepOutcome;
use messaging_core::ports::clock::{Clock as _, SystemClock};
use messaging_core::time::Timestamp;
use messaging_engine::ops::automations::runs::StepView;
use messaging_engine::ops::automations::simulate::SimulatedStep;
use messaging_http::standalone::rehearsal::{ContactReport, DryRunFiles, FilesFault, rehearse};
use messaging_import::folder;
use serde::Serialize;
use serde_json::Value;

use self::answer::Answer;
use self::refusal::{refused, source_of};
use super::file;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::{arguments, files};

const FILE: &str = "file";
const CONTACT: &str = "contact";
const EVENTS: &str = "events";
const AT: &str = "at";
const UNTIL: &str = "until";
const TEMPLATES: &str = "templates";
const SNAPSHOT: &str = "snapshot";
const UPDATE: &str = "update";
const PAST: &str = "past";

/// Contacts of one command line.
const MAX_CONTACTS: usize = 1_000;
/// Lines of a file of events.
const MAX_EVENTS: usize = 100_000;

pub(super) fn command() -> Command {
    let path = || ValueParser::path_buf();
    let file = |id: &'static str, name: &'static str| Arg::new(id).long(id).value_name(name).value_parser(path());
    let time = |id: &'static str| Arg::new(id).long(id).value_name("TIME").value_parser(read_time);
    Command::new("simulate")
        .about("Try an automation in a file out with contacts and events of your own, at once and without a server")
        .after_help(
            "Time passes at once: a year of weekly mails takes seconds. It is the server's own engine on a store that is \
thrown away; no mail is sent and no webhook is called (its node takes `next`), and a mail is delivered a second \
after it is sent. The same files give the same answer every time.

  FILE      the body of `automation create`, as `automation pull` writes it
  --contact a contact as `contact upsert` takes it, or an array of them; several files may be given
  --events  one JSON object a line: {\"name\", \"properties\", \"occurred_at\"} for a product event,
            {\"message\": \"open\", \"node_id\", \"at\"} for what is done with the last mail of a node: delivered,
            open, click, bounce, complaint, unsubscribe. With \"contact\": {\"external_id\"} it is that contact's,
            without everyone's. What is before --at is history of the contact.
  --at      when the automation becomes active [default: the time of the first event, else now]

With the trigger `event` contacts enter by the events that match, with `date` at its moments, with any other once at \
--at. Lists and segments that FILE names are empty. A template that it names is a stub, unless a folder of \
--templates is called by its id, or has `id = \"tpl_…\"` in its template.toml. Days and weeks are those of the \
contact's timezone, else UTC.

With --snapshot the answer is compared with the file; a difference is shown and is exit code 1, and so is a file \
that is not there. --update writes it.

With --past the events of a workspace go through the automation instead, those of a server (--url) or of a database:
who would have entered in that time, and how far they would have come. It reads at most 10000 contacts and changes \
nothing.

Examples:
  messaging automation simulate cart.json --past 30d
  messaging automation simulate cart.json --contact ann.json --events buys.jsonl --until 2026-03-05T00:00:00Z
  messaging automation simulate cart.json --contact ann.json bob.json --events day.jsonl \\
      --at 2026-03-01T00:00:00Z --until 2026-04-01T00:00:00Z --templates templates/ --snapshot cart.snapshot.json",
        )
        .arg(Arg::new(FILE).value_name("FILE").required(true).value_parser(path()).help("The automation, JSON or TOML"))
        .arg(file(CONTACT, "FILE").num_args(1..).action(ArgAction::Append).required_unless_present(PAST).help("Who takes part"))
        .arg(file(EVENTS, "FILE").help("What happens, a JSON object a line"))
        .arg(time(AT).help("When the automation becomes active"))
        .arg(time(UNTIL).required_unless_present(PAST).help("When it ends: at most five years later"))
        .arg(file(TEMPLATES, "DIR").help("Templates as `template push` takes them"))
        .arg(file(SNAPSHOT, "FILE").help("Compare the answer with this file"))
        .arg(
            Arg::new(UPDATE)
                .long(UPDATE)
                .action(ArgAction::SetTrue)
                .requires(SNAPSHOT)
                .help("Write the snapshot instead of comparing it"),
        )
        .arg(
            Arg::new(PAST)
                .long(PAST)
                .value_name("SPAN")
                .value_parser(past::read_span)
                .conflicts_with_all([CONTACT, EVENTS, AT, SNAPSHOT])
                .help("Go through what the contacts of a workspace did in the last 30d, 12h or 2w"),
        )
        .args(arguments::target())
        .arg(arguments::json())
}

fn read_time(text: &str) -> Result<Timestamp, String> {
    let time = arguments::time_or_age(text)?;
    time.parse().map_err(|_| "not a time such as 2026-01-31T09:15:00Z, `7d` (ago) or `+7d` (ahead)".to_owned())
}

/// A line of a file of events.
struct Line {
    number: usize,
    event: Value,
}

pub(super) async fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let path = |id: &str| matches.get_one::<PathBuf>(id).cloned();
    let file = path(FILE).ok_or_else(|| Failure::usage("a file is missing"))?;
    let contacts = match matches.get_many::<PathBuf>(CONTACT) {
        Some(paths) => read_contacts(paths)?,
        None => Vec::new(),
    };
    let lines = path(EVENTS).map_or(Ok(Vec::new()), |path| read_lines(&path))?;
    let templates = path(TEMPLATES).map_or(Ok(Vec::new()), |path| folder::read_all(&path))?;
    let time = |id: &str| matches.get_one::<Timestamp>(id).copied();
    let first = || lines.iter().filter_map(|line| line.event["occurred_at"].as_str()?.parse().ok()).min();
    let files = DryRunFiles {
        automation: file::read_one(&file)?,
        templates: templates
            .iter()
            .map(|one| ([Some(one.name.clone()), one.id.clone()].into_iter().flatten().collect(), one.body.clone()))
            .collect(),
        contacts: contacts.iter().map(|(_, contact)| contact.clone()).collect(),
        events: lines.iter().map(|line| line.event.clone()).collect(),
        at: time(AT).or_else(first).unwrap_or_else(|| SystemClock.now()),
        until: time(UNTIL).unwrap_or_else(|| SystemClock.now()),
        segments: Vec::new(),
    };
    if let Some(span) = matches.get_one::<Duration>(PAST) {
        return past::run(matches, files, *span, output).await;
    }
    let told = match rehearse(&files).await {
        Ok(told) => told,
        Err(fault) => {
            let (place, error) = match fault {
                FilesFault::Automation(error) => (file.display().to_string(), error),
                FilesFault::Template(index, error) => (templates[index].name.clone(), error),
                FilesFault::Contact(index, error) => (contacts[index].0.clone(), error),
                FilesFault::Event(index, error) => {
                    let events = path(EVENTS).unwrap_or_default();
                    (format!("{} line {}", events.display(), lines[index].number), error)
                }
                other => return Err(refused(source_of(other))),
            };
            output::note(&format!("{place}:"));
            return Err(refused(error));
        }
    };
    let is_different = match path(SNAPSHOT) {
        Some(path) => snapshot::compare(&path, &Answer::of(&told), matches.get_flag(UPDATE))?,
        None => None,
    };
    print(&told, output)?;
    is_different.map_or(Ok(()), Err)
}

/// The contacts of files, each with what names it to people.
fn read_contacts<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> Result<Vec<(String, Value)>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        let shown = path.display();
        let value: Value = serde_json::from_str(&files::read(path)?).map_err(|error| files::unreadable(path, error))?;
        match value {
            Value::Array(several) => {
                let named = |(index, one)| (format!("{shown} item {index}"), one);
                found.extend(several.into_iter().enumerate().map(named));
            }
            one => found.push((shown.to_string(), one)),
        }
        if found.len() > MAX_CONTACTS {
            return Err(Failure::usage(format!("more than {MAX_CONTACTS} contacts")));
        }
    }
    if found.is_empty() {
        return Err(Failure::usage("there is no contact in the files of --contact"));
    }
    Ok(found)
}

fn read_lines(path: &Path) -> Result<Vec<Line>, Failure> {
    let text = files::read(path)?;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |error: &dyn std::fmt::Display| files::unreadable(path, format_args!("line {number}: {error}"));
        let event: Value = serde_json::from_str(line).map_err(|error| wrong(&error))?;
        if !event.is_object() {
            return Err(wrong(&"it is not an object"));
        }
        if lines.len() == MAX_EVENTS {
            return Err(Failure::usage(format!("{} has more than {MAX_EVENTS} lines", path.display())));
        }
        lines.push(Line { number, event });
    }
    Ok(lines)
}

/// Steps for people, as a page of the API.
#[derive(Serialize)]
struct Rows<'a> {
    data: Vec<Row<'a>>,
    next_cursor: Option<String>,
}

/// A step for people.
#[derive(Serialize)]
struct Row<'a> {
    time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    contact: Option<&'a str>,
    run: u32,
    node: Option<&'a str>,
    outcome: StepOutcome,
    branch: Option<&'a str>,
    why: Option<String>,
}

fn print(told: &[ContactReport], output: Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.resource(&Answer::of(told));
    }
    let mut data = Vec::new();
    for one in told {
        for SimulatedStep { run, step, .. } in &one.report.steps {
            data.push(Row {
                time: step.at,
                contact: if told.len() > 1 { one.external_id.as_deref() } else { None },
                run: *run,
                node: step.node_id.as_deref(),
                outcome: step.outcome,
                branch: step.branch.as_deref(),
                why: why(step),
            });
        }
        if one.report.steps.is_empty() {
            output::note(&format!("{} did not enter", one.external_id.as_deref().unwrap_or("the contact")));
        }
    }
    output.resource(&Rows { data, next_cursor: None })
}

/// The reason of a step, or what its detail says.
fn why(step: &StepView) -> Option<String> {
    if step.reason.is_some() {
        return step.reason.clone();
    }
    let text = |name: &str| step.detail.get(name).and_then(Value::as_str);
    if let Some(Value::Array(leaves)) = step.detail.get("leaves") {
        let leaf = |leaf: &Value| {
            let held = if leaf["held"] == true { "held" } else { "did not hold" };
            format!("{} {held}", leaf["pointer"].as_str().unwrap_or_default())
        };
        return Some(leaves.iter().map(leaf).collect::<Vec<_>>().join(", "));
    }
    let until = text("until").map(|until| format!("until {until}"));
    let draw = step.detail.get("draw").and_then(Value::as_f64).map(|draw| format!("drew {draw:.3}"));
    until.or(draw).or_else(|| text("message").map(ToOwned::to_owned))
}
