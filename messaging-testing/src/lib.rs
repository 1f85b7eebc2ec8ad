//! Peers and doubles for tests of programs that send messages.
//!
//! [`fakes`] are providers on loopback sockets; without the cargo feature `peers` the crate has nothing else. With it,
//! [`MemoryTransport`] replaces a transport in tests that look at the messages sent. [`CallingProvider`] is a transport
//! whose provider calls back. [`MemoryFetch`] replaces the HTTP client. [`MemoryOidcProvider`] is a single sign-on
//! provider behind the same port. [`ScriptedSmtpServer`] is a real peer on a loopback socket, for tests of SMTP on the
//! wire. [`ScriptedHttpServer`] is the same for HTTP. [`TestDns`] is a real DNS server on a loopback socket, and
//! [`MemoryDnsProvider`] a DNS provider whose zone can be written to. [`MailboxProvider`] is a site that judges its
//! senders: volumes that grow with reputation, deferrals, blocks.

#[cfg(feature = "peers")]
mod calling;
#[cfg(feature = "peers")]
mod dns;
#[cfg(feature = "peers")]
mod dns_zone;
pub mod fakes;
#[cfg(feature = "peers")]
mod fetch;
#[cfg(feature = "peers")]
mod http;
#[cfg(feature = "peers")]
pub mod mailbox_provider;
#[cfg(feature = "peers")]
mod memory;
#[cfg(feature = "peers")]
mod oidc;
#[cfg(feature = "peers")]
mod reply;
#[cfg(feature = "peers")]
mod scripted;

#[cfg(feature = "peers")]
pub use calling::CallingProvider;
#[cfg(feature = "peers")]
pub use dns::{DnsFailure, TestDns};
#[cfg(feature = "peers")]
pub use dns_zone::MemoryDnsProvider;
#[cfg(feature = "peers")]
pub use fetch::{MemoryFetch, fetched};
#[cfg(feature = "peers")]
pub use http::{Answer, HttpRequest, ScriptedHttpServer};
#[cfg(feature = "peers")]
pub use mailbox_provider::{Mailbox, MailboxProvider, SitePolicy, SiteStyle};
#[cfg(feature = "peers")]
pub use memory::MemoryTransport;
#[cfg(feature = "peers")]
pub use oidc::{MemoryOidcProvider, TokenSigning};
#[cfg(feature = "peers")]
pub use reply::outcome;
#[cfg(feature = "peers")]
pub use scripted::{Action, Gate, Received, ScriptedSmtpServer, ScriptedSmtpServerBuilder, Stage, certify};
