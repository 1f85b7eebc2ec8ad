//! Opening a connection: greeting, EHLO, STARTTLS, AUTH.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use messaging_core::ports::transport::TransportError;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tracing::debug;

use super::Timeouts;
use super::reply::{Kind, Reply};
use super::settings::{Credentials, Security, Settings, misconfigured};
use super::tls::Tls;
use super::wire::{Wire, WireError};

/// The most addresses of a host that are tried.
const MAX_ADDRESSES: usize = 8;

/// How long a peer gets to take a farewell; nobody waits for more.
const FAREWELL: Duration = Duration::from_secs(1);

/// The longest AUTH command with an initial response: longer ones go in two steps, as a command line
/// may have 512 octets (RFC 5321 section 4.5.3.1.4).
const MAX_COMMAND: usize = 510;

/// What the relay said to EHLO that matters here.
#[expect(clippy::struct_excessive_bools, reason = "each is an extension that is offered or not")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    pub(super) start_tls: bool,
    pub(super) pipelining: bool,
    pub(super) smtp_utf8: bool,
    pub(super) auth_plain: bool,
    pub(super) auth_login: bool,
    /// The largest message, if the relay has a limit and says so (RFC 1870).
    pub(super) max_size: Option<usize>,
    /// Whether SIZE may be a parameter of MAIL.
    pub(super) size: bool,
}

impl Capabilities {
    /// The first line is a greeting; every other one a keyword with parameters (RFC 5321 section 4.1.1.1).
    fn of(reply: &Reply) -> Self {
        let mut capabilities = Self::default();
        for line in reply.lines().skip(1) {
            // `AUTH=LOGIN` is how some wrote it before RFC 2554.
            let mut words = line.split([' ', '=']).filter(|word| !word.is_empty());
            match words.next().unwrap_or_default().to_ascii_uppercase().as_str() {
                "STARTTLS" => capabilities.start_tls = true,
                "PIPELINING" => capabilities.pipelining = true,
                "SMTPUTF8" => capabilities.smtp_utf8 = true,
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
pub(super) struct Session {
    pub(super) wire: Wire,
    pub(super) capabilities: Capabilities,
    /// How many transactions there were: after some, relays like to see a new connection.
    pub(super) transactions: usize,
    /// A transaction was begun and not ended: RSET before the next one.
    pub(super) needs_reset: bool,
    /// The peer said it closes, or something was odd: not to be used again.
    pub(super) is_spent: bool,
}

/// The relay's settings are personal, and so is what passes over the wire.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("transactions", &self.transactions).finish_non_exhaustive()
    }
}

/// Why there is no session.
pub(super) enum OpenError {
    /// The relay said no in a way that is an answer for every recipient.
    Reply(Reply),
    /// There was no such answer.
    Failed(TransportError),
}

impl From<TransportError> for OpenError {
    fn from(error: TransportError) -> Self {
        Self::Failed(error)
    }
}

/// What opening a connection needs besides the settings.
#[derive(Clone, Copy)]
pub(super) struct Opener<'a> {
    pub(super) ehlo_name: &'a str,
    pub(super) timeouts: &'a Timeouts,
    pub(super) tls: &'a Tls,
}

impl Opener<'_> {
    pub(super) async fn open(self, settings: &Settings) -> Result<Session, OpenError> {
        let stream = self.connect(settings).await?;
        let mut wire = match settings.security {
            Security::Tls => self.secure(stream, settings).await?,
            Security::StartTls | Security::Plain => Wire::plain(stream),
        };
        let greeting = wire.reply(self.timeouts.greeting).await.map_err(|error| broken("greeting", &error))?;
        match greeting.kind() {
            Kind::Done => {}
            Kind::Closing | Kind::NotNow => return Err(OpenError::Reply(greeting)),
            // 554 in place of a greeting: there is no service at all (RFC 5321 section 3.1).
            Kind::Never | Kind::GoOn => return Err(unexpected("greeting", &greeting).into()),
        }
        let mut capabilities = self.hello(&mut wire).await?;
        if settings.security == Security::StartTls {
            wire = self.start_tls(wire, capabilities, settings).await?;
            // What was said in plain text counts for nothing (RFC 3207 section 4.2).
            capabilities = self.hello(&mut wire).await?;
        }
        if let Some(credentials) = &settings.credentials {
            // Plain text is here only where the settings say so in words (see `Security::Plain`).
            self.authenticate(&mut wire, capabilities, credentials).await?;
        }
        debug!(host = settings.host, port = settings.port, security = ?settings.security, "connected to a relay");
        Ok(Session { wire, capabilities, transactions: 0, needs_reset: false, is_spent: false })
    }

