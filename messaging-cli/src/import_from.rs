//! `import-from`: imports contacts, lists, suppressions and templates from the files that another product exports.
//!
//! [`messaging_import`] reads the files and makes the requests; this module has the arguments, the printed report, and
//! the server or database that receives everything ([`destination`]). `--dry-run` needs neither a server nor a
//! database.

mod destination;

use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_import::{Applied, ApplyError, Counts, ImportPlan, Product, ReadOptions, Refused, Survey};
use serde::Serialize;
use serde_json::{Value, json};

use self::destination::Destination;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};
use crate::reply::Reply;
use crate::resources::{self, Resources};
use crate::target::{self, Target};
use crate::{arguments, files};

/// Name of the command on the command line.
pub(crate) const WORD: &str = "import-from";

const PRODUCT: &str = "product";
const DRY_RUN: &str = "dry_run";
const SET: &str = "set";

const EXAMPLES: &str = "DIR holds what the other product exports, under these names:
  listmonk    subscribers.csv; lists/NAME.csv; subscribers.json, lists.json, bounces.json, templates.json of its API
  mailchimp   subscribed….csv, unsubscribed….csv, cleaned….csv, nonsubscribed….csv, in a folder for each audience;
              templates/….html
  sendgrid    contacts….csv; lists/NAME.csv; bounces, spam_reports, unsubscribes, invalid_emails (.csv or .json);
              templates/….json of its API
  csv-dir     contacts.csv, lists/NAME.csv with the columns of `contact import`; suppressions.csv with channel, address,
              reason; templates/ as `template push` reads it

Suppressions are imported before contacts. Existing lists and templates are found by name, contacts by external id and email, so \
you can run the command again. A template with an unknown tag is left out, and the command names the tag; --set gives a text for it.

Exit code 0 if the files were read, even if rows or templates were refused.

Examples:
  messaging import-from listmonk export/ --dry-run
  messaging import-from listmonk export/ --errors refused.csv
  messaging import-from mailchimp export/ --set 'LIST:ADDRESS=1 High Street, Leeds' --set CURRENT_YEAR=2026";

/// The command with its arguments and its help.
pub(crate) fn command() -> Command {
    Command::new(WORD)
        .about("Import contacts, lists, suppressions and templates from another product's export")
        .after_help(EXAMPLES)
        .arg(
            Arg::new(PRODUCT)
                .value_name("PRODUCT")
                .required(true)
                .value_parser(PossibleValuesParser::new(Product::ALL.map(Product::name)))
                .help("The product that exported the files"),
        )
        .arg(files::directory_argument("The directory with the files"))
        .arg(
            Arg::new(DRY_RUN)
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Read everything and say what would be done; needs neither server nor database"),
        )
        .arg(
            Arg::new(SET)
                .long("set")
                .value_name("TAG=TEXT")
                .value_parser(ValueParser::new(text_for_tag))
                .action(ArgAction::Append)
                .help("Text in place of a tag of templates; may be repeated"),
        )
        .arg(arguments::errors())
        .args(arguments::target())
        .arg(arguments::json())
}

/// Reads a value of `--set`, `TAG=TEXT`, as tag and text.
fn text_for_tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((tag, text)) if !tag.trim().is_empty() => Ok((tag.trim().to_owned(), text.to_owned())),
        _ => Err("write it as TAG=TEXT".to_owned()),
    }
}

