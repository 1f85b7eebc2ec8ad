//! `contact import`: a file of contacts from its checksum to the rows that were refused.
//!
//! Announces the file, sends it, waits until it is read, and says what became of its rows. On a terminal
//! two bars on standard error show how far it has come. Refused rows are no failure of the command: they
//! are counted, the first are shown, and `--errors` writes them all to a file.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command};
use messaging_core::domain::import::report;
use messaging_engine::ops::Endpoint;
use ring::digest;
use serde_json::{Map, Value, json};

use crate::arguments;
use crate::command::operation;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};
use crate::reply::Reply;
use crate::request::Request;
use crate::target::Target;

/// The words of the command.
pub(crate) const WORDS: &[&str] = &["contact", "import"];

const FILE: &str = "file";
const MAP: &str = "map";
const DEDUP_KEYS: &str = "dedup_keys";

/// How often is asked how far the server has come.
const PERIOD: Duration = Duration::from_millis(250);

/// How long a server that cannot be asked for a moment is waited for.
const MAX_SILENT: u32 = 40;

/// Refused rows that are shown.
const SHOWN: usize = 10;

/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;

const EXAMPLES: &str = "Columns whose header is email, phone, external_id, locale, timezone, tags, list_ids, \
consent.marketing_email, consent.sms or attributes.<key> are taken as such; name others with --map.

Ends with 0 when the file was read, even if rows were refused, and with 1 when it cannot be read.

Examples:
  messaging contact import contacts.csv
  messaging contact import contacts.csv --map 'E-Mail=email' --map 'City=attributes.city' --map Notes=
  messaging contact import contacts.csv --dedup-keys email --errors refused.csv --json";

/// The command.
pub(crate) fn command() -> Command {
    Command::new("import")
        .about("Import contacts from a CSV file, and wait until it is done")
        .after_help(EXAMPLES)
        .arg(
            Arg::new(FILE)
                .value_name("FILE.csv")
                .required(true)
                .value_parser(ValueParser::path_buf())
                .help("The file: UTF-8, the first row names the columns, separated by comma, semicolon or tab"),
        )
        .arg(
            Arg::new(MAP)
                .long("map")
                .value_name("COLUMN=FIELD")
                .value_parser(ValueParser::new(mapped))
                .action(ArgAction::Append)
                .help("What a column is, by its header; nothing after the = skips it; may be repeated"),
        )
        .arg(
            Arg::new(DEDUP_KEYS)
                .long("dedup-keys")
                .value_name("KEY,…")
                .value_delimiter(',')
                .value_parser(PossibleValuesParser::new(["external_id", "email", "phone"]))
                .action(ArgAction::Append)
                .help("What contacts are looked for by, in this order [default: external_id,email,phone]"),
        )
        .arg(arguments::errors())
        .args(arguments::target())
        .arg(arguments::json())
}

/// `COLUMN=FIELD`; headers may hold the sign, fields do not.
fn mapped(text: &str) -> Result<(String, Option<String>), String> {
    match text.rsplit_once('=') {
        Some((column, field)) if !column.is_empty() => {
            Ok((column.to_owned(), Some(field.to_owned()).filter(|field| !field.is_empty())))
        }
        _ => Err("write it as COLUMN=FIELD".to_owned()),
    }
}

/// Carries it out.
pub(crate) async fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let file = matches.get_one::<PathBuf>(FILE).expect("clap requires it");
    let create = operation(&["import", "create"])?;
    let announcement = announcement(matches, file)?;
    let target = Target::choose_to_work(matches, create.access).await?;
    let request = Request { body: announcement.to_string().into(), ..Request::new(create) };
    let announced = accepted(target.call(&request).await?)?;

    let bar = Progress::new("sent", Unit::Bytes);
    bar.set(0, announced["size_bytes"].as_u64().unwrap_or_default());
    let sent = {
        let bar = bar.clone();
        move |bytes| bar.add(bytes)
    };
    let uploaded = target.upload(&announced, file, sent).await;
    bar.end();
    let import = accepted(uploaded?)?;
    let import = wait(&target, &import).await?;

    let report = errors(&target, &import, 0).await?;
    let shown = report::parse(&report, SHOWN);
    if let Some(path) = matches.get_one::<PathBuf>(arguments::ERRORS) {
        write_errors(path, &target, &import, report).await?;
    }
    show(output, import, shown)
}

fn operation(words: &[&str]) -> Result<&'static Endpoint, Failure> {
    operation::endpoint(words).ok_or_else(|| Failure::usage("this version imports no contacts"))
}

/// What the API is told of the file.
fn announcement(matches: &ArgMatches, file: &Path) -> Result<Value, Failure> {
    let unreadable = |error: std::io::Error| Failure::usage(format!("cannot read {}: {error}", file.display()));
    let mut open = File::open(file).map_err(unreadable)?;
    let (mut sum, mut size, mut piece) = (digest::Context::new(&digest::SHA256), 0, vec![0; PIECE]);
    loop {
        match open.read(&mut piece).map_err(unreadable)? {
            0 => break,
            read => {
                sum.update(&piece[..read]);
                size += read as u64;
            }
        }
    }
    let sha256: String = sum.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let filename = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut announcement = json!({"filename": filename, "size_bytes": size, "sha256": sha256});
    if let Some(pairs) = matches.get_many::<(String, Option<String>)>(MAP) {
        announcement["mapping"] =
            pairs.cloned().map(|(column, field)| (column, json!(field))).collect::<Map<_, _>>().into();
    }
    if let Some(keys) = matches.get_many::<String>(DEDUP_KEYS) {
        announcement["dedup_keys"] = keys.cloned().collect();
    }
    Ok(announcement)
}

