//! Mail that comes back: bounces, complaints, and requests to unsubscribe.
//!
//! An SMTP server for our own return addresses and nobody else's. It relays nothing, stores no letter,
//! has no users and offers no AUTH; STARTTLS is not offered either, because what arrives is no secret of
//! ours and names nobody but through a signed token. What a mail says is read ([`report`]), its effect
//! is committed, and only then does the sender hear 250.
//!
//! Everything a stranger can make it hold or wait for is bounded (see [`InboundOptions`]).

mod data;
mod line;
pub mod report;
mod server;
mod session;

pub use server::{Inbound, InboundOptions};
