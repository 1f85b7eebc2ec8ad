//! A mailbox provider that judges whoever sends to it, as the large ones do.
//!
//! [`MailboxProvider`] is a site on a loopback socket: an SMTP server that many recipient domains name as their
//! exchanger (MX roll-up). Each address that sends to it has a [`Reputation`] there. A new address gets a few messages
//! through on its first day; good days raise what it may send, complaints and unknown mailboxes lower it. Whatever is
//! too fast is deferred, in the words of the operator that the [`SiteStyle`] names, and an address that goes on pushing
//! is blocked. The time is that of a clock that is given, so a month passes as fast as a test likes. Everything that was
//! answered is in the [`Ledger`].
//!
//! It is a model: real sites tell nobody their rules. It is made so that mail that is sent with care passes, and mail that is
//! not is stopped, in the way and with the replies that senders report.
//!
//! Several sites stand beside each other on one port, at addresses of their own (`127.0.1.1`, `127.0.1.2`, …), because a
//! client knows one port for all exchangers. The address of a client is the one its connection comes from.
//!
//! A client that is too fast, and learns it:
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

/// Transactions that a ledger keeps one by one, if not said otherwise.
const KEPT: usize = 100_000;

/// Exchangers that one site may have.
const MAX_EXCHANGERS: usize = 8;

/// A simulated site on a loopback socket; it ends when dropped.
pub struct MailboxProvider {
    server: ScriptedSmtpServer,
    judge: Arc<Judge>,
    exchangers: Vec<String>,
}

impl MailboxProvider {
    /// A site whose exchangers are `mx1.NAME` and so on, with the limits and words of `style`.
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

    /// The address that the site listens at.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The root to trust, of a site with TLS.
    pub fn root(&self) -> Option<CertificateDer<'static>> {
        self.server.root()
    }

    /// Names of the exchangers, the preferred one first.
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

    /// Record of the site's transactions.
    pub fn ledger(&self) -> &Ledger {
        self.judge.ledger()
    }

    /// Reputation of an address now; `None` if it has never connected.
    pub fn reputation(&self, source: IpAddr) -> Option<Reputation> {
        self.judge.reputation(source)
    }

    /// Blocks an address as the site does by itself, for the days of its policy.
    pub fn block(&self, source: IpAddr) {
        self.judge.block(source);
    }

    /// Takes out the complaints since the last call, the oldest first; none of a site without a feedback loop.
    ///
    /// A report is sent by [`Complaint::post`], or made to a mail by [`Complaint::to_arf`].
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

/// Says what a [`MailboxProvider`] is like.
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
    /// Limits of the site; those of its style if not said.
    pub fn policy(mut self, policy: SitePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The mailbox of each address, such as [`Mailbox::by_share`] chooses it; all are content if not said. A connection waits
    /// for the answer.
    pub fn mailboxes(mut self, mailboxes: impl Fn(&str) -> Mailbox + Send + Sync + 'static) -> Self {
        self.mailboxes = Box::new(mailboxes);
        self
    }

    /// Whether complaints are reported; as sites of its style do if not said. They cost reputation all the same.
    pub fn feedback_loop(mut self, has_one: bool) -> Self {
        self.has_feedback_loop = has_one;
        self
    }

    /// Listens here, and not at any free port of 127.0.0.1.
    pub fn at(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// The number of exchangers, from 1 to 8; 1 if not said. All are the same server.
    pub fn exchangers(mut self, count: usize) -> Self {
        self.exchangers = count.clamp(1, MAX_EXCHANGERS);
        self
    }

    /// Transactions that the ledger keeps one by one, the newest; 100,000 if not said.
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
