//! One connection: commands in, replies out (RFC 5321 section 4).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use messaging_core::error::Chain;
use messaging_core::ports::inbound::{InboundSink, ReturnAddress};
use smtp_proto::{MAIL_BODY_BINARYMIME, MAIL_REQUIRETLS, Request};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::data::{Collector, Fault};
use super::line::{Incoming, LineError};
use super::report;
use super::server::{InboundOptions, Phase};

/// Replies that are collected before they are sent, in octets.
const MAX_PENDING: usize = 8 * 1024;

/// What is read of a client that is sent away while it is still writing, and how long that may take.
const MAX_DRAINED: usize = 1 << 20;
const DRAINING: Duration = Duration::from_secs(2);

/// Where a session takes place.
pub(super) struct Place {
    pub(super) sink: Arc<dyn InboundSink>,
    pub(super) options: Arc<InboundOptions>,
    /// Letters that may be in memory.
    pub(super) letters: Arc<Semaphore>,
    pub(super) phase: watch::Receiver<Phase>,
}

/// Why a session is over.
#[derive(Debug, thiserror::Error)]
enum End {
    /// The client left, or was told to.
    #[error("the session is over")]
    Done,
    /// The client was told to go while it may still be writing.
    #[error("the client was sent away")]
    SentAway,
    #[error("nothing came in time")]
    TimedOut,
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
}

/// A transaction (RFC 5321 section 3.3): begun by MAIL, it collects recipients.
#[derive(Debug, Default)]
struct Transaction {
    recipients: Vec<ReturnAddress>,
}

/// A client and what it said so far.
pub(super) struct Session<R, W> {
    incoming: Incoming<R>,
    writer: W,
    /// Replies that are not sent yet.
    pending: Vec<u8>,
    place: Place,
    /// Whether the client introduced itself.
    is_known: bool,
    transaction: Option<Transaction>,
    commands: usize,
    errors: usize,
}

