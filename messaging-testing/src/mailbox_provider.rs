//! Simulated mailbox provider that judges its senders, as the large ones do.
//!
//! [`MailboxProvider`] is a site on a loopback socket: an SMTP server that many recipient domains name as their
//! exchanger (MX roll-up). Each address that sends to it has a [`Reputation`] there. A new address gets a few messages
//! through on its first day; good days raise its allowance, complaints and unknown mailboxes lower it. Mail above the
//! allowance is deferred, in the words of the operator that the [`SiteStyle`] names, and an address that keeps sending
//! is blocked. The site uses a given clock, so a month passes as fast as a test likes. The [`Ledger`] has every answer.
//!
//! It is a model: real sites do not publish their rules. It passes mail that is sent with care and stops other mail, in
//! the way and with the replies that senders report.
//!
//! Several sites run side by side on one port, at addresses of their own (`127.0.1.1`, `127.0.1.2`, …), because a
//! client knows one port for all exchangers. A client's address is the one its connection comes from.
//!
//! A client that sends too fast, and gets deferred:
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::{IpAddr, TcpStream};
//! use std::sync::Arc;
//!
//! use messaging_core::ports::clock::ManualClock;
//! use messaging_core::time::Timestamp;
//! use messaging_testing::{MailboxProvider, SitePolicy, SiteStyle, TestDns};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! // One message an hour on the first day.
//! let policy = SitePolicy { first_day: 4, hour_percent: 25, ..SiteStyle::Microsoft.policy() };
//! let clock = Arc::new(ManualClock::new(Timestamp::from_millis(0)));
//! let site = MailboxProvider::builder("mailbox.test", SiteStyle::Microsoft).policy(policy).start(clock).await;
//!
//! // Two domains, one operator.
//! let dns = TestDns::start().await;
//! site.publish(&dns, &["one.test", "two.test"]);
//!
//! // In place of this client stands the program that is tested, with `dns.addr()` and the port of `site.address()`.
//! let address = site.address();
//! let client = move || {
//!     let mut stream = TcpStream::connect(address).unwrap();
//!     stream.write_all(b"EHLO mx.acme.test\r\nMAIL FROM:<a@acme.test>\r\n").unwrap();
//!     stream.write_all(b"RCPT TO:<ann@one.test>\r\nRCPT TO:<bob@two.test>\r\nQUIT\r\n").unwrap();
//!     let mut replies = String::new();
//!     stream.read_to_string(&mut replies).unwrap();
//!     replies
//! };
//! let replies = tokio::task::spawn_blocking(client).await.unwrap();
//!
//! assert!(replies.contains("451 4.7.650 The mail server [127.0.0.1] has been temporarily rate limited"));
//! assert_eq!(site.ledger().day(0).deferred, 1);
//! assert_eq!(site.ledger().most_connections(IpAddr::from([127, 0, 0, 1])), 1);
//! # });
//! ```

mod complaint;
mod judge;
mod ledger;
mod mailbox;
mod reputation;
mod style;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use messaging_core::ports::clock::Clock;
use rustls_pki_types::CertificateDer;

pub use self::complaint::Complaint;
use self::judge::Judge;
pub use self::ledger::{Answered, DayCounts, Ledger, Transaction};
pub use self::mailbox::Mailbox;
use self::mailbox::Mailboxes;
pub use self::reputation::{Reputation, SitePolicy, Verdict};
pub use self::style::SiteStyle;
use crate::dns::TestDns;
use crate::scripted::ScriptedSmtpServer;

/// Transactions that a ledger keeps one by one, unless set.
const KEPT: usize = 100_000;

/// Maximum number of exchangers of one site.
const MAX_EXCHANGERS: usize = 8;

/// A simulated site on a loopback socket; it ends when dropped.
pub struct MailboxProvider {
    server: ScriptedSmtpServer,
    judge: Arc<Judge>,
    exchangers: Vec<String>,
}

impl MailboxProvider {
    /// Creates a site whose exchangers are `mx1.NAME` and so on, with the limits and replies of `style`.
    pub fn builder(name: &str, style: SiteStyle) -> MailboxProviderBuilder {
        MailboxProviderBuilder {
            name: name.to_owned(),
            style,
            policy: style.policy(),
            mailboxes: Box::new(|_| Mailbox::Content),
            has_feedback_loop: style.has_feedback_loop(),
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            exchangers: 1,
            kept: KEPT,
            starts_tls: false,
        }
    }

