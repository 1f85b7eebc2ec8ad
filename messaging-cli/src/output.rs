//! The only place that writes to standard output.
//!
//! On a terminal or in a pipe people get tables; with `--json` scripts get exactly one JSON document,
//! whatever happens: the API's answer, the API's error, or, when no API could be asked, an error of the
//! same shape (`{"error":{"code":"unreachable","message":"…"}}`). An answer without a body is `{}`, one that
//! is no JSON (an email's source) becomes `{"content_type":…,"body":…}`. Only a command line that cannot be
//! understood at all prints nothing there.

mod dialog;
mod importance;
mod masked;
mod node;
mod record;
mod refusal;
pub(crate) mod rows;
mod table;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};

use self::node::Node;
use self::refusal::RED;
use crate::failure::Failure;
use crate::reply::Reply;

/// How answers are printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    /// Prints JSON or tables.
    pub(crate) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether `--json` was given.
    pub(crate) const fn is_json(self) -> bool {
        self.json
    }

    /// Prints the answer of the API; a refusal is handed back.
    pub(crate) fn reply(self, reply: Reply) -> Result<(), Failure> {
        if !reply.status.is_success() {
            return Err(Failure::Refused(reply));
        }
        if reply.replayed {
            note("the answer to an earlier request with the same idempotency key");
        }
        if self.json {
            return raw(&one_document(&reply));
        }
        if reply.body.is_empty() {
            note("done");
            return Ok(());
        }
        if !reply.is_json() {
            return raw(&reply.body);
        }
        match serde_json::from_slice::<Node>(&reply.body) {
            Ok(node) => show(&node),
            Err(_) => raw(&reply.body),
        }
    }

    /// Prints a resource that did not come from the API.
    pub(crate) fn resource<T: Serialize>(self, resource: &T) -> Result<(), Failure> {
        let text = serde_json::to_string(resource).map_err(io::Error::from)?;
        if self.json {
            return raw(format!("{text}\n").as_bytes());
        }
        show(&serde_json::from_str::<Node>(&text).map_err(io::Error::from)?)
    }

    /// Prints a JSON document on one line, or a line for people.
    pub(crate) fn line(self, document: &Value, line: &str) -> Result<(), Failure> {
        let text = if self.json { document.to_string() } else { line.to_owned() };
        raw(format!("{text}\n").as_bytes())
    }

    /// Says why a command failed.
    pub(crate) fn failure(self, failure: &Failure) {
        if failure.is_closed_pipe() {
            return;
        }
        let mut err = anstream::stderr();
        let told = match failure {
            Failure::Cut(inner) => inner,
            other => other,
        };
        let _ = match told {
            Failure::Refused(reply) => write!(err, "{}", refusal::text(reply)),
            other => writeln!(err, "{RED}error:{RED:#} {other}"),
        };
        if self.json && !matches!(failure, Failure::Unsuccessful(_) | Failure::TimedOut(_) | Failure::Cut(_)) {
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
        raw(table::resource(members, width).as_bytes())?;
        if masked::is_in(node) {
            note(MASKED);
        }
        return Ok(());
    };
    if items.is_empty() {
        note("nothing");
        return Ok(());
    }
    if show_items(items)? {
        note(MASKED);
    }
    if let Some(Node::Text(cursor)) = node.member("next_cursor") {
        note(&format!("there is more: --cursor {cursor}, or --all"));
    }
    Ok(())
}

/// What stands below the first addresses that are shown in part.
const MASKED: &str = "addresses are masked; credentials with the scope pii:read see them";

/// Prints the items of a listing for people; answers whether an address among them is masked.
fn show_items(items: &[Node]) -> Result<bool, Failure> {
    let has_masked = items.iter().any(masked::is_in);
    if let Some(text) = record::page(items).or_else(|| dialog::page(items)) {
        raw(text.as_bytes())?;
        return Ok(has_masked);
    }
    let (text, hidden) = table::page(items, terminal_width());
    raw(text.as_bytes())?;
    if !hidden.is_empty() {
        note(&format!("not shown for want of room: {} (see --json)", hidden.join(", ")));
    }
    Ok(has_masked)
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
