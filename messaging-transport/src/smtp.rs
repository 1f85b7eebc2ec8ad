//! The provider `smtp`: a relay that the workspace has an account at.
//!
//! The settings are `{"host","port","username"?,"password"?,"tls"?}` with `tls` one of `starttls` (the
//! default), `tls` (the default on port 465) and `none`. With the first two the certificate must be
//! valid for the host, or nothing is sent: there is no falling back to plain text. With `none`, which
//! has to be asked for, everything goes in plain text, the password too; it is meant for relays on the
//! same machine or network.
//!
//! Several messages share a connection, commands are pipelined where the relay allows it (RFC 2920),
//! and every wait is bounded (see [`Timeouts`]). Addresses, credentials and contents are never logged.
//!
//! What a failure means:
//!
//! | what happened | result |
//! |---|---|
//! | 2yz, 4yz, 5yz to RCPT | that recipient is accepted (so far), deferred, refused |
//! | the same to MAIL, DATA or the content | all recipients that are still open |
//! | 421 anywhere, 4yz as greeting or to EHLO, 5yz to EHLO and HELO | all recipients |
//! | 5yz as greeting, 4yz to STARTTLS or AUTH, no connection, a connection that breaks | [`Unreachable`] |
//! | STARTTLS missing or refused, a certificate that does not fit, 5yz to AUTH | [`Misconfigured`] |
//! | the content was sent and its reply lost | [`Ambiguous`] |
//!
//! [`Unreachable`]: TransportError::Unreachable
//! [`Misconfigured`]: TransportError::Misconfigured
//! [`Ambiguous`]: TransportError::Ambiguous

mod pool;
mod reply;
mod session;
mod settings;
mod tls;
mod transaction;
mod wire;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::domain::address::EmailAddress;
use messaging_core::ports::transport::{
    Acceptance, Content, Outcome, Outgoing, Response, Sent, Transport, TransportError,
};
use rustls_pki_types::CertificateDer;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tracing::debug;

use self::pool::{Key, Limits, Pool};
use self::session::{OpenError, Opener, Session};
use self::settings::Settings;
use self::tls::Tls;
use self::transaction::{Failure, Transaction};
use crate::mime;

/// How long each step may take: the values of RFC 5321 section 4.5.3.2 where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a turn, while as many messages as allowed are on their way to the same relay.
    pub queue: Duration,
    /// To resolve the host, and to connect to each of its addresses.
    pub connect: Duration,
    /// For the TLS handshake.
    pub handshake: Duration,
    /// For the greeting.
    pub greeting: Duration,
    /// For EHLO, STARTTLS, AUTH and RSET.
    pub command: Duration,
    /// For MAIL.
    pub mail: Duration,
    /// For each RCPT.
    pub rcpt: Duration,
    /// For DATA.
    pub data: Duration,
    /// To take each block of the content.
    pub block: Duration,
    /// For the reply to the whole content.
    pub dot: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            queue: Duration::from_mins(10),
            connect: Duration::from_secs(30),
            handshake: Duration::from_secs(30),
            greeting: Duration::from_mins(5),
            command: Duration::from_mins(5),
            mail: Duration::from_mins(5),
            rcpt: Duration::from_mins(5),
            data: Duration::from_mins(2),
            block: Duration::from_mins(3),
            dot: Duration::from_mins(10),
        }
    }
}

impl Timeouts {
    /// The same time for every step; for tests.
    pub const fn all(limit: Duration) -> Self {
        Self {
            queue: limit,
            connect: limit,
            handshake: limit,
            greeting: limit,
            command: limit,
            mail: limit,
            rcpt: limit,
            data: limit,
            block: limit,
            dot: limit,
        }
    }
}

/// Sends through the relay of the workspace's settings.
pub struct SmtpRelay {
    ehlo_name: String,
    timeouts: Timeouts,
    tls: Tls,
    /// Connections outlive messages.
    pool: Pool,
}

impl SmtpRelay {
    /// A relay client that introduces itself as `ehlo_name`, the name of this machine.
    pub fn new(ehlo_name: String) -> Self {
        Self::builder().ehlo_name(ehlo_name).build()
    }

    /// A relay client with other limits or further trust.
    pub fn builder() -> SmtpRelayBuilder {
        SmtpRelayBuilder::default()
    }

