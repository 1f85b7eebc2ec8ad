//! The only place that writes to standard output.
//!
//! On a terminal or in a pipe people get tables; with `--json` scripts get exactly one JSON document,
//! whatever happens: the API's answer, the API's error, or, when no API could be asked, an error of the
//! same shape (`{"error":{"code":"unreachable","message":"…"}}`). An answer without a body is `{}`, one that
//! is no JSON (an email's source) becomes `{"content_type":…,"body":…}`. Only a command line that cannot be
//! understood at all prints nothing there. `--quiet` and `--format` print a line for each item instead.

mod dialog;
mod explanation;
mod importance;
mod masked;
mod node;
mod picked;
mod record;
mod refusal;
mod refused_items;
pub(crate) mod rows;
mod table;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::ArgMatches;
use serde::Serialize;
use serde_json::{Value, json};

use self::node::Node;
use self::refusal::RED;
use self::table::Sheet;
use crate::arguments;
use crate::failure::Failure;
use crate::reply::Reply;

/// Prints answers in the format that the command line asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    form: Form,
}

/// Output format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Tables for people.
    Tables,
    /// One JSON document.
    Json,
    /// The id of each item.
    Ids,
    /// One line for each item, rendered by a template.
    Lines,
}

impl Output {
    /// Prints JSON or tables.
    pub(crate) const fn new(json: bool) -> Self {
        Self { form: if json { Form::Json } else { Form::Tables } }
    }

    /// Prints what the command line asks for.
    pub(crate) fn chosen(matches: &ArgMatches) -> Result<Self, Failure> {
        let command = arguments::innermost(matches);
        if arguments::is_set(command, arguments::JSON) {
            return Ok(Self::new(true));
        }
        if arguments::is_set(command, arguments::QUIET) {
            return Ok(Self { form: Form::Ids });
        }
        match arguments::text(command, arguments::FORMAT) {
            Some(template) => picked::choose(template).map(|()| Self { form: Form::Lines }),
            None => Ok(Self::new(false)),
        }
    }

    /// True if answers are printed as JSON (`--json`).
    pub(crate) fn is_json(self) -> bool {
        self.form == Form::Json
    }

    /// Prints the answer of the API; a refusal is handed back.
    pub(crate) fn reply(self, reply: Reply) -> Result<(), Failure> {
        if !reply.status.is_success() {
            return Err(Failure::Refused(reply));
        }
        if reply.replayed {
            note("the answer to an earlier request with the same idempotency key");
        }
        self.print(&reply)?;
        match serde_json::from_slice(&reply.body).ok().and_then(|answer| refused_items::failure(&answer)) {
            Some(refused) => Err(refused),
            None => Ok(()),
        }
    }

    fn print(self, reply: &Reply) -> Result<(), Failure> {
        if self.is_json() {
            return raw(&one_document(reply));
        }
        if reply.body.is_empty() {
            note("done");
            return Ok(());
        }
        if !reply.is_json() {
            return foreign(&reply.body);
        }
        match self.form {
            Form::Ids | Form::Lines => match serde_json::from_slice::<Value>(&reply.body) {
                Ok(answer) => self.items(&picked::items(&answer)),
                Err(_) => foreign(&reply.body),
            },
            Form::Tables | Form::Json => match serde_json::from_slice::<Node>(&reply.body) {
                Ok(node) => show(&node),
                Err(_) => foreign(&reply.body),
            },
        }
    }

    /// Prints a line for each item, where that was asked for.
    fn items(self, items: &[&Value]) -> Result<(), Failure> {
        let lines = match self.form {
            Form::Ids => picked::ids(items),
            _ => picked::formatted(items, terminal_width().is_some())?,
        };
        raw(lines.as_bytes())
    }

    /// Prints a resource that did not come from the API.
    pub(crate) fn resource<T: Serialize>(self, resource: &T) -> Result<(), Failure> {
        let text = serde_json::to_string(resource).map_err(io::Error::from)?;
        match self.form {
            Form::Json => return raw(format!("{text}\n").as_bytes()),
            Form::Ids | Form::Lines => {
                let answer = serde_json::from_str(&text).map_err(io::Error::from)?;
                return self.items(&picked::items(&answer));
            }
            Form::Tables => {}
        }
        show(&serde_json::from_str::<Node>(&text).map_err(io::Error::from)?)
    }

    /// Prints a JSON document on one line, or a line for people.
    pub(crate) fn line(self, document: &Value, line: &str) -> Result<(), Failure> {
        let text = if self.is_json() { document.to_string() } else { line.to_owned() };
        raw(format!("{text}\n").as_bytes())
    }

