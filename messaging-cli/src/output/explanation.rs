//! What the API tells about where a message is, for people: the member `explanation` of messages.

use super::node::Node;
use crate::command::spoken;

/// The columns that an explanation becomes.
pub(super) const COLUMNS: [&str; 2] = ["reason", "explanation"];

/// The member that explains.
const EXPLANATION: &str = "explanation";

/// A text of an explanation.
fn text(explanation: &Node, member: &str) -> Option<String> {
    match explanation.member(member) {
        Some(Node::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

/// What a member of a row becomes: of an explanation its code and its sentence, of others what they are.
fn split(name: &str, value: &Node) -> Option<[(String, Node); 2]> {
    if name != EXPLANATION {
        return None;
    }
    let [reason, sentence] = COLUMNS.map(ToOwned::to_owned);
    Some([(reason, Node::Text(text(value, "code")?)), (sentence, Node::Text(text(value, "text")?))])
}

/// A row with a column each for the reason and the sentence.
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

/// The sentence of a row of such columns, where it says more than the row's status.
pub(super) fn more_than_status(row: &Node) -> Option<String> {
    let [reason, sentence] = COLUMNS.map(|column| row.member(column));
    let is_status = reason? == row.member("status")?;
    sentence.filter(|_| !is_status).map(Node::line)
}

/// The members of a resource, an explanation as pairs of its own with what can be done.
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

/// What can be done: the advice, and the command where one does it.
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

/// The plain members of a body as flags.
fn flags(body: Option<&Node>) -> String {
    let Some(Node::Object(members)) = body else { return String::new() };
    let flag = |(name, value): &(String, Node)| match value {
        Node::Text(value) => Some(format!(" --{} {value}", name.replace('_', "-"))),
        _ => None,
    };
    members.iter().filter_map(flag).collect()
}