    /// Closes all idle connections; for shutting down.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    async fn deliver(&self, key: &Key, letter: &Letter<'_>) -> Result<Vec<Outcome>, TransportError> {
        let host = key.1.host.as_str();
        let _permit = self.turn(key).await?;
        let (mut session, mut is_reused) = match self.pool.take(key).await {
            Some(session) => (session, true),
            None => match self.open(&key.1).await {
                Ok(session) => (session, false),
                Err(error) => return letter.without_session(error, host),
            },
        };
        loop {
            match letter.send(&mut session, host, &self.timeouts).await {
                Ok(outcomes) => {
                    debug!(host, is_reused, transactions = session.transactions, "a transaction ended");
                    if session.reset(&self.timeouts).await {
                        self.pool.give(key, session).await;
                    }
                    return Ok(outcomes);
                }
                // A relay may close an idle connection whenever it likes; that says nothing about this message.
                Err(Failure::BeforeContent(_) | Failure::Closing(_)) if is_reused => {
                    debug!(host, "a kept connection was dead");
                    is_reused = false;
                    session = match self.open(&key.1).await {
                        Ok(session) => session,
                        Err(error) => return letter.without_session(error, host),
                    };
                }
                Err(Failure::Closing(reply)) => return letter.without_session(OpenError::Reply(reply), host),
                Err(Failure::BeforeContent(error)) => {
                    return Err(TransportError::Unreachable(format!("before the content: {error}")));
                }
                Err(Failure::WithinContent(error)) => {
                    return Err(TransportError::Unreachable(format!("within the content: {error}")));
                }
                Err(Failure::AfterContent(error)) => return Err(TransportError::Ambiguous(error.to_string())),
            }
        }
    }

    /// Waits until fewer messages than allowed are on their way to the relay.
    async fn turn(&self, key: &Key) -> Result<OwnedSemaphorePermit, TransportError> {
        let limit = self.timeouts.queue;
        match timeout(limit, self.pool.gate(key).acquire_owned()).await {
            Ok(permit) => Ok(permit.expect("nobody closes the gate")),
            Err(_) => Err(TransportError::Unreachable(format!("no turn within {limit:?}"))),
        }
    }

    async fn open(&self, settings: &Settings) -> Result<Session, OpenError> {
        Opener { ehlo_name: &self.ehlo_name, timeouts: &self.timeouts, tls: &self.tls }.open(settings).await
    }
}

#[async_trait]
impl Transport for SmtpRelay {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let settings = Settings::parse(&outgoing.settings)?;
        let Content::Email(email) = &outgoing.content else {
            return Err(TransportError::Content("this provider carries email only".to_owned()));
        };
        let from = wire_address(&email.envelope_from)?;
        let recipients = outgoing
            .recipients
            .iter()
            .map(|recipient| EmailAddress::parse(recipient).map_err(|_| malformed()).and_then(|it| wire_address(&it)))
            .collect::<Result<Vec<_>, _>>()?;
        let content = mime::build(email).map_err(|error| TransportError::Content(error.to_string()))?;
        let needs_utf8 = mime::needs_utf8(email) || !from.is_ascii();
        let letter = Letter { from: &from, recipients: &recipients, needs_utf8, content: &content };
        if recipients.is_empty() {
            return Ok(Sent::default());
        }
        let outcomes = self.deliver(&(outgoing.workspace_id, settings), &letter).await?;
        Ok(Sent { outcomes, ..Sent::default() })
    }

    fn acceptance(&self) -> Acceptance {
        Acceptance::Relayed
    }
}

impl fmt::Debug for SmtpRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpRelay").field("ehlo_name", &self.ehlo_name).finish_non_exhaustive()
    }
}

/// A message before it is known what the relay can do.
struct Letter<'a> {
    from: &'a str,
    recipients: &'a [String],
    /// Whether everyone's copy needs SMTPUTF8, because of the sender or an address in the header.
    needs_utf8: bool,
    content: &'a [u8],
}

