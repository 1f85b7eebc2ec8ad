//! The provider `smtp`: a relay that the workspace has an account at.
//!
//! The settings are `{"host","port","username"?,"password"?,"tls"?}` with `tls` one of `starttls` (the
//! default), `tls` (the default on port 465) and `none`. With the first two the certificate must be
//! valid for the host, or nothing is sent: there is no falling back to plain text. With `none`, which
//! has to be asked for, everything goes in plain text, the password too; it is meant for relays on the
//! same machine or network.
//!
//! Several messages share a connection. Addresses, credentials and contents are never logged.
//!
//! Outcomes of failures for the recipients ("us" is the workspace's account at the relay):
//!
//! | what happened | outcome |
//! |---|---|
//! | 2yz, 4yz, 5yz to RCPT | that recipient is accepted (so far), deferred, refused |
//! | the same to DATA or the content | all recipients that are still open |
//! | no to MAIL, but for the size or form of the message | all recipients: about us |
//! | a reply to RCPT, DATA or the content that speaks of our account | about us |
//! | no as greeting or to EHLO and HELO, 421 to MAIL | about us |
//! | 4yz to STARTTLS or AUTH, no connection, a connection that breaks | retry, of the account: [`Unreachable`] |
//! | STARTTLS missing or refused, an invalid certificate, 5yz to AUTH, a private address | auth: [`Misconfigured`] |
//! | the content was sent and its reply lost | ambiguous; deferred for those whose transaction had not begun |
//!
//! Recipients with envelope senders of their own get a transaction each, one after the other. A reply to DATA or the
//! content then concerns one of them only.
//!
//! A reply about us puts the message off and says nothing about a recipient: a relay that does not let us in has not
//! looked at them. A refused login or account is `auth`, a rate or a quota `throttled`, anything else `retry`, each
//! with the account as its scope.
//!
//! Without a reply, the text of the outcome is that of the error. Settings that do not parse and a message that cannot
//! be built are found without a connection; only they are an error for the message as a whole.
//!
//! [`Unreachable`]: TransportError::Unreachable
//! [`Misconfigured`]: TransportError::Misconfigured

mod refusal;
mod settings;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::transport::{
    Content, Outcome, OutcomeClass, Outgoing, Reservation, Response, Route, Sent, SettingsFault, Transport,
    TransportError,
};
use rustls_pki_types::CertificateDer;
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};
use tracing::debug;

use self::settings::Settings;
use crate::guard::{Guard, private_address};
use crate::mime;
use crate::smtp::{
    Answers, Envelope, Failure, Limits, OpenError, Opener, Peer, Pool, Recipient, Session, Timeouts, Tls, Transcript,
    Trust, WireContent, clean_name,
};

/// Maximum number of addresses of a host that are tried.
const MAX_ADDRESSES: usize = 8;

/// Text for recipients whose transaction had not begun when the reply of the one before was lost.
const NOT_TRIED: &str = "not tried: the transaction before lost its reply";

/// Key of kept connections: the workspace, and the settings of its relay.
type Key = (WorkspaceId, Settings);

/// Result of waiting for a turn with a relay; without a permit, no turn came up in time.
struct RelayReservation {
    key: Key,
    permit: Option<OwnedSemaphorePermit>,
}

/// Transport that sends through the relay of the workspace's settings.
pub struct SmtpRelay {
    ehlo_name: String,
    timeouts: Timeouts,
    tls: Tls,
    guard: Guard,
    /// Open connections, kept for later messages.
    pool: Pool<Key>,
}

impl SmtpRelay {
    /// Creates a relay client that introduces itself as `ehlo_name`, the name of this machine.
    pub fn new(ehlo_name: String) -> Self {
        Self::builder().ehlo_name(ehlo_name).build()
    }

    /// Returns a builder for a relay client with other limits or further roots.
    pub fn builder() -> SmtpRelayBuilder {
        SmtpRelayBuilder::default()
    }

