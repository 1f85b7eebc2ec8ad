//! `contact import`: imports a CSV file of contacts and waits for the result.
//!
//! The command prints how the columns are used, announces the file with its size and checksum, uploads it, waits until
//! the server has read it, and prints the counts. On a terminal two progress bars on standard error show the upload and
//! the reading. Refused rows are no failure of the command: they are counted, the first errors are printed, and
//! `--errors` writes the complete report on them to a file.

mod as_json;
mod columns;
mod dry_run;
mod guess;
mod rows;

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::StatusCode;
use messaging_core::domain::audience::custom_field::{FieldType, FieldTypes};
use messaging_core::domain::audience::import::columns::{ColumnTarget as Field, Mapping};
use messaging_core::domain::audience::import::report;
use messaging_engine::ops::Endpoint;
use messaging_engine::ops::custom_fields::{CreateCustomField, ListCustomFields};
use ring::digest;
use serde_json::{Map, Value, json};

use self::columns::{AttributeSelection, Columns, name_of};
use crate::arguments;
use crate::command::operation;
use crate::failure::{Failure, accepted};
use crate::listing::{Pages, patiently};
use crate::output::{self, Output};
use crate::progress::{Progress, Unit};
use crate::request::Request;
use crate::target::Target;

/// The words that call the command, after the name of the program.
pub(crate) const WORDS: &[&str] = &["contact", "import"];

// Ids of the arguments.
const FILE: &str = "file";
const MAP: &str = "map";
const DEDUP_KEYS: &str = "dedup_keys";
const ATTRIBUTES: &str = "attributes";
const DRY_RUN: &str = "dry_run";
const DECLARE_FIELDS: &str = "declare_fields";

/// Longest label of a custom field, in characters; a longer column header is cut.
const MAX_LABEL: usize = 200;

/// Time between two requests for the state of the import.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Number of requests in a row that may find the server unreachable, about ten seconds of them, before waiting for the
/// import is given up: the server may be restarting.
const MAX_UNREACHABLE_POLLS: u32 = 40;

/// Lines of the report on refused rows that are printed.
const SHOWN_ERRORS: usize = 10;

/// Bytes of the file that are read at a time for its checksum.
const READ_BUFFER: usize = 64 << 10;

/// Text after the options in the help of the command.
const EXAMPLES: &str = "Columns whose header is email, phone, external_id, locale, timezone, tags, list_ids, \
consent.marketing_email, consent.sms or attributes.<key> become that field; name others with --map. A cell may hold \
several tags or ids of lists (lst_…), separated by `;`. All other columns become attributes, unless --attributes says \
otherwise. Attributes are texts, unless a custom field of the workspace gives them a type. If all rows of a column \
could be numbers, booleans, dates or times, the command says so, and --declare-fields declares custom fields of these \
types for the whole workspace. Before the file is sent, the command prints what each column becomes; --dry-run prints \
only that and the first rows, and changes nothing.

A file of `contact export` restores attributes and tags as they were.

Exit code 0 if the file was read, even if rows were refused; 1 if it cannot be read.

Examples:
  messaging contact import contacts.csv --dry-run
  messaging contact import contacts.csv --attributes plan,age --declare-fields
  messaging contact import contacts.csv --map 'E-Mail=email' --map 'City=attributes.city' --map Notes=
  messaging contact import contacts.csv --dedup-keys email --errors refused.csv --json";

