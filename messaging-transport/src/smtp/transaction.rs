//! One mail transaction: MAIL, RCPT, DATA (RFC 5321 section 3.3).

use std::time::{Duration, Instant};

use messaging_core::ports::transport::Outcome;

use super::Timeouts;
use super::reply::{Kind, Reply};
use super::session::Session;
use super::wire::WireError;

/// How much of the content is written at a time.
const CHUNK: usize = 64 * 1024;

/// How many times the limit of one block all of them may take together. A relay that takes its time
/// with every block would otherwise take days.
const BLOCKS: u32 = 10;

/// How long to look for the reason after the relay stopped taking the content.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Who gets what, as the wire spells it. Nothing in here can end a command line.
pub(super) struct Transaction<'a> {
    pub(super) host: &'a str,
    pub(super) from: &'a str,
    pub(super) recipients: &'a [&'a str],
    /// Whether an address here or in the content needs SMTPUTF8.
    pub(super) needs_utf8: bool,
    /// The message, ending in CRLF.
    pub(super) content: &'a [u8],
}

/// The transaction broke, and how far it had come.
pub(super) enum Failure {
    /// The relay is closing the connection and answered MAIL with that.
    Closing(Reply),
    /// Nothing of the content was sent.
    BeforeContent(WireError),
    /// The content was not sent to its end: the relay cannot have taken it.
    WithinContent(WireError),
    /// The end of the content was sent, or may have been, and no reply came: the relay may have taken it.
    AfterContent(WireError),
}

