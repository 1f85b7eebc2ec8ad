//! Sessions with mail servers: greeting, EHLO, STARTTLS, AUTH.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use messaging_core::domain::delivery::attempt::{AttemptTls, TlsVerification};
use messaging_core::ports::transport::TransportError;
use rustls_pki_types::CertificateDer;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tracing::debug;

use super::Timeouts;
use super::reply::{Kind, Reply};
use super::tls::Tls;
use super::transcript::Transcript;
use super::wire::{Wire, WireError};

/// Time limit for QUIT and the shutdown of a connection; its reply is not awaited.
const FAREWELL: Duration = Duration::from_secs(1);

/// Maximum length of an AUTH command with an initial response: longer ones go in two steps, as a command line may have
/// 512 octets (RFC 5321 section 4.5.3.1.4).
const MAX_COMMAND: usize = 510;

/// Extensions in the reply to EHLO that matter here.
#[expect(clippy::struct_excessive_bools, reason = "each is an extension that is offered or not")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    pub(super) start_tls: bool,
    pub(super) pipelining: bool,
    pub(super) smtp_utf8: bool,
    pub(super) eight_bit: bool,
    pub(super) auth_plain: bool,
    pub(super) auth_login: bool,
    /// Maximum message size, if the peer announces one (RFC 1870).
    pub(super) max_size: Option<usize>,
    /// True if SIZE may be a parameter of MAIL.
    pub(super) size: bool,
}

impl Capabilities {
    /// Parses the reply to EHLO: the first line is a greeting; every other one a keyword with parameters (RFC 5321
    /// section 4.1.1.1).
    fn of(reply: &Reply) -> Self {
        let mut capabilities = Self::default();
        for line in reply.lines().skip(1) {
            // Some servers wrote `AUTH=LOGIN` before RFC 2554.
            let mut words = line.split([' ', '=']).filter(|word| !word.is_empty());
            match words.next().unwrap_or_default().to_ascii_uppercase().as_str() {
                "STARTTLS" => capabilities.start_tls = true,
                "PIPELINING" => capabilities.pipelining = true,
                "SMTPUTF8" => capabilities.smtp_utf8 = true,
                "8BITMIME" => capabilities.eight_bit = true,
                "SIZE" => {
                    capabilities.size = true;
                    capabilities.max_size = words.next().and_then(|size| size.parse().ok()).filter(|&size| size > 0);
                }
                "AUTH" => {
                    for mechanism in words {
                        capabilities.auth_plain |= mechanism.eq_ignore_ascii_case("PLAIN");
                        capabilities.auth_login |= mechanism.eq_ignore_ascii_case("LOGIN");
                    }
                }
                _ => {}
            }
        }
        capabilities
    }
}

/// A connection that is ready for a mail transaction.
pub(crate) struct Session {
    pub(super) wire: Wire,
    pub(super) capabilities: Capabilities,
    /// Address of the peer.
    remote: SocketAddr,
    /// TLS of the connection, if it is encrypted.
    tls: Option<AttemptTls>,
    /// Number of transactions so far; peers limit the transactions of a connection.
    pub(super) transactions: usize,
    /// Maximum number of transactions of this connection.
    most_transactions: usize,
    /// A transaction was begun and not ended: RSET is needed before the next one.
    pub(super) needs_reset: bool,
    /// The peer said that it closes, or something was odd: the session is not used again.
    pub(super) is_spent: bool,
}

/// The debug output leaves out everything that passes over the wire, which is personal.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("transactions", &self.transactions).finish_non_exhaustive()
    }
}

/// Protection of the connection to a mail server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Security {
    /// TLS after STARTTLS, or no delivery: there is no falling back to plain text.
    StartTls,
    /// TLS from the first octet.
    Tls,
    /// TLS after STARTTLS if it is offered. If it then fails the error is [`OpenError::Tls`], and the caller may try
    /// again in plain text.
    Opportunistic,
    /// Plain text, credentials included.
    Plain,
}

/// User name and password for AUTH.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Credentials {
    pub(crate) username: String,
    pub(crate) password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(***)")
    }
}

/// The server to open a session with, its protection and credentials.
#[derive(Clone, Copy)]
pub(crate) struct Peer<'a> {
    /// The host name that the certificate must be valid for.
    pub(crate) host: &'a str,
    pub(crate) security: Security,
    pub(crate) credentials: Option<&'a Credentials>,
}

/// Reason why no session could be opened with a mail server.
pub(crate) enum OpenError {
    /// The peer refused in a way that is an answer for every recipient.
    Reply(Reply),
    /// 5yz in place of a greeting: the host offers no mail service (RFC 5321 section 3.1).
    NoService(Reply),
    /// STARTTLS was refused, or the handshake failed.
    Tls(TransportError),
    /// Any other failure, such as a broken connection or a refused login.
    Failed(TransportError),
}