    /// Closes all idle connections; called at shutdown.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    async fn acquire(&self, key: &Key) -> RelayReservation {
        let permit = timeout(self.timeouts.queue, self.pool.gate(key).acquire_owned()).await;
        let permit = permit.ok().map(|permit| permit.expect("nobody closes the gate"));
        RelayReservation { key: key.clone(), permit }
    }

    /// Sends to every recipient without an outcome in `answers`; afterwards each has one.
    async fn deliver(
        &self,
        key: &Key,
        reserved: Option<RelayReservation>,
        envelope: &Envelope<'_>,
        transcript: &mut Transcript,
        answers: &mut Answers,
    ) {
        let reserved = match reserved.filter(|reserved| reserved.key == *key) {
            Some(reserved) => reserved,
            None => self.acquire(key).await,
        };
        let Some(_permit) = reserved.permit else {
            let failure = TransportError::Unreachable(format!("no turn within {:?}", self.timeouts.queue));
            transcript.note(&failure);
            return settle(answers, &failure);
        };
        let host = key.1.host.as_str();
        let mut kept = self.pool.take(key).await;
        loop {
            let is_reused = kept.is_some();
            let mut session = match kept.take() {
                Some(session) => {
                    session.introduce(transcript);
                    session
                }
                None => match self.open(&key.1, transcript).await {
                    Ok(session) => session,
                    Err(OpenError::Reply(reply) | OpenError::NoService(reply)) => {
                        return answers.settle(&refusal::of_us(reply.response(host)));
                    }
                    Err(OpenError::Tls(failure) | OpenError::Failed(failure)) => return settle(answers, &failure),
                },
            };
            match envelope.send(&mut session, host, &self.timeouts, transcript, answers).await {
                Ok(()) => {
                    debug!(host, is_reused, transactions = session.transactions(), "a transaction ended");
                    if session.reset(&self.timeouts).await {
                        self.pool.give(key, session).await;
                    } else {
                        session.quit().await;
                    }
                    return;
                }
                // A relay may close an idle connection whenever it likes; that says nothing about this message.
                // The same between the transactions of a message, each of which settles somebody.
                Err(Failure::BeforeContent(_) | Failure::Closing(_)) if is_reused || session.transactions() > 1 => {
                    transcript.note("the kept connection had ended");
                }
                Err(Failure::Spent) => transcript.note("the rest needs another connection"),
                Err(Failure::Closing(reply)) => return answers.settle(&refusal::of_us(reply.response(host))),
                Err(Failure::BeforeContent(error)) => {
                    return settle(answers, &TransportError::Unreachable(format!("before the content: {error}")));
                }
                Err(Failure::WithinContent(error)) => {
                    return settle(answers, &TransportError::Unreachable(format!("within the content: {error}")));
                }
                Err(Failure::AfterContent(error)) => {
                    let failure = TransportError::Ambiguous(error.to_string());
                    answers.settle_transaction(&Outcome::ambiguous(response(&failure, host)));
                    return settle(answers, &TransportError::Unreachable(NOT_TRIED.to_owned()));
                }
            }
        }
    }

    async fn open(&self, settings: &Settings, transcript: &mut Transcript) -> Result<Session, OpenError> {
        let opener = Opener { ehlo_name: &self.ehlo_name, from: None, timeouts: &self.timeouts, tls: &self.tls };
        let peer =
            Peer { host: &settings.host, security: settings.security, credentials: settings.credentials.as_ref() };
        let end = Instant::now() + self.timeouts.connect_in_all;
        let addresses = self.resolve(settings).await.inspect_err(|error| transcript.note(error))?;
        let mut last = TransportError::Unreachable("the host has no address".to_owned());
        for address in addresses.into_iter().take(MAX_ADDRESSES) {
            let limit = self.timeouts.connect.min(end.saturating_duration_since(Instant::now()));
            match opener.connect(address, limit, transcript).await {
                Ok(stream) => return opener.open(stream, &peer, transcript).await,
                Err(error) => last = error,
            }
        }
        Err(last.into())
    }

    /// Returns the addresses of the relay. A name with an address that is not permitted is refused as a whole.
    async fn resolve(&self, settings: &Settings) -> Result<Vec<SocketAddr>, TransportError> {
        let limit = self.timeouts.connect;
        let found: Vec<_> = match timeout(limit, tokio::net::lookup_host((settings.host.as_str(), settings.port))).await
        {
            Ok(Ok(addresses)) => addresses.collect(),
            Ok(Err(_)) => return Err(TransportError::Unreachable("the host's name could not be resolved".to_owned())),
            Err(_) => {
                let failure = format!("the host's name was not resolved within {limit:?}");
                return Err(TransportError::Unreachable(failure));
            }
        };
        if found.iter().all(|address| self.guard.permits(address.ip())) {
            Ok(found)
        } else {
            Err(TransportError::Misconfigured(private_address(&settings.host)))
        }
    }
}

/// Returns the result for a message that requires TLS, when the relay's settings rule TLS out.
fn in_clear(host: &str, recipients: usize) -> Sent {
    let text = "the sending domain asks for TLS, and the relay is spoken to in plain text by its settings";
    let response = Response {
        enhanced: Some("4.7.10".to_owned()),
        text: text.to_owned(),
        host: Some(host.to_owned()),
        ..Response::default()
    };
    let outcome = Outcome::of(OutcomeClass::TlsRequired, response);
    let mut transcript = Transcript::new(host);
    transcript.note(text);
    let dialogs = vec![transcript.into_dialog(std::iter::once(&outcome))];
    Sent { outcomes: vec![outcome; recipients], captured: None, dialogs }
}

