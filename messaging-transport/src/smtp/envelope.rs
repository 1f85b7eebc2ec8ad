//! A message before it is known what the peer can do.

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

/// After so long the suppression list is asked again: somebody may have been put on it meanwhile.
const LAST_LOOK_AFTER: Duration = Duration::from_secs(1);

/// Words of a refusal that was decided here.
pub(crate) const DECIDED_HERE: &str = "decided here and not by the peer";

/// One message for one peer: its content, its recipients and their envelope senders.
pub(crate) struct Envelope<'a> {
    /// The recipients this peer serves, each with its envelope sender.
    pub(crate) recipients: &'a [Recipient],
    /// Whether everyone's copy needs SMTPUTF8, because of the sender or an address in the header.
    pub(crate) needs_utf8: bool,
    /// The message.
    pub(crate) content: &'a WireContent,
    /// Asked before each transaction, and told what became of it.
    pub(crate) last_look: &'a LastLook,
    /// When the attempt began.
    pub(crate) since: Instant,
    /// What an answer of this kind of peer means, and whether it was given to MAIL.
    pub(crate) judge: fn(Outcome, bool) -> Outcome,
}

impl Envelope<'_> {
    /// Sends to those who have no outcome yet and whom this peer can carry it to. The others are refused
    /// here, with the codes the peer would have used, in words that say who refuses.
    ///
    /// Those who share an envelope sender share a transaction; one follows the other. When that fails, those whose
    /// transaction it was and those whose turn never came have no outcome.
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

    /// Those who have no outcome yet and share the envelope sender of the first of them.
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

/// A refusal in the peer's stead.
fn refused_here(code: u16, enhanced: &str, why: &str, host: &str) -> Outcome {
    Outcome::refused(Response {
        code: Some(code),
        enhanced: Some(enhanced.to_owned()),
        text: format!("{enhanced} not sent, {DECIDED_HERE}: {why}"),
        host: Some(host.to_owned()),
    })
}