/// Runs the command: reads the files, imports everything unless it is a dry run, and prints the report.
pub(crate) fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let product = arguments::text(matches, PRODUCT).and_then(Product::of);
    let product = product.ok_or_else(|| Failure::usage("a product is missing"))?;
    let directory = files::directory(matches)?;
    let texts = matches.get_many::<(String, String)>(SET).into_iter().flatten().cloned().collect();
    let plan = messaging_import::read(product, &directory, &ReadOptions { texts })?;
    let is_dry = matches.get_flag(DRY_RUN);
    let mut refused = Refused::new(matches.get_one::<PathBuf>(arguments::ERRORS).map(PathBuf::as_path))?;

    let reading = Progress::counting("reading");
    // Without a dry run the API checks every row, and a row that it refuses must not be reported here as well.
    let survey = Survey::of(&plan, is_dry.then_some(&mut refused), |rows| reading.count(rows))?;
    reading.end();
    let mut report = Report::new(product, is_dry, &plan, &survey);
    if is_dry {
        return report.finish_and_print(output, &plan, refused);
    }
    let (plan, survey) = (Arc::new(plan), Arc::new(survey));
    let applied = target::block_on(bring_over(matches, Arc::clone(&plan), survey, &mut refused))??;
    report.add(applied);
    report.finish_and_print(output, &plan, refused)
}

/// Applies a plan on the server or database that the arguments name, with a progress bar.
async fn bring_over(
    matches: &ArgMatches,
    plan: Arc<ImportPlan>,
    survey: Arc<Survey>,
    refused: &mut Refused,
) -> Result<Applied, Failure> {
    let target = Target::choose(matches, resources::endpoint("contact", "bulk")?.access).await?;
    let total = survey.files.iter().map(|counts| counts.contacts + counts.suppressions).sum();
    let bar = Progress::new("bringing over", Unit::Items);
    bar.set(0, total);
    let destination = Destination(Resources { noun: "template", target });
    let applied = messaging_import::apply(destination, (plan, survey), refused, &|more| bar.add(more)).await;
    bar.end();
    applied.map_err(failure).inspect_err(|_| output::note("what came before is done; it can be run again"))
}

/// Turns the error of an import into the failure that other commands report for the same reason.
fn failure(error: ApplyError<Failure>) -> Failure {
    match error {
        ApplyError::Import(error) => error.into(),
        ApplyError::Refused(answer) => Failure::Refused(Reply::from(answer)),
        ApplyError::Api(failure) => failure,
        ApplyError::Task(error) => Failure::unreachable("cannot go on", &error),
    }
}

/// Row about one file in the report; its fields are columns, in the order in which people read them.
#[derive(Debug, Serialize)]
struct FileRow {
    file: String,
    kind: &'static str,
    rows: u64,
    contacts: u64,
    suppressions: u64,
    /// Number of records that are read but have no counterpart here.
    left_out: u64,
    refused: u64,
    /// Name of the list that all contacts of the file join.
    list: Option<String>,
}

/// The rows about files in the form of a page of a listing, because the output shows pages as tables.
#[derive(Debug, Serialize)]
struct FilePage<'a> {
    data: &'a [FileRow],
    next_cursor: Option<&'a str>,
}

/// Report that is printed at the end.
struct Report {
    files: Vec<FileRow>,
    /// The whole report as `--json` prints it; lines for people are made from it.
    document: Value,
}

impl Report {
    /// The report on the files that were read; [`Report::add`] adds the results of the import.
    fn new(product: Product, is_dry: bool, plan: &ImportPlan, survey: &Survey) -> Self {
        let files: Vec<_> = plan
            .sources
            .iter()
            .zip(&survey.files)
            .map(|(source, counts)| FileRow {
                file: source.name.clone(),
                kind: source.kind,
                rows: counts.rows,
                contacts: counts.contacts,
                suppressions: counts.suppressions,
                left_out: counts.left.values().sum(),
                refused: counts.refused,
                list: source.list.clone(),
            })
            .collect();
        let sum = |count: fn(&Counts) -> u64| survey.files.iter().map(count).sum::<u64>();
        let (contacts, suppressions) = (sum(|counts| counts.contacts), sum(|counts| counts.suppressions));
        let lists: Vec<_> =
            survey.lists.iter().map(|name| json!({"name": name, "id": null, "result": "read"})).collect();
        let templates = plan
            .templates
            .iter()
            .map(|template| template.outcome(if template.body.is_ok() { "read" } else { "refused" }, None, None));
        let mut notes = plan.notes.clone();
        for (source, counts) in plan.sources.iter().zip(&survey.files) {
            notes.extend(counts.left.iter().map(|(words, count)| format!("{}: {count} {words}", source.name)));
        }
        for template in &plan.templates {
            notes.extend(template.notes.iter().map(|note| format!("{} ({}): {note}", template.name, template.file)));
        }
        if survey.repeated > 0 {
            let repeated = survey.repeated;
            notes.push(format!("contacts whose address was there before: {repeated}; the later ones add to it"));
        }
        Self {
            document: json!({"product": product.name(), "dry_run": is_dry, "files": files, "lists": lists,
                "contacts": {"read": contacts}, "suppressions": {"read": suppressions},
                "templates": templates.collect::<Vec<_>>(), "notes": notes}),
            files,
        }
    }

