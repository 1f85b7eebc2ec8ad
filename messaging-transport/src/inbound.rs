//! Mail that comes back: bounces, complaints, and requests to unsubscribe.
//!
//! An SMTP server for our own return addresses and nobody else's. It relays nothing, stores no letter,
//! has no users and offers no AUTH; STARTTLS is not offered either, because what arrives is no secret of
//! ours and names nobody but through a signed token. What a letter says is read ([`report`]), its effect
//! is committed, and only then does the sender hear 250.
//!
//! Everything a stranger can make it hold or wait for is bounded (see [`InboundOptions`]).

mod data;
mod line;
pub mod report;
mod server;
mod session;

use async_trait::async_trait;
use messaging_core::app::{App, ReturnAddress};
use messaging_core::domain::report::Report;
use messaging_core::error::Error;
use messaging_core::ports::store::StoreError;

pub use server::{Inbound, InboundOptions};

/// Who knows the return addresses and what a report does: the application.
#[async_trait]
pub trait Postbox: Send + Sync + 'static {
    /// What an address says, if it is a return address of ours.
    async fn return_address(&self, address: &str) -> Result<Option<ReturnAddress>, StoreError>;
    /// Takes note of a report. When it returns, that is durable; the same report twice has one effect.
    async fn receive(&self, to: &ReturnAddress, report: &Report) -> Result<(), Error>;
}

#[async_trait]
impl Postbox for App {
    async fn return_address(&self, address: &str) -> Result<Option<ReturnAddress>, StoreError> {
        Self::return_address(self, address).await
    }

    async fn receive(&self, to: &ReturnAddress, report: &Report) -> Result<(), Error> {
        Self::receive(self, to, report).await
    }
}
