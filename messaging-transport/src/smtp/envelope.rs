//! A message for one peer, before the peer's capabilities are known.

use std::time::Duration;

use messaging_core::ports::transport::{Answer, LastLook, Outcome, Response};
use tokio::time::Instant;

use super::Timeouts;
use super::answers::Answers;
use super::content::WireContent;
use super::recipient::Recipient;
use super::session::Session;
use super::transaction::{Failure, Transaction};
use super::transcript::Transcript;

/// Time after which the suppression list is read again: an address may have been added meanwhile.
const LAST_LOOK_AFTER: Duration = Duration::from_secs(1);

/// Text of a refusal that was decided here.
pub(crate) const DECIDED_HERE: &str = "decided here and not by the peer";

/// One message for one peer: its content, its recipients and their envelope senders.
pub(crate) struct Envelope<'a> {
    /// Recipients that this peer serves, each with its envelope sender.
    pub(crate) recipients: &'a [Recipient],
    /// True if the copy of every recipient needs SMTPUTF8, because of the sender or an address in the header.
    pub(crate) needs_utf8: bool,
    /// The content of the message.
    pub(crate) content: &'a WireContent,
    /// Asked before each transaction, and told its outcome.
    pub(crate) last_look: &'a LastLook,
    /// Start of the attempt.
    pub(crate) since: Instant,
    /// Judges an outcome by the kind of peer; the flag is true for the answer to MAIL.
    pub(crate) judge: fn(Outcome, bool) -> Outcome,
}

impl Envelope<'_> {
    /// Sends to the recipients without an outcome that this peer can serve. The others are refused here, with the codes
    /// that the peer would have used, in words that say who refuses.
    ///
    /// Recipients with the same envelope sender share a transaction; one transaction follows the other. If one fails,
    /// its recipients and those of later ones may be left without an outcome.
    pub(crate) async fn send(
        &self,
        session: &mut Session,
        host: &str,
        timeouts: &Timeouts,
        transcript: &mut Transcript,
        answers: &mut Answers,
    ) -> Result<(), Failure> {
        let capabilities = session.capabilities;
        if capabilities.max_size.is_some_and(|limit| self.content.size() > limit) {
            // RFC 1870 section 6.1.
            answers.settle(&refused_here(552, "5.3.4", "the message is larger than the peer accepts", host));
        } else if self.needs_utf8 && !capabilities.smtp_utf8 {
            // RFC 6531 section 3.5.
            answers.settle(&refused_here(550, "5.6.7", "the message needs SMTPUTF8, which the peer lacks", host));
        } else if !capabilities.smtp_utf8 {
            for index in answers.open().filter(|&index| !self.recipients[index].wire.is_ascii()).collect::<Vec<_>>() {
                let outcome = refused_here(553, "5.6.7", "the address needs SMTPUTF8, which the peer lacks", host);
                answers.set(index, outcome);
            }
        }
        let mut transactions = 0;
        loop {
            self.look_again(answers).await;
            if self.last_look.is_held() {
                answers.settle(&Outcome::Held);
            }
            let Some(group) = self.next_group(answers) else { break };
            if transactions > 0 && (session.is_full() || !session.reset(timeouts).await) {
                return Err(Failure::Spent);
            }
            transactions += 1;
            let (from, recipients, content) = (self.recipients[group[0]].from.as_str(), self.recipients, self.content);
            let needs_utf8 = self.needs_utf8 || group.iter().any(|&index| !recipients[index].wire.is_ascii());
            answers.begin_transaction(group);
            let last_look = self.last_look;
            let transaction = Transaction { host, from, recipients, needs_utf8, content, last_look };
            let before: Vec<usize> = answers.open().collect();
            let ran = transaction.run(session, timeouts, transcript, answers).await;
            for index in before {
                if let Some(outcome) = answers.judge(index, self.judge) {
                    last_look.ended(&recipients[index].given, outcome);
                }
            }
            ran?;
        }
        if transactions == 0 {
            match answers.known().last() {
                Some(Outcome::Answered(Answer { class, response, .. })) if !class.is_retried() => {
                    transcript.note(&response.text);
                }
                _ => transcript.note("nobody is left to send to"),
            }
        }
        Ok(())
    }

    /// Returns the recipients without an outcome that share the envelope sender of the first of them.
    fn next_group(&self, answers: &Answers) -> Option<Vec<usize>> {
        let first = &self.recipients[answers.open().next()?].from;
        Some(answers.open().filter(|&index| self.recipients[index].from == *first).collect())
    }

    async fn look_again(&self, answers: &mut Answers) {
        let open: Vec<usize> = answers.open().collect();
        if open.is_empty() || self.since.elapsed() <= LAST_LOOK_AFTER {
            return;
        }
        let given: Vec<String> = open.iter().map(|&index| self.recipients[index].given.clone()).collect();
        for (index, suppressed) in open.into_iter().zip(self.last_look.suppressed(&given).await) {
            if let Some(reason) = suppressed {
                answers.set(index, Outcome::Suppressed(reason));
            }
        }
    }
}

/// Returns a refusal in the peer's stead.
fn refused_here(code: u16, enhanced: &str, why: &str, host: &str) -> Outcome {
    Outcome::refused(Response {
        code: Some(code),
        enhanced: Some(enhanced.to_owned()),
        text: format!("{enhanced} not sent, {DECIDED_HERE}: {why}"),
        host: Some(host.to_owned()),
    })
}