impl From<TransportError> for OpenError {
    fn from(error: TransportError) -> Self {
        Self::Failed(error)
    }
}

/// Parameters of opening a connection, besides the peer.
#[derive(Clone, Copy)]
pub(crate) struct Opener<'a> {
    pub(crate) ehlo_name: &'a str,
    /// Address that connections are bound to; `None` for the one that the system chooses.
    pub(crate) from: Option<IpAddr>,
    pub(crate) timeouts: &'a Timeouts,
    pub(crate) tls: &'a Tls,
}

impl Opener<'_> {
    /// Connects to an address within `limit`.
    pub(crate) async fn connect(
        self,
        address: SocketAddr,
        limit: Duration,
        transcript: &mut Transcript,
    ) -> Result<TcpStream, TransportError> {
        let failure = match timeout(limit, dial(self.from, address)).await {
            Ok(Ok(stream)) => {
                // Every write is a complete command; waiting for more would only delay it.
                drop(stream.set_nodelay(true));
                transcript.connected(address, None, false);
                return Ok(stream);
            }
            Ok(Err(error)) => format!("no connection: {error}"),
            Err(_) => format!("no connection within {limit:?}"),
        };
        transcript.note(format_args!("{address}: {failure}"));
        Err(TransportError::Unreachable(failure))
    }

    /// Opens a session over a new connection, up to the point where MAIL may follow.
    pub(crate) async fn open(
        self,
        stream: TcpStream,
        peer: &Peer<'_>,
        transcript: &mut Transcript,
    ) -> Result<Session, OpenError> {
        let remote = stream.peer_addr().map_err(|error| broken("connecting", &WireError::Broken(error)))?;
        let wire = match peer.security {
            Security::Tls => self.secure(stream, peer, transcript).await.map_err(OpenError::Tls)?,
            Security::StartTls | Security::Opportunistic | Security::Plain => Wire::plain(stream),
        };
        let mut opening = Opening { opener: self, wire, transcript };
        opening.greeting().await?;
        let mut capabilities = opening.hello().await?;
        let is_tls_wanted = match peer.security {
            Security::StartTls => true,
            Security::Opportunistic => capabilities.start_tls,
            Security::Tls | Security::Plain => false,
        };
        if is_tls_wanted {
            opening = opening.start_tls(capabilities, peer).await?;
            // Capabilities offered in plain text count for nothing (RFC 3207 section 4.2). A server may refuse the
            // client's side of the handshake only now.
            capabilities = opening.hello().await.map_err(|error| match error {
                OpenError::Failed(error) => OpenError::Tls(error),
                other => other,
            })?;
        }
        if let Some(credentials) = peer.credentials {
            // The connection is in plain text here only if the settings ask for it.
            opening.authenticate(capabilities, credentials).await?;
        }
        debug!(host = peer.host, security = ?peer.security, "a session is open");
        let wire = opening.wire;
        let tls = wire.tls_in_use(self.tls.verification());
        Ok(Session {
            wire,
            capabilities,
            remote,
            tls,
            transactions: 0,
            most_transactions: usize::MAX,
            needs_reset: false,
            is_spent: false,
        })
    }

    async fn secure(
        self,
        stream: TcpStream,
        peer: &Peer<'_>,
        transcript: &mut Transcript,
    ) -> Result<Wire, TransportError> {
        match self.tls.handshake(stream, peer.host, self.timeouts.handshake).await {
            Ok(stream) => {
                let wire = Wire::tls(stream);
                if let Some(tls) = wire.tls_in_use(self.tls.verification()) {
                    transcript.secured(tls);
                }
                Ok(wire)
            }
            Err(error) => {
                transcript.note(&error);
                Err(error)
            }
        }
    }
}

/// Connects to an address, from a local address if one is given.
async fn dial(from: Option<IpAddr>, to: SocketAddr) -> io::Result<TcpStream> {
    let Some(from) = from else { return TcpStream::connect(to).await };
    let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind(SocketAddr::new(from, 0))?;
    socket.connect(to).await
}

/// A connection on its way to becoming a session.
struct Opening<'a> {
    opener: Opener<'a>,
    wire: Wire,
    transcript: &'a mut Transcript,
}

