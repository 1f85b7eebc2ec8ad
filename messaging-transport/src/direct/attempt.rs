//! One attempt at the recipients of one domain: exchanger by exchanger, until one of them answers.

mod security;

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::delivery::attempt::Dialog;
use messaging_core::domain::delivery::ip_pool::source::SourceAddress;
use messaging_core::domain::delivery::site::SiteName;
use messaging_core::domain::mail::mta_sts::StsPolicy;
use messaging_core::ports::clock::Clock;
use messaging_core::ports::paths::Leave;
use messaging_core::ports::sts_policy_cache::PolicyUnread;
use messaging_core::ports::transport::{Answer, Outcome, OutcomeClass, Response, TransportError};
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::lane::Report;
use super::plain::PlainHosts;
use super::route::{Exchangers, NoAddress, Routing, response};
use super::sources::Departing;
use super::tls_policy::{Pkix, TlsPolicy};
use crate::dns::LookupFailure;
use crate::guard::private_address;
use crate::mta_sts::MtaSts;
use crate::smtp::{
    Answers, Envelope, Failure, OpenError, Opener, Peer, Pool, Security, Session, Timeouts, Tls, Transcript,
};

/// Time after which no further exchanger is tried: every step may take minutes, and the attempt must end.
const PATIENCE: Duration = Duration::from_mins(10);

/// Maximum number of conversations of one attempt.
const MAX_CONVERSATIONS: usize = 12;

/// The client of direct delivery: routing, TLS, time-outs and kept connections, shared by all attempts.
pub(super) struct Client {
    pub(super) routing: Routing,
    pub(super) timeouts: Timeouts,
    pub(super) tls: Tls,
    pub(super) plain_hosts: PlainHosts,
    /// Verifies certificates of exchangers without TLSA records.
    pub(super) pkix: Pkix,
    /// Finds the MTA-STS policies of domains; `None` if policies are not looked up.
    pub(super) mta_sts: Option<MtaSts>,
    /// Supplies the time at which certificates and policies are judged.
    pub(super) clock: Arc<dyn Clock>,
    /// Open connections, kept for later messages.
    pub(super) pool: Pool<PeerKey>,
}

/// Key under which connections are kept and counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum PeerKey {
    /// One exchanger by its name, from one source address.
    Exchanger(SourceAddress, String),
    /// All exchangers of a site, from one source address; used only to limit the number of connections.
    Site(SourceAddress, SiteName),
}

/// An attempt under way.
pub(super) struct Attempt<'a> {
    pub(super) client: &'a Client,
    pub(super) envelope: &'a Envelope<'a>,
    pub(super) domain: &'a str,
    /// True if the sending domain requires TLS.
    require_tls: bool,
    /// True if DNSSEC signs the domain's list of exchangers.
    is_secure: bool,
    /// The MTA-STS policy of the domain, if it has one.
    sts: Option<Arc<StsPolicy>>,
    /// The source address that the attempt leaves from, and its path.
    leave: &'a Leave,
    /// The exchangers of the domain, if they were looked up before.
    exchangers: Option<Exchangers>,
    /// Outcomes of the recipients so far.
    pub(super) answers: Answers,
    /// One dialog for each exchanger that was tried.
    pub(super) dialogs: Vec<Dialog>,
    /// Time left for opening connections.
    connecting: Duration,
    conversations: usize,
    worst: Option<Miss>,
}

/// Reason why an exchanger did not take the message, from the weakest to the strongest: the strongest one decides the
/// outcome. A temporary failure beats a permanent one, and a reply beats silence.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Miss {
    /// The exchanger has no address.
    NoAddress,
    /// It refused for good before MAIL was accepted.
    Never(Outcome),
    /// No connection to it could be opened.
    Unreachable(Response),
    /// The connection broke during the conversation.
    Broken(Response),
    /// It lacks the TLS that the message requires.
    NoTls(Response),
    /// It deferred before MAIL was accepted.
    NotNow(Outcome),
}

impl Miss {
    const fn weight(&self) -> u8 {
        match self {
            Self::NoAddress => 0,
            Self::Never(_) => 1,
            Self::Unreachable(_) => 2,
            Self::Broken(_) => 3,
            Self::NoTls(_) => 4,
            Self::NotNow(_) => 5,
        }
    }
}

/// Next step after one exchanger.
enum Step {
    /// Every recipient has an outcome.
    Done,
    /// The next exchanger is to be tried.
    Next,
}