/// The document of an answer; a refusal ends the command.
fn accepted(reply: Reply) -> Result<Value, Failure> {
    if !reply.status.is_success() {
        return Err(Failure::Refused(reply));
    }
    serde_json::from_slice(&reply.body).map_err(|_| Failure::Unreachable("the answer is not understood".to_owned()))
}

/// Waits until the file is read, and answers what the import is then.
async fn wait(target: &Target, import: &Value) -> Result<Value, Failure> {
    let get = operation(&["import", "get"])?;
    let id = import["import_id"].as_str().unwrap_or_default().to_owned();
    let request = Request { path: vec![("id".to_owned(), id)], ..Request::new(get) };
    let bar = Progress::new("rows read", Unit::Items);
    let waiting = async {
        let mut silent = 0;
        loop {
            match target.call(&request).await {
                // The server starts again, say; the import goes on by itself.
                Err(Failure::Unreachable(_)) if silent < MAX_SILENT => silent += 1,
                reply => {
                    silent = 0;
                    let import = accepted(reply?)?;
                    if import["status"] != "processing" {
                        return Ok(import);
                    }
                    let done = ["created", "updated", "failed"].iter().filter_map(|name| import[*name].as_u64()).sum();
                    bar.set(done, import["total_rows"].as_u64().unwrap_or_default());
                }
            }
            tokio::time::sleep(PERIOD).await;
        }
    };
    // Where nobody else reads the file, this command does.
    let working = async {
        target.work_on_import(import).await?;
        std::future::pending::<Result<Value, Failure>>().await
    };
    let ended = tokio::select! {
        ended = waiting => ended,
        failed = working => failed,
    };
    bar.end();
    ended
}

/// The report on the refused rows after one, or a part of it.
async fn errors(target: &Target, import: &Value, after: u64) -> Result<Bytes, Failure> {
    let errors = operation(&["import", "errors"])?;
    let id = import["import_id"].as_str().unwrap_or_default().to_owned();
    let query = vec![("after_row".to_owned(), after.to_string())];
    let request = Request { path: vec![("id".to_owned(), id)], query, ..Request::new(errors) };
    let reply = target.call(&request).await?;
    if reply.status.is_success() { Ok(reply.body) } else { Err(Failure::Refused(reply)) }
}

/// Writes the whole report, of which the first part is there, to a file.
async fn write_errors(path: &Path, target: &Target, import: &Value, first: Bytes) -> Result<(), Failure> {
    let unwritable = |error: std::io::Error| Failure::usage(format!("cannot write {}: {error}", path.display()));
    let mut file = File::create(path).map_err(unwritable)?;
    let mut part = first;
    let mut is_first = true;
    loop {
        let next = report::goes_on_after(&part);
        let end = if next.is_some() { report::without_end(&part) } else { part.len() };
        let start = if is_first { 0 } else { report::HEADER.len().min(end) };
        file.write_all(&part[start..end]).map_err(unwritable)?;
        is_first = false;
        match next {
            Some(after) => part = errors(target, import, after).await?,
            None => return Ok(()),
        }
    }
}

/// Says what became of the file.
fn show(output: Output, mut import: Value, shown: Vec<Value>) -> Result<(), Failure> {
    let count = |name: &str| import[name].as_u64().unwrap_or_default();
    let summary = format!("{} created, {} updated, {} refused", count("created"), count("updated"), count("failed"));
    for error in &shown {
        let text = |name: &str| output::plain_text(error[name].as_str().unwrap_or_default());
        let column = Some(text("column")).filter(|column| !column.is_empty()).map(|column| format!(", {column}"));
        let (row, column) = (&error["row"], column.unwrap_or_default());
        output::note(&format!("row {row}{column}: {} ({})", text("message"), text("code")));
    }
    if count("failed") > 0 {
        let id = import["import_id"].as_str().unwrap_or_default();
        output::note(&format!("all of them: messaging import errors {id}, or --errors FILE"));
    }
    let failure = match import["status"].as_str() {
        Some("completed") => None,
        _ => Some(import["failure_reason"].as_str().unwrap_or("the import did not end well").to_owned()),
    };
    if let Some(members) = import.as_object_mut() {
        members.insert("errors".to_owned(), shown.into());
    }
    if output.is_json() || failure.is_none() {
        output.line(&import, &summary)?;
    }
    failure.map_or(Ok(()), |reason| Err(Failure::Unsuccessful(reason)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_mapped_by_the_last_sign() {
        let pair =
            |column: &str, field: &str| (column.to_owned(), Some(field.to_owned()).filter(|field| !field.is_empty()));
        assert_eq!(mapped("E-Mail=email"), Ok(pair("E-Mail", "email")));
        assert_eq!(mapped("a=b=tags"), Ok(pair("a=b", "tags")));
        assert_eq!(mapped("Notes="), Ok(pair("Notes", "")));
        for bad in ["email", "=email", ""] {
            assert!(mapped(bad).is_err(), "{bad}");
        }
    }
}
