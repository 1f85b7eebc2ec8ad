//! Options of an SMTP server, and the phases in which it stops.

use std::sync::Arc;
use std::time::Duration;

use super::tls::ServerTls;

/// Options of an SMTP server: its name, TLS, limits and time-outs.
#[derive(Debug, Clone)]
pub struct SmtpServerOptions {
    /// The name in the greeting.
    pub hostname: String,
    /// Certificate and key for TLS; without them STARTTLS is not offered.
    pub tls: Option<Arc<ServerTls>>,
    /// Time that the greeting waits for a client that begins with TLS at once (RFC 8314 section 3.3), which its first
    /// byte shows; `None` if no client does so. Ignored without [`Self::tls`].
    pub implicit_tls: Option<Duration>,
    /// Maximum number of connections at a time; further ones get 421.
    pub max_connections: usize,
    /// Maximum number of connections at a time from one address (IPv6: from one /64); further ones get 421.
    pub max_per_address: usize,
    /// Maximum size of a mail in octets, as announced by SIZE (RFC 1870).
    pub max_letter: usize,
    /// Maximum number of mails whose content is in memory at a time; further ones wait for a place.
    pub max_letters: usize,
    /// Maximum number of recipients of a mail.
    pub max_recipients: usize,
    /// Refused commands after which the connection is closed.
    pub max_errors: usize,
    /// Maximum number of commands of a connection.
    pub max_commands: usize,
    /// Failed sign-ins of a connection after which it is closed.
    pub max_failed_sign_ins: u32,
    /// Delay of the reply to the first failed sign-in; the delay after the nth is n times as long.
    pub sign_in_delay: Duration,
    /// Time after which a client that has not signed in is disconnected, on servers that require it.
    pub stranger_timeout: Duration,
    /// Time limit for a command, a reply, or the service's work (RFC 5321 section 4.5.3.2.7).
    pub command_timeout: Duration,
    /// Maximum time between two pieces of content (RFC 5321 section 4.5.3.2.5).
    pub stall_timeout: Duration,
    /// Maximum time in which the content of a mail arrives.
    pub content_timeout: Duration,
    /// Maximum time that a connection lasts.
    pub connection_timeout: Duration,
    /// Time given to mails that are being received when the server stops.
    pub stop_grace: Duration,
}

impl SmtpServerOptions {
    /// Returns the options of a server for returned mail that calls itself `hostname`: unknown clients with a mail
    /// each, about one message or a few in a digest.
    pub fn returned_mail(hostname: impl Into<String>) -> Self {
        Self {
            hostname: hostname.into(),
            tls: None,
            implicit_tls: None,
            max_connections: 200,
            max_per_address: 20,
            max_letter: 10 << 20,
            max_letters: 100,
            max_recipients: 10,
            max_errors: 10,
            max_commands: 1000,
            max_failed_sign_ins: 0,
            sign_in_delay: Duration::ZERO,
            stranger_timeout: Duration::from_mins(30),
            command_timeout: Duration::from_mins(5),
            stall_timeout: Duration::from_mins(5),
            content_timeout: Duration::from_mins(5),
            connection_timeout: Duration::from_mins(30),
            stop_grace: Duration::from_secs(10),
        }
    }

    /// Returns the options of a server for submission that calls itself `hostname`: programs that sign in, keep their
    /// connections, and send many messages, large ones among them (contract section 22, "Submission").
    pub fn submission(hostname: impl Into<String>) -> Self {
        Self {
            implicit_tls: Some(Duration::from_millis(500)),
            max_connections: 500,
            max_per_address: 100,
            // As large as the body of `POST /messages` may be.
            max_letter: 25 << 20,
            max_letters: 500,
            max_recipients: 101,
            // Counted since the last accepted message; each recipient may be an error.
            max_errors: 200,
            max_commands: 100_000,
            max_failed_sign_ins: 3,
            sign_in_delay: Duration::from_secs(1),
            stranger_timeout: Duration::from_mins(1),
            stall_timeout: Duration::from_mins(1),
            content_timeout: Duration::from_mins(15),
            connection_timeout: Duration::from_hours(1),
            ..Self::returned_mail(hostname)
        }
    }
}

/// Phase of the server's shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// Mails that have begun are finished; no new ones are accepted.
    Stopping,
    /// Connections are closed at once.
    Aborting,
}
