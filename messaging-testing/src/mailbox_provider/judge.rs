//! The decisions of a site at each stage of a connection.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use messaging_core::ports::clock::Clock;
use messaging_core::time::Timestamp;

use super::complaint::Complaint;
use super::ledger::{Answered, Ledger, Transaction};
use super::mailbox::{Mailbox, Mailboxes};
use super::reputation::{Reputation, SitePolicy, Verdict};
use super::style::{Objection, SiteStyle};
use crate::scripted::{Action, Policy, Situation, Stage};

/// Maximum number of addresses that a site knows; further ones are refused as having too many connections.
const MAX_SOURCES: usize = 1024;

/// Maximum number of complaints that wait to be taken; beyond it the oldest are dropped.
const MAX_COMPLAINTS: usize = 100_000;

/// Traits of a site.
pub(super) struct Site {
    pub(super) name: String,
    /// Name in the greeting.
    pub(super) host: String,
    pub(super) style: SiteStyle,
    pub(super) policy: SitePolicy,
    pub(super) mailboxes: Box<Mailboxes>,
    pub(super) has_feedback_loop: bool,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ledger: Ledger,
}

/// A site, and its memory of the addresses that send to it.
pub(super) struct Judge {
    site: Site,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    reputations: HashMap<IpAddr, Reputation>,
    /// Connections that are open, by their number.
    connections: HashMap<usize, Connection>,
    /// Open connections of each address.
    open: HashMap<IpAddr, usize>,
    complaints: VecDeque<Complaint>,
}

struct Connection {
    source: IpAddr,
    /// Messages that were begun.
    messages: usize,
}

impl Judge {
    pub(super) fn new(site: Site) -> Self {
        Self { site, memory: Mutex::default() }
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.site.ledger
    }

    pub(super) fn reputation(&self, source: IpAddr) -> Option<Reputation> {
        let known = self.lock().reputations.get(&source).copied();
        known.map(|known| known.at(&self.site.policy, self.hour()))
    }

    pub(super) fn block(&self, source: IpAddr) {
        let (policy, hour) = (&self.site.policy, self.hour());
        let mut memory = self.lock();
        if let Some(reputation) = memory.reputation(source, hour) {
            *reputation = reputation.at(policy, hour).blocked(policy);
        }
    }

    pub(super) fn take_complaints(&self) -> Vec<Complaint> {
        self.lock().complaints.drain(..).collect()
    }

    fn greet(&self, at: &Situation<'_>) -> Action {
        let (policy, style) = (&self.site.policy, self.site.style);
        let open = self.lock().open_connection(at.connection, at.source);
        self.site.ledger.note_open(at.source, open);
        let is_known = self.lock().reputation(at.source, self.hour()).is_some();
        if open > policy.connections || !is_known {
            return self.object(at, Objection::Connections, Answered::TooMany, "");
        }
        if style.blocks_at() == Stage::Greeting && self.is_blocked(at.source) {
            return self.object(at, Objection::Blocked, Answered::Blocked, "");
        }
        Action::Reply(format!("220 {} ESMTP", self.site.host))
    }

    fn begin_message(&self, at: &Situation<'_>) -> Option<Action> {
        let messages = self.lock().connections.get_mut(&at.connection).map_or(1, |connection| {
            connection.messages += 1;
            connection.messages
        });
        self.site.ledger.note_messages(at.source, messages);
        if messages > self.site.policy.messages_per_connection {
            return Some(self.object(at, Objection::Messages, Answered::TooMany, ""));
        }
        let is_told = self.site.style.blocks_at() == Stage::Mail && self.is_blocked(at.source);
        is_told.then(|| self.object(at, Objection::Blocked, Answered::Blocked, ""))
    }

    fn judge_recipient(&self, at: &Situation<'_>) -> Option<Action> {
        let recipient = at.subject.recipients.first().map(String::as_str).unwrap_or_default();
        let verdict = self.try_recipient(at.source);
        let (objection, answered) = match verdict {
            Verdict::TooFast => (Objection::TooFast, Answered::Deferred),
            Verdict::LittleTrust => (Objection::LittleTrust, Answered::Deferred),
            Verdict::Blocked => (Objection::Blocked, Answered::Blocked),
            Verdict::Admitted if (self.site.mailboxes)(recipient) == Mailbox::Unknown => {
                self.change(at.source, Reputation::with_unknown_mailbox);
                (Objection::UnknownMailbox, Answered::UnknownMailbox)
            }
            Verdict::Admitted => return None,
        };
        Some(self.object(at, objection, answered, recipient))
    }

