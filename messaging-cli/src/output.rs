//! The only place that writes to standard output.
//!
//! On a terminal or in a pipe people get tables; with `--json` scripts get exactly one JSON document,
//! whatever happens: the API's answer, the API's error, or, when no API could be asked, an error of the
//! same shape (`{"error":{"code":"unreachable","message":"…"}}`). An answer without a body is `{}`, one that
//! is no JSON (an email's source) becomes `{"content_type":…,"body":…}`. Only a command line that cannot be
//! understood at all prints nothing there.

mod node;
mod table;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;
use serde_json::{Value, json};

use self::node::Node;
use crate::failure::Failure;
use crate::target::Reply;

const RED: Style = AnsiColor::Red.on_default().bold();

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
            self.note("the answer to an earlier request with the same idempotency key");
        }
        if self.json {
            return write(&one_document(&reply));
        }
        if reply.body.is_empty() {
            self.note("done");
            return Ok(());
        }
        if !reply.is_json() {
            return self.raw(&reply.body);
        }
        match serde_json::from_slice::<Node>(&reply.body) {
            Ok(node) => self.node(&node),
            Err(_) => self.raw(&reply.body),
        }
    }

    /// Prints a resource that did not come from the API.
    pub(crate) fn resource<T: Serialize>(self, resource: &T) -> Result<(), Failure> {
        let text = serde_json::to_string(resource).map_err(io::Error::from)?;
        if self.json {
            return write(format!("{text}\n").as_bytes());
        }
        self.node(&serde_json::from_str::<Node>(&text).map_err(io::Error::from)?)
    }

    /// Prints a JSON document on one line, or a line for people.
    pub(crate) fn line(self, document: &Value, line: &str) -> Result<(), Failure> {
        let text = if self.json { document.to_string() } else { line.to_owned() };
        write(format!("{text}\n").as_bytes())
    }

    /// Prints bytes as they are.
    pub(crate) fn raw(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    /// Says something that is not the answer.
    pub(crate) fn note(self, text: &str) {
        let _ = writeln!(anstream::stderr(), "{text}");
    }

    /// Says why a command failed.
    pub(crate) fn failure(self, failure: &Failure) {
        if let Failure::Output(_) = failure {
            return;
        }
        let mut err = anstream::stderr();
        let _ = match failure {
            Failure::Refused(reply) => write!(err, "{}", refusal(reply)),
            other => writeln!(err, "{RED}error:{RED:#} {other}"),
        };
        if self.json {
            let document = match failure {
                Failure::Refused(reply) if reply.is_json() => one_document(reply),
                Failure::Refused(reply) => error_document(failure.code(), &format!("status {}", reply.status)),
                other => error_document(other.code(), &other.to_string()),
            };
            let _ = write(&document);
        }
    }

    fn node(self, node: &Node) -> Result<(), Failure> {
        let width = terminal_width();
        let Node::Object(members) = node else { return write(format!("{}\n", node.line()).as_bytes()) };
        let Some(Node::List(items)) = node.member("data").filter(|_| node.member("next_cursor").is_some()) else {
            return write(table::resource(members, width).as_bytes());
        };
        if items.is_empty() {
            self.note("nothing");
            return Ok(());
        }
        let (text, hidden) = table::page(items, width);
        write(text.as_bytes())?;
        if !hidden.is_empty() {
            self.note(&format!("not shown for want of room: {} (see --json)", hidden.join(", ")));
        }
        if let Some(Node::Text(cursor)) = node.member("next_cursor") {
            self.note(&format!("there is more: --cursor {cursor}"));
        }
        Ok(())
    }
}

/// Prints what clap says about a command line, and gives the exit code: 0 for help, 2 for nonsense.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // A closed pipe is how `--help | head` ends.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn write(bytes: &[u8]) -> Result<(), Failure> {
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
        let wrapped = match std::str::from_utf8(&reply.body) {
            Ok(text) => json!({"content_type": content_type, "body": text}),
            Err(_) => {
                use base64::Engine as _;
                let text = base64::engine::general_purpose::STANDARD.encode(&reply.body);
                json!({"content_type": content_type, "body_b64": text})
            }
        };
        wrapped.to_string().into_bytes()
    };
    document.push(b'\n');
    document
}

fn error_document(code: &str, message: &str) -> Vec<u8> {
    format!("{}\n", json!({"error": {"code": code, "message": message}})).into_bytes()
}

/// A refusal for people: the sentence, then each broken rule on a line of its own.
fn refusal(reply: &Reply) -> String {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let error = &body["error"];
    let mut text = match (error.as_str(), error["message"].as_str(), error["code"].as_str()) {
        (Some(only), ..) => format!("{RED}error:{RED:#} {only}\n"),
        (_, Some(message), Some(code)) => format!("{RED}error:{RED:#} {message} ({code})\n"),
        _ => format!("{RED}error:{RED:#} status {}\n", reply.status),
    };
    let errors = error["details"]["errors"].as_array();
    let rows: Vec<[&str; 3]> = errors
        .into_iter()
        .flatten()
        .map(|one| {
            let place = one["pointer"].as_str().or_else(|| one["parameter"].as_str()).unwrap_or_default();
            [place, one["code"].as_str().unwrap_or_default(), one["message"].as_str().unwrap_or_default()]
        })
        .collect();
    let widths = [0, 1].map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0));
    for [place, code, message] in &rows {
        text.push_str(format!("  {place:<0$}  {code:<1$}  {message}", widths[0], widths[1]).trim_end());
        text.push('\n');
    }
    if rows.is_empty()
        && let Some(details) = error["details"].as_object()
    {
        for (name, value) in details {
            text.push_str(&format!("  {name}: {value}\n"));
        }
    }
    if let Some(wait) = reply.retry_after.as_deref() {
        text.push_str(&format!("  try again in {wait} s\n"));
    }
    if let Some(id) = error["request_id"].as_str() {
        text.push_str(&format!("  request {id}\n"));
    }
    text
}

/// The width of the terminal on standard output; none in a pipe or file, where nothing is cut.
fn terminal_width() -> Option<usize> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    rustix::termios::tcgetwinsize(&out).ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0)
}
