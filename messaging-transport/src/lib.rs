//! What carries messages.
//!
//! Core decides what is sent and what an outcome means; this crate turns messages into octets and
//! speaks to peers.
//!
//! * [`mime`] writes an email as the octets that go on the wire.
//! * [`Sandbox`] captures instead of sending, on every channel.

pub mod mime;
mod sandbox;

pub use sandbox::Sandbox;