    fn take_message(&self, at: &Situation<'_>) {
        for recipient in at.subject.recipients {
            self.note(at, Answered::Accepted, recipient, "250 2.0.0 taken");
            if (self.site.mailboxes)(recipient) == Mailbox::Complaining {
                self.complain(at, recipient);
            }
        }
    }

    fn complain(&self, at: &Situation<'_>, recipient: &str) {
        let now = self.now();
        self.change(at.source, Reputation::with_complaint);
        self.site.ledger.note_complaint(now, at.source);
        if self.site.has_feedback_loop {
            let (from, content) = (at.subject.from, at.subject.content);
            let complaint = Complaint::new(now, at.source, from, recipient, content, &self.site.name);
            let mut memory = self.lock();
            if memory.complaints.len() >= MAX_COMPLAINTS {
                memory.complaints.pop_front();
            }
            memory.complaints.push_back(complaint);
        }
    }

    /// Records an objection and replies with it; 421 ends the connection, as does a refusal in place of the greeting.
    fn object(&self, at: &Situation<'_>, objection: Objection, answered: Answered, recipient: &str) -> Action {
        let reply = self.site.style.reply(objection, at.source, recipient, &self.site.host);
        self.note(at, answered, recipient, &reply);
        if at.stage == Stage::Greeting || reply.starts_with("421") {
            self.ended(at.connection);
            Action::ReplyAndClose(reply)
        } else {
            Action::Reply(reply)
        }
    }

    fn note(&self, at: &Situation<'_>, answered: Answered, recipient: &str, reply: &str) {
        let ledger = &self.site.ledger;
        ledger.note(Transaction {
            at: self.now(),
            source: at.source,
            ehlo: ledger.shared(at.ehlo),
            recipient: recipient.into(),
            connection: at.connection,
            is_tls: at.is_tls,
            answered,
            reply: ledger.shared(reply),
        });
    }

    fn is_blocked(&self, source: IpAddr) -> bool {
        self.reputation(source).is_some_and(Reputation::is_blocked)
    }

    fn try_recipient(&self, source: IpAddr) -> Verdict {
        let hour = self.hour();
        let mut memory = self.lock();
        // An address without a place got a refusal as its greeting.
        let Some(reputation) = memory.reputation(source, hour) else { return Verdict::LittleTrust };
        let (next, verdict) = reputation.try_recipient(&self.site.policy, hour);
        *reputation = next;
        verdict
    }

    fn change(&self, source: IpAddr, change: impl FnOnce(Reputation) -> Reputation) {
        if let Some(reputation) = self.lock().reputations.get_mut(&source) {
            *reputation = change(*reputation);
        }
    }

    fn now(&self) -> Timestamp {
        self.site.clock.now()
    }

    /// Returns the hours since the epoch.
    fn hour(&self) -> i64 {
        self.now().as_seconds().div_euclid(60 * 60)
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Policy for Judge {
    fn decide(&self, at: &Situation<'_>) -> Option<Action> {
        match at.stage {
            Stage::Greeting => Some(self.greet(at)),
            Stage::Mail => self.begin_message(at),
            Stage::Rcpt => self.judge_recipient(at),
            Stage::Dot => {
                self.take_message(at);
                None
            }
            _ => None,
        }
    }

    fn ended(&self, connection: usize) {
        self.lock().close_connection(connection);
    }
}

impl Memory {
    /// Returns the reputation of an address, a new one if there is a place for it.
    fn reputation(&mut self, source: IpAddr, hour: i64) -> Option<&mut Reputation> {
        if self.reputations.len() >= MAX_SOURCES && !self.reputations.contains_key(&source) {
            return None;
        }
        Some(self.reputations.entry(source).or_insert(Reputation::new(hour)))
    }

    /// Counts a connection; returns the number of open connections of the address, this one included.
    fn open_connection(&mut self, connection: usize, source: IpAddr) -> usize {
        self.connections.insert(connection, Connection { source, messages: 0 });
        let open = self.open.entry(source).or_default();
        *open += 1;
        *open
    }

    fn close_connection(&mut self, connection: usize) {
        let Some(Connection { source, .. }) = self.connections.remove(&connection) else { return };
        if let Some(open) = self.open.get_mut(&source) {
            *open -= 1;
            if *open == 0 {
                self.open.remove(&source);
            }
        }
    }
}