impl Opening<'_> {
    async fn greeting(&mut self) -> Result<(), OpenError> {
        let limit = self.opener.timeouts.greeting;
        let greeting = self.hear("greeting", limit).await?;
        match greeting.kind() {
            Kind::Done => Ok(()),
            Kind::Closing | Kind::NotNow => Err(OpenError::Reply(greeting)),
            Kind::Never => Err(OpenError::NoService(greeting)),
            Kind::GoOn => Err(unexpected("greeting", &greeting).into()),
        }
    }

    /// Says EHLO, or HELO if the peer does not know EHLO (RFC 5321 section 3.2).
    async fn hello(&mut self) -> Result<Capabilities, OpenError> {
        let name = self.opener.ehlo_name;
        let reply = self.command("EHLO", &format!("EHLO {name}\r\n")).await?;
        match reply.kind() {
            Kind::Done => return Ok(Capabilities::of(&reply)),
            Kind::Never => {}
            Kind::Closing | Kind::NotNow => return Err(OpenError::Reply(reply)),
            Kind::GoOn => return Err(unexpected("EHLO", &reply).into()),
        }
        let reply = self.command("HELO", &format!("HELO {name}\r\n")).await?;
        match reply.kind() {
            Kind::Done => Ok(Capabilities::default()),
            Kind::Closing | Kind::NotNow | Kind::Never => Err(OpenError::Reply(reply)),
            Kind::GoOn => Err(unexpected("HELO", &reply).into()),
        }
    }

    async fn start_tls(mut self, offered: Capabilities, peer: &Peer<'_>) -> Result<Self, OpenError> {
        let failed = OpenError::Tls;
        if !offered.start_tls {
            return Err(failed(misconfigured("the server does not offer STARTTLS")));
        }
        let reply = self.command("STARTTLS", "STARTTLS\r\n").await.map_err(failed)?;
        match reply.kind() {
            Kind::Done => {}
            Kind::Closing => return Err(OpenError::Reply(reply)),
            Kind::NotNow | Kind::GoOn => return Err(failed(unexpected("STARTTLS", &reply))),
            Kind::Never => return Err(failed(misconfigured("the server refuses STARTTLS"))),
        }
        let stream = self.wire.into_plain().map_err(|error| {
            self.transcript.note(&error);
            failed(broken("STARTTLS", &error))
        })?;
        let wire = self.opener.secure(stream, peer, self.transcript).await.map_err(failed)?;
        Ok(Self { opener: self.opener, wire, transcript: self.transcript })
    }

    async fn authenticate(&mut self, offered: Capabilities, credentials: &Credentials) -> Result<(), OpenError> {
        let Credentials { username, password } = credentials;
        let reply = if offered.auth_plain {
            let secret = STANDARD.encode(format!("\0{username}\0{password}"));
            let whole = format!("AUTH PLAIN {secret}\r\n");
            if whole.len() <= MAX_COMMAND {
                self.transcript.said("AUTH PLAIN ***\r\n");
                self.secret(&whole).await?
            } else {
                self.dialog("AUTH PLAIN\r\n", &[&secret]).await?
            }
        } else if offered.auth_login {
            self.dialog("AUTH LOGIN\r\n", &[&STANDARD.encode(username), &STANDARD.encode(password)]).await?
        } else {
            return Err(misconfigured("the relay offers no login by PLAIN or LOGIN").into());
        };
        match reply.kind() {
            Kind::Done => Ok(()),
            Kind::Closing => Err(OpenError::Reply(reply)),
            Kind::NotNow => Err(unexpected("AUTH", &reply).into()),
            Kind::Never | Kind::GoOn => {
                Err(misconfigured(&format!("the relay refused the login with {}", reply.code())).into())
            }
        }
    }

    /// Sends a command, then the next one of `answers` after each 3yz reply.
    async fn dialog(&mut self, command: &str, answers: &[&str]) -> Result<Reply, OpenError> {
        let mut reply = self.command("AUTH", command).await?;
        for answer in answers {
            if reply.kind() != Kind::GoOn {
                break;
            }
            self.transcript.said("***\r\n");
            reply = self.secret(&format!("{answer}\r\n")).await?;
        }
        Ok(reply)
    }

    async fn command(&mut self, name: &str, line: &str) -> Result<Reply, TransportError> {
        self.transcript.said(line);
        self.ask(name, line).await
    }

    /// Sends a line that must not appear in the transcript.
    async fn secret(&mut self, line: &str) -> Result<Reply, TransportError> {
        self.ask("AUTH", line).await
    }

    async fn ask(&mut self, name: &str, line: &str) -> Result<Reply, TransportError> {
        let limit = self.opener.timeouts.command;
        if let Err(error) = self.wire.write(line.as_bytes(), limit).await {
            self.transcript.note(&error);
            return Err(broken(name, &error));
        }
        self.hear(name, limit).await
    }

    async fn hear(&mut self, stage: &str, limit: Duration) -> Result<Reply, TransportError> {
        match self.wire.reply(limit).await {
            Ok(reply) => {
                self.transcript.heard(&reply);
                Ok(reply)
            }
            Err(error) => {
                self.transcript.note(&error);
                Err(broken(stage, &error))
            }
        }
    }
}

