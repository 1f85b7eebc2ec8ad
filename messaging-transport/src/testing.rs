//! Peers and doubles for tests, of this crate and of others (cargo feature `testing`).
//!
//! [`MemoryTransport`] stands in for a transport where a test is about what is sent.
//! [`CallingProvider`] is one whose provider calls back.
//! [`MemoryFetch`] is the same for calls of web addresses.
//! [`ScriptedSmtpServer`] is a real peer on a loopback socket, for tests of what goes over the wire.
//! [`ScriptedHttpServer`] is the same for HTTP.
//! [`TestDns`] is a real DNS server on a loopback socket.

mod calling;
mod dns;
mod fetch;
mod http;
mod memory;
mod scripted;

use messaging_core::ports::transport::Outcome;

use crate::smtp::parse_reply;

pub use calling::CallingProvider;
pub use dns::{DnsFailure, TestDns};
pub use fetch::{MemoryFetch, fetched};
pub use http::{Answer, HttpRequest, ScriptedHttpServer};
pub use memory::MemoryTransport;
pub use scripted::{Action, Gate, Received, ScriptedSmtpServer, ScriptedSmtpServerBuilder, Stage};

/// The outcome of an SMTP reply, such as `550 5.1.1 no such user`.
///
/// # Panics
///
/// If that is not a final reply.
pub fn outcome(reply: &str) -> Outcome {
    parse_reply(reply.as_bytes()).and_then(|reply| reply.outcome("mx.test")).expect("a final reply")
}
