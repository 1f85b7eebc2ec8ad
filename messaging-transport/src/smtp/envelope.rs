//! A message before it is known what the peer can do.

use std::time::Duration;

use messaging_core::domain::address::EmailAddress;
use messaging_core::ports::transport::{Email, LastLook, Outcome, Outgoing, Response, TransportError};
use tokio::time::Instant;

use super::Timeouts;
use super::content::WireContent;
use super::session::Session;
use super::transaction::{Failure, Transaction};
use super::transcript::Transcript;
use crate::mime;

/// After so long the suppression list is asked again: somebody may have been put on it meanwhile.
const LAST_LOOK_AFTER: Duration = Duration::from_secs(1);

/// One recipient of the envelope.
pub(crate) struct Recipient {
    /// As core gave it.
    pub(crate) given: String,
    /// As the wire spells it. Nothing in here can end a command line.
    pub(crate) wire: String,
    /// The envelope sender of its copy, spelled the same way.
    pub(crate) from: String,
}

impl Recipient {
    /// The recipients of a message. Core's types promise that an address cannot end a command; here it is looked at
    /// once more.
    pub(crate) fn all(outgoing: &Outgoing, email: &Email) -> Result<Vec<Self>, TransportError> {
        let parse = |(index, given): (usize, &String)| {
            let address = EmailAddress::parse(given).map_err(|_| malformed())?;
            let from = email.envelope_from.of(index).ok_or_else(malformed)?;
            Ok(Self { given: given.clone(), wire: wire_address(&address)?, from: wire_address(from)? })
        };
        outgoing.recipients.iter().enumerate().map(parse).collect()
    }

    /// The domain in A-labels.
    pub(crate) fn domain(&self) -> &str {
        self.wire.rsplit_once('@').map_or("", |(_, domain)| domain)
    }
}

/// An address as the wire spells it.
fn wire_address(address: &EmailAddress) -> Result<String, TransportError> {
    mime::wire_address(address).ok_or_else(malformed)
}

fn malformed() -> TransportError {
    TransportError::Content("an address of the envelope is malformed".to_owned())
}

/// Who gets what from whom.
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
            if transactions > 0 && !session.reset(timeouts).await {
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
                Some(Outcome::Refused(response)) => transcript.note(&response.text),
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
    Outcome::Refused(Response {
        code: Some(code),
        enhanced: Some(enhanced.to_owned()),
        text: format!("{enhanced} not sent, decided here and not by the peer: {why}"),
        host: Some(host.to_owned()),
    })
}

/// The recipients' outcomes as they become known.
pub(crate) struct Answers {
    outcomes: Vec<Option<Outcome>>,
    /// Places of the recipients of the transaction that is under way.
    transaction: Vec<usize>,
    is_refused_at_mail: bool,
}

impl Answers {
    pub(crate) fn new(recipients: usize) -> Self {
        Self { outcomes: vec![None; recipients], transaction: Vec::new(), is_refused_at_mail: false }
    }

    /// Gives an outcome to everyone who has none: what the peer answered to MAIL, before it knew of any
    /// recipient.
    pub(crate) fn settle_at_mail(&mut self, outcome: &Outcome) {
        self.is_refused_at_mail = true;
        self.settle(outcome);
    }

    pub(crate) fn set(&mut self, index: usize, outcome: Outcome) {
        self.outcomes[index] = Some(outcome);
    }

    /// Gives an outcome to everyone who has none.
    pub(crate) fn settle(&mut self, outcome: &Outcome) {
        for open in self.outcomes.iter_mut().filter(|answer| answer.is_none()) {
            *open = Some(outcome.clone());
        }
    }

    /// Gives an outcome to everyone of the transaction who has none.
    pub(crate) fn settle_transaction(&mut self, outcome: &Outcome) {
        for &index in &self.transaction {
            self.outcomes[index].get_or_insert_with(|| outcome.clone());
        }
    }

    /// Who has none yet.
    pub(crate) fn open(&self) -> impl Iterator<Item = usize> {
        self.outcomes.iter().enumerate().filter(|(_, answer)| answer.is_none()).map(|(index, _)| index)
    }

    /// A transaction with these recipients begins.
    fn begin_transaction(&mut self, recipients: Vec<usize>) {
        self.transaction = recipients;
    }

    /// Judges an outcome that has just become known; answers what it is from now on.
    fn judge(&mut self, index: usize, judge: fn(Outcome, bool) -> Outcome) -> Option<&Outcome> {
        let known = self.outcomes[index].take()?;
        Some(self.outcomes[index].insert(judge(known, self.is_refused_at_mail)))
    }

    /// Who of the transaction has none yet.
    pub(super) fn open_in_transaction(&self) -> impl Iterator<Item = usize> {
        self.transaction.iter().copied().filter(|&index| self.outcomes[index].is_none())
    }

    /// The outcomes that are known.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().flatten()
    }

    /// Whether everyone of the transaction has one.
    pub(super) fn is_transaction_settled(&self) -> bool {
        self.open_in_transaction().next().is_none()
    }

    /// All outcomes in order, when every recipient has one.
    pub(crate) fn into_outcomes(self) -> Vec<Outcome> {
        self.outcomes.into_iter().map(|answer| answer.expect("everyone was settled")).collect()
    }
}
