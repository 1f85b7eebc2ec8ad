//! The port to the machine that mail leaves from: its connections, files, disk and clock, as far as checks look at them.
//!
//! Only `messaging doctor` and `GET /system` look; nothing that sends or accepts does.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;

use crate::domain::installation::checkup::{
    CertificateFact, DiskFacts, FileFact, SecretKeyFact, SmtpCertificateFact, TlsaFact,
};
use crate::domain::mail::mta_sts::StsText;

/// Looks at the machine.
///
/// An implementer owes: bounded time, a few seconds for each call; and to change nothing.
#[async_trait]
pub trait HostProbe: Debug + Send + Sync {
    /// The addresses that connections to the internet leave from, as far as the machine knows; behind a router they are
    /// private.
    async fn outgoing_addresses(&self) -> Vec<IpAddr>;
    /// Whether an address may be connected to and counts as one that others reach.
    fn counts_as_public(&self, address: IpAddr) -> bool;
    /// The addresses of a host as the system looks them up, its hosts file included: for `--mx-override`.
    async fn system_addresses(&self, host: &str) -> Result<Vec<IpAddr>, String>;
    /// The first line that a mail server says, without its line end; an error is why there is none.
    async fn smtp_greeting(&self, address: SocketAddr) -> Result<String, String>;
    /// What comes of a TLS handshake with a host of this name at these addresses; the first that answers counts.
    async fn certificate(&self, host: &str, addresses: &[SocketAddr]) -> CertificateFact;
    /// The certificate of the SMTP listeners, as a client finds it that connects to a host of this name.
    async fn smtp_certificate(&self, host: &str) -> SmtpCertificateFact;
    /// The TLSA records of port 25 of a host of this name, beside the certificate of the SMTP listeners; an error is why they
    /// could not be looked up.
    async fn tlsa(&self, host: &str) -> Result<TlsaFact, String>;
    /// The MTA-STS policy of a domain, fetched as senders do; an error is why there is none.
    async fn sts_policy(&self, domain: &str) -> Result<StsText, String>;
    /// By how many milliseconds the clock is ahead of a time server (RFC 5905).
    async fn clock_ahead(&self, server: SocketAddr) -> Result<i64, String>;
    /// The permissions of the data directory and what is in it; empty when there is none.
    async fn files(&self) -> Result<Vec<FileFact>, String>;
    /// Space on the disk of the database.
    async fn disk(&self) -> DiskFacts;
    /// Whether the key file is that of the database.
    async fn secret_key(&self) -> SecretKeyFact;
    /// The port at which mail comes back: `None` when none is listened at, an error when it is to be and no server runs.
    async fn inbound_port(&self) -> Option<Result<u16, ()>>;
}
