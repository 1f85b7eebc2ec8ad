//! Records of a simulated site: the latest transactions, and counts of all.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use messaging_core::time::Timestamp;

/// Maximum number of counted pairs of address and day; beyond it the oldest are dropped.
const MAX_DAYS: usize = 16_384;

/// Maximum number of addresses whose connections are counted.
const MAX_SOURCES: usize = 1024;

/// Answer of a site for a recipient, or for a connection or transaction that came to no recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answered {
    /// The site accepted the message.
    Accepted,
    /// 4yz because of the volume or the reputation of the address.
    Deferred,
    /// 421 or 4yz because the address had too many connections, or the connection too many messages.
    TooMany,
    /// 5yz because the address is blocked.
    Blocked,
    /// 5yz because there is no such mailbox.
    UnknownMailbox,
}

/// One answer of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The time of the answer.
    pub at: Timestamp,
    /// Address that the message came from.
    pub source: IpAddr,
    /// Name in the client's EHLO; empty if the greeting was a refusal.
    pub ehlo: Arc<str>,
    /// The recipient; empty if none had been named.
    pub recipient: Box<str>,
    /// Number of the connection, from 1.
    pub connection: usize,
    /// True if the session used TLS.
    pub is_tls: bool,
    /// The kind of answer.
    pub answered: Answered,
    /// The reply as it was sent, `\n` between its lines.
    pub reply: Arc<str>,
}

/// Counts of one address and day, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DayCounts {
    /// Messages that were accepted.
    pub accepted: u64,
    /// Recipients that were deferred because of volume or reputation.
    pub deferred: u64,
    /// Connections and transactions that were deferred because there were too many.
    pub too_many: u64,
    /// Refusals because the address is blocked.
    pub blocked: u64,
    /// Recipients without a mailbox.
    pub unknown: u64,
    /// Messages that were reported as spam.
    pub complaints: u64,
    /// Messages that were accepted over TLS.
    pub tls: u64,
}

impl DayCounts {
    /// Returns the share of the recipients that were deferred, from 0 to 1; 0 without any.
    pub fn deferred_share(self) -> f64 {
        let all = self.accepted + self.deferred + self.blocked + self.unknown;
        share(self.deferred, all)
    }