/// Settles every recipient without an outcome by a failure of the relay: there was no reply.
fn settle(answers: &mut Answers, failure: &TransportError) {
    answers.settle(&Outcome::of(failure.class(), Response::of_text(&failure.to_string())));
}

fn response(failure: &TransportError, host: &str) -> Response {
    Response { text: failure.to_string(), host: Some(host.to_owned()), ..Response::default() }
}

#[async_trait]
impl Transport for SmtpRelay {
    async fn reserve(&self, route: &Route) -> Reservation {
        match Settings::parse(&route.settings) {
            Ok(settings) => Reservation::holding(self.acquire(&(route.workspace_id, settings)).await),
            // `send` reports the fault in the settings.
            Err(_) => Reservation::default(),
        }
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let settings = Settings::parse(&outgoing.settings)?;
        let Content::Email(email) = &outgoing.content else {
            return Err(TransportError::Content("this provider carries email only".to_owned()));
        };
        let recipients = Recipient::all(outgoing, email)?;
        let content = mime::build(email).map_err(|error| TransportError::Content(error.to_string()))?;
        if recipients.is_empty() {
            return Ok(Sent::default());
        }
        if outgoing.options.require_tls && settings.is_in_clear() {
            return Ok(in_clear(&settings.host, recipients.len()));
        }
        let envelope = Envelope {
            recipients: &recipients,
            needs_utf8: mime::needs_utf8(email) || recipients.iter().any(|one| !one.from.is_ascii()),
            content: &WireContent::new(content),
            last_look: &outgoing.last_look,
            since: Instant::now(),
            judge: refusal::judge,
        };
        let mut transcript = Transcript::new(&settings.host);
        let mut answers = Answers::new(recipients.len());
        let reserved = outgoing.reservation.take();
        self.deliver(&(outgoing.workspace_id, settings), reserved, &envelope, &mut transcript, &mut answers).await;
        let outcomes = answers.into_outcomes();
        let dialogs = vec![transcript.into_dialog(outcomes.iter())];
        Ok(Sent { outcomes, captured: None, dialogs })
    }

    fn check(&self, settings: &Map<String, Value>) -> Result<(), SettingsFault> {
        match settings.get("host").and_then(Value::as_str) {
            Some(host) if !self.guard.permits_host(host) => {
                Err(SettingsFault { member: "host", message: "must not be a private address or this machine" })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for SmtpRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpRelay").field("ehlo_name", &self.ehlo_name).finish_non_exhaustive()
    }
}

/// Builds a [`SmtpRelay`].
#[derive(Debug)]
pub struct SmtpRelayBuilder {
    ehlo_name: String,
    timeouts: Timeouts,
    limits: Limits,
    extra_roots: Vec<CertificateDer<'static>>,
    allow_private: bool,
}

impl Default for SmtpRelayBuilder {
    fn default() -> Self {
        let limits =
            Limits { idle: 4, idle_in_all: 256, idle_time: Duration::from_secs(30), messages: 100, concurrent: 20 };
        Self {
            ehlo_name: clean_name(""),
            timeouts: Timeouts::RELAY,
            limits,
            extra_roots: Vec::new(),
            allow_private: false,
        }
    }
}

impl SmtpRelayBuilder {
    /// Sets the name in EHLO. Characters that are not allowed in a host name are removed.
    pub fn ehlo_name(mut self, name: impl AsRef<str>) -> Self {
        self.ehlo_name = clean_name(name.as_ref());
        self
    }

    /// Sets the time limits of the steps.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Adds a root certificate to those of the system.
    pub fn extra_root(mut self, root: CertificateDer<'static>) -> Self {
        self.extra_roots.push(root);
        self
    }

    /// Allows relays at private addresses; refused unless set.
    pub fn allow_private(mut self, allow: bool) -> Self {
        self.allow_private = allow;
        self
    }

    /// Sets how many idle connections to one relay are kept; 4 unless set.
    pub fn max_idle(mut self, connections: usize) -> Self {
        self.limits.idle = connections;
        self
    }

    /// Sets how long an idle connection is kept; 30 s unless set.
    pub fn idle_time(mut self, time: Duration) -> Self {
        self.limits.idle_time = time;
        self
    }

    /// Sets how many messages go over one connection; 100 unless set.
    pub fn max_messages(mut self, messages: usize) -> Self {
        self.limits.messages = messages;
        self
    }

    /// Sets how many messages may be on their way to one relay at the same time; 20 unless set.
    pub fn max_concurrent(mut self, messages: usize) -> Self {
        self.limits.concurrent = messages.max(1);
        self
    }

    /// Builds the relay client.
    pub fn build(self) -> SmtpRelay {
        SmtpRelay {
            ehlo_name: self.ehlo_name,
            timeouts: self.timeouts,
            tls: Tls::new(Trust::Verified(self.extra_roots)),
            guard: Guard { allow_private: self.allow_private },
            pool: Pool::new(self.limits),
        }
    }
}
