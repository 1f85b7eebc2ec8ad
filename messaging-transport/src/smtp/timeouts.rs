//! Time limits of the steps of an SMTP delivery.

use std::time::Duration;

/// Time limits of the steps of a delivery, with the values of RFC 5321 section 4.5.3.2 where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a turn, while the maximum number of messages to the same peer is under way.
    pub queue: Duration,
    /// To resolve the host, and to connect to each of its addresses.
    pub connect: Duration,
    /// To connect to all addresses that are tried, together.
    pub connect_in_all: Duration,
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
    /// For the replies to pipelined commands whose outcome is known already, because MAIL or every RCPT was refused;
    /// after that the connection is closed.
    pub rest_of_group: Duration,
    /// For the peer to take each block of the content.
    pub block: Duration,
    /// For the reply to the whole content.
    pub dot: Duration,
}

impl Timeouts {
    /// Limits for a relay: there is no other peer to turn to.
    pub(crate) const RELAY: Self = Self {
        queue: Duration::from_mins(10),
        connect: Duration::from_secs(30),
        connect_in_all: Duration::from_mins(4),
        handshake: Duration::from_secs(30),
        greeting: Duration::from_mins(5),
        command: Duration::from_mins(5),
        mail: Duration::from_mins(5),
        rcpt: Duration::from_mins(5),
        data: Duration::from_mins(2),
        rest_of_group: Duration::from_secs(5),
        block: Duration::from_mins(3),
        dot: Duration::from_mins(10),
    };

    /// Limits for a mail exchanger: others wait for the turn, and there may be another exchanger.
    pub(crate) const DIRECT: Self = Self {
        queue: Duration::from_mins(1),
        connect: Duration::from_secs(15),
        connect_in_all: Duration::from_mins(1),
        ..Self::RELAY
    };

    /// Returns limits with the same time for every step; for tests.
    pub const fn all(limit: Duration) -> Self {
        Self {
            queue: limit,
            connect: limit,
            connect_in_all: limit,
            handshake: limit,
            greeting: limit,
            command: limit,
            mail: limit,
            rcpt: limit,
            data: limit,
            rest_of_group: limit,
            block: limit,
            dot: limit,
        }
    }
}
