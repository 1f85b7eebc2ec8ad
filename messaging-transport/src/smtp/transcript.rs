//! Transcript of a dialog with a peer, as it is stored with the message.
//!
//! It never holds content or credentials: the content is one line with its size, a login one line with asterisks.

use std::fmt::Display;
use std::net::SocketAddr;

use messaging_core::domain::delivery::attempt::{
    AttemptOutcome, AttemptTls, Dialog, MAX_LINE, MAX_LINES, TlsVerification,
};
use messaging_core::ports::transport::{Outcome, OutcomeClass};

use super::reply::Reply;

/// Number of lines kept from the beginning when there are too many: the beginning and the end of a dialog say the most.
const HEAD: usize = MAX_LINES * 3 / 4;

const LEFT_OUT: &str = "* further lines are left out here";

/// Dialog with one peer, while it lasts.
pub(crate) struct Transcript {
    host: String,
    remote: Option<SocketAddr>,
    tls: Option<AttemptTls>,
    tls_failure: Option<String>,
    lines: Vec<String>,
}

impl Transcript {
    /// Creates a transcript for a peer.
    pub(crate) fn new(host: &str) -> Self {
        Self { host: host.to_owned(), remote: None, tls: None, tls_failure: None, lines: Vec::with_capacity(16) }
    }

    /// Notes a connection, new or kept from an earlier message.
    pub(crate) fn connected(&mut self, remote: SocketAddr, tls: Option<AttemptTls>, is_reused: bool) {
        self.remote = Some(remote);
        self.tls = tls;
        let kept = if is_reused { "still " } else { "" };
        self.note(format_args!("{kept}connected to {remote}"));
    }

    /// Notes that TLS is used from here on.
    pub(crate) fn secured(&mut self, tls: AttemptTls) {
        self.note(format_args!("{} started", tls.version));
        self.tls = Some(tls);
    }

    /// Notes how the peer was verified.
    pub(crate) fn verified(&mut self, verified: TlsVerification) {
        if let Some(tls) = &mut self.tls {
            tls.verified = verified;
        }
    }

    /// Notes a demand of a policy in testing mode that the peer does not meet.
    pub(crate) fn tls_failed(&mut self, what: &str) {
        self.note(format_args!("{what}; sent all the same, because the policy is in mode testing"));
        self.tls_failure = Some(what.chars().take(MAX_LINE).collect());
    }

    /// Notes commands, each ending in CRLF.
    pub(crate) fn said(&mut self, commands: &str) {
        for command in commands.split_terminator("\r\n") {
            self.push("> ", command);
        }
    }

    /// Notes a reply, line by line as it was received.
    pub(crate) fn heard(&mut self, reply: &Reply) {
        let code = reply.code();
        let mut lines = reply.lines().peekable();
        while let Some(line) = lines.next() {
            let mark = if lines.peek().is_some() { '-' } else { ' ' };
            self.push("< ", &format!("{code}{mark}{line}"));
        }
    }

    /// Notes another event.
    pub(crate) fn note(&mut self, what: impl Display) {
        self.push("* ", &what.to_string());
    }

    /// Returns the dialog; its outcome follows from those of the recipients.
    pub(crate) fn into_dialog(self, outcomes: impl Iterator<Item = impl std::borrow::Borrow<Outcome>>) -> Dialog {
        let mut outcome = AttemptOutcome::Bounced;
        for one in outcomes {
            outcome = match (outcome, one.borrow()) {
                (_, one) if one.is_accepted() => AttemptOutcome::Delivered,
                (AttemptOutcome::Delivered, _) => AttemptOutcome::Delivered,
                (_, one) if one.class() == Some(OutcomeClass::Ambiguous) => AttemptOutcome::Ambiguous,
                (AttemptOutcome::Ambiguous, _) => AttemptOutcome::Ambiguous,
                (_, one) if one.class().is_some_and(OutcomeClass::is_retried) => AttemptOutcome::Deferred,
                (_, Outcome::Held) => AttemptOutcome::Deferred,
                (before, _) => before,
            };
        }
        Dialog {
            mx: (!self.host.is_empty()).then_some(self.host),
            remote_addr: self.remote.map(|remote| remote.to_string()),
            tls: self.tls,
            tls_failure: self.tls_failure,
            source: None,
            outcome,
            transcript: self.lines,
        }
    }