    /// Returns the address that the site listens at.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the root to trust, for a site with TLS.
    pub fn root(&self) -> Option<CertificateDer<'static>> {
        self.server.root()
    }

    /// Returns the names of the exchangers, the preferred one first.
    pub fn exchangers(&self) -> &[String] {
        &self.exchangers
    }

    /// Makes these domains customers of the site: their MX records name its exchangers, in place of those they had.
    pub fn publish(&self, dns: &TestDns, domains: &[&str]) {
        let records: Vec<_> = (10..).step_by(10).zip(self.exchangers.iter().map(String::as_str)).collect();
        for exchanger in &self.exchangers {
            dns.addresses(exchanger, &[self.address().ip()]);
        }
        for domain in domains {
            dns.mx(domain, &records);
        }
    }

    /// Returns the record of the site's transactions.
    pub fn ledger(&self) -> &Ledger {
        self.judge.ledger()
    }

    /// Returns the current reputation of an address; `None` if it has never connected.
    pub fn reputation(&self, source: IpAddr) -> Option<Reputation> {
        self.judge.reputation(source)
    }

    /// Blocks an address as the site itself would, for the days of its policy.
    pub fn block(&self, source: IpAddr) {
        self.judge.block(source);
    }

    /// Takes out the complaints since the last call, the oldest first; none for a site without a feedback loop.
    ///
    /// [`Complaint::post`] sends a report, [`Complaint::to_arf`] turns it into a mail.
    pub fn take_complaints(&self) -> Vec<Complaint> {
        self.judge.take_complaints()
    }
}

impl fmt::Debug for MailboxProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address();
        f.debug_struct("MailboxProvider")
            .field("address", &address)
            .field("exchangers", &self.exchangers)
            .finish_non_exhaustive()
    }
}

/// Builder of a [`MailboxProvider`].
pub struct MailboxProviderBuilder {
    name: String,
    style: SiteStyle,
    policy: SitePolicy,
    mailboxes: Box<Mailboxes>,
    has_feedback_loop: bool,
    address: SocketAddr,
    exchangers: usize,
    kept: usize,
    starts_tls: bool,
}

impl MailboxProviderBuilder {
    /// Sets the limits of the site; those of its style unless set.
    pub fn policy(mut self, policy: SitePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Chooses the mailbox of each address, such as by [`Mailbox::by_share`]; all are content unless set. A connection
    /// waits for the answer.
    pub fn mailboxes(mut self, mailboxes: impl Fn(&str) -> Mailbox + Send + Sync + 'static) -> Self {
        self.mailboxes = Box::new(mailboxes);
        self
    }

    /// Sets if complaints are reported; by the style of the site unless set. They cost reputation all the same.
    pub fn feedback_loop(mut self, has_one: bool) -> Self {
        self.has_feedback_loop = has_one;
        self
    }

    /// Sets the address to listen at; any free port of 127.0.0.1 unless set.
    pub fn at(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Sets the number of exchangers, from 1 to 8; 1 unless set. All are the same server.
    pub fn exchangers(mut self, count: usize) -> Self {
        self.exchangers = count.clamp(1, MAX_EXCHANGERS);
        self
    }

    /// Sets the number of the newest transactions that the ledger keeps one by one; 100,000 unless set.
    pub fn kept_transactions(mut self, count: usize) -> Self {
        self.kept = count;
        self
    }

    /// Offers STARTTLS, with a certificate for the names of the exchangers.
    pub fn start_tls(mut self) -> Self {
        self.starts_tls = true;
        self
    }

    /// Starts listening. Days and hours of the site are those of `clock`, in UTC.
    ///
    /// # Panics
    ///
    /// If the address cannot be bound, or the name cannot stand in a certificate.
    pub async fn start(self, clock: Arc<dyn Clock>) -> MailboxProvider {
        let exchangers: Vec<_> = (1..=self.exchangers).map(|number| format!("mx{number}.{}", self.name)).collect();
        let judge = Arc::new(Judge::new(judge::Site {
            name: self.name,
            host: exchangers[0].clone(),
            style: self.style,
            policy: self.policy,
            mailboxes: self.mailboxes,
            has_feedback_loop: self.has_feedback_loop,
            clock,
            ledger: Ledger::new(self.kept),
        }));
        let mut server = ScriptedSmtpServer::builder().at(self.address).policy(Arc::clone(&judge) as _);
        if self.starts_tls {
            let names: Vec<_> = exchangers.iter().map(String::as_str).collect();
            server = server.start_tls().named(&names);
        }
        MailboxProvider { server: server.start().await, judge, exchangers }
    }
}

impl fmt::Debug for MailboxProviderBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailboxProviderBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
