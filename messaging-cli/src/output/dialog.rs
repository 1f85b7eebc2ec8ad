//! Prints delivery attempts as SMTP dialogs, one line for each command and reply.

use super::node::{Node, clean};

/// Attempts as dialogs; `None` when a row has no transcript. `C:` marks what the client sent and `S:` what the server
/// sent.
pub(super) fn page(rows: &[Node]) -> Option<String> {
    let mut text = String::new();
    for row in rows {
        let Node::List(transcript) = row.member("transcript")? else { return None };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&head(row)?);
        text.push('\n');
        for line in transcript {
            let Node::Text(line) = line else { return None };
            text.push_str("  ");
            text.push_str(&spoken(line));
            text.push('\n');
        }
    }
    Some(text)
}

/// `attempt 1  2026-01-31T09:15:02.000Z  mx.example.net (192.0.2.1:25)  TLSv1.3  delivered`
fn head(row: &Node) -> Option<String> {
    let text = |name: &str| match row.member(name) {
        Some(Node::Text(text)) => Some(clean(text, ' ')),
        _ => None,
    };
    let peer = match (text("mx"), text("remote_addr")) {
        (Some(mx), Some(address)) => Some(format!("{mx} ({address})")),
        (mx, address) => mx.or(address),
    };
    let attempt = Some(format!("attempt {}", text("attempt")?));
    let outcome = row.member("outcome").map(Node::line);
    let parts = [attempt, text("at"), peer, text("tls"), outcome];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join("  "))
}

/// A line of the transcript with its speaker. `*` marks events that were not sent, such as a connection or the start of
/// TLS.
fn spoken(line: &str) -> String {
    let (who, rest) = match line.split_at_checked(2) {
        Some(("> ", rest)) => ("C:", rest),
        Some(("< ", rest)) => ("S:", rest),
        Some(("* ", rest)) => ("*:", rest),
        _ => return clean(line, ' '),
    };
    format!("{who} {}", clean(rest, ' '))
}
