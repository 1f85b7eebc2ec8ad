//! One mail transaction: MAIL, RCPT, DATA (RFC 5321 section 3.3).

use std::time::Duration;

use messaging_core::ports::transport::{Admitted, LastLook, Outcome};
use tokio::time::{Instant, timeout};

use super::Timeouts;
use super::answers::Answers;
use super::content::WireContent;
use super::recipient::Recipient;
use super::reply::{Kind, Reply};
use super::session::Session;
use super::transcript::Transcript;
use super::wire::WireError;

/// Octets of content that are written at a time.
const CHUNK: usize = 64 * 1024;

/// Time limit of all blocks together, in multiples of the limit of one block. A peer that takes its time with every
/// block would otherwise take days.
const BLOCKS: u32 = 10;

/// Time to wait for a reply after the peer has stopped taking the content.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Time limit for putting the transaction on record: the peer waits meanwhile.
const ADMISSION: Duration = Duration::from_mins(1);

/// A mail transaction: its envelope and content in wire form. No address in it can end a command line.
pub(super) struct Transaction<'a> {
    pub(super) host: &'a str,
    pub(super) from: &'a str,
    /// Recipients of the message; the transaction is for those of them that it covers and that have no outcome yet.
    pub(super) recipients: &'a [Recipient],
    /// True if an address here or in the content needs SMTPUTF8.
    pub(super) needs_utf8: bool,
    pub(super) content: &'a WireContent,
    /// Asked for admission before the content leaves.
    pub(super) last_look: &'a LastLook,
}

/// Reason why a transaction broke, and how far it had come.
pub(crate) enum Failure {
    /// The kept connection cannot be used for this transaction: the one before made it unusable.
    Spent,
    /// The peer answered MAIL with 421 and is closing the connection.
    Closing(Reply),
    /// Nothing of the content was sent.
    BeforeContent(WireError),
    /// The content was not sent to its end: the peer cannot have accepted it.
    WithinContent(WireError),
    /// The end of the content was or may have been sent, and no reply came: the peer may have accepted it.
    AfterContent(WireError),
}

/// A session in the middle of a transaction, and the transcript of it.
struct Exchange<'a> {
    session: &'a mut Session,
    timeouts: &'a Timeouts,
    transcript: &'a mut Transcript,
}

impl Exchange<'_> {
    async fn write(&mut self, commands: &str, limit: Duration) -> Result<(), Failure> {
        self.transcript.said(commands);
        let written = self.session.wire.write(commands.as_bytes(), limit).await;
        written.inspect_err(|error| self.transcript.note(error)).map_err(Failure::BeforeContent)
    }

    async fn read(&mut self, limit: Duration) -> Result<Reply, Failure> {
        self.reply(limit).await.map_err(Failure::BeforeContent)
    }

    async fn reply(&mut self, limit: Duration) -> Result<Reply, WireError> {
        let reply = self.session.wire.reply(limit).await;
        match &reply {
            Ok(reply) => self.transcript.heard(reply),
            Err(error) => self.transcript.note(error),
        }
        reply
    }
}

