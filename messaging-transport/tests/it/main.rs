//! The crate from outside: messages read back by a parser, transports against a scripted peer.

mod inbound;
mod memory;
mod mime;
mod returned;
mod sandbox;
mod smtp;
mod support;