/// The definition of the command: its arguments and help.
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
                .value_parser(ValueParser::new(parse_mapping))
                .action(ArgAction::Append)
                .help("Field that a column becomes, by its header; nothing after the = skips the column; may be repeated"),
        )
        .arg(
            Arg::new(DEDUP_KEYS)
                .long("dedup-keys")
                .value_name("KEY,…")
                .value_delimiter(',')
                .value_parser(PossibleValuesParser::new(["external_id", "email", "phone"]))
                .action(ArgAction::Append)
                .help("Identifiers by which existing contacts are found, in this order [default: external_id,email,phone]"),
        )
        .arg(
            Arg::new(ATTRIBUTES)
                .long("attributes")
                .value_name("all|none|COLUMN,…")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .help("Other columns that become attributes [default: all]"),
        )
        .arg(
            Arg::new(DECLARE_FIELDS)
                .long("declare-fields")
                .action(ArgAction::SetTrue)
                .help("Declare custom fields where all rows of a column are numbers, booleans, dates or times"),
        )
        .arg(
            Arg::new(DRY_RUN)
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Only show what the columns and the first five rows would become; import nothing"),
        )
        .arg(arguments::errors())
        .args(arguments::target())
        .arg(arguments::json())
}

/// Parses `COLUMN=FIELD` of `--map`. It is split at the last `=`, because headers may contain one and names of fields
/// do not. `None` stands for an empty field, which skips the column.
fn parse_mapping(text: &str) -> Result<(String, Option<String>), String> {
    match text.rsplit_once('=') {
        Some((column, field)) if !column.is_empty() => {
            Ok((column.to_owned(), Some(field.to_owned()).filter(|field| !field.is_empty())))
        }
        _ => Err("write it as COLUMN=FIELD".to_owned()),
    }
}

/// Runs the command. Ends with [`Failure::Unsuccessful`] if the import did not complete, or if rows of an export lack
/// some of their attributes or tags.
pub(crate) async fn run(matches: &ArgMatches, output: Output) -> Result<(), Failure> {
    let file = matches.get_one::<PathBuf>(FILE).expect("clap requires it");
    let create = operation(&["import", "create"])?;
    let mut announcement = import_request_body(matches, file)?;
    let target = Target::choose_to_work(matches, create.access).await?;
    let declared = fetch_field_types(&target, matches.get_flag(DECLARE_FIELDS)).await?;
    let columns = columns(matches, file, declared.as_ref())?;
    if matches.get_flag(DRY_RUN) {
        return dry_run::show(file, &columns, declared.unwrap_or_default(), output);
    }
    print_columns(&columns);
    if !columns.mapping.is_empty() {
        announcement["mapping"] = json!(columns.mapping);
    }
    let request = Request { body: announcement.to_string().into(), ..Request::new(create) };
    let announced = accepted(target.call(&request).await?)?;
    // Types have an effect only when the server reads the file. Declared after the announcement they are early enough,
    // and nothing is declared for an import that is refused.
    create_custom_fields(&target, &columns).await?;

    let bar = Progress::new("sent", Unit::Bytes);
    bar.set(0, announced["size_bytes"].as_u64().unwrap_or_default());
    let sent = {
        let bar = bar.clone();
        move |bytes| bar.add(bytes)
    };
    let uploaded = target.upload(&announced, file, sent).await;
    bar.end();
    let import = accepted(uploaded?)?;
    let import = wait_until_read(&target, &import).await?;

    let report = fetch_report_part(&target, &import, 0).await?;
    let shown = report::parse(&report, SHOWN_ERRORS);
    let not_taken = match (columns.as_json, &columns.header) {
        (Some(places), Some(header)) if import["status"] == "completed" => {
            let refused = refused_rows(&target, &import, report.clone()).await?;
            as_json::Rows { file, header, places, announcement: &announcement, refused }.apply(&target).await?
        }
        _ => 0,
    };
    if let Some(path) = matches.get_one::<PathBuf>(arguments::ERRORS) {
        write_errors(path, &target, &import, report).await?;
    }
    print_result(output, import, shown, &columns)?;
    match not_taken {
        0 => Ok(()),
        rows => Err(Failure::Unsuccessful(format!("the attributes or tags of {rows} rows were not imported"))),
    }
}

