//! What a client may ask of a server, and how far that is with stopping.

use std::sync::Arc;
use std::time::Duration;

use super::tls::ServerTls;

/// How an SMTP server listens and what a client may ask of it.
#[derive(Debug, Clone)]
pub struct SmtpServerOptions {
    /// The name in the greeting.
    pub hostname: String,
    /// What TLS is offered with; without it STARTTLS is not offered.
    pub tls: Option<Arc<ServerTls>>,
    /// How long the greeting waits for a client that begins with TLS at once (RFC 8314 section 3.3), which is told by
    /// its first byte; `None` where nobody does. Without [`Self::tls`] nothing is waited for.
    pub implicit_tls: Option<Duration>,
    /// Connections at a time; further ones hear 421.
    pub max_connections: usize,
    /// Connections at a time from one address (IPv6: from one /64); further ones hear 421.
    pub max_per_address: usize,
    /// The largest mail in octets, as SIZE (RFC 1870) announces it.
    pub max_letter: usize,
    /// Letters whose content is in memory at a time; further ones wait for a place.
    pub max_letters: usize,
    /// Recipients of a mail.
    pub max_recipients: usize,
    /// Refused commands before a client is sent away.
    pub max_errors: usize,
    /// Commands of a connection.
    pub max_commands: usize,
    /// Failed sign-ins of a connection before the client is sent away.
    pub max_failed_sign_ins: u32,
    /// How long the reply to a failed sign-in is held back; that to the second twice as long, and so on.
    pub sign_in_delay: Duration,
    /// How long a client may stay that does not sign in where it has to.
    pub stranger_timeout: Duration,
    /// How long a command, a reply, or the store may take (RFC 5321 section 4.5.3.2.7).
    pub command_timeout: Duration,
    /// How long content may stand still (RFC 5321 section 4.5.3.2.5).
    pub stall_timeout: Duration,
    /// How long content may take to arrive.
    pub content_timeout: Duration,
    /// How long a connection may last.
    pub connection_timeout: Duration,
    /// How long letters that are being received may take once the server is to stop.
    pub stop_grace: Duration,
}

impl SmtpServerOptions {
    /// The options of a server for returned mail that calls itself `hostname`: strangers with a letter each, about one
    /// message or a few in a digest.
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

    /// The options of a server for submission that calls itself `hostname`: programs that sign in, keep their
    /// connections, and send many messages, large ones among them (contract section 22, "Submission").
    pub fn submission(hostname: impl Into<String>) -> Self {
        Self {
            implicit_tls: Some(Duration::from_millis(500)),
            max_connections: 500,
            max_per_address: 100,
            // As long as the body of `POST /messages` may be.
            max_letter: 25 << 20,
            max_letters: 500,
            max_recipients: 101,
            // Between two messages that are accepted; each recipient may be one.
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

/// How far the server is with stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// Mails that have begun are finished, and no new ones accepted.
    Stopping,
    /// Connections end at once.
    Aborting,
}
