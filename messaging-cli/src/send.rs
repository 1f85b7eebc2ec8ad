//! Options of `message send` beyond the members of its body: files, single headers, and email by default.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Map, Value, json};

use crate::command::part::Part;
use crate::failure::Failure;

/// Id of the operation.
pub(crate) const OPERATION: &str = "sendMessage";

const ATTACH: &str = "attach";
const HEADER: &str = "header";

const EXAMPLES: &str = "Examples:
  messaging message send --to ann@example.com --subject 'Order 17' --text Thanks --attach a.pdf
  messaging message send --to ann@example.com --template-id tpl_… --vars '{\"order\": 17}'
  messaging message send --channel sms --to +491701234567 --text 'Your code is 123456'
  messaging message send --json-body message.json --idempotency-key order-17";

/// Adds the conveniences to the command.
pub(crate) fn extend(command: Command, route: &str) -> Command {
    command
        .arg(
            Arg::new(ATTACH)
                .long("attach")
                .value_name("FILE")
                .value_parser(ValueParser::path_buf())
                .action(ArgAction::Append)
                .help_heading("Body")
                .help("Attach a file; may be repeated. Its type is guessed from its name"),
        )
        .arg(
            Arg::new(HEADER)
                .long("header")
                .value_name("NAME=VALUE")
                .value_parser(ValueParser::new(header))
                .action(ArgAction::Append)
                .help_heading("Body")
                .help("Add a header to the email; may be repeated"),
        )
        // Base64 on a command line is of no use; in `--json-body` the member still works.
        .mut_arg(Part::Body.id("attachments"), |arg| arg.hide(true))
        .mut_arg(Part::Body.id("channel"), |arg| arg.help("The channel [default: email]"))
        .mut_args(ordered)
        .after_help(format!("{EXAMPLES}\n\n{route}"))
}

/// Orders the flags: those that every email needs first, then the others by name.
fn ordered(arg: Arg) -> Arg {
    const FIRST: &[&str] = &["to", "subject", "text", "html", "html-file", "attach"];
    if arg.get_help_heading() != Some("Body") {
        return arg;
    }
    let order = FIRST.iter().position(|long| arg.get_long() == Some(long)).unwrap_or(FIRST.len());
    arg.display_order(order)
}

/// Adds the files and headers of the additional flags to the members that have flags.
pub(crate) fn add_conveniences(matches: &ArgMatches, flags: &mut Map<String, Value>) -> Result<(), Failure> {
    if let Some(files) = matches.get_many::<PathBuf>(ATTACH) {
        let attachments = files.map(|file| attachment(file)).collect::<Result<Vec<_>, _>>()?;
        add_to_list(flags, "attachments", attachments);
    }
    if let Some(headers) = matches.get_many::<(String, String)>(HEADER) {
        let entry = flags.entry("headers").or_insert_with(|| json!({}));
        if let Value::Object(object) = entry {
            object.extend(headers.map(|(name, value)| (name.clone(), Value::String(value.clone()))));
        }
    }
    Ok(())
}

/// Sets the channel to email, unless the body names one.
pub(crate) fn add_defaults(body: &mut Map<String, Value>) {
    body.entry("channel").or_insert_with(|| json!("email"));
}

fn add_to_list(flags: &mut Map<String, Value>, name: &str, more: Vec<Value>) {
    match flags.entry(name).or_insert_with(|| json!([])) {
        Value::Array(items) => items.extend(more),
        other => *other = Value::Array(more),
    }
}

fn attachment(file: &Path) -> Result<Value, Failure> {
    let content =
        std::fs::read(file).map_err(|error| Failure::usage(format!("cannot attach {}: {error}", file.display())))?;
    let filename = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut attachment = json!({"filename": filename, "content_b64": STANDARD.encode(content)});
    // Without a guess the server looks at the content.
    if let Some(kind) = mime_guess::from_path(file).first() {
        attachment["content_type"] = Value::String(kind.to_string());
    }
    Ok(attachment)
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}
