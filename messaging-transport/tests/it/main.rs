//! The crate from outside: messages read back by a parser, transports against a scripted peer.

mod direct;
mod dns;
mod memory;
mod mime;
mod relay;
mod sandbox;
mod support;
