//! A message before it is known what the peer can do.

use std::time::Duration;

use messaging_core::domain::address::EmailAddress;
use messaging_core::ports::transport::{LastLook, Outcome, Response, TransportError};
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
}

impl Recipient {
    /// Core's types promise that an address cannot end a command; here it is looked at once more.
    pub(crate) fn parse(given: &str) -> Result<Self, TransportError> {
        let address = EmailAddress::parse(given).map_err(|_| malformed())?;
        Ok(Self { given: given.to_owned(), wire: wire_address(&address)? })
    }

    /// The domain in A-labels.
    pub(crate) fn domain(&self) -> &str {
        self.wire.rsplit_once('@').map_or("", |(_, domain)| domain)
    }
}

/// An address as the wire spells it.
pub(crate) fn wire_address(address: &EmailAddress) -> Result<String, TransportError> {
    mime::wire_address(address).ok_or_else(malformed)
}

fn malformed() -> TransportError {
    TransportError::Content("an address of the envelope is malformed".to_owned())
}

/// Who gets what from whom.
pub(crate) struct Letter<'a> {
    /// The envelope sender, as the wire spells it.
    pub(crate) from: &'a str,
    /// The recipients this peer serves.
    pub(crate) recipients: &'a [Recipient],
    /// Whether everyone's copy needs SMTPUTF8, because of the sender or an address in the header.
    pub(crate) needs_utf8: bool,
    /// The message.
    pub(crate) content: &'a WireContent,
    /// Who must not be sent to after all.
    pub(crate) last_look: &'a LastLook,
    /// When the attempt began.
    pub(crate) since: Instant,
}

impl Letter<'_> {
    /// Sends to those who have no outcome yet and whom this peer can carry it to. The others are refused
    /// here, with the codes the peer would have used, in words that say who refuses.
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
        self.look_again(answers).await;
        if self.last_look.is_held() {
            answers.settle(&Outcome::Held);
        }
        if answers.is_complete() {
            match answers.known().last() {
                Some(Outcome::Refused(response)) => transcript.note(&response.text),
                _ => transcript.note("nobody is left to send to"),
            }
            return Ok(());
        }
        let needs_utf8 = self.needs_utf8 || answers.open().any(|index| !self.recipients[index].wire.is_ascii());
        let (from, recipients, content) = (self.from, self.recipients, self.content);
        Transaction { host, from, recipients, needs_utf8, content }.run(session, timeouts, transcript, answers).await
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
    is_refused_at_mail: bool,
}

impl Answers {
    pub(crate) fn new(recipients: usize) -> Self {
        Self { outcomes: vec![None; recipients], is_refused_at_mail: false }
    }

    /// Gives an outcome to everyone who has none: what the peer answered to MAIL, before it knew of any
    /// recipient.
    pub(crate) fn settle_at_mail(&mut self, outcome: &Outcome) {
        self.is_refused_at_mail = true;
        self.settle(outcome);
    }

    /// Whether the peer said no to MAIL.
    pub(crate) const fn is_refused_at_mail(&self) -> bool {
        self.is_refused_at_mail
    }

    /// Replaces outcomes that are known.
    pub(crate) fn revise(&mut self, revised: impl Fn(Outcome) -> Outcome) {
        for outcome in &mut self.outcomes {
            *outcome = outcome.take().map(&revised);
        }
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

    /// Who has none yet.
    pub(crate) fn open(&self) -> impl Iterator<Item = usize> {
        self.outcomes.iter().enumerate().filter(|(_, answer)| answer.is_none()).map(|(index, _)| index)
    }

    /// The outcomes that are known.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().flatten()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.outcomes.iter().all(Option::is_some)
    }

    /// All outcomes in order, when every recipient has one.
    pub(crate) fn into_outcomes(self) -> Vec<Outcome> {
        self.outcomes.into_iter().map(|answer| answer.expect("everyone was settled")).collect()
    }
}
