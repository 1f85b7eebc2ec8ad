//! One SMTP connection of the server: commands in, replies out (RFC 5321 section 4).

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use smtp_proto::Error::{InvalidParameter, UnsupportedParameter};
use smtp_proto::{MAIL_BODY_BINARYMIME, MAIL_REQUIRETLS, Request};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};

use super::auth::{self, Malformed, Mechanism};
use super::data::{Collector, Fault};
use super::handler::{Handler, Reply, Service};
use super::line::{Incoming, LineError};
use super::options::{Phase, SmtpServerOptions};
use super::stream::Stream;

/// Octets of replies that are collected before they are sent.
const MAX_PENDING: usize = 8 * 1024;

/// Maximum number of errors of a client that has yet to sign in.
const MAX_STRANGER_ERRORS: usize = 10;

/// Length of content in octets up to which no room is reserved for it.
const SHORT: usize = 64 * 1024;

/// Time limit of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// Octets read from a client that is sent away while it is still writing, and the time limit for reading them.
const MAX_DRAINED: usize = 1 << 20;
const DRAINING: Duration = Duration::from_secs(2);

/// The surroundings of a session: its service, its options, and the address of the client.
pub(super) struct SessionContext {
    pub(super) service: Arc<dyn Service>,
    pub(super) options: Arc<SmtpServerOptions>,
    /// Places for mails in memory.
    pub(super) letters: Arc<Semaphore>,
    pub(super) phase: watch::Receiver<Phase>,
    /// The address of the client.
    pub(super) client: IpAddr,
}

/// The reason why a session ended.
#[derive(Debug, thiserror::Error)]
enum End {
    /// The client left, or was told to leave.
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

/// Reason why the content of a mail was not received.
enum Unreceived {
    /// The content is malformed or too large.
    Fault(Fault),
    /// There is no room in memory for it.
    NoRoom(Reply),
}

/// Identification of a client so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// It has not introduced itself.
    Unknown,
    /// It has said EHLO or HELO.
    Introduced,
    /// It has signed in with a valid password.
    SignedIn,
}

/// A session with a client, and its state so far.
pub(super) struct Session {
    incoming: Incoming<Stream>,
    /// Replies that are not sent yet.
    pending: Vec<u8>,
    context: SessionContext,
    handler: Box<dyn Handler>,
    has_tls: bool,
    standing: Standing,
    /// True if MAIL has begun a transaction (RFC 5321 section 3.3).
    in_transaction: bool,
    commands: usize,
    errors: usize,
    failed_sign_ins: u32,
    /// Time by which a client must have signed in, on servers that require it.
    strangers_end: Instant,
}

impl Session {
    pub(super) fn new(stream: Stream, context: SessionContext) -> Self {
        Self {
            incoming: Incoming::new(stream),
            pending: Vec::new(),
            handler: context.service.begin(context.client),
            has_tls: false,
            standing: Standing::Unknown,
            in_transaction: false,
            commands: 0,
            errors: 0,
            failed_sign_ins: 0,
            strangers_end: Instant::now() + context.options.stranger_timeout,
            context,
        }
    }

    /// Serves the client until the session ends.
    pub(super) async fn run(mut self) {
        let mut phase = self.context.phase.clone();
        let limit = self.context.options.connection_timeout;
        let talk = timeout(limit, self.talk());
        let ended = tokio::select! {
            ended = talk => ended.unwrap_or(Err(End::TimedOut)),
            // An error means that the server is gone: the session ends as well.
            _ = phase.wait_for(|phase| *phase == Phase::Aborting) => Ok(()),
        };
        match ended {
            Err(End::SentAway) => {
                // Closing the socket with unread input would discard the reply that gives the reason.
                let _ = timeout(DRAINING, async {
                    let _ = self.incoming.stream().shutdown().await;
                    self.incoming.drain(MAX_DRAINED).await;
                })
                .await;
            }
            Err(End::TimedOut) => {
                // Pending replies may have been written in part.
                self.pending.clear();
                let _ = timeout(DRAINING, async {
                    self.reply("421 4.4.2 that took too long");
                    let _ = self.flush().await;
                    self.incoming.stream().shutdown().await
                })
                .await;
            }
            Err(error @ End::Broken(_)) => tracing::debug!(%error, "an SMTP session ended"),
            Ok(()) | Err(End::Done) => {
                let _ = timeout(DRAINING, self.incoming.stream().shutdown()).await;
            }
        }
    }

