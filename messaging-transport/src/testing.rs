//! Peers and doubles for tests, of this crate and of others (cargo feature `testing`).
//!
//! [`fakes`] are providers on loopback sockets; they alone need only the cargo feature `fakes`.
//! [`MemoryTransport`] stands in for a transport where a test is about what is sent.
//! [`CallingProvider`] is one whose provider calls back.
//! [`MemoryFetch`] is the same for calls of web addresses.
//! [`ScriptedSmtpServer`] is a real peer on a loopback socket, for tests of what goes over the wire.
//! [`ScriptedHttpServer`] is the same for HTTP.
//! [`TestDns`] is a real DNS server on a loopback socket.

#[cfg(feature = "testing")]
mod calling;
#[cfg(feature = "testing")]
mod dns;
pub mod fakes;
#[cfg(feature = "testing")]
mod fetch;
#[cfg(feature = "testing")]
mod http;
#[cfg(feature = "testing")]
mod memory;
#[cfg(feature = "testing")]
mod reply;
#[cfg(feature = "testing")]
mod scripted;

#[cfg(feature = "testing")]
pub use calling::CallingProvider;
#[cfg(feature = "testing")]
pub use dns::{DnsFailure, TestDns};
#[cfg(feature = "testing")]
pub use fetch::{MemoryFetch, fetched};
#[cfg(feature = "testing")]
pub use http::{Answer, HttpRequest, ScriptedHttpServer};
#[cfg(feature = "testing")]
pub use memory::MemoryTransport;
#[cfg(feature = "testing")]
pub use reply::outcome;
#[cfg(feature = "testing")]
pub use scripted::{Action, Gate, Received, ScriptedSmtpServer, ScriptedSmtpServerBuilder, Stage, certify};
