//! What carries messages.
//!
//! Core decides what is sent and what an outcome means; this crate turns messages into octets and
//! speaks to peers.
//!
//! * [`mime`] writes an email as the octets that go on the wire.
//! * [`Sandbox`] captures instead of sending, on every channel.
//! * [`SmtpRelay`] sends email through a relay that the workspace has an account at.
//! * [`inbound`] receives what comes back: bounces, complaints, requests to unsubscribe.
//! * [`defaults`] lists what a server starts with: every channel and provider that needs no more than
//!   the workspace's settings.

pub mod inbound;
pub mod mime;
mod sandbox;
pub mod smtp;
#[cfg(feature = "testing")]
pub mod testing;

use std::sync::Arc;

use messaging_core::domain::channel::Channel;
use messaging_core::ports::transport::Transport;

pub use sandbox::Sandbox;
pub use smtp::SmtpRelay;

/// The transports by channel and provider name (contract section 16). `hostname` is how this machine
/// introduces itself.
pub fn defaults(hostname: &str) -> Vec<(Channel, &'static str, Arc<dyn Transport>)> {
    let sandbox: Arc<dyn Transport> = Arc::new(Sandbox);
    let relay: Arc<dyn Transport> = Arc::new(SmtpRelay::new(hostname.to_owned()));
    Channel::ALL
        .into_iter()
        .map(|channel| (channel, "sandbox", Arc::clone(&sandbox)))
        .chain([(Channel::Email, "smtp", relay)])
        .collect()
}