    /// Says why a command failed.
    pub(crate) fn failure(self, failure: &Failure) {
        if failure.is_closed_pipe() {
            return;
        }
        let mut err = anstream::stderr();
        let _ = match failure.cause() {
            Failure::Refused(reply) => write!(err, "{}", refusal::text(reply)),
            other => writeln!(err, "{RED}error:{RED:#} {other}"),
        };
        if let Failure::Advised(_, advice) = failure {
            let _ = writeln!(err, "  {advice}");
        }
        let failure = if matches!(failure, Failure::Advised(..)) { failure.cause() } else { failure };
        if self.is_json() && !matches!(failure, Failure::Unsuccessful(_) | Failure::TimedOut(_) | Failure::Cut(_)) {
            let document = match failure {
                Failure::Refused(reply) if reply.is_json() => one_document(reply),
                Failure::Refused(reply) => error_document(failure.code(), &format!("status {}", reply.status)),
                other => error_document(other.code(), &other.to_string()),
            };
            let _ = raw(&document);
        }
    }
}

/// Prints an answer for people.
fn show(node: &Node) -> Result<(), Failure> {
    let width = terminal_width();
    let Node::Object(members) = node else { return raw(format!("{}\n", node.line()).as_bytes()) };
    let Some(Node::List(items)) = node.member("data").filter(|_| node.member("next_cursor").is_some()) else {
        raw(table::resource(&explanation::in_pairs(members), width).as_bytes())?;
        if masked::is_in(node) {
            note(MASKED);
        }
        return Ok(());
    };
    if items.is_empty() {
        note("nothing");
        return Ok(());
    }
    let mut sheet = Sheet::new(width);
    if show_items(items, &mut sheet)? {
        note(MASKED);
    }
    note_hidden(&sheet);
    if let Some(Node::Text(cursor)) = node.member("next_cursor") {
        note(&format!("there is more: --cursor {cursor}, or --all"));
    }
    Ok(())
}

/// Note below an answer with masked addresses.
const MASKED: &str = "addresses are masked; credentials with the scope pii:read see them";

/// Prints items of a listing for people; returns true if an address among them is masked.
fn show_items(items: &[Node], sheet: &mut Sheet) -> Result<bool, Failure> {
    let text = record::page(items).or_else(|| dialog::page(items)).unwrap_or_else(|| sheet.add(items));
    raw(text.as_bytes())?;
    Ok(items.iter().any(masked::is_in))
}

/// Names the columns that are not shown.
fn note_hidden(sheet: &Sheet) {
    if !sheet.hidden().is_empty() {
        note(&format!("not shown for want of room: {} (see --json)", sheet.hidden().join(", ")));
    }
}

/// Prints what clap says about a command line, and gives the exit code: 0 for help, 2 for nonsense.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // A closed pipe is how `--help | head` ends.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Says something that is not the answer, on standard error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Shows a question on standard error; the answer stands on the same line.
pub(crate) fn prompt(text: &str) {
    let mut err = anstream::stderr();
    let _ = write!(err, "{text}");
    let _ = err.flush();
}

/// A text from outside, such that it cannot steer the terminal.
pub(crate) fn plain_text(text: &str) -> String {
    node::clean(text, ' ')
}

/// Prints bytes as they are.
pub(crate) fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Prints bytes from outside: as they are, but on a terminal such that they cannot steer it.
pub(crate) fn foreign(bytes: &[u8]) -> Result<(), Failure> {
    if is_terminal() { raw(shown(bytes).as_bytes()) } else { raw(bytes) }
}

/// Bytes from outside as lines for a terminal.
fn shown(bytes: &[u8]) -> String {
    let lines = node::clean(&String::from_utf8_lossy(bytes), '\n');
    if lines.is_empty() { lines } else { lines + "\n" }
}

/// The one document of `--json` for an answer.
fn one_document(reply: &Reply) -> Vec<u8> {
    let mut document = if reply.body.is_empty() {
        b"{}".to_vec()
    } else if reply.is_json() {
        reply.body.trim_ascii().to_vec()
    } else {
        let content_type = reply.content_type.as_deref().unwrap_or("application/octet-stream");
        let wrapped = std::str::from_utf8(&reply.body).map_or_else(
            |_| json!({"content_type": content_type, "body_b64": STANDARD.encode(&reply.body)}),
            |text| json!({"content_type": content_type, "body": text}),
        );
        wrapped.to_string().into_bytes()
    };
    document.push(b'\n');
    document
}

fn error_document(code: &str, message: &str) -> Vec<u8> {
    format!("{}\n", json!({"error": {"code": code, "message": message}})).into_bytes()
}

/// Error code, message and field errors of a refusal, on one line.
pub(crate) fn reason(reply: &Reply) -> String {
    let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    refused_items::reason(&answer["error"])
}

/// True if standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// The width of the terminal on standard output; none in a pipe or file, where nothing is cut.
fn terminal_width() -> Option<usize> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(&out).ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0)
}

#[cfg(test)]
mod tests;