    async fn talk(&mut self) -> Result<(), End> {
        let SessionContext { options, .. } = &self.context;
        if let (Some(patience), true) = (options.implicit_tls, options.tls.is_some())
            && self.incoming.stream().begins_with_tls(patience).await
        {
            self.begin_tls().await?;
        }
        self.reply(&format!("220 {} {}", self.context.options.hostname, self.handler.greeting()));
        loop {
            if !self.incoming.has_line() || self.pending.len() >= MAX_PENDING {
                self.flush().await?;
            }
            let line = self.line().await?;
            self.commands += 1;
            if self.commands > self.context.options.max_commands {
                return self.send_away("421 4.7.0 too many commands").await;
            }
            self.obey(line).await?;
            let most = self.context.options.max_errors;
            if self.errors >= if self.is_stranger() { most.min(MAX_STRANGER_ERRORS) } else { most } {
                return self.send_away("421 4.7.0 too many errors").await;
            }
        }
    }

    /// Reads the next line. A client that sends malformed or overlong lines is sent away.
    async fn line(&mut self) -> Result<Vec<u8>, End> {
        let refusal = match self.next_line().await? {
            Ok(line) => return Ok(line),
            Err(LineError::Closed) => return Err(End::Done),
            Err(LineError::Broken(error)) => return Err(End::Broken(error)),
            Err(LineError::TooLong) => "500 5.5.2 the line is too long",
            Err(LineError::Bare) => "500 5.5.2 lines end with CR and LF",
        };
        Err(self.send_away(refusal).await.err().unwrap_or(End::SentAway))
    }

    /// Reads the next line, unless the server begins to stop first.
    async fn next_line(&mut self) -> Result<Result<Vec<u8>, LineError>, End> {
        let mut limit = self.context.options.command_timeout;
        if self.is_stranger() {
            limit = limit.min(self.strangers_end.saturating_duration_since(Instant::now()));
        }
        let mut phase = self.context.phase.clone();
        let line = tokio::select! {
            biased;
            _ = phase.wait_for(|phase| *phase != Phase::Running) => None,
            line = timeout(limit, self.incoming.line()) => Some(line.map_err(|_| End::TimedOut)?),
        };
        if let Some(line) = line {
            return Ok(line);
        }
        let farewell = format!("421 4.3.2 {} is stopping", self.context.options.hostname);
        self.send_away(&farewell).await?;
        Err(End::Done)
    }

    /// Returns true if the client has yet to sign in.
    fn is_stranger(&self) -> bool {
        self.handler.wants_sign_in() && self.standing < Standing::SignedIn
    }

    /// Returns true if the client has to begin TLS first: if TLS is available, a password must not cross the network in
    /// clear.
    fn lacks_tls(&self) -> bool {
        self.context.options.tls.is_some() && !self.has_tls
    }