impl<R, W> Session<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    pub(super) fn new(reader: R, writer: W, place: Place) -> Self {
        Self {
            incoming: Incoming::new(reader),
            writer,
            pending: Vec::new(),
            place,
            is_known: false,
            transaction: None,
            commands: 0,
            errors: 0,
        }
    }

    /// Talks with the client to the end.
    pub(super) async fn run(mut self) {
        let mut phase = self.place.phase.clone();
        let limit = self.place.options.connection_timeout;
        let talk = timeout(limit, self.talk());
        let ended = tokio::select! {
            ended = talk => ended.unwrap_or(Err(End::TimedOut)),
            // An error means that the server is gone, which is as good.
            _ = phase.wait_for(|phase| *phase == Phase::Aborting) => Ok(()),
        };
        match ended {
            Err(End::SentAway) => {
                // With something unread, closing would take back the reply that says why.
                let _ = self.writer.shutdown().await;
                let _ = timeout(DRAINING, self.incoming.drain(MAX_DRAINED)).await;
            }
            Err(End::TimedOut) => {
                // What was to be said before may have been said in part.
                self.pending.clear();
                let _ = timeout(DRAINING, async {
                    self.reply("421 4.4.2 that took too long");
                    let _ = self.flush().await;
                    self.writer.shutdown().await
                })
                .await;
            }
            Err(error @ End::Broken(_)) => tracing::debug!(%error, "an SMTP session ended"),
            Ok(()) | Err(End::Done) => {
                let _ = timeout(DRAINING, self.writer.shutdown()).await;
            }
        }
    }

    async fn talk(&mut self) -> Result<(), End> {
        self.reply(&format!("220 {} ESMTP for returned mail", self.place.options.hostname));
        loop {
            if !self.incoming.has_line() || self.pending.len() >= MAX_PENDING {
                self.flush().await?;
            }
            let line = match self.next_line().await? {
                Ok(line) => line,
                Err(LineError::Closed) => return Err(End::Done),
                Err(LineError::Broken(error)) => return Err(End::Broken(error)),
                Err(LineError::TooLong) => return self.send_away("500 5.5.2 the line is too long").await,
                Err(LineError::Bare) => return self.send_away("500 5.5.2 lines end with CR and LF").await,
            };
            self.commands += 1;
            if self.commands > self.place.options.max_commands {
                return self.send_away("421 4.7.0 too many commands").await;
            }
            self.obey(line).await?;
            if self.errors >= self.place.options.max_errors {
                return self.send_away("421 4.7.0 too many errors").await;
            }
        }
    }

    /// The next line, unless the server is to stop first.
    async fn next_line(&mut self) -> Result<Result<Vec<u8>, LineError>, End> {
        let limit = self.place.options.command_timeout;
        let mut phase = self.place.phase.clone();
        let line = tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase != Phase::Running) => None,
            line = timeout(limit, self.incoming.line()) => Some(line.map_err(|_| End::TimedOut)?),
        };
        if let Some(line) = line {
            return Ok(line);
        }
        let farewell = format!("421 4.3.2 {} is stopping", self.place.options.hostname);
        self.send_away(&farewell).await?;
        Err(End::Done)
    }

    async fn obey(&mut self, mut line: Vec<u8>) -> Result<(), End> {
        // What follows these is content, which must not be taken for commands.
        if line.get(..4).is_some_and(|verb| verb.eq_ignore_ascii_case(b"BDAT") || verb.eq_ignore_ascii_case(b"BURL")) {
            return self.send_away("502 5.5.1 CHUNKING is not offered").await;
        }
        line.extend_from_slice(b"\r\n");
        let request = match Request::parse(&mut line.iter()) {
            Ok(request) => request.into_owned(),
            Err(error) => {
                self.refuse(malformed(&error));
                return Ok(());
            }
        };
        match request {
            Request::Ehlo { .. } => {
                self.is_known = true;
                self.transaction = None;
                let Place { options, .. } = &self.place;
                let reply = format!(
                    "250-{}\r\n250-PIPELINING\r\n250-SIZE {}\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 ENHANCEDSTATUSCODES",
                    options.hostname, options.max_letter
                );
                self.reply(&reply);
            }
            Request::Helo { .. } => {
                self.is_known = true;
                self.transaction = None;
                self.reply(&format!("250 {}", self.place.options.hostname));
            }
            Request::Mail { from } => {
                if !self.is_known {
                    self.refuse("503 5.5.1 say EHLO first");
                } else if self.transaction.is_some() {
                    self.refuse("503 5.5.1 a transaction has begun");
                } else if from.flags & (MAIL_BODY_BINARYMIME | MAIL_REQUIRETLS) != 0 {
                    self.refuse("555 5.5.4 this parameter is not supported");
                } else if from.size > self.place.options.max_letter {
                    self.refuse("552 5.3.4 the message is too large");
                } else {
                    // Whoever sends may have any name: a daemon of another domain, or none.
                    self.transaction = Some(Transaction::default());
                    self.reply("250 2.1.0 ok");
                }
            }
            Request::Rcpt { to } => self.recipient(&to.address).await?,
            Request::Data => self.content().await?,
            Request::Rset => {
                self.transaction = None;
                self.reply("250 2.0.0 ok");
            }
            Request::Noop { .. } => self.reply("250 2.0.0 ok"),
            Request::Vrfy { .. } => self.reply("252 2.5.2 send some mail and see"),
            Request::Help { .. } => self.reply("214 2.0.0 returned mail only; see RFC 5321"),
            Request::Quit => {
                self.reply("221 2.0.0 bye");
                self.flush().await?;
                return Err(End::Done);
            }
            _ => self.refuse("502 5.5.1 not implemented"),
        }
        Ok(())
    }

    async fn recipient(&mut self, address: &str) -> Result<(), End> {
        let Some(transaction) = &self.transaction else {
            self.refuse("503 5.5.1 say MAIL first");
            return Ok(());
        };
        if transaction.recipients.len() >= self.place.options.max_recipients {
            self.refuse("452 4.5.3 too many recipients");
            return Ok(());
        }
        let limit = self.place.options.command_timeout;
        match timeout(limit, self.place.sink.return_address(address)).await {
            Ok(Ok(Some(known))) => {
                if let Some(transaction) = &mut self.transaction
                    && !transaction.recipients.contains(&known)
                {
                    transaction.recipients.push(known);
                }
                self.reply("250 2.1.5 ok");
            }
            // One answer, whatever is wrong with it.
            Ok(Ok(None)) => self.refuse("550 5.1.1 no such address"),
            Ok(Err(error)) => {
                tracing::error!(error = %Chain(&error), "a return address could not be looked up");
                self.reply("451 4.3.0 try again later");
            }
            Err(_) => self.reply("451 4.3.0 try again later"),
        }
        Ok(())
    }

    async fn content(&mut self) -> Result<(), End> {
        match &self.transaction {
            None => {
                self.refuse("503 5.5.1 say MAIL first");
                return Ok(());
            }
            Some(transaction) if transaction.recipients.is_empty() => {
                self.refuse("554 5.5.1 no valid recipients");
                return Ok(());
            }
            Some(_) => {}
        }
        let options = Arc::clone(&self.place.options);
        let waiting = timeout(options.command_timeout, Arc::clone(&self.place.letters).acquire_owned());
        let Ok(Ok(_in_memory)) = waiting.await else {
            self.transaction = None;
            self.reply("452 4.3.1 too many letters at once, try again later");
            return Ok(());
        };
        self.reply("354 go on, end with a dot");
        self.flush().await?;
        let mut collector = Collector::new(report::MAX_READ, options.max_letter);
        let arrived = timeout(options.content_timeout, self.incoming.content(&mut collector));
        let transaction = self.transaction.take().unwrap_or_default();
        match arrived.await.map_err(|_| End::TimedOut)? {
            Ok(Ok(())) => {
                let reply = self.take_note(transaction, collector.into_kept()).await;
                self.reply(reply);
            }
            Ok(Err(Fault::TooLarge)) => self.refuse("552 5.3.4 the message is too large"),
            Ok(Err(Fault::FarTooLarge)) => return self.send_away("552 5.3.4 the message is too large").await,
            // Whatever follows may be meant for somebody who sees line ends where we see none.
            Ok(Err(Fault::Bare)) => return self.send_away("550 5.6.0 a CR or LF stands alone in the message").await,
            Err(LineError::Broken(error)) => return Err(End::Broken(error)),
            Err(_) => return Err(End::Done),
        }
        Ok(())
    }

    /// Carries out what the mail says, and answers with the reply to the final dot.
    async fn take_note(&self, transaction: Transaction, source: Vec<u8>) -> &'static str {
        const LATER: &str = "451 4.3.0 try again later";
        let reading = tokio::task::spawn_blocking(move || report::read(&source));
        let Ok(report) = reading.await else {
            tracing::error!("reading a mail panicked");
            return LATER;
        };
        let noting = async {
            for to in &transaction.recipients {
                // What one recipient had done to it stays done: when the mail comes again, that has no
                // second effect.
                self.place.sink.receive(to, &report).await?;
            }
            Ok::<_, messaging_core::ports::inbound::InboundError>(())
        };
        match timeout(self.place.options.command_timeout, noting).await {
            Ok(Ok(())) => "250 2.0.0 noted",
            Ok(Err(error)) => {
                tracing::error!(error = %Chain(&error), "a mail had no effect");
                LATER
            }
            Err(_) => LATER,
        }
    }

    fn reply(&mut self, reply: &str) {
        self.pending.extend_from_slice(reply.as_bytes());
        self.pending.extend_from_slice(b"\r\n");
    }

    /// A reply to a command that was wrong; these are counted.
    fn refuse(&mut self, reply: &str) {
        self.errors += 1;
        self.reply(reply);
    }

    async fn flush(&mut self) -> Result<(), End> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let limit = self.place.options.command_timeout;
        let written = timeout(limit, async {
            self.writer.write_all(&self.pending).await?;
            self.writer.flush().await
        });
        written.await.map_err(|_| End::TimedOut)??;
        self.pending.clear();
        Ok(())
    }

    async fn send_away(&mut self, reply: &str) -> Result<(), End> {
        self.reply(reply);
        self.flush().await?;
        Err(End::SentAway)
    }
}

/// The reply to what is no command of ours.
const fn malformed(error: &smtp_proto::Error) -> &'static str {
    match error {
        smtp_proto::Error::UnknownCommand => "500 5.5.2 unknown command",
        smtp_proto::Error::InvalidSenderAddress => "501 5.1.7 not an address",
        smtp_proto::Error::InvalidRecipientAddress => "501 5.1.3 not an address",
        smtp_proto::Error::UnsupportedParameter { .. } => "555 5.5.4 this parameter is not supported",
        smtp_proto::Error::InvalidParameter { .. } => "501 5.5.4 a parameter is wrong",
        _ => "501 5.5.2 the syntax is wrong",
    }
}