    /// Returns the share of the accepted messages that came over TLS, from 0 to 1; 0 without any.
    pub fn tls_share(self) -> f64 {
        share(self.tls, self.accepted)
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            accepted: self.accepted + other.accepted,
            deferred: self.deferred + other.deferred,
            too_many: self.too_many + other.too_many,
            blocked: self.blocked + other.blocked,
            unknown: self.unknown + other.unknown,
            complaints: self.complaints + other.complaints,
            tls: self.tls + other.tls,
        }
    }

    const fn count(&mut self, answered: Answered) -> &mut u64 {
        match answered {
            Answered::Accepted => &mut self.accepted,
            Answered::Deferred => &mut self.deferred,
            Answered::TooMany => &mut self.too_many,
            Answered::Blocked => &mut self.blocked,
            Answered::UnknownMailbox => &mut self.unknown,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a test are below 2^52")]
fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

/// Connections of one address.
#[derive(Debug, Default)]
struct Connections {
    most_open: usize,
    most_messages: usize,
}

/// Ledger of a site; clones share it.
///
/// The newest transactions are kept one by one, up to a maximum number; all are counted. Days are those of UTC, counted
/// from the epoch ([`Ledger::day_of`]).
#[derive(Debug, Clone)]
pub struct Ledger(Arc<Mutex<Books>>);

#[derive(Debug)]
struct Books {
    capacity: usize,
    transactions: VecDeque<Transaction>,
    days: BTreeMap<(i64, IpAddr), DayCounts>,
    connections: HashMap<IpAddr, Connections>,
    /// Texts that many transactions share.
    texts: HashMap<Box<str>, Arc<str>>,
}

impl Ledger {
    pub(super) fn new(capacity: usize) -> Self {
        Self(Arc::new(Mutex::new(Books {
            capacity: capacity.max(1),
            transactions: VecDeque::new(),
            days: BTreeMap::new(),
            connections: HashMap::new(),
            texts: HashMap::new(),
        })))
    }

    /// Returns the day of a time, counted from the epoch.
    pub fn day_of(at: Timestamp) -> i64 {
        at.as_seconds().div_euclid(24 * 60 * 60)
    }

    /// Returns the newest transactions, the oldest of them first.
    pub fn transactions(&self) -> Vec<Transaction> {
        self.lock().transactions.iter().cloned().collect()
    }

    /// Returns the newest transactions of a recipient, the oldest of them first.
    pub fn transactions_to(&self, recipient: &str) -> Vec<Transaction> {
        self.lock().transactions.iter().filter(|one| &*one.recipient == recipient).cloned().collect()
    }

    /// Returns the counts of all addresses on a day.
    pub fn day(&self, day: i64) -> DayCounts {
        self.sum(|(of, _)| of == day)
    }

    /// Returns the counts of an address on a day.
    pub fn day_of_source(&self, day: i64, source: IpAddr) -> DayCounts {
        self.lock().days.get(&(day, source)).copied().unwrap_or_default()
    }

    /// Returns the counts of all days and addresses.
    pub fn total(&self) -> DayCounts {
        self.sum(|_| true)
    }

    /// Returns the days with mail, in their order.
    pub fn days(&self) -> Vec<i64> {
        let days: BTreeSet<_> = self.lock().days.keys().map(|(day, _)| *day).collect();
        days.into_iter().collect()
    }

    /// Returns the addresses that mail came from, in their order.
    pub fn sources(&self) -> Vec<IpAddr> {
        let sources: BTreeSet<_> = self.lock().connections.keys().copied().collect();
        sources.into_iter().collect()
    }

    /// Returns the first day on which the address was blocked.
    pub fn first_blocked_day(&self, source: IpAddr) -> Option<i64> {
        let books = self.lock();
        let mut days = books.days.iter().filter(|((_, of), counts)| *of == source && counts.blocked > 0);
        days.next().map(|((day, _), _)| *day)
    }

    /// Returns the maximum number of connections that an address had at a time, refused ones above the limit included.
    pub fn most_connections(&self, source: IpAddr) -> usize {
        self.lock().connections.get(&source).map_or(0, |of| of.most_open)
    }

    /// Returns the maximum number of messages that an address began over one connection, a refused one above the limit
    /// included.
    pub fn most_messages_per_connection(&self, source: IpAddr) -> usize {
        self.lock().connections.get(&source).map_or(0, |of| of.most_messages)
    }

    pub(super) fn note(&self, transaction: Transaction) {
        let mut books = self.lock();
        let counts = books.counts(transaction.at, transaction.source);
        *counts.count(transaction.answered) += 1;
        counts.tls += u64::from(transaction.answered == Answered::Accepted && transaction.is_tls);
        if books.transactions.len() >= books.capacity {
            books.transactions.pop_front();
        }
        books.transactions.push_back(transaction);
    }

    pub(super) fn note_complaint(&self, at: Timestamp, source: IpAddr) {
        self.lock().counts(at, source).complaints += 1;
    }

    pub(super) fn note_open(&self, source: IpAddr, open: usize) {
        self.lock().connections(source, |of| of.most_open = of.most_open.max(open));
    }

    pub(super) fn note_messages(&self, source: IpAddr, messages: usize) {
        self.lock().connections(source, |of| of.most_messages = of.most_messages.max(messages));
    }

    /// Returns the text from a table of shared texts, to save memory; once the table is full, new texts are not shared.
    pub(super) fn shared(&self, text: &str) -> Arc<str> {
        let mut books = self.lock();
        if let Some(known) = books.texts.get(text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = text.into();
        if books.texts.len() < MAX_SOURCES {
            books.texts.insert(text.into(), Arc::clone(&shared));
        }
        shared
    }

    fn sum(&self, is_meant: impl Fn((i64, IpAddr)) -> bool) -> DayCounts {
        let books = self.lock();
        let meant = books.days.iter().filter(|(key, _)| is_meant(**key));
        meant.fold(DayCounts::default(), |sum, (_, counts)| sum.plus(*counts))
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn counts(&mut self, at: Timestamp, source: IpAddr) -> &mut DayCounts {
        let key = (Ledger::day_of(at), source);
        if self.days.len() >= MAX_DAYS && !self.days.contains_key(&key) {
            self.days.pop_first();
        }
        self.days.entry(key).or_default()
    }

    fn connections(&mut self, source: IpAddr, change: impl FnOnce(&mut Connections)) {
        if self.connections.len() < MAX_SOURCES || self.connections.contains_key(&source) {
            change(self.connections.entry(source).or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn transaction(day: u32, last: u8, answered: Answered) -> Transaction {
        Transaction {
            at: Timestamp::from_millis(0) + DAY * day,
            source: IpAddr::from([127, 0, 0, last]),
            ehlo: "mx.test".into(),
            recipient: format!("ann{day}@b.test").into(),
            connection: 1,
            is_tls: last == 1,
            answered,
            reply: "250 2.0.0 taken".into(),
        }
    }

    #[test]
    fn days_and_addresses_are_counted_apart_and_together() {
        let ledger = Ledger::new(100);
        for (day, last, answered, times) in [
            (0, 1, Answered::Accepted, 3),
            (0, 1, Answered::Deferred, 1),
            (0, 2, Answered::Accepted, 1),
            (1, 2, Answered::Blocked, 2),
            (1, 1, Answered::UnknownMailbox, 1),
            (1, 1, Answered::TooMany, 5),
        ] {
            for _ in 0..times {
                ledger.note(transaction(day, last, answered));
            }
        }
        let one = IpAddr::from([127, 0, 0, 1]);
        let first = DayCounts { accepted: 4, deferred: 1, tls: 3, ..DayCounts::default() };
        assert_eq!(ledger.day(0), first);
        assert_eq!(ledger.day_of_source(0, one).accepted, 3);
        assert_eq!((ledger.total().blocked, ledger.total().unknown, ledger.total().too_many), (2, 1, 5));
        assert!((ledger.day(0).deferred_share() - 0.2).abs() < 1e-9);
        assert!((ledger.day(0).tls_share() - 0.75).abs() < 1e-9);
        assert!(ledger.day(7).deferred_share().abs() < 1e-9);
        assert_eq!(ledger.days(), [0, 1]);
        assert_eq!(ledger.first_blocked_day(IpAddr::from([127, 0, 0, 2])), Some(1));
        assert_eq!(ledger.first_blocked_day(one), None);
    }

    #[test]
    fn only_the_newest_transactions_are_kept_and_all_are_counted() {
        let ledger = Ledger::new(2);
        for day in 0..5 {
            ledger.note(transaction(day, 1, Answered::Accepted));
        }
        let kept: Vec<_> = ledger.transactions().into_iter().map(|one| one.recipient).collect();
        assert_eq!(kept, ["ann3@b.test".into(), "ann4@b.test".into()]);
        assert_eq!(ledger.transactions_to("ann4@b.test").len(), 1);
        assert_eq!(ledger.total().accepted, 5);
    }

    #[test]
    fn the_most_of_an_address_is_remembered() {
        let ledger = Ledger::new(1);
        let source = IpAddr::from([127, 0, 0, 1]);
        for (open, messages) in [(1, 4), (3, 2), (2, 1)] {
            ledger.note_open(source, open);
            ledger.note_messages(source, messages);
        }
        assert_eq!((ledger.most_connections(source), ledger.most_messages_per_connection(source)), (3, 4));
        assert_eq!(ledger.sources(), [source]);
    }
}