    async fn obey(&mut self, mut line: Vec<u8>) -> Result<(), End> {
        let verb = line.get(..4).map(<[u8]>::to_ascii_uppercase).unwrap_or_default();
        // Content follows these commands, and must not be taken for commands.
        if verb == b"BDAT" || verb == b"BURL" {
            return self.send_away("502 5.5.1 CHUNKING is not offered").await;
        }
        if verb == b"AUTH" && line.get(4).is_none_or(|byte| *byte == b' ') {
            return self.sign_in(&line[4..]).await;
        }
        line.extend_from_slice(b"\r\n");
        let request = match Request::parse(&mut line.iter()) {
            Ok(request) => request.into_owned(),
            Err(error) => {
                // On a submission server the reply reaches a person, and is worded for one.
                let is_address =
                    verb == b"RCPT" && !matches!(error, UnsupportedParameter { .. } | InvalidParameter { .. });
                let strict = is_address && self.handler.wants_sign_in();
                self.refuse(if strict { "553 5.1.3 not an email address" } else { malformed(&error) });
                return Ok(());
            }
        };
        match request {
            Request::Ehlo { .. } => {
                self.introduce();
                let reply = self.extensions();
                self.reply(&reply);
            }
            Request::Helo { .. } => {
                self.introduce();
                self.reply(&format!("250 {}", self.context.options.hostname));
            }
            Request::StartTls => self.start_tls().await?,
            Request::Mail { from } => {
                if self.standing < Standing::Introduced {
                    self.refuse("503 5.5.1 say EHLO first");
                } else if self.is_stranger() && self.lacks_tls() {
                    self.refuse("530 5.7.0 say STARTTLS, then AUTH");
                } else if self.is_stranger() {
                    self.refuse("530 5.7.0 sign in with AUTH first");
                } else if self.in_transaction {
                    self.refuse("503 5.5.1 a transaction has begun");
                } else if from.flags & (MAIL_BODY_BINARYMIME | MAIL_REQUIRETLS) != 0 {
                    self.refuse("555 5.5.4 this parameter is not supported");
                } else if from.size > self.context.options.max_letter {
                    self.refuse("552 5.3.4 the message is too large");
                } else {
                    let reply = in_time(&self.context.options, self.handler.mail(&from.address, from.size)).await;
                    self.in_transaction = reply.is_done();
                    self.say(reply);
                }
            }
            Request::Rcpt { to } => {
                if self.in_transaction {
                    let options = &self.context.options;
                    let address = recipient(&line, &to.address);
                    let reply = in_time(options, self.handler.recipient(address, options.max_recipients)).await;
                    self.say(reply);
                } else {
                    self.refuse("503 5.5.1 say MAIL first");
                }
            }
            Request::Data => self.content().await?,
            Request::Rset => {
                self.end_transaction();
                self.reply("250 2.0.0 ok");
            }
            Request::Noop { .. } => self.reply("250 2.0.0 ok"),
            Request::Vrfy { .. } => self.reply("252 2.5.2 send some mail and see"),
            Request::Help { .. } => self.reply("214 2.0.0 see RFC 5321"),
            Request::Quit => {
                self.reply("221 2.0.0 bye");
                self.flush().await?;
                return Err(End::Done);
            }
            _ => self.refuse("502 5.5.1 not implemented"),
        }
        Ok(())
    }

    fn introduce(&mut self) {
        self.standing = self.standing.max(Standing::Introduced);
        self.end_transaction();
    }

    fn end_transaction(&mut self) {
        self.in_transaction = false;
        self.handler.reset();
    }

    /// Returns the reply to EHLO.
    fn extensions(&self) -> String {
        let options = &self.context.options;
        let mut lines = vec![options.hostname.clone(), "PIPELINING".to_owned(), format!("SIZE {}", options.max_letter)];
        lines.extend(["8BITMIME", "SMTPUTF8"].map(str::to_owned));
        if self.lacks_tls() {
            lines.push("STARTTLS".to_owned());
        } else if self.handler.wants_sign_in() {
            lines.push("AUTH PLAIN LOGIN".to_owned());
        }
        let lines: String = lines.iter().map(|line| format!("250-{line}\r\n")).collect();
        lines + "250 ENHANCEDSTATUSCODES"
    }

    async fn start_tls(&mut self) -> Result<(), End> {
        if self.context.options.tls.is_none() {
            self.refuse("502 5.5.1 not implemented");
        } else if self.has_tls {
            self.refuse("503 5.5.1 TLS has begun");
        } else {
            self.reply("220 2.0.0 begin");
            self.flush().await?;
            self.begin_tls().await?;
        }
        Ok(())
    }

