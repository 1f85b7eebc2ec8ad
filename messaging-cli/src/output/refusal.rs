//! A refusal of the API for people.

use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Style};
use serde_json::{Map, Value};

use super::node::clean;
use crate::command::spoken::{self, in_commands};
use crate::reply::Reply;

/// The terminal style of the word "error".
pub(super) const RED: Style = AnsiColor::Red.on_default().bold();

/// A refusal for people: the message, then each broken rule on a separate line.
pub(super) fn text(reply: &Reply) -> String {
    // Text from outside must not steer the terminal.
    let body = for_people(serde_json::from_slice(&reply.body).unwrap_or_default());
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
        let next = next_command(details);
        let is_told = |name: &str| next.is_some() && ["operation", "path"].contains(&name);
        for (name, value) in details.iter().filter(|(name, _)| !is_told(name)) {
            let _ = writeln!(text, "  {name}: {}", plain(value));
        }
        if let Some(command) = next {
            let _ = writeln!(text, "  next: {command}");
        }
    }
    if let Some(wait) = reply.retry_after.as_deref() {
        let _ = writeln!(text, "  try again in {wait} s");
    }
    if let Some(id) = error["request_id"].as_str() {
        let _ = writeln!(text, "  request {id}");
    }
    text
}

/// The command of the operation that the details of a refusal advise.
fn next_command(details: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| details.get(name).and_then(Value::as_str);
    spoken::command_of(text("operation")?, text("path")?)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// A value whose texts are plain and name commands where the API names requests.
fn for_people(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(in_commands(&clean(&text, ' '))),
        Value::Array(items) => items.into_iter().map(for_people).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, member)| (clean(&name, ' '), for_people(member))).collect()
        }
        other => other,
    }
}
