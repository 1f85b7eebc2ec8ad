//! The crate from outside: messages read back by a parser, transports against a scripted peer.

mod mime;
mod sandbox;
mod support;
