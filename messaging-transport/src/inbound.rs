//! Receives returned mail: bounces, complaints, and requests to unsubscribe.
//!
//! An SMTP server for our own return addresses, for the addresses that receive reports about sending domains, and for
//! `postmaster` and `abuse` if the operator wants that mail. It relays nothing, stores no mail, has no users and offers
//! no AUTH. A mail is parsed ([`report`]), its effect is committed, and only then does the sender get 250.

mod domain_report;
pub mod report;
mod returned;
mod role_mail;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use messaging_core::ports::inbound::InboundSink;

use self::returned::ReturnedMail;
use crate::smtp_server::SmtpServerOptions;
use crate::smtp_server::server::SmtpServer;

/// A server for returned mail that is bound to its address but does not answer yet.
#[derive(Debug)]
pub struct Inbound(SmtpServer);

impl Inbound {
    /// Listens at an address; port 0 takes any free one. Must be called within a tokio runtime.
    pub fn bind(address: SocketAddr, options: SmtpServerOptions) -> io::Result<Self> {
        SmtpServer::bind(address, options).map(Self)
    }

    /// Returns the address, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.0.local_addr()
    }

    /// Receives mails for `sink` until `shutdown` is done; then accepts no further ones, finishes those under way
    /// within [`SmtpServerOptions::stop_grace`], and returns.
    pub async fn run(self, sink: Arc<dyn InboundSink>, shutdown: impl Future<Output = ()>) {
        self.0.run(Arc::new(ReturnedMail::new(sink)), shutdown).await;
    }
}
