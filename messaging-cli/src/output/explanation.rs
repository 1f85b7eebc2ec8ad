//! Prints the member `explanation` of messages for people: where a message is and why.

use super::node::Node;
use crate::command::spoken;

/// Columns of a listing that show an explanation: its code and its sentence.
pub(super) const COLUMNS: [&str; 2] = ["reason", "explanation"];

/// Name of the member.
const EXPLANATION: &str = "explanation";

/// A text member of an explanation.
fn text(explanation: &Node, member: &str) -> Option<String> {
    match explanation.member(member) {
        Some(Node::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

/// Code and sentence of an explanation, as columns; `None` for another member.
fn split(name: &str, value: &Node) -> Option<[(String, Node); 2]> {
    if name != EXPLANATION {
        return None;
    }
    let [reason, sentence] = COLUMNS.map(ToOwned::to_owned);
    Some([(reason, Node::Text(text(value, "code")?)), (sentence, Node::Text(text(value, "text")?))])
}

/// The row with the explanation replaced by a column for its code and one for its sentence.
pub(super) fn in_columns(row: &Node) -> Node {
    let Node::Object(members) = row else { return row.clone() };
    let mut columns = Vec::with_capacity(members.len() + 1);
    for (name, value) in members {
        match split(name, value) {
            Some(two) => columns.extend(two),
            None => columns.push((name.clone(), value.clone())),
        }
    }
    Node::Object(columns)
}

/// The sentence of a row from [`in_columns`]; `None` if the code is the same as the status.
pub(super) fn more_than_status(row: &Node) -> Option<String> {
    let [reason, sentence] = COLUMNS.map(|column| row.member(column));
    let is_status = reason? == row.member("status")?;
    sentence.filter(|_| !is_status).map(Node::line)
}

/// The members of a resource, with the explanation as pairs: code, sentence, time of the next attempt and cure.
pub(super) fn in_pairs(members: &[(String, Node)]) -> Vec<(String, Node)> {
    let mut pairs = Vec::with_capacity(members.len() + 3);
    for (name, value) in members {
        let Some(two) = split(name, value) else {
            pairs.push((name.clone(), value.clone()));
            continue;
        };
        pairs.extend(two);
        if let Some(at) = text(value, "next_attempt_at") {
            pairs.push(("next_attempt_at".to_owned(), Node::Text(at)));
        }
        pairs.extend(value.member("cure").and_then(cure).map(|cure| ("cure".to_owned(), Node::Text(cure))));
    }
    pairs
}

/// The advice of a cure, and the command that applies it, if there is one.
fn cure(cure: &Node) -> Option<String> {
    let advice = text(cure, "text")?;
    let command = text(cure, "operation").and_then(|operation| {
        let path = text(cure, "path")?;
        Some(spoken::command_of(&operation, &path)? + &flags(cure.member("body")))
    });
    Some(match command {
        Some(command) => format!("{advice}\n{command}"),
        None => advice,
    })
}

/// The text members of a body as flags of the command.
fn flags(body: Option<&Node>) -> String {
    let Some(Node::Object(members)) = body else { return String::new() };
    let flag = |(name, value): &(String, Node)| match value {
        Node::Text(value) => Some(format!(" --{} {value}", name.replace('_', "-"))),
        _ => None,
    };
    members.iter().filter_map(flag).collect()
}
