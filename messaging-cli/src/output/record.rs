//! DNS records for people, who copy them: in full and one below the other, never cut to a column.

use super::node::Node;

/// A record as lines with this indent, if the node is one: it has a type, a host, and a value.
pub(super) fn record(node: &Node, indent: &str) -> Option<String> {
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

/// A page of records, each below what it is for; `None` when the rows are something else.
pub(super) fn page(rows: &[Node]) -> Option<String> {
    let block = |row: &Node| {
        let purpose = row.member("purpose").map(Node::line)?;
        Some(format!("{purpose}\n{}", record(row, "  ")?))
    };
    rows.iter().map(block).collect()
}
