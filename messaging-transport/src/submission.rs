//! Submission: messages of programs that speak only SMTP (RFC 6409).
//!
//! A client that signs in with an API key may send any message that `POST /messages` accepts, and nothing else: a mail
//! is converted to that operation's body (`mail`), and a [`SubmissionSink`] accepts it like a request. The replies are
//! those of contract section 22 ("Submission").

mod handler;
mod mail;
mod part;
mod recipients;
mod refusal;
mod sink;
mod structure;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use self::handler::Submitting;
pub use self::refusal::Refusal;
pub use self::sink::{Room, SubmissionSink, Submitter};
use crate::smtp_server::SmtpServerOptions;
use crate::smtp_server::server::SmtpServer;

/// A server for submission that is bound to its address but does not answer yet.
#[derive(Debug)]
pub struct Submission(SmtpServer);

impl Submission {
    /// Listens at an address; port 0 takes any free one. Must be called within a tokio runtime.
    ///
    /// Without TLS passwords and messages travel in the clear, so only loopback addresses are allowed then: others are
    /// refused with [`io::ErrorKind::InvalidInput`].
    pub fn bind(address: SocketAddr, options: SmtpServerOptions) -> io::Result<Self> {
        if options.tls.is_none() && !address.ip().to_canonical().is_loopback() {
            let rule = "without a certificate submission is for loopback addresses alone";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, rule));
        }
        SmtpServer::bind(address, options).map(Self)
    }

    /// Returns the address, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.0.local_addr()
    }

    /// Receives messages for `sink` until `shutdown` is done; then accepts no further ones, finishes those under way
    /// within [`SmtpServerOptions::stop_grace`], and returns.
    pub async fn run(self, sink: Arc<dyn SubmissionSink>, shutdown: impl Future<Output = ()>) {
        self.0.run(Arc::new(Submitting::new(sink)), shutdown).await;
    }
}