    async fn connect(self, settings: &Settings) -> Result<TcpStream, TransportError> {
        let addresses = self.resolve(settings).await?;
        let mut last = TransportError::Unreachable("the host has no address that may be used".to_owned());
        for address in addresses.into_iter().filter(|address| is_permitted(address.ip())).take(MAX_ADDRESSES) {
            let limit = self.timeouts.connect;
            last = match timeout(limit, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Every write here is a whole thought; waiting for more would only delay it.
                    drop(stream.set_nodelay(true));
                    return Ok(stream);
                }
                Ok(Err(error)) => TransportError::Unreachable(format!("no connection: {error}")),
                Err(_) => TransportError::Unreachable(format!("no connection within {limit:?}")),
            };
        }
        Err(last)
    }

    async fn resolve(self, settings: &Settings) -> Result<Vec<SocketAddr>, TransportError> {
        let limit = self.timeouts.connect;
        match timeout(limit, tokio::net::lookup_host((settings.host.as_str(), settings.port))).await {
            Ok(Ok(addresses)) => Ok(addresses.collect()),
            Ok(Err(_)) => Err(TransportError::Unreachable("the host's name could not be resolved".to_owned())),
            Err(_) => Err(TransportError::Unreachable(format!("the host's name was not resolved within {limit:?}"))),
        }
    }

    async fn secure(self, stream: TcpStream, settings: &Settings) -> Result<Wire, TransportError> {
        self.tls.handshake(stream, &settings.host, self.timeouts.handshake).await.map(Wire::tls)
    }

    /// EHLO, or HELO where the relay does not know the former (RFC 5321 section 3.2).
    async fn hello(self, wire: &mut Wire) -> Result<Capabilities, OpenError> {
        let reply = self.command(wire, "EHLO", &format!("EHLO {}\r\n", self.ehlo_name)).await?;
        match reply.kind() {
            Kind::Done => return Ok(Capabilities::of(&reply)),
            Kind::Never => {}
            Kind::Closing | Kind::NotNow => return Err(OpenError::Reply(reply)),
            Kind::GoOn => return Err(unexpected("EHLO", &reply).into()),
        }
        let reply = self.command(wire, "HELO", &format!("HELO {}\r\n", self.ehlo_name)).await?;
        match reply.kind() {
            Kind::Done => Ok(Capabilities::default()),
            Kind::Closing | Kind::NotNow | Kind::Never => Err(OpenError::Reply(reply)),
            Kind::GoOn => Err(unexpected("HELO", &reply).into()),
        }
    }

    async fn start_tls(self, wire: Wire, offered: Capabilities, settings: &Settings) -> Result<Wire, OpenError> {
        let mut wire = wire;
        if !offered.start_tls {
            return Err(misconfigured("the relay does not offer STARTTLS").into());
        }
        let reply = self.command(&mut wire, "STARTTLS", "STARTTLS\r\n").await?;
        match reply.kind() {
            Kind::Done => {}
            Kind::Closing => return Err(OpenError::Reply(reply)),
            Kind::NotNow | Kind::GoOn => return Err(unexpected("STARTTLS", &reply).into()),
            Kind::Never => return Err(misconfigured("the relay refuses STARTTLS").into()),
        }
        let stream = wire.into_plain().map_err(|error| broken("STARTTLS", &error))?;
        Ok(self.secure(stream, settings).await?)
    }

    async fn authenticate(
        self,
        wire: &mut Wire,
        offered: Capabilities,
        credentials: &Credentials,
    ) -> Result<(), OpenError> {
        let Credentials { username, password } = credentials;
        let reply = if offered.auth_plain {
            let secret = STANDARD.encode(format!("\0{username}\0{password}"));
            let whole = format!("AUTH PLAIN {secret}\r\n");
            if whole.len() <= MAX_COMMAND {
                self.command(wire, "AUTH", &whole).await?
            } else {
                self.dialog(wire, "AUTH PLAIN\r\n", &[&secret]).await?
            }
        } else if offered.auth_login {
            self.dialog(wire, "AUTH LOGIN\r\n", &[&STANDARD.encode(username), &STANDARD.encode(password)]).await?
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

    /// A command and what the relay then asks for, as long as it asks.
    async fn dialog(self, wire: &mut Wire, command: &str, answers: &[&str]) -> Result<Reply, OpenError> {
        let mut reply = self.command(wire, "AUTH", command).await?;
        for answer in answers {
            if reply.kind() != Kind::GoOn {
                break;
            }
            reply = self.command(wire, "AUTH", &format!("{answer}\r\n")).await?;
        }
        Ok(reply)
    }

    async fn command(self, wire: &mut Wire, name: &str, line: &str) -> Result<Reply, OpenError> {
        let limit = self.timeouts.command;
        wire.write(line.as_bytes(), limit).await.map_err(|error| broken(name, &error))?;
        Ok(wire.reply(limit).await.map_err(|error| broken(name, &error))?)
    }
}

impl Session {
    /// Makes the session ready for another transaction; `false` if that cannot be.
    pub(super) async fn reset(&mut self, timeouts: &Timeouts) -> bool {
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
        // A reply that nobody asked for would be taken for the answer to the next command.
        !self.needs_reset && !self.wire.has_unread()
    }

    /// Says goodbye without waiting for the answer: the relay has nothing to add.
    pub(super) async fn quit(mut self) {
        if self.wire.write(b"QUIT\r\n", FAREWELL).await.is_ok() {
            self.wire.shutdown(FAREWELL).await;
        }
    }
}

/// Whether a relay may have this address.
///
/// Every address is allowed today, private ones too: settings are an administrator's. When tenants
/// that nobody vouches for may write them, this is the place that refuses.
const fn is_permitted(_address: IpAddr) -> bool {
    true
}

/// The reply's text stays out of the error, as it may quote addresses.
fn unexpected(stage: &str, reply: &Reply) -> TransportError {
    TransportError::Unreachable(format!("the relay answered {} to {stage}", reply.code()))
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
        check(&["SMTPUTF8"], Capabilities { smtp_utf8: true, ..none });
    }
}