impl Transaction<'_> {
    /// Runs the transaction; answers one outcome for each recipient, in order.
    pub(super) async fn run(&self, session: &mut Session, timeouts: &Timeouts) -> Result<Vec<Outcome>, Failure> {
        session.transactions += 1;
        let mut answers = self.introduce(session, timeouts).await?;
        if answers.is_complete() {
            return Ok(answers.into_outcomes());
        }
        self.write_content(session, timeouts, &mut answers).await?;
        if !answers.is_complete() {
            let last = session.wire.reply(timeouts.dot).await.map_err(Failure::AfterContent)?;
            session.is_spent |= last.kind() == Kind::Closing;
            let outcome =
                last.outcome(self.host).ok_or(Failure::AfterContent(WireError::Malformed("3yz after the content")))?;
            answers.settle(&outcome);
        }
        Ok(answers.into_outcomes())
    }

    /// Everything up to the content. The recipients that are then still open are the accepted ones, and
    /// the relay waits for the content exactly if there are any.
    async fn introduce(&self, session: &mut Session, timeouts: &Timeouts) -> Result<Answers, Failure> {
        let mut answers = Answers::new(self.recipients.len());
        let is_pipelined = session.capabilities.pipelining;
        let mail = self.mail(session);
        if is_pipelined {
            // RFC 2920 section 3.1: DATA is the last of a group. Every reply is then awaited.
            let rcpts = self.recipients.iter().map(|recipient| rcpt(recipient));
            let group: String = std::iter::once(mail).chain(rcpts).chain(["DATA\r\n".to_owned()]).collect();
            write(session, &group, timeouts.mail).await?;
        } else {
            write(session, &mail, timeouts.mail).await?;
        }

        let reply = read(session, timeouts.mail).await?;
        match reply.kind() {
            Kind::Done => {}
            Kind::Closing => return Err(Failure::Closing(reply)),
            Kind::NotNow | Kind::Never | Kind::GoOn => {
                answers.settle(&self.outcome(&reply)?);
                if is_pipelined {
                    self.skip_group(session, timeouts).await;
                }
                return Ok(answers);
            }
        }

        for (index, recipient) in self.recipients.iter().enumerate() {
            if !is_pipelined {
                write(session, &rcpt(recipient), timeouts.rcpt).await?;
            }
            let reply = read(session, timeouts.rcpt).await?;
            match reply.kind() {
                Kind::Done => {}
                Kind::Closing => {
                    session.is_spent = true;
                    answers.settle(&self.outcome(&reply)?);
                    return Ok(answers);
                }
                Kind::NotNow | Kind::Never | Kind::GoOn => answers.set(index, self.outcome(&reply)?),
            }
        }

        if answers.is_complete() {
            // Nobody is left to send the content to.
            session.needs_reset = true;
            if is_pipelined {
                self.skip_data(session, timeouts).await;
            }
            return Ok(answers);
        }
        if !is_pipelined {
            write(session, "DATA\r\n", timeouts.data).await?;
        }
        let reply = read(session, timeouts.data).await?;
        match reply.kind() {
            Kind::GoOn => {}
            Kind::Done => return Err(Failure::BeforeContent(WireError::Malformed("2yz to DATA"))),
            Kind::Closing | Kind::NotNow | Kind::Never => {
                session.is_spent |= reply.kind() == Kind::Closing;
                session.needs_reset = true;
                answers.settle(&self.outcome(&reply)?);
            }
        }
        Ok(answers)
    }

    /// Reads what a group brings after MAIL was refused. The answer is known, so nothing here is an error.
    async fn skip_group(&self, session: &mut Session, timeouts: &Timeouts) {
        for _ in self.recipients {
            if read(session, timeouts.rcpt).await.is_err() {
                session.is_spent = true;
                return;
            }
        }
        self.skip_data(session, timeouts).await;
    }

    /// Reads the reply to a DATA that has become pointless. A relay that goes on regardless gets a lone
    /// dot (RFC 2920 section 3.1), for it would take anything else as content.
    async fn skip_data(&self, session: &mut Session, timeouts: &Timeouts) {
        let in_order = match read(session, timeouts.data).await {
            Ok(reply) if reply.kind() == Kind::GoOn => match write(session, ".\r\n", timeouts.data).await {
                Ok(()) => read(session, timeouts.dot).await.is_ok_and(|reply| reply.kind() != Kind::Closing),
                Err(_) => false,
            },
            Ok(reply) => matches!(reply.kind(), Kind::NotNow | Kind::Never),
            Err(_) => false,
        };
        session.is_spent |= !in_order;
    }

    /// Writes the content with its dots stuffed (RFC 5321 section 4.5.2), and the dot that ends it.
    async fn write_content(
        &self,
        session: &mut Session,
        timeouts: &Timeouts,
        answers: &mut Answers,
    ) -> Result<(), Failure> {
        let end = Instant::now() + timeouts.block * BLOCKS;
        let limit = || timeouts.block.min(end.saturating_duration_since(Instant::now()));
        let mut chunk = Vec::with_capacity(self.content.len().min(CHUNK) + 2048);
        for line in self.content.split_inclusive(|&byte| byte == b'\n') {
            if line.first() == Some(&b'.') {
                chunk.push(b'.');
            }
            chunk.extend_from_slice(line);
            if chunk.len() >= CHUNK {
                if let Err(error) = session.wire.write(&chunk, limit()).await {
                    return self.last_words(session, timeouts, answers, Failure::WithinContent(error)).await;
                }
                chunk.clear();
            }
        }
        chunk.extend_from_slice(b".\r\n");
        match session.wire.write(&chunk, limit()).await {
            Ok(()) => Ok(()),
            // How much of this reached the relay is unknown, so the dot may have.
            Err(error) => self.last_words(session, timeouts, answers, Failure::AfterContent(error)).await,
        }
    }

    /// A relay that stops reading may have said why: a refusal is an answer, anything else is not.
    async fn last_words(
        &self,
        session: &mut Session,
        timeouts: &Timeouts,
        answers: &mut Answers,
        failure: Failure,
    ) -> Result<(), Failure> {
        session.is_spent = true;
        match session.wire.reply(LAST_WORDS.min(timeouts.dot)).await.ok().and_then(|reply| reply.outcome(self.host)) {
            Some(outcome @ (Outcome::Deferred(_) | Outcome::Refused(_))) => {
                answers.settle(&outcome);
                Ok(())
            }
            _ => Err(failure),
        }
    }

    fn mail(&self, session: &Session) -> String {
        let size = if session.capabilities.size { format!(" SIZE={}", self.content.len()) } else { String::new() };
        let utf8 = if self.needs_utf8 { " SMTPUTF8" } else { "" };
        format!("MAIL FROM:<{}>{size}{utf8}\r\n", self.from)
    }

    /// What a reply means that is not the expected one.
    fn outcome(&self, reply: &Reply) -> Result<Outcome, Failure> {
        reply.outcome(self.host).ok_or(Failure::BeforeContent(WireError::Malformed("3yz out of turn")))
    }
}

fn rcpt(recipient: &str) -> String {
    format!("RCPT TO:<{recipient}>\r\n")
}

async fn write(session: &mut Session, text: &str, limit: Duration) -> Result<(), Failure> {
    session.wire.write(text.as_bytes(), limit).await.map_err(Failure::BeforeContent)
}

async fn read(session: &mut Session, limit: Duration) -> Result<Reply, Failure> {
    session.wire.reply(limit).await.map_err(Failure::BeforeContent)
}

/// The recipients' outcomes as they become known.
struct Answers(Vec<Option<Outcome>>);

impl Answers {
    fn new(recipients: usize) -> Self {
        Self(vec![None; recipients])
    }

    fn set(&mut self, index: usize, outcome: Outcome) {
        self.0[index] = Some(outcome);
    }

    /// Gives an outcome to everyone who has none.
    fn settle(&mut self, outcome: &Outcome) {
        for open in self.0.iter_mut().filter(|answer| answer.is_none()) {
            *open = Some(outcome.clone());
        }
    }

    fn is_complete(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    fn into_outcomes(self) -> Vec<Outcome> {
        self.0.into_iter().flatten().collect()
    }
}