impl Session {
    /// Notes in the transcript with whom a message is about to be exchanged over a kept connection.
    pub(crate) fn introduce(&self, transcript: &mut Transcript) {
        transcript.connected(self.remote, self.tls.clone(), true);
    }

    /// Returns true if the session is encrypted by TLS.
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns the certificates that the peer presented, its own first; none in plain text.
    pub(crate) fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        self.wire.peer_certificates()
    }

    /// Notes how the peer was verified, if the session is encrypted.
    pub(crate) fn verified(&mut self, verified: TlsVerification, transcript: &mut Transcript) {
        if let Some(tls) = &mut self.tls {
            tls.verified = verified;
            transcript.verified(verified);
        }
    }

    /// Returns the number of mail transactions in this session so far.
    pub(crate) const fn transactions(&self) -> usize {
        self.transactions
    }

    /// Sets the number of transactions after which the session is no longer used.
    pub(crate) fn limit_transactions(&mut self, most: usize) {
        self.most_transactions = most.max(1);
    }

    /// Returns true if the session has had its maximum number of transactions.
    pub(super) const fn is_full(&self) -> bool {
        self.transactions >= self.most_transactions
    }

    /// Makes the session ready for another transaction; returns `false` if that fails.
    pub(crate) async fn reset(&mut self, timeouts: &Timeouts) -> bool {
        if self.is_spent {
            return false;
        }
        if self.needs_reset {
            let reply = match self.wire.write(b"RSET\r\n", timeouts.command).await {
                Ok(()) => self.wire.reply(timeouts.command).await,
                Err(error) => Err(error),
            };
            self.needs_reset = !reply.is_ok_and(|reply| reply.kind() == Kind::Done);
        }
        // An unread reply would be taken for the answer to the next command.
        !self.needs_reset && !self.wire.has_unread()
    }

    /// Sends QUIT without waiting for the reply: it makes no difference.
    pub(crate) async fn quit(mut self) {
        if self.wire.write(b"QUIT\r\n", FAREWELL).await.is_ok() {
            self.wire.shutdown(FAREWELL).await;
        }
    }
}

/// Returns a name that EHLO can say, `localhost` if nothing of it is left: it must not end the command.
pub(crate) fn clean_name(name: &str) -> String {
    let is_fit = |c: &char| c.is_ascii_alphanumeric() || "-._:[]".contains(*c);
    let name: String = name.chars().filter(is_fit).take(255).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// Builds the error for an unexpected reply. Its text is left out, as it may quote addresses.
fn unexpected(stage: &str, reply: &Reply) -> TransportError {
    TransportError::Unreachable(format!("the peer answered {} to {stage}", reply.code()))
}

fn misconfigured(what: &str) -> TransportError {
    TransportError::Misconfigured(what.to_owned())
}

fn broken(stage: &str, error: &WireError) -> TransportError {
    TransportError::Unreachable(format!("{stage}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::reply::Collector;
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expected: Capabilities) {
        let mut collector = Collector::default();
        assert!(collector.push(b"250-mx greets you SIZE 7").unwrap().is_none());
        for line in lines {
            assert!(collector.push(format!("250-{line}").as_bytes()).unwrap().is_none());
        }
        let reply = collector.push(b"250 HELP").unwrap().unwrap();
        assert_eq!(Capabilities::of(&reply), expected);
    }

    #[test]
    fn capabilities_are_read() {
        let none = Capabilities::default();
        check(&[], none);
        check(&["starttls", "PIPELINING"], Capabilities { start_tls: true, pipelining: true, ..none });
        check(&["SIZE 1000"], Capabilities { size: true, max_size: Some(1000), ..none });
        for unlimited in ["SIZE", "SIZE 0", "SIZE x", "SIZE 99999999999999999999999"] {
            check(&[unlimited], Capabilities { size: true, ..none });
        }
        check(&["AUTH LOGIN plain XOAUTH2"], Capabilities { auth_plain: true, auth_login: true, ..none });
        check(&["AUTH=LOGIN"], Capabilities { auth_login: true, ..none });
        check(&["AUTHORIZE PLAIN", "X-SIZE 5", ""], none);
        check(&["SMTPUTF8", "8bitmime"], Capabilities { smtp_utf8: true, eight_bit: true, ..none });
    }
}
