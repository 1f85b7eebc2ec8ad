//! An SMTP server (RFC 5321): its connections, their bounds, TLS, signing in, and the form of commands and content.
//!
//! A `Service` handles the mail: returned mail ([`crate::inbound`]) or submission ([`crate::submission`]). Everything
//! that a stranger can make a server hold or wait for is bounded (see [`SmtpServerOptions`]).

mod auth;
mod data;
pub(crate) mod handler;
mod line;
mod options;
pub(crate) mod server;
mod session;
mod stream;
mod tls;
mod x509;

pub use options::SmtpServerOptions;
pub(crate) use tls::read_chain;
pub use tls::{ServerTls, ServerTlsError};