impl Letter<'_> {
    /// Sends to whom this relay can carry it; the others are refused in the relay's name, with the codes
    /// it would have used.
    async fn send(&self, session: &mut Session, host: &str, timeouts: &Timeouts) -> Result<Vec<Outcome>, Failure> {
        let capabilities = session.capabilities;
        let outcome = |text: &str, code| Outcome::Refused(response(code, text, host));
        if capabilities.max_size.is_some_and(|limit| self.content.len() > limit) {
            // RFC 1870 section 6.1.
            return Ok(self.for_all(&outcome("5.3.4 the message is larger than the relay accepts", 552)));
        }
        if self.needs_utf8 && !capabilities.smtp_utf8 {
            // RFC 6531 section 3.5.
            return Ok(self.for_all(&outcome("5.6.7 the message needs SMTPUTF8, which the relay lacks", 550)));
        }
        let is_possible = |recipient: &String| recipient.is_ascii() || capabilities.smtp_utf8;
        let possible: Vec<&str> = self.recipients.iter().filter(|it| is_possible(it)).map(String::as_str).collect();
        let needs_utf8 = self.needs_utf8 || possible.iter().any(|recipient| !recipient.is_ascii());
        let mut outcomes = if possible.is_empty() {
            Vec::new()
        } else {
            Transaction { host, from: self.from, recipients: &possible, needs_utf8, content: self.content }
                .run(session, timeouts)
                .await?
        }
        .into_iter();
        let impossible = || outcome("5.6.7 the address needs SMTPUTF8, which the relay lacks", 553);
        Ok(self
            .recipients
            .iter()
            .map(|recipient| if is_possible(recipient) { outcomes.next() } else { Some(impossible()) })
            .map(|outcome| outcome.expect("a transaction answers for each of its recipients"))
            .collect())
    }

    fn without_session(&self, error: OpenError, host: &str) -> Result<Vec<Outcome>, TransportError> {
        match error {
            OpenError::Reply(reply) => {
                let outcome = reply.outcome(host).expect("only refusals end the opening of a session");
                Ok(self.for_all(&outcome))
            }
            OpenError::Failed(error) => Err(error),
        }
    }

    fn for_all(&self, outcome: &Outcome) -> Vec<Outcome> {
        vec![outcome.clone(); self.recipients.len()]
    }
}

/// Parses a reply of one line, for tests that are about replies.
#[cfg(feature = "testing")]
pub(crate) fn parse_reply(line: &[u8]) -> Option<reply::Reply> {
    reply::Collector::default().push(line).ok().flatten()
}

fn response(code: u16, text: &str, host: &str) -> Response {
    let enhanced = text.split(' ').next().map(str::to_owned);
    Response { code: Some(code), enhanced, text: text.to_owned(), host: Some(host.to_owned()) }
}

/// Core's types promise that an address cannot end a command; here it is looked at once more.
fn wire_address(address: &EmailAddress) -> Result<String, TransportError> {
    mime::wire_address(address).ok_or_else(malformed)
}

fn malformed() -> TransportError {
    TransportError::Content("an address of the envelope is malformed".to_owned())
}

/// Builds a [`SmtpRelay`].
#[derive(Debug)]
pub struct SmtpRelayBuilder {
    ehlo_name: String,
    timeouts: Timeouts,
    limits: Limits,
    extra_roots: Vec<CertificateDer<'static>>,
}

impl Default for SmtpRelayBuilder {
    fn default() -> Self {
        let limits =
            Limits { idle: 4, idle_in_all: 256, idle_time: Duration::from_secs(30), messages: 100, concurrent: 20 };
        Self { ehlo_name: "localhost".to_owned(), timeouts: Timeouts::default(), limits, extra_roots: Vec::new() }
    }
}

impl SmtpRelayBuilder {
    /// The name in EHLO. Characters that no name has are left out.
    pub fn ehlo_name(mut self, name: impl AsRef<str>) -> Self {
        let is_fit = |c: &char| c.is_ascii_alphanumeric() || "-._:[]".contains(*c);
        let name: String = name.as_ref().chars().filter(is_fit).take(255).collect();
        if !name.is_empty() {
            self.ehlo_name = name;
        }
        self
    }

    /// How long each step may take.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// A root certificate to trust besides the system's.
    pub fn extra_root(mut self, root: CertificateDer<'static>) -> Self {
        self.extra_roots.push(root);
        self
    }

    /// How many idle connections to one relay are kept; 4 if not said.
    pub fn max_idle(mut self, connections: usize) -> Self {
        self.limits.idle = connections;
        self
    }

    /// How long an idle connection is kept; 30 s if not said.
    pub fn idle_time(mut self, time: Duration) -> Self {
        self.limits.idle_time = time;
        self
    }

    /// How many messages go over one connection; 100 if not said.
    pub fn max_messages(mut self, messages: usize) -> Self {
        self.limits.messages = messages;
        self
    }

    /// How many messages may be on their way to one relay at the same time; 20 if not said.
    pub fn max_concurrent(mut self, messages: usize) -> Self {
        self.limits.concurrent = messages.max(1);
        self
    }

    /// The relay client.
    pub fn build(self) -> SmtpRelay {
        SmtpRelay {
            ehlo_name: self.ehlo_name,
            timeouts: self.timeouts,
            tls: Tls::new(self.extra_roots),
            pool: Pool::new(self.limits),
        }
    }
}