    /// Begins TLS and resets the session as for a client that has said nothing yet (RFC 3207 section 4.2).
    async fn begin_tls(&mut self) -> Result<(), End> {
        let Some(tls) = self.context.options.tls.clone() else { return Ok(()) };
        self.incoming.discard();
        self.incoming.stream().upgrade(tls.config(), HANDSHAKE).await?;
        self.handler = self.context.service.begin(self.context.client);
        self.has_tls = true;
        (self.standing, self.in_transaction) = (Standing::Unknown, false);
        Ok(())
    }

    async fn sign_in(&mut self, arguments: &[u8]) -> Result<(), End> {
        if !self.handler.wants_sign_in() {
            self.refuse("502 5.5.1 not implemented");
        } else if self.standing < Standing::Introduced {
            self.refuse("503 5.5.1 say EHLO first");
        } else if self.lacks_tls() {
            self.refuse("538 5.7.11 say STARTTLS first");
        } else if self.standing == Standing::SignedIn || self.in_transaction {
            self.refuse("503 5.5.1 signed in already");
        } else {
            match self.password(arguments).await? {
                Err(malformed) => self.refuse(malformed),
                Ok(password) => {
                    let reply = in_time(&self.context.options, self.handler.sign_in(&password)).await;
                    if reply.is_done() {
                        self.standing = Standing::SignedIn;
                    }
                    if matches!(reply, Reply::Refused(_)) {
                        return self.hold_back(reply).await;
                    }
                    self.say(reply);
                }
            }
        }
        Ok(())
    }

    /// Replies to a failed sign-in, after a delay that grows with every failure.
    async fn hold_back(&mut self, reply: Reply) -> Result<(), End> {
        self.failed_sign_ins += 1;
        let SessionContext { options, .. } = &self.context;
        let is_last = self.failed_sign_ins >= options.max_failed_sign_ins;
        sleep(options.sign_in_delay * self.failed_sign_ins).await;
        self.say(reply);
        if is_last { self.send_away("421 4.7.0 too many failed sign-ins").await } else { Ok(()) }
    }

    /// Reads the password by the mechanism of an AUTH command.
    async fn password(&mut self, arguments: &[u8]) -> Result<Result<String, Malformed>, End> {
        let (mechanism, first) = match auth::arguments(arguments) {
            Ok(arguments) => arguments,
            Err(malformed) => return Ok(Err(malformed)),
        };
        let question = match mechanism {
            Mechanism::Plain => auth::ASK,
            Mechanism::Login => auth::ASK_USER,
        };
        let first = match first {
            Some(first) => Ok(first),
            None => self.ask(question).await?,
        };
        Ok(match (mechanism, first) {
            (_, Err(malformed)) => Err(malformed),
            (Mechanism::Plain, Ok(response)) => auth::plain_password(&response),
            (Mechanism::Login, Ok(_)) => self.ask(auth::ASK_PASSWORD).await?.and_then(auth::password_of),
        })
    }

    async fn ask(&mut self, question: &str) -> Result<Result<Vec<u8>, Malformed>, End> {
        self.reply(question);
        self.flush().await?;
        Ok(auth::response_of(&self.line().await?))
    }