/// Outcome of a conversation over a session.
enum Talk {
    /// The conversation ran to its end.
    Ended(Step),
    /// The kept connection had ended before the conversation began; holds the transcript so far.
    WasOver(Transcript),
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        client: &'a Client,
        envelope: &'a Envelope<'a>,
        domain: &'a str,
        departing: &'a mut Departing,
        require_tls: bool,
    ) -> Self {
        Self {
            client,
            envelope,
            domain,
            require_tls,
            is_secure: false,
            sts: None,
            exchangers: departing.exchangers.take(),
            leave: &departing.leave,
            answers: Answers::new(envelope.recipients.len()),
            dialogs: Vec::new(),
            connecting: client.timeouts.connect_in_all,
            conversations: 0,
            worst: None,
        }
    }

    /// Tries one exchanger after the other until every recipient has an outcome.
    pub(super) async fn run(&mut self) -> Report {
        let found = match self.exchangers.take() {
            Some(found) => Ok(found),
            None => self.client.routing.exchangers(self.domain).await,
        };
        let hosts = match found {
            Ok(Exchangers { hosts, is_secure }) => {
                self.is_secure = is_secure;
                hosts
            }
            Err(outcome) => return self.without_route(&outcome),
        };
        if let Some(mta_sts) = &self.client.mta_sts {
            match mta_sts.policy(self.domain, self.client.clock.now()).await {
                Ok(policy) => self.sts = policy,
                Err(unread) => return self.without_policy(hosts.first(), unread),
            }
        }
        for host in hosts {
            if let Step::Done = self.at_host(&host).await {
                return self.report();
            }
            debug!(host, "an exchanger did not take a message");
            if self.is_over() {
                break;
            }
        }
        self.give_up()
    }

    /// Returns the key under which connections to an exchanger are kept: mail of another source never shares one.
    fn key(&self, host: &str) -> PeerKey {
        PeerKey::Exchanger(self.leave.source.ip, host.to_owned())
    }

    /// Returns true if no further exchanger is tried: the time or the number of conversations is used up.
    fn is_over(&self) -> bool {
        self.is_late() || self.conversations >= MAX_CONVERSATIONS || self.connecting.is_zero()
    }

    fn is_late(&self) -> bool {
        self.envelope.since.elapsed() > PATIENCE
    }

    /// Remembers a miss if it weighs at least as much as those before it.
    fn missed(&mut self, miss: Miss) -> Step {
        if self.worst.as_ref().is_none_or(|worst| miss.weight() >= worst.weight()) {
            self.worst = Some(miss);
        }
        Step::Next
    }

    fn without_route(&mut self, outcome: &Outcome) -> Report {
        self.answers.settle(outcome);
        let mut transcript = Transcript::new("");
        let Some(Answer { class, response, .. }) = outcome.answer() else { return Report::Fine };
        transcript.note(&response.text);
        self.dialogs.push(transcript.into_dialog(std::iter::once(outcome)));
        // A domain whose servers do not answer is as dead as one whose exchangers do not.
        if class.is_retried() { Report::Unreachable(response.clone()) } else { Report::Fine }
    }

    /// Ends the attempt without a connection: the TLS that the domain requires is unknown.
    fn without_policy(&mut self, host: Option<&String>, unread: PolicyUnread) -> Report {
        let host = host.map_or("", String::as_str);
        let mut transcript = Transcript::new(host);
        transcript.note(unread);
        let miss = no_tls(host, "4.7.5", &unread.to_string());
        self.file(transcript, &miss);
        self.missed(miss);
        self.give_up()
    }

    /// Settles the open recipients by the heaviest miss: no exchanger took the message.
    fn give_up(&mut self) -> Report {
        match self.worst.take().unwrap_or(Miss::NoAddress) {
            Miss::NoAddress => {
                let text = format!("no mail exchanger of {} has an address", self.domain);
                self.answers.settle(&Outcome::refused(response(None, "5.4.4", &text)));
                Report::Fine
            }
            Miss::Never(outcome) => {
                self.answers.settle(&outcome);
                Report::Fine
            }
            Miss::Unreachable(response) => {
                self.answers.settle(&Outcome::deferred(response.clone()));
                Report::Unreachable(response)
            }
            Miss::Broken(response) => {
                self.answers.settle(&Outcome::deferred(response.clone()));
                Report::Busy(response)
            }
            // The TLS failure concerns this sender and this domain only; messages of others may go there.
            Miss::NoTls(response) => {
                self.answers.settle(&Outcome::of(OutcomeClass::TlsRequired, response));
                Report::Fine
            }
            Miss::NotNow(outcome) => {
                self.answers.settle(&outcome);
                outcome.answer().map_or(Report::Fine, |answer| Report::Busy(answer.response.clone()))
            }
        }
    }

    fn report(&self) -> Report {
        let put_off = self.answers.known().filter_map(Outcome::answer).filter(|answer| answer.class.is_retried());
        let busy = put_off.into_iter().find(|answer| asks_for_less(&answer.response));
        busy.map_or(Report::Fine, |answer| Report::Busy(answer.response.clone()))
    }

    async fn at_host(&mut self, host: &str) -> Step {
        let timeouts = &self.client.timeouts;
        let pool = &self.client.pool;
        let key = self.key(host);
        let gate = match &self.leave.path {
            // A host that is not one of the site's exchangers uses up no connection of the site, however long it keeps
            // this one.
            Some(path) if path.exchangers.iter().any(|known| known == host) => {
                let site = PeerKey::Site(self.leave.source.ip, path.site.clone());
                pool.gate_of(&site, path.connections.max(1))
            }
            _ => pool.gate(&key),
        };
        let Ok(permit) = timeout(timeouts.queue, gate.acquire_owned()).await else {
            // Many domains share this host; that says nothing about this one.
            let text = format!("too many messages are on their way to {host}");
            return self.missed(Miss::Broken(named(host, response(None, "4.4.5", &text))));
        };
        let _permit = permit.expect("nobody closes the gate");
        let mut transcript = Transcript::new(host);
        let policy = match self.tls_policy(host).await {
            Ok(policy) => policy,
            Err(text) => {
                transcript.note(&text);
                let miss = no_tls(host, "4.7.5", &text);
                self.file(transcript, &miss);
                return self.missed(miss);
            }
        };
        if let Some(session) = pool.take(&key).await {
            let mut notes = Transcript::new(host);
            session.introduce(&mut notes);
            // The kept connection may have served a message with weaker TLS demands.
            if let Ok(session) = self.prove(session, host, &policy, &mut notes).await {
                match self.converse(session, host, notes, true).await {
                    Talk::Ended(step) => return step,
                    Talk::WasOver(kept) => transcript = kept,
                }
            }
        }
        let addresses = match self.client.routing.addresses(host, timeouts.connect).await {
            Ok(addresses) => addresses,
            Err(NoAddress::Private) => {
                let text = private_address(host);
                transcript.note(&text);
                let miss = Miss::Unreachable(named(host, response(None, "4.4.4", &text)));
                self.file(transcript, &miss);
                return self.missed(miss);
            }
            Err(NoAddress::Lookup(failure)) => {
                transcript.note(&failure);
                let text = format!("the address of {host} could not be looked up: {failure}");
                let miss = match failure {
                    LookupFailure::Temporary(_) => Miss::Unreachable(named(host, response(None, "4.4.3", &text))),
                    LookupFailure::NoSuchDomain | LookupFailure::NoRecords => Miss::NoAddress,
                };
                self.file(transcript, &miss);
                return self.missed(miss);
            }
        };
        let source = &self.leave.source;
        let (addresses, others): (Vec<_>, Vec<_>) =
            addresses.into_iter().partition(|address| source.reaches(address.ip()));
        if let (true, Some(other)) = (addresses.is_empty(), others.first()) {
            let kind = if other.is_ipv4() { "IPv4" } else { "IPv6" };
            let text = format!("{host} has {kind} addresses alone, and the message leaves from {}", source.ip);
            transcript.note(&text);
            let miss = Miss::Unreachable(named(host, response(None, "4.4.1", &text)));
            self.file(transcript, &miss);
            return self.missed(miss);
        }
        for address in addresses {
            match self.at_address(address, host, &policy, &mut transcript).await {
                Step::Done => return Step::Done,
                Step::Next if self.is_over() => break,
                Step::Next => {}
            }
        }
        Step::Next
    }

    /// Talks over new connections to an address as long as each that ends early has settled at least one recipient: a
    /// peer may limit the transactions of a connection.
    async fn at_address(
        &mut self,
        address: SocketAddr,
        host: &str,
        policy: &TlsPolicy,
        transcript: &mut Transcript,
    ) -> Step {
        loop {
            let session = match self.open(address, host, policy, transcript).await {
                Ok(session) => session,
                Err(miss) => {
                    self.file(std::mem::replace(transcript, Transcript::new(host)), &miss);
                    return self.missed(miss);
                }
            };
            let open = self.answers.open().count();
            let notes = std::mem::replace(transcript, Transcript::new(host));
            match self.converse(session, host, notes, false).await {
                Talk::Ended(step) => return step,
                Talk::WasOver(kept) if self.answers.open().count() < open && !self.is_late() => {
                    *transcript = kept;
                    self.conversations -= 1;
                }
                Talk::WasOver(kept) => {
                    let text = format!("the connection to {host} ended between two transactions");
                    let miss = Miss::Broken(named(host, response(None, "4.4.2", &text)));
                    self.file(kept, &miss);
                    return self.missed(miss);
                }
            }
        }
    }

    /// Opens a session at an address: with TLS if that works, and only with TLS if it is required.
    async fn open(
        &mut self,
        address: SocketAddr,
        host: &str,
        policy: &TlsPolicy,
        transcript: &mut Transcript,
    ) -> Result<Session, Miss> {
        let plain_hosts = &self.client.plain_hosts;
        let is_plain = plain_hosts.contains(host);
        let first = match (policy.is_required, is_plain) {
            (true, _) => Security::StartTls,
            (false, true) => Security::Plain,
            (false, false) => Security::Opportunistic,
        };
        let names = (host, policy.server_name(host));
        let session = match self.open_with(first, address, names, transcript).await? {
            Ok(session) => session,
            Err(error) if policy.is_required => {
                let text = format!("{host} speaks no TLS that works: {}", error.cause());
                transcript.note("not sent: the message may go over TLS alone");
                return Err(no_tls(host, "4.7.10", &text));
            }
            Err(error) => {
                transcript.note(format_args!("TLS failed, plain text is next: {error}"));
                plain_hosts.insert(host);
                let again = self.open_with(Security::Plain, address, names, transcript).await?;
                again.map_err(|error| broken(host, &error))?
            }
        };
        self.prove(session, host, policy, transcript).await
    }

    /// Opens a session with the given security; the inner error is a failure of TLS. `server_name` is the name that the
    /// certificate is requested for (SNI).
    async fn open_with(
        &mut self,
        security: Security,
        address: SocketAddr,
        (host, server_name): (&str, &str),
        transcript: &mut Transcript,
    ) -> Result<Result<Session, TransportError>, Miss> {
        let client = self.client;
        let source = &self.leave.source;
        let opener =
            Opener { ehlo_name: &source.name, from: source.ip.ip(), timeouts: &client.timeouts, tls: &client.tls };
        let unreachable = |error: &TransportError| {
            let text = format!("{host} [{}]: {}", address.ip(), error.cause());
            Miss::Unreachable(named(host, response(None, "4.4.1", &text)))
        };
        let began = Instant::now();
        let limit = client.timeouts.connect.min(self.connecting);
        let connected = opener.connect(address, limit, transcript).await;
        self.connecting = self.connecting.saturating_sub(began.elapsed());
        let stream = connected.map_err(|error| unreachable(&error))?;
        self.conversations += 1;
        match opener.open(stream, &Peer { host: server_name, security, credentials: None }, transcript).await {
            Ok(mut session) => {
                if let Some(path) = &self.leave.path {
                    session.limit_transactions(path.messages_per_connection);
                }
                Ok(Ok(session))
            }
            Err(OpenError::Tls(error)) => Ok(Err(error)),
            // The host offers no mail service: treated like a failed connection.
            Err(OpenError::Failed(error)) => Err(unreachable(&error)),
            Err(OpenError::NoService(reply) | OpenError::Reply(reply)) => Err(match reply.refusal(host) {
                outcome if outcome.class().is_some_and(OutcomeClass::is_retried) => Miss::NotNow(outcome),
                outcome => Miss::Never(outcome),
            }),
        }
    }

    /// Runs one transaction.
    async fn converse(&mut self, session: Session, host: &str, transcript: Transcript, is_reused: bool) -> Talk {
        let (mut session, mut transcript) = (session, transcript);
        let timeouts = &self.client.timeouts;
        let sent = self.envelope.send(&mut session, host, timeouts, &mut transcript, &mut self.answers).await;
        let miss = match sent {
            Ok(()) => {
                self.dialogs.push(transcript.into_dialog(self.answers.known()));
                if session.reset(timeouts).await {
                    self.client.pool.give(&self.key(host), session).await;
                } else {
                    session.quit().await;
                }
                return Talk::Ended(Step::Done);
            }
            // A peer may close an idle connection whenever it likes; that says nothing about this message.
            // The same between the transactions of a message.
            Err(Failure::BeforeContent(_) | Failure::Closing(_)) if is_reused || session.transactions() > 1 => {
                transcript.note("the kept connection had ended");
                return Talk::WasOver(transcript);
            }
            Err(Failure::Spent) => {
                transcript.note("the rest needs another connection");
                return Talk::WasOver(transcript);
            }
            Err(Failure::Closing(reply)) => Miss::NotNow(reply.refusal(host)),
            Err(Failure::BeforeContent(error)) => broken(host, &error),
            Err(Failure::WithinContent(error)) => {
                // The cause would cut the content off at other exchangers too, and the content may be large.
                let text = format!("the connection to {host} ended within the content: {error}");
                let outcome = Outcome::deferred(named(host, response(None, "4.4.2", &text)));
                return Talk::Ended(self.settle(&outcome, transcript));
            }
            Err(Failure::AfterContent(error)) => {
                // The message may have been taken, so no other exchanger is tried.
                let text = format!("the reply of {host} to the content was lost: {error}");
                let outcome = Outcome::ambiguous(named(host, response(None, "4.4.2", &text)));
                self.answers.settle_transaction(&outcome);
                let text = format!("not tried: the transaction before lost the reply of {host}");
                let outcome = Outcome::deferred(named(host, response(None, "4.4.2", &text)));
                return Talk::Ended(self.settle(&outcome, transcript));
            }
        };
        self.file(transcript, &miss);
        Talk::Ended(self.missed(miss))
    }

    fn settle(&mut self, outcome: &Outcome, transcript: Transcript) -> Step {
        self.answers.settle(outcome);
        self.dialogs.push(transcript.into_dialog(self.answers.known()));
        Step::Done
    }

    /// Adds the dialog of a miss to the dialogs of the attempt.
    fn file(&mut self, transcript: Transcript, miss: &Miss) {
        let refused = Outcome::refused(Response::default());
        let deferred = Outcome::deferred(Response::default());
        let outcome = if matches!(miss, Miss::Never(_) | Miss::NoAddress) { refused } else { deferred };
        self.dialogs.push(transcript.into_dialog(std::iter::once(outcome)));
    }
}

