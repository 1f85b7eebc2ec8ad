//! What carries messages.
//!
//! Core decides what is sent and what an outcome means; this crate turns messages into octets and
//! speaks to peers.
//!
//! * [`mime`] writes an email as the octets that go on the wire, signed with DKIM.
//! * [`Sandbox`] captures instead of sending, on every channel.
//! * [`DirectDelivery`] sends email to the mail exchangers of its recipients.
//! * [`SmtpRelay`] sends email through a relay that the workspace has an account at.
//! * [`Dns`] looks up where mail goes, and the records of sending domains.
//! * [`GuardedFetch`] calls web addresses that users gave.
//! * [`inbound`] receives what comes back: bounces, complaints, requests to unsubscribe.
//! * [`defaults`] lists what a server starts with: every channel and provider that needs no more than
//!   the workspace's settings.
//!
//! ```
//! use messaging_core::domain::channel::Channel;
//! use messaging_transport::{Options, defaults};
//!
//! let transports = defaults(&Options::new("mail.example.org"));
//! assert!(transports.iter().any(|(channel, provider, _)| (*channel, *provider) == (Channel::Email, "smtp")));
//! ```

pub mod direct;
mod dkim;
pub mod dns;
pub mod fetch;
mod guard;
pub mod inbound;
pub mod listen;
pub mod mime;
pub mod relay;
mod sandbox;
pub mod smtp;
#[cfg(feature = "testing")]
pub mod testing;

use std::sync::Arc;
use std::time::Duration;

use messaging_core::domain::channel::Channel;
use messaging_core::ports::transport::Transport;

pub use direct::{DirectDelivery, MxOverride};
pub use dns::Dns;
pub use fetch::GuardedFetch;
pub use relay::SmtpRelay;
pub use sandbox::Sandbox;

/// What the transports are told.
#[derive(Debug, Clone)]
pub struct Options {
    /// How this machine introduces itself.
    pub hostname: String,
    /// Where they look up names.
    pub dns: Dns,
    /// What takes the place of every recipient's mail exchangers.
    pub mx_override: Option<MxOverride>,
    /// Whether relays and mail exchangers at private addresses are connected to; does not concern
    /// `mx_override`.
    pub allow_private: bool,
    /// How long a domain that could not be reached is not tried again.
    pub rest: Duration,
}

impl Options {
    /// With the resolver of the system, and without private addresses.
    pub fn new(hostname: &str) -> Self {
        let (dns, rest) = (Dns::new(None), DirectDelivery::REST);
        Self { hostname: hostname.to_owned(), dns, mx_override: None, allow_private: false, rest }
    }
}

/// The transports by channel and provider name (contract section 16).
pub fn defaults(options: &Options) -> Vec<(Channel, &'static str, Arc<dyn Transport>)> {
    let sandbox: Arc<dyn Transport> = Arc::new(Sandbox);
    let relay = SmtpRelay::builder().ehlo_name(&options.hostname).allow_private(options.allow_private);
    let relay: Arc<dyn Transport> = Arc::new(relay.build());
    let direct = DirectDelivery::builder(&options.hostname, options.dns.clone());
    let direct =
        direct.mx_override(options.mx_override.clone()).allow_private(options.allow_private).rest(options.rest);
    let direct: Arc<dyn Transport> = Arc::new(direct.build());
    Channel::ALL
        .into_iter()
        .map(|channel| (channel, "sandbox", Arc::clone(&sandbox)))
        .chain([(Channel::Email, "builtin", direct), (Channel::Email, "smtp", relay)])
        .collect()
}