/// The types of the workspace's custom fields, by their keys. `None` where the caller may not list them and `is_needed`
/// is false; no types of columns are guessed then.
async fn fetch_field_types(target: &Target, is_needed: bool) -> Result<Option<FieldTypes>, Failure> {
    let mut pages = Pages::new(target, Request::new(Endpoint::row::<ListCustomFields>()));
    let mut types = FieldTypes::new();
    loop {
        let items = match pages.next().await {
            Ok(Some(items)) => items,
            Ok(None) => return Ok(Some(types)),
            Err(Failure::Refused(reply)) if reply.status == StatusCode::FORBIDDEN && !is_needed => {
                return Ok(None);
            }
            Err(failure) => return Err(failure),
        };
        for item in items {
            let mut field: Value = serde_json::from_str(item.get()).unwrap_or_default();
            let kind = serde_json::from_value::<FieldType>(field["type"].take());
            if let (Some(key), Ok(kind)) = (field["key"].as_str(), kind) {
                types.insert(key.to_owned(), kind);
            }
        }
    }
}

/// Decides how each column of the file is used. The result is empty if `--map` names a field that does not exist: the
/// API then refuses the import and reports the reason.
fn columns(matches: &ArgMatches, file: &Path, declared: Option<&FieldTypes>) -> Result<Columns, Failure> {
    let mut mapping = Mapping::new();
    for (column, field) in matches.get_many::<(String, Option<String>)>(MAP).into_iter().flatten() {
        match field.clone().map(Field::try_from).transpose() {
            Ok(field) => mapping.insert(column.clone(), field),
            Err(_) => return Ok(Columns::default()),
        };
    }
    let selection = AttributeSelection::of(matches.get_many(ATTRIBUTES).into_iter().flatten().cloned().collect());
    Columns::of(file, mapping, &selection, declared, matches.get_flag(DECLARE_FIELDS))
}

/// Prints the use of the columns that have no known header and no `--map`: attributes, attributes that could be custom
/// fields, columns that are not imported.
fn print_columns(columns: &Columns) {
    for attribute in &columns.attributes {
        let (column, key) = (output::plain_text(&attribute.column), &attribute.attribute);
        output::note(&format!("column {column}: attribute {key} ({})", name_of(attribute.kind)));
    }
    let declarable: Vec<_> =
        columns.declarable().map(|one| format!("{} {}", one.attribute, name_of(one.guess))).collect();
    if !declarable.is_empty() {
        output::note(&format!("--declare-fields would make these custom fields: {}", declarable.join(", ")));
    }
    if !columns.left_out.is_empty() {
        output::note(&not_imported(columns));
    }
}

fn not_imported(columns: &Columns) -> String {
    format!("not imported: {}", output::plain_text(&columns.left_out.join(", ")))
}

/// Creates custom fields for the attributes whose type was guessed and is not text; none unless `--declare-fields` was
/// given.
async fn create_custom_fields(target: &Target, columns: &Columns) -> Result<(), Failure> {
    for attribute in columns.to_declare() {
        let label: String = attribute.column.chars().take(MAX_LABEL).collect();
        let body = json!({"key": attribute.attribute, "type": attribute.kind, "label": label});
        let request = Request::new(Endpoint::row::<CreateCustomField>());
        let reply = patiently(target, &Request { body: body.to_string().into(), ..request }).await?;
        // A conflict means that the field has been declared in the meantime.
        if reply.status != StatusCode::CONFLICT {
            accepted(reply)?;
        }
    }
    Ok(())
}

/// The API operation behind a command, such as `import create`; a usage error where this version has none.
fn operation(words: &[&str]) -> Result<&'static Endpoint, Failure> {
    operation::endpoint(words).ok_or_else(|| Failure::usage("this version imports no contacts"))
}

