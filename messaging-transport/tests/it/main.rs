//! The crate from outside: messages read back by a parser, transports against a scripted peer.

mod auto_dns;
mod chats;
mod direct;
mod dkim;
mod dns;
mod fetch;
mod inbound;
mod mime;
mod relay;
mod returned;
mod sandbox;
mod sms;
mod smtp_client;
mod submission;
mod support;