    async fn content(&mut self) -> Result<(), End> {
        if !self.in_transaction {
            self.refuse("503 5.5.1 say MAIL first");
            return Ok(());
        }
        if !self.handler.has_recipients() {
            self.refuse("554 5.5.1 no valid recipients");
            return Ok(());
        }
        let options = Arc::clone(&self.context.options);
        let waiting = timeout(options.command_timeout, Arc::clone(&self.context.letters).acquire_owned());
        let Ok(Ok(_in_memory)) = waiting.await else {
            self.end_transaction();
            self.reply("452 4.3.1 too many letters at once, try again later");
            return Ok(());
        };
        let limits = match timeout(options.command_timeout, self.handler.data()).await {
            Ok(Ok(limits)) => limits,
            Ok(Err(reply)) => {
                self.end_transaction();
                self.say(reply);
                return Ok(());
            }
            Err(_) => return Err(End::TimedOut),
        };
        self.reply("354 go on, end with a dot");
        self.flush().await?;
        let mut collector = Collector::new(limits.keep, limits.limit.min(options.max_letter));
        let arrived = timeout(options.content_timeout, self.receive(&mut collector)).await;
        let arrived = arrived.map_err(|_| End::TimedOut)?;
        self.in_transaction = false;
        match arrived? {
            Ok(()) => {
                let reply = in_time(&options, self.handler.content(collector.into_kept())).await;
                if reply.is_done() && self.standing == Standing::SignedIn {
                    self.errors = 0;
                }
                self.say(reply);
            }
            Err(Unreceived::Fault(Fault::TooLarge)) => self.refuse("552 5.3.4 the message is too large"),
            Err(Unreceived::Fault(Fault::FarTooLarge)) => {
                return self.send_away("552 5.3.4 the message is too large").await;
            }
            // Input after a bare CR or LF may be meant for a server that sees other line ends.
            Err(Unreceived::Fault(Fault::Bare)) => {
                return self.send_away("550 5.6.0 a CR or LF stands alone in the message").await;
            }
            Err(Unreceived::NoRoom(reply)) => {
                self.say(reply);
                self.flush().await?;
                return Err(End::SentAway);
            }
        }
        self.handler.reset();
        Ok(())
    }

    /// Reads content to its end.
    async fn receive(&mut self, collector: &mut Collector) -> Result<Result<(), Unreceived>, End> {
        let stall = self.context.options.stall_timeout;
        let mut has_room = false;
        loop {
            let outcome = match timeout(stall, self.incoming.content(collector)).await {
                Err(_) => return Err(End::TimedOut),
                Ok(Err(LineError::Broken(error))) => return Err(End::Broken(error)),
                Ok(Err(_)) => return Err(End::Done),
                Ok(Ok(outcome)) => outcome,
            };
            if let Some(outcome) = outcome {
                return Ok(outcome.map_err(Unreceived::Fault));
            }
            if !has_room && collector.len() > SHORT {
                if let Err(reply) = self.handler.make_room().await {
                    return Ok(Err(Unreceived::NoRoom(reply)));
                }
                has_room = true;
            }
        }
    }

    fn reply(&mut self, reply: &str) {
        self.pending.extend_from_slice(reply.as_bytes());
        self.pending.extend_from_slice(b"\r\n");
    }

    /// Replies to a wrong command, and counts the error.
    fn refuse(&mut self, reply: &str) {
        self.errors += 1;
        self.reply(reply);
    }

    fn say(&mut self, reply: Reply) {
        match reply {
            Reply::Done(text) | Reply::Later(text) => self.reply(&text),
            Reply::Refused(text) => self.refuse(&text),
        }
    }

    async fn flush(&mut self) -> Result<(), End> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let limit = self.context.options.command_timeout;
        let written = timeout(limit, async {
            let stream = self.incoming.stream();
            stream.write_all(&self.pending).await?;
            stream.flush().await
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

/// Returns the service's reply, or `TRY_LATER` when the time of a command is over.
async fn in_time(options: &SmtpServerOptions, answer: impl Future<Output = Reply>) -> Reply {
    timeout(options.command_timeout, answer).await.unwrap_or(Reply::TRY_LATER)
}

/// Returns the recipient that a command names. The parser leaves a `postmaster` without a domain (RFC 5321 section
/// 4.5.1) empty.
fn recipient<'a>(line: &[u8], parsed: &'a str) -> &'a str {
    const POSTMASTER: &[u8] = b"<postmaster>";
    let is_named = || line.to_ascii_lowercase().windows(POSTMASTER.len()).any(|part| part == POSTMASTER);
    if parsed.is_empty() && is_named() { "postmaster" } else { parsed }
}

/// Returns the reply to a command that does not parse.
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