    fn push(&mut self, mark: &str, text: &str) {
        if self.lines.len() == MAX_LINES {
            self.lines.remove(HEAD);
            LEFT_OUT.clone_into(&mut self.lines[HEAD - 1]);
        }
        let mut line = String::with_capacity(mark.len() + text.len().min(MAX_LINE));
        line.push_str(mark);
        let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        line.extend(shown.take(MAX_LINE - mark.len()));
        line.truncate(line.trim_end().len());
        self.lines.push(line);
    }
}

#[cfg(test)]
mod tests {
    use messaging_core::ports::transport::{Acceptance, Response};

    use super::super::reply::Collector;
    use super::*;

    #[test]
    fn a_dialog_reads_as_it_went() {
        let mut transcript = Transcript::new("mx.example.com");
        transcript.connected("192.0.2.1:25".parse().unwrap(), None, false);
        transcript.said("MAIL FROM:<a@b.co>\r\nDATA\r\n");
        let mut collector = Collector::default();
        assert!(collector.push(b"250-a\x07b").unwrap().is_none());
        transcript.heard(&collector.push(b"250").unwrap().unwrap());
        let cipher = Some("TLS_AES_128_GCM_SHA256".to_owned());
        let tls = AttemptTls { version: "TLSv1.3".to_owned(), cipher, verified: TlsVerification::None };
        transcript.secured(tls.clone());
        transcript.verified(TlsVerification::Pkix);
        let dialog = transcript.into_dialog([Outcome::deferred(Response::default())].iter());
        assert_eq!(
            dialog.transcript,
            [
                "* connected to 192.0.2.1:25",
                "> MAIL FROM:<a@b.co>",
                "> DATA",
                "< 250-a b",
                "< 250",
                "* TLSv1.3 started"
            ]
        );
        assert_eq!(
            (dialog.mx.as_deref(), dialog.tls),
            (Some("mx.example.com"), Some(AttemptTls { verified: TlsVerification::Pkix, ..tls }))
        );
        assert_eq!((dialog.remote_addr.as_deref(), dialog.outcome), (Some("192.0.2.1:25"), AttemptOutcome::Deferred));
    }

    #[test]
    fn long_dialogs_keep_their_ends() {
        let mut transcript = Transcript::new("");
        for number in 0..1000 {
            transcript.said(&format!("{number} {}\r\n", "x".repeat(1000)));
        }
        let dialog = transcript.into_dialog(std::iter::empty::<Outcome>());
        assert_eq!(dialog.transcript.len(), MAX_LINES);
        assert!(dialog.transcript.iter().all(|line| line.chars().count() <= MAX_LINE));
        assert!(dialog.transcript[0].starts_with("> 0 "));
        assert_eq!(dialog.transcript[HEAD - 1], LEFT_OUT);
        assert!(dialog.transcript[HEAD].starts_with("> 950 "), "{}", &dialog.transcript[HEAD][..9]);
        assert!(dialog.transcript[MAX_LINES - 1].starts_with("> 999 "));
        assert_eq!(dialog.mx, None);
    }

    #[test]
    fn the_best_outcome_counts() {
        let response = Response::default;
        for (outcomes, expected) in [
            (vec![Outcome::refused(response())], AttemptOutcome::Bounced),
            (vec![Outcome::refused(response()), Outcome::deferred(response())], AttemptOutcome::Deferred),
            (vec![Outcome::ambiguous(response()), Outcome::deferred(response())], AttemptOutcome::Ambiguous),
            (
                vec![Outcome::ambiguous(response()), Outcome::accepted(Acceptance::Delivered, response())],
                AttemptOutcome::Delivered,
            ),
            (
                vec![Outcome::accepted(Acceptance::Delivered, response()), Outcome::refused(response())],
                AttemptOutcome::Delivered,
            ),
        ] {
            assert_eq!(Transcript::new("").into_dialog(outcomes.iter()).outcome, expected, "{outcomes:?}");
        }
    }
}
