//! What a client may ask of the listener, and how far that is with stopping.

use std::time::Duration;

/// How the server listens and what a client may ask of it.
#[derive(Debug, Clone)]
pub struct InboundOptions {
    /// The name in the greeting.
    pub hostname: String,
    /// Connections at a time; further ones hear 421.
    pub max_connections: usize,
    /// The same from one address; of IPv6 from one /64.
    pub max_per_address: usize,
    /// The largest mail in octets, as SIZE (RFC 1870) announces it.
    pub max_letter: usize,
    /// Letters whose content is in memory at a time; further ones wait for a place. Of each no more
    /// than [`report::MAX_READ`](super::report::MAX_READ) octets are kept.
    pub max_letters: usize,
    /// Recipients of a mail: it is about one message, or a few in a digest.
    pub max_recipients: usize,
    /// Refused commands before a client is sent away.
    pub max_errors: usize,
    /// Commands of a connection.
    pub max_commands: usize,
    /// How long a command, a reply, or the store may take (RFC 5321 section 4.5.3.2.7).
    pub command_timeout: Duration,
    /// How long content may take to arrive.
    pub content_timeout: Duration,
    /// How long a connection may last.
    pub connection_timeout: Duration,
    /// How long letters that are being received may take once the server is to stop.
    pub stop_grace: Duration,
}

impl InboundOptions {
    /// The options of a server that calls itself `hostname`.
    pub fn new(hostname: impl Into<String>) -> Self {
        Self {
            hostname: hostname.into(),
            max_connections: 200,
            max_per_address: 20,
            max_letter: 10 << 20,
            max_letters: 100,
            max_recipients: 10,
            max_errors: 10,
            max_commands: 1000,
            command_timeout: Duration::from_mins(5),
            content_timeout: Duration::from_mins(5),
            connection_timeout: Duration::from_mins(30),
            stop_grace: Duration::from_secs(10),
        }
    }
}

/// How far the server is with stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// Letters that have begun are finished.
    Stopping,
    /// Nothing is.
    Aborting,
}
