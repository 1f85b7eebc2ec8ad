//! The port to the machine that mail leaves from: its connections, files, disk and clock, for checks.
//!
//! Only `messaging doctor` and `GET /system` use it; no code that sends or accepts mail does.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

use async_trait::async_trait;

use crate::domain::installation::checkup::{
    CertificateFact, DiskFacts, FileFact, SecretKeyFact, SmtpCertificateFact, TlsaFact,
};
use crate::domain::mail::mta_sts::StsText;

/// Probes of the machine.
///
/// An implementer has to return in bounded time, a few seconds for each call, and must change nothing.
#[async_trait]
pub trait HostProbe: Debug + Send + Sync {
    /// Returns the addresses that connections to the internet leave from, as far as the machine knows; behind a router
    /// they are private.
    async fn outgoing_addresses(&self) -> Vec<IpAddr>;
    /// True if connections to an address are allowed and others can reach it.
    fn counts_as_public(&self, address: IpAddr) -> bool;
    /// Resolves the addresses of a host by the system, its hosts file included: for `--mx-override`.
    async fn system_addresses(&self, host: &str) -> Result<Vec<IpAddr>, String>;
    /// Reads the first line of a mail server, without its line end; an error is the reason why there is none.
    async fn smtp_greeting(&self, address: SocketAddr) -> Result<String, String>;
    /// Makes a TLS handshake with a host of this name at these addresses; the first that answers counts.
    async fn certificate(&self, host: &str, addresses: &[SocketAddr]) -> CertificateFact;
    /// Checks the certificate of the SMTP listeners, as a client that connects to a host of this name does.
    async fn smtp_certificate(&self, host: &str) -> SmtpCertificateFact;
    /// Looks up the TLSA records of port 25 of a host of this name, and compares them with the certificate of the SMTP
    /// listeners; an error is the reason why the lookup failed.
    async fn tlsa(&self, host: &str) -> Result<TlsaFact, String>;
    /// Fetches the MTA-STS policy of a domain as senders do; an error is the reason why there is none.
    async fn sts_policy(&self, domain: &str) -> Result<StsText, String>;
    /// Returns the milliseconds by which the clock is ahead of a time server (RFC 5905).
    async fn clock_ahead(&self, server: SocketAddr) -> Result<i64, String>;
    /// Returns the permissions of the data directory and its content; empty if there is none.
    async fn files(&self) -> Result<Vec<FileFact>, String>;
    /// Measures the space on the disk of the database.
    async fn disk(&self) -> DiskFacts;
    /// Checks whether the key file is that of the database.
    async fn secret_key(&self) -> SecretKeyFact;
    /// Returns the port for returned mail: `None` if there is no listener, an error if one is set up but no server
    /// runs.
    async fn inbound_port(&self) -> Option<Result<u16, ()>>;
}
