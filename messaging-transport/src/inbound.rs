//! Mail that comes back: bounces, complaints, and requests to unsubscribe.
//!
//! An SMTP server for our own return addresses, for the addresses that receive reports about sending domains, and for `postmaster` and `abuse` where the operator wants to have that
//! mail. It relays nothing, stores no letter, has no users and offers no AUTH. What a mail says is read ([`report`]), its
//! effect is committed, and only then does the sender hear 250.

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

/// A server for returned mail that has its address and does not answer yet.
#[derive(Debug)]
pub struct Inbound(SmtpServer);

impl Inbound {
    /// Listens at an address; port 0 takes any free one. Must be called within a tokio runtime.
    pub fn bind(address: SocketAddr, options: SmtpServerOptions) -> io::Result<Self> {
        SmtpServer::bind(address, options).map(Self)
    }

    /// The address, with the port that was found.
    pub fn local_addr(&self) -> SocketAddr {
        self.0.local_addr()
    }

    /// Receives letters for `sink` until `shutdown` is done; then takes no further ones, finishes
    /// those that are on the way within [`SmtpServerOptions::stop_grace`], and returns.
    pub async fn run(self, sink: Arc<dyn InboundSink>, shutdown: impl Future<Output = ()>) {
        self.0.run(Arc::new(ReturnedMail::new(sink)), shutdown).await;
    }
}
