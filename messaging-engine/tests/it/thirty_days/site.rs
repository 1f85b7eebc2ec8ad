//! A site without a network: it judges an address by what comes from it, and all nodes send to it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use messaging_core::domain::delivery::attempt::{AttemptOutcome, Dialog};
use messaging_core::domain::delivery::ip_pool::source::SourceAddress;
use messaging_core::domain::delivery::outcome::OutcomeClass;
use messaging_core::ids::MessageId;
use messaging_core::ports::clock::{Clock as _, ManualClock};
use messaging_core::ports::paths::{Departure, Leave, PathRequest, Paths, Reach};
use messaging_core::ports::transport::{
    Acceptance, Admitted, Outcome, Outgoing, Reservation, Response, Route, Sent, Transport, TransportError,
};
use messaging_testing::Mailbox;
use messaging_testing::mailbox_provider::{Reputation, SitePolicy, Verdict};

/// The site, as the rules of sites find it by its mail server.
pub(super) const SITE: &str = "mailbox.test";

/// The mail server of all recipient domains.
const EXCHANGER: &str = "mx.mailbox.test";

/// Bounds of the site for a new address: 60 messages on the first day. An address that tries more on two days in a row
/// is blocked.
const POLICY: SitePolicy = SitePolicy {
    connections: 20,
    messages_per_connection: 100,
    first_day: 60,
    growth_percent: 200,
    hour_percent: 25,
    push_factor: 1,
    blocked_days: 14,
};

/// Recipients so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) tried: u64,
    pub(super) deferred: u64,
    pub(super) blocked: u64,
}

/// The mailbox provider that all nodes send to.
#[derive(Debug)]
pub(super) struct Site {
    clock: Arc<ManualClock>,
    mailboxes: fn(&str) -> Mailbox,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    reputations: HashMap<SourceAddress, Reputation>,
    /// Number of times that each message was accepted.
    taken: BTreeMap<MessageId, u32>,
    complaints: Vec<MessageId>,
    counts: Counts,
    /// True if all mail is accepted, whatever its sender.
    trusts: bool,
}

impl Site {
    pub(super) fn new(clock: Arc<ManualClock>, mailboxes: fn(&str) -> Mailbox) -> Self {
        Self { clock, mailboxes, books: Mutex::default() }
    }

    pub(super) fn counts(&self) -> Counts {
        self.books().counts
    }

    pub(super) fn taken(&self) -> BTreeMap<MessageId, u32> {
        self.books().taken.clone()
    }

    /// The messages reported as spam since the last call.
    pub(super) fn take_complaints(&self) -> Vec<MessageId> {
        std::mem::take(&mut self.books().complaints)
    }

    /// From now on the site accepts any number of messages.
    pub(super) fn trust(&self) {
        self.books().trusts = true;
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one recipient of a message.
    fn answer(&self, source: SourceAddress, message: MessageId, recipient: &str) -> Outcome {
        let hour = self.clock.now().as_millis().div_euclid(3_600_000);
        let mut books = self.books();
        let before = books.reputations.get(&source).copied().unwrap_or_else(|| Reputation::new(hour));
        let (after, mut verdict) = before.try_recipient(&POLICY, hour);
        if books.trusts {
            verdict = Verdict::Admitted;
        }
        books.reputations.insert(source, after);
        books.counts.tried += 1;
        match verdict {
            Verdict::TooFast | Verdict::LittleTrust => {
                books.counts.deferred += 1;
                Outcome::deferred(response(450, &format!("4.7.1 Error: too much mail from {source}")))
            }
            Verdict::Blocked => {
                books.counts.blocked += 1;
                let text = format!("5.7.1 Service unavailable; Client host [{source}] blocked using zen.spamhaus.org");
                Outcome::refused(response(554, &text))
            }
            Verdict::Admitted => match (self.mailboxes)(recipient) {
                Mailbox::Unknown => Outcome::refused(response(550, "5.1.1 User unknown in local recipient table")),
                mailbox => {
                    *books.taken.entry(message).or_default() += 1;
                    if mailbox == Mailbox::Complaining {
                        books.complaints.push(message);
                    }
                    Outcome::accepted(Acceptance::Delivered, response(250, "2.0.0 taken"))
                }
            },
        }
    }
}

fn response(code: u16, text: &str) -> Response {
    let enhanced = text.split(' ').next().map(ToOwned::to_owned);
    let host = Some(EXCHANGER.to_owned());
    Response { code: Some(code), enhanced, text: text.to_owned(), host }
}

/// The connection of one node to the site.
#[derive(Debug)]
pub(super) struct SiteTransport {
    site: Arc<Site>,
    paths: Mutex<Option<Weak<dyn Paths>>>,
}

impl SiteTransport {
    pub(super) fn new(site: Arc<Site>) -> Self {
        Self { site, paths: Mutex::default() }
    }

    fn paths(&self) -> Arc<dyn Paths> {
        let paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        paths.as_ref().and_then(Weak::upgrade).expect("the application keeps paths")
    }
}

#[async_trait]
impl Transport for SiteTransport {
    async fn reserve(&self, route: &Route) -> Reservation {
        let Some(domain) = route.domain.as_deref() else { return Reservation::default() };
        let exchangers = [EXCHANGER.to_owned()];
        let reach = Reach { ipv4: true, ipv6: false, is_public: true };
        let (class, terms) = (route.class, &route.terms);
        match self.paths().depart(&PathRequest { domain, exchangers: &exchangers, reach, class, terms }) {
            Departure::Leaves(leave) => Reservation::holding(leave),
            Departure::Waits(wait) => Reservation::held(wait),
        }
    }

    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        let leave: Leave = outgoing.reservation.take().expect("a message leaves over a path");
        let mut outcomes = Vec::new();
        for recipient in &outgoing.recipients {
            let admitted = outgoing.last_look.begin(std::slice::from_ref(recipient)).await;
            let refused = admitted.into_iter().find_map(Admitted::refusal);
            let answer = || self.site.answer(leave.source.ip, outgoing.message_id, recipient);
            let outcome = refused.unwrap_or_else(answer);
            outgoing.last_look.ended(recipient, &outcome);
            outcomes.push(outcome);
        }
        self.paths().ended(&leave, &outcomes.iter().collect::<Vec<_>>());
        let is_accepted = |outcome: &Outcome| {
            outcome.answer().is_some_and(|answer| matches!(answer.class, OutcomeClass::Accepted(_)))
        };
        let outcome =
            if outcomes.iter().any(is_accepted) { AttemptOutcome::Delivered } else { AttemptOutcome::Deferred };
        let dialog = Dialog {
            mx: Some(EXCHANGER.to_owned()),
            remote_addr: None,
            tls: None,
            tls_failure: None,
            source: leave.path.as_ref().map(|_| leave.source.ip),
            outcome,
            transcript: Vec::new(),
        };
        Ok(Sent { outcomes, dialogs: vec![dialog], ..Sent::default() })
    }

    fn attach_paths(&self, paths: Weak<dyn Paths>) {
        *self.paths.lock().unwrap_or_else(PoisonError::into_inner) = Some(paths);
    }
}
