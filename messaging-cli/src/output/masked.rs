//! Recognizes masked addresses in an answer (contract section 2.4): `a***@example.com`, `+*******4567`.

use super::node::Node;

/// Returns true if a value holds a masked address.
pub(super) fn is_in(node: &Node) -> bool {
    match node {
        Node::Null => false,
        Node::Text(text) => text.contains("***@") || text.split_whitespace().any(is_masked_phone),
        Node::List(items) => items.iter().any(is_in),
        Node::Object(members) => members.iter().any(|(_, value)| is_in(value)),
    }
}

/// Returns true if a word is a masked phone number: a plus sign, stars, and the last four digits.
fn is_masked_phone(word: &str) -> bool {
    let Some(rest) = word.strip_prefix('+') else { return false };
    let digits = rest.trim_start_matches('*');
    digits.len() < rest.len() && digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
}