/// Body of the request that announces the import: the file's name, its size in bytes, its SHA-256 in hexadecimal, and
/// the options `--map` and `--dedup-keys`. Reads the whole file once.
fn import_request_body(matches: &ArgMatches, file: &Path) -> Result<Value, Failure> {
    let unreadable = |error: std::io::Error| Failure::usage(format!("cannot read {}: {error}", file.display()));
    let mut open = File::open(file).map_err(unreadable)?;
    let (mut sum, mut size, mut piece) = (digest::Context::new(&digest::SHA256), 0, vec![0; READ_BUFFER]);
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

/// Asks for the state of the import until it is no longer `processing`, and answers that last state. Where a database
/// is used without a server, this process reads the file meanwhile.
async fn wait_until_read(target: &Target, import: &Value) -> Result<Value, Failure> {
    let get = operation(&["import", "get"])?;
    let id = import["import_id"].as_str().unwrap_or_default();
    let request = Request::about(get, id);
    let bar = Progress::new("rows read", Unit::Items);
    let waiting = async {
        let mut silent = 0;
        loop {
            match target.call(&request).await {
                // The server may be restarting; the import continues there without this command.
                Err(Failure::Unreachable(_)) if silent < MAX_UNREACHABLE_POLLS => silent += 1,
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
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    // Reads the file if no server does. Only a failure ends the wait: `waiting` sees when the import is complete.
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

/// One part of the CSV report on refused rows: as many of the rows after number `after` as the API answers at once.
async fn fetch_report_part(target: &Target, import: &Value, after: u64) -> Result<Bytes, Failure> {
    let errors = operation(&["import", "errors"])?;
    let id = import["import_id"].as_str().unwrap_or_default();
    let query = vec![("after_row".to_owned(), after.to_string())];
    let request = Request { query, ..Request::about(errors, id) };
    let reply = target.call(&request).await?;
    if reply.status.is_success() { Ok(reply.body) } else { Err(Failure::Refused(reply)) }
}

/// The numbers of all refused rows. `part` is the first part of the report; further parts are requested.
async fn refused_rows(target: &Target, import: &Value, mut part: Bytes) -> Result<HashSet<u64>, Failure> {
    let mut refused = HashSet::new();
    loop {
        refused.extend(report::parse(&part, usize::MAX).iter().filter_map(|error| error["row"].as_u64()));
        match report::goes_on_after(&part) {
            Some(after) => part = fetch_report_part(target, import, after).await?,
            None => return Ok(refused),
        }
    }
}

/// Writes the complete report on refused rows to a file. `first` is its first part; further parts are requested. Left
/// out are the header line of every part but the first, and the line at the end of a part that says how to get the
/// next.
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
            Some(after) => part = fetch_report_part(target, import, after).await?,
            None => return Ok(()),
        }
    }
}

/// Prints the result of the import: the errors in `shown`, the counts, and the columns that were not imported. If the
/// import did not complete, the counts are printed only as JSON, and the reason is answered as a failure.
fn print_result(output: Output, mut import: Value, shown: Vec<Value>, columns: &Columns) -> Result<(), Failure> {
    let count = |name: &str| import[name].as_u64().unwrap_or_default();
    let mut summary =
        format!("{} created, {} updated, {} refused", count("created"), count("updated"), count("failed"));
    if !columns.left_out.is_empty() {
        summary = format!("{summary}; {}", not_imported(columns));
    }
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
        members.insert("attributes".to_owned(), json!(columns.attributes));
        members.insert("not_imported".to_owned(), json!(columns.left_out));
    }
    if output.is_json() || failure.is_none() {
        output.line(&import, &summary)?;
    }
    // The API names the member of its request; here it is a flag.
    failure.map_or(Ok(()), |reason| Err(Failure::Unsuccessful(reason.replace("`mapping`", "--map"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_mapped_by_the_last_sign() {
        let pair =
            |column: &str, field: &str| (column.to_owned(), Some(field.to_owned()).filter(|field| !field.is_empty()));
        assert_eq!(parse_mapping("E-Mail=email"), Ok(pair("E-Mail", "email")));
        assert_eq!(parse_mapping("a=b=tags"), Ok(pair("a=b", "tags")));
        assert_eq!(parse_mapping("Notes="), Ok(pair("Notes", "")));
        for bad in ["email", "=email", ""] {
            assert!(parse_mapping(bad).is_err(), "{bad}");
        }
    }
}