fn broken(host: &str, error: &dyn Display) -> Miss {
    let text = format!("the connection to {host} ended before the content: {error}");
    Miss::Broken(named(host, response(None, "4.4.2", &text)))
}

/// Builds the miss of an exchanger without the TLS it needs; the codes are those of RFC 3463 section 3.8 and its
/// registry.
fn no_tls(host: &str, enhanced: &str, text: &str) -> Miss {
    Miss::NoTls(named(host, response(None, enhanced, text)))
}

fn named(host: &str, response: Response) -> Response {
    Response { host: Some(host.to_owned()), ..response }
}

/// Returns true if the receiver wants fewer or slower messages: 421, or words to that effect. Greylisting and full
/// mailboxes are temporary too, but say nothing about the speed.
fn asks_for_less(response: &Response) -> bool {
    const WORDS: &[&str] = &[
        "too many",
        "too fast",
        "too much",
        "rate limit",
        "rate-limit",
        "ratelimit",
        "rate that",
        "throttl",
        "slow down",
        "excessive",
    ];
    let text = response.text.to_ascii_lowercase();
    let is_about_recipients = text.contains("too many recipients");
    response.code == Some(421) || (!is_about_recipients && WORDS.iter().any(|words| text.contains(words)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: u16, text: &str, expected: bool) {
        let response = Response { code: Some(code), text: text.to_owned(), ..Response::default() };
        assert_eq!(asks_for_less(&response), expected, "{code} {text}");
    }

    #[test]
    fn who_wants_less_is_recognized() {
        check(421, "4.3.2 closing", true);
        check(450, "4.7.1 Error: too many connections from 192.0.2.1", true);
        check(450, "4.2.1 The user you are trying to contact is receiving mail at a rate that prevents it", true);
        check(451, "4.7.0 Temporarily rate limited", true);
        check(450, "4.7.1 Greylisted, please try again", false);
        check(452, "4.2.2 mailbox full", false);
        check(452, "4.5.3 Too many recipients", false);
    }
}
