//! DNS records for people, who copy them: in full and one below the other, never cut to a column.

use super::node::Node;

/// A record as lines with this indent, if the node is one: it has a type, a host, and a value, or the values that a
/// change removes and adds.
pub(super) fn record(node: &Node, indent: &str) -> Option<String> {
    if let (Some(action), Some(Node::List(before)), Some(Node::List(after))) =
        (node.member("action"), node.member("before"), node.member("after"))
    {
        return change(node, &action.line(), before, after, indent);
    }
    let text = |name: &str| match node.member(name) {
        Some(Node::Text(_)) => node.member(name).map(Node::line),
        _ => None,
    };
    let (kind, host, value) = (text("type")?, text("host")?, text("value").or_else(|| text("record"))?);
    let need = (text("required").as_deref() == Some("yes")).then(|| "required".to_owned());
    let head: Vec<_> = [Some(kind), Some(host), text("status"), need].into_iter().flatten().collect();
    let detail = text("detail").map(|detail| format!("{indent}  ({detail})\n")).unwrap_or_default();
    Some(format!("{indent}{}\n{indent}  {value}\n{detail}", head.join("  ")))
}

/// A change of records: kept values without a mark, removed ones with `-`, added ones with `+`.
fn change(node: &Node, action: &str, before: &[Node], after: &[Node], indent: &str) -> Option<String> {
    let text = |name: &str| node.member(name).map(Node::line);
    let state = match (action, text("done").as_deref()) {
        ("create" | "update", Some("yes")) => "done",
        ("create" | "update", _) => "not written",
        _ => "",
    };
    let seen = node.member("read_back").and_then(|read| read.member("status")).map(Node::line);
    let verified = seen.filter(|status| status == "verified").unwrap_or_default();
    let head = [action.to_owned(), text("type")?, text("host")?, state.to_owned(), verified];
    let head: Vec<_> = head.into_iter().filter(|part| !part.is_empty()).collect();
    let (before, after): (Vec<_>, Vec<_>) =
        (before.iter().map(Node::line).collect(), after.iter().map(Node::line).collect());
    let gone = before.iter().map(|value| (if after.contains(value) { ' ' } else { '-' }, value));
    let new = after.iter().filter(|value| !before.contains(value)).map(|value| ('+', value));
    let values = gone.chain(new).map(|(mark, value)| format!("{indent}  {mark} {value}\n")).collect::<String>();
    let notes = remark(node).into_iter().chain(read_back(node));
    let notes: String = notes.map(|note| format!("{indent}    ({note})\n")).collect();
    Some(format!("{indent}{}\n{values}{notes}", head.join("  ")))
}

/// The `detail` of an object, if it has one.
fn remark(node: &Node) -> Option<String> {
    node.member("detail").filter(|detail| matches!(detail, Node::Text(_))).map(Node::line)
}

/// Returns the lines about a change as the DNS shows it: every server that has something else, and why no name server
/// was heard.
fn read_back(node: &Node) -> Vec<String> {
    let Some(read) = node.member("read_back") else { return Vec::new() };
    let difference = |one: &Node| {
        let server = match one.member("server") {
            Some(Node::Text(_)) => one.member("server").map(Node::line).unwrap_or_default(),
            _ => "the resolver".to_owned(),
        };
        let values = match one.member("values") {
            Some(Node::List(values)) if !values.is_empty() => {
                values.iter().map(Node::line).collect::<Vec<_>>().join(", ")
            }
            _ => "nothing".to_owned(),
        };
        format!("{server} shows {values}")
    };
    let differences: Vec<_> = match read.member("differences") {
        Some(Node::List(differences)) => differences.iter().map(difference).collect(),
        _ => Vec::new(),
    };
    differences.into_iter().chain(remark(read)).collect()
}

/// A page of records, each below its purpose; `None` if the rows are something else.
pub(super) fn page(rows: &[Node]) -> Option<String> {
    let block = |row: &Node| {
        let purpose = row.member("purpose").map(Node::line)?;
        Some(format!("{purpose}\n{}", record(row, "  ")?))
    };
    rows.iter().map(block).collect()
}
