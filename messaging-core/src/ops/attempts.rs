//! `GET /messages/{id}/attempts`: what was said on the wire.

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::address;
use crate::domain::attempt::{AttemptOutcome, MessageAttempt};
use crate::domain::channel::Channel;
use crate::error::Error;
use crate::ops::context::Context;
use crate::ops::input::{Empty, PageQuery};
use crate::ops::messages::MessagePath;
use crate::ops::operation::{Call, Operation};
use crate::ops::page::Page;
use crate::scope::{Access, Scope};
use crate::time::Timestamp;

/// The dialog with one peer during an attempt to deliver a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessageAttempt")]
pub struct AttemptReport {
    /// Which attempt of the message; one attempt may talk to several peers.
    pub attempt: u32,
    /// When it ended.
    pub at: Timestamp,
    /// The host that was talked to.
    pub mx: Option<String>,
    /// Its address and port.
    pub remote_addr: Option<String>,
    /// The version of TLS; null in plain text.
    pub tls: Option<String>,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// `> ` what we said, `< ` what the peer said, `* ` what happened otherwise. Never content; addresses
    /// are masked without `pii:read`.
    pub transcript: Vec<String>,
}

impl AttemptReport {
    fn of(attempt: MessageAttempt, clear: bool) -> Self {
        let dialog = attempt.dialog;
        let shown = |line: String| if clear { line } else { mask_line(&line) };
        Self {
            attempt: attempt.attempt,
            at: attempt.at,
            mx: dialog.mx,
            remote_addr: dialog.remote_addr,
            tls: dialog.tls,
            outcome: dialog.outcome,
            transcript: dialog.transcript.into_iter().map(shown).collect(),
        }
    }
}

/// Masks every address in a line (contract section 2.4).
fn mask_line(line: &str) -> String {
    let is_edge = |c: char| c.is_whitespace() || "<>()[]\"',;:=".contains(c);
    let mut masked = String::with_capacity(line.len());
    for piece in line.split_inclusive(is_edge) {
        let (word, edge) = match piece.char_indices().next_back() {
            Some((at, last)) if is_edge(last) => piece.split_at(at),
            _ => (piece, ""),
        };
        if word.contains('@') {
            masked.push_str(&address::mask(Channel::Email, word));
        } else {
            masked.push_str(word);
        }
        masked.push_str(edge);
    }
    masked
}

/// `GET /messages/{id}/attempts`
pub struct ListAttempts;

impl Operation for ListAttempts {
    const ID: &'static str = "listMessageAttempts";
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/messages/{id}/attempts";
    const ACCESS: Access = Access::Scope(Scope::MessagesSend);
    const SUCCESS: StatusCode = StatusCode::OK;
    const CLI: &'static str = "message attempts";
    const SUMMARY: &'static str = "Show what was said on the wire, newest first; kept for 30 days";
    type Path = MessagePath;
    type Query = PageQuery;
    type Body = Empty;
    type Output = Page<AttemptReport>;

    async fn run(cx: &mut Context<'_>, call: Call<Self>) -> Result<Page<AttemptReport>, Error> {
        let workspace = cx.workspace()?;
        let message = cx.store().message(workspace, call.path.id).await?.ok_or(Error::NotFound)?;
        let slice = cx.store().attempts(workspace, message.id, cx.page(&call.query)?).await?;
        let clear = cx.sees_addresses();
        Ok(cx.answer_page(slice, |attempt| AttemptReport::of(attempt, clear)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        assert_eq!(mask_line(line), expected);
    }

    #[test]
    fn addresses_in_lines_are_masked() {
        check("> RCPT TO:<ann@example.com> NOTIFY=NEVER", "> RCPT TO:<a***@example.com> NOTIFY=NEVER");
        check("< 550 5.1.1 ann@example.com: no such user", "< 550 5.1.1 a***@example.com: no such user");
        check("< 250 2.1.5 \"b@c.de\"", "< 250 2.1.5 \"***@c.de\"");
        check("< 250 ok", "< 250 ok");
        check("", "");
        check("@", "***@");
    }
}