impl Transaction<'_> {
    /// Runs the transaction for its recipients without an outcome in `answers`, of whom there must be at least one. If
    /// it does not break, each has one afterwards, unless only some were admitted: the others then need another
    /// transaction. If it breaks, only those that were refused before have one.
    pub(super) async fn run(
        &self,
        session: &mut Session,
        timeouts: &Timeouts,
        transcript: &mut Transcript,
        answers: &mut Answers,
    ) -> Result<(), Failure> {
        session.transactions += 1;
        let mut exchange = Exchange { session, timeouts, transcript };
        if !self.introduce(&mut exchange, answers).await? {
            return Ok(());
        }
        self.write_content(&mut exchange, answers).await?;
        if !answers.is_transaction_settled() {
            let last = exchange.reply(timeouts.dot).await.map_err(Failure::AfterContent)?;
            exchange.session.is_spent |= last.kind() == Kind::Closing;
            let outcome =
                last.outcome(self.host).ok_or(Failure::AfterContent(WireError::Malformed("3yz after the content")))?;
            if last.kind() == Kind::Closing {
                // The connection closes, so the recipients of later transactions get this outcome too.
                answers.settle(&outcome);
            }
            answers.settle_transaction(&outcome);
        }
        Ok(())
    }

    /// Sends everything up to the content; returns true if the peer waits for the content. The recipients of the
    /// transaction that are then still open are the accepted ones, and each is on record.
    async fn introduce(&self, exchange: &mut Exchange<'_>, answers: &mut Answers) -> Result<bool, Failure> {
        let timeouts = exchange.timeouts;
        let is_pipelined = exchange.session.capabilities.pipelining;
        let open: Vec<usize> = answers.open_in_transaction().collect();
        let mut commands = self.mail(exchange.session);
        if is_pipelined {
            // RFC 2920 section 3.1: DATA is the last command of a group. Every reply is then awaited.
            for &index in &open {
                self.rcpt(&mut commands, index);
            }
            commands.push_str("DATA\r\n");
        }
        exchange.write(&commands, timeouts.mail).await?;

        let reply = exchange.read(timeouts.mail).await?;
        match reply.kind() {
            Kind::Done => {}
            Kind::Closing => return Err(Failure::Closing(reply)),
            Kind::NotNow | Kind::Never | Kind::GoOn => {
                answers.settle_at_mail(&self.outcome(&reply)?);
                if is_pipelined {
                    self.skip_group(exchange, open.len()).await;
                }
                return Ok(false);
            }
        }

        for index in open {
            if !is_pipelined {
                commands.clear();
                self.rcpt(&mut commands, index);
                exchange.write(&commands, timeouts.rcpt).await?;
            }
            let reply = exchange.read(timeouts.rcpt).await?;
            match reply.kind() {
                Kind::Done => {}
                Kind::Closing => {
                    exchange.session.is_spent = true;
                    answers.settle(&self.outcome(&reply)?);
                    return Ok(false);
                }
                Kind::NotNow | Kind::Never | Kind::GoOn => answers.set(index, self.outcome(&reply)?),
            }
        }

        if answers.is_transaction_settled() {
            // No accepted recipient is left for the content.
            exchange.session.needs_reset = true;
            if is_pipelined {
                let end = Instant::now() + timeouts.rest_of_group;
                self.skip_data(exchange, end).await;
            }
            return Ok(false);
        }
        if !is_pipelined {
            if !self.is_admitted(exchange, answers).await {
                exchange.session.needs_reset = true;
                return Ok(false);
            }
            exchange.write("DATA\r\n", timeouts.data).await?;
        }
        let reply = exchange.read(timeouts.data).await?;
        match reply.kind() {
            Kind::GoOn if is_pipelined && !self.is_admitted(exchange, answers).await => {
                // The peer waits for the content, and would take any end of it for a message: only closing the
                // connection avoids that (RFC 5321 section 4.1.1.4).
                exchange.session.is_spent = true;
                Ok(false)
            }
            Kind::GoOn => Ok(true),
            Kind::Done => Err(Failure::BeforeContent(WireError::Malformed("2yz to DATA"))),
            Kind::Closing | Kind::NotNow | Kind::Never => {
                exchange.session.is_spent |= reply.kind() == Kind::Closing;
                exchange.session.needs_reset = true;
                let outcome = self.outcome(&reply)?;
                if reply.kind() == Kind::Closing {
                    answers.settle(&outcome);
                }
                answers.settle_transaction(&outcome);
                Ok(false)
            }
        }
    }

    /// Puts the transaction on record for the accepted recipients; returns `false` if one of them is not admitted,
    /// which then has an outcome.
    async fn is_admitted(&self, exchange: &mut Exchange<'_>, answers: &mut Answers) -> bool {
        let open: Vec<usize> = answers.open_in_transaction().collect();
        let given: Vec<String> = open.iter().map(|&index| self.recipients[index].given.clone()).collect();
        let admitted = timeout(ADMISSION, self.last_look.begin(&given)).await;
        let admitted = admitted.unwrap_or_else(|_| vec![Admitted::Held; given.len()]);
        let refused: Vec<_> = open.into_iter().zip(admitted).filter_map(|(i, it)| Some((i, it.refusal()?))).collect();
        if !refused.is_empty() {
            exchange.transcript.note("not sent: the transaction was not admitted here");
        }
        let is_admitted = refused.is_empty();
        for (index, outcome) in refused {
            answers.set(index, outcome);
        }
        is_admitted
    }

    /// Reads the replies to a group of commands after MAIL was refused. The outcome is known, so an error changes
    /// nothing, and the wait is short: if the replies do not come soon, the connection is given up.
    async fn skip_group(&self, exchange: &mut Exchange<'_>, rcpts: usize) {
        let end = Instant::now() + exchange.timeouts.rest_of_group;
        for _ in 0..rcpts {
            if exchange.read(end.saturating_duration_since(Instant::now())).await.is_err() {
                exchange.session.is_spent = true;
                return;
            }
        }
        self.skip_data(exchange, end).await;
    }

    /// Reads, until `end`, the reply to a DATA that has become pointless. A peer that replies 354 all the same gets a
    /// lone dot (RFC 2920 section 3.1), as it would take anything else as content.
    async fn skip_data(&self, exchange: &mut Exchange<'_>, end: Instant) {
        let left = || end.saturating_duration_since(Instant::now());
        let in_order = match exchange.read(left()).await {
            Ok(reply) if reply.kind() == Kind::GoOn => match exchange.write(".\r\n", left()).await {
                Ok(()) => exchange.read(left()).await.is_ok_and(|reply| reply.kind() != Kind::Closing),
                Err(_) => false,
            },
            Ok(reply) => matches!(reply.kind(), Kind::NotNow | Kind::Never),
            Err(_) => false,
        };
        exchange.session.is_spent |= !in_order;
    }

    /// Writes the content and the dot that ends it; a small content goes in one write.
    async fn write_content(&self, exchange: &mut Exchange<'_>, answers: &mut Answers) -> Result<(), Failure> {
        exchange.transcript.note(format_args!("{} octets of content", self.content.size()));
        let block = exchange.timeouts.block;
        let end = Instant::now() + block * BLOCKS;
        let mut rest = self.content.octets();
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(rest.len().min(CHUNK));
            let limit = block.min(end.saturating_duration_since(Instant::now()));
            if let Err(error) = exchange.session.wire.write(chunk, limit).await {
                exchange.transcript.note(&error);
                // The peer may have got any part of the last chunk, the dot included.
                let is_last = after.is_empty();
                let failure = if is_last { Failure::AfterContent(error) } else { Failure::WithinContent(error) };
                return self.last_words(exchange, answers, failure).await;
            }
            rest = after;
        }
        Ok(())
    }

    /// Reads the reply of a peer that has stopped taking the content: a refusal is an answer, anything else is not.
    async fn last_words(
        &self,
        exchange: &mut Exchange<'_>,
        answers: &mut Answers,
        failure: Failure,
    ) -> Result<(), Failure> {
        exchange.session.is_spent = true;
        let reply = exchange.reply(LAST_WORDS.min(exchange.timeouts.dot)).await.ok();
        match reply.and_then(|reply| reply.outcome(self.host)) {
            Some(outcome) if !outcome.is_accepted() => {
                answers.settle_transaction(&outcome);
                Ok(())
            }
            _ => Err(failure),
        }
    }

    fn mail(&self, session: &Session) -> String {
        let mut command = String::with_capacity(512);
        let capabilities = session.capabilities;
        command.extend(["MAIL FROM:<", self.from, ">"]);
        if capabilities.size {
            command.push_str(" SIZE=");
            command.push_str(&self.content.size().to_string());
        }
        if self.needs_utf8 {
            command.push_str(" SMTPUTF8");
        }
        // Only addresses in the header bring octets above 127, so a peer without 8BITMIME lacks SMTPUTF8 too (RFC 6531
        // section 3.1, item 7) and never gets such content.
        if capabilities.eight_bit && !self.content.is_ascii() {
            command.push_str(" BODY=8BITMIME");
        }
        command.push_str("\r\n");
        command
    }

    fn rcpt(&self, commands: &mut String, index: usize) {
        commands.extend(["RCPT TO:<", &self.recipients[index].wire, ">\r\n"]);
    }

    /// Returns the outcome of a reply that is not the expected one.
    fn outcome(&self, reply: &Reply) -> Result<Outcome, Failure> {
        reply.outcome(self.host).ok_or(Failure::BeforeContent(WireError::Malformed("3yz out of turn")))
    }
}