    /// Adds the results of the import.
    fn add(&mut self, applied: Applied) {
        for (member, known, tally) in
            [("contacts", "updated", applied.contacts), ("suppressions", "already_listed", applied.suppressions)]
        {
            for (name, count) in [("created", tally.created), (known, tally.known), ("refused", tally.refused)] {
                self.document[member][name] = json!(count);
            }
        }
        self.document["lists"] = json!(applied.lists);
        self.document["templates"] = json!(applied.templates);
    }

    /// Prints the report: as JSON, or as a table of the files, lines with counts, and notes. Adds the refused rows
    /// first.
    fn finish_and_print(mut self, output: Output, plan: &ImportPlan, refused: Refused) -> Result<(), Failure> {
        let (count, shown) = refused.finish()?;
        self.document["refused"] = json!({"count": count, "first": shown});
        if output.is_json() {
            return output.line(&self.document, "");
        }
        let document = &self.document;
        if !plan.sources.is_empty() {
            output.resource(&FilePage { data: &self.files, next_cursor: None })?;
        }
        for line in self.lines() {
            output.line(&Value::Null, &line)?;
        }
        let text = |value: &Value| output::plain_text(value.as_str().unwrap_or_default());
        for template in document["templates"].as_array().into_iter().flatten().filter(|one| one["result"] == "refused")
        {
            let (name, file) = (text(&template["name"]), text(&template["file"]));
            output::note(&format!("template {name} ({file}) is left out: {}", text(&template["reason"])));
        }
        for note in document["notes"].as_array().into_iter().flatten() {
            output::note(&text(note));
        }
        for row in document["refused"]["first"].as_array().into_iter().flatten() {
            let (file, message, code) = (text(&row["file"]), text(&row["message"]), text(&row["code"]));
            output::note(&format!("{file}, row {}: {message} ({code})", row["row"]));
        }
        if count > shown_refusals(document) {
            output::note(&format!("{count} rows were refused; --errors FILE writes them all"));
        }
        Ok(())
    }

    /// Lines for people with the results of contacts, suppressions, lists and templates, one line for each of them.
    fn lines(&self) -> Vec<String> {
        let document = &self.document;
        let mut lines = Vec::new();
        for member in ["contacts", "suppressions"] {
            let counts = document[member].as_object().into_iter().flatten();
            let counts: Vec<_> = counts.map(|(name, count)| format!("{count} {}", name.replace('_', " "))).collect();
            lines.push(format!("{member}: {}", counts.join(", ")));
        }
        for member in ["lists", "templates"] {
            let all = document[member].as_array().into_iter().flatten();
            let all: Vec<_> = all
                .map(|one| {
                    let text = |name: &str| output::plain_text(one[name].as_str().unwrap_or_default());
                    format!("{} ({})", text("name"), text("result"))
                })
                .collect();
            if !all.is_empty() {
                lines.push(format!("{member}: {}", all.join(", ")));
            }
        }
        lines
    }
}

/// Number of refused rows that the report shows one by one.
fn shown_refusals(document: &Value) -> u64 {
    document["refused"]["first"].as_array().map_or(0, |shown| shown.len() as u64)
}
