//! Facts that an observer outside of the product knows: copies that peers accepted, events that a receiver accepted,
//! answers to callers, and interruptions of the processes.

use std::collections::{BTreeMap, BTreeSet};

use messaging_core::ids::{EventId, MessageId};

/// The observer's notes.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    lives: Vec<LifeRecord>,
    /// Every transaction whose content was sent, in order.
    pub(crate) contents: Vec<Content>,
    /// Events that each webhook's receiver accepted, with their number.
    pub(crate) received: BTreeMap<(String, String), u32>,
    /// Calls of webhook nodes: by run the keys that were used, with the number of accepted calls.
    pub(crate) calls: BTreeMap<String, BTreeMap<String, u32>>,
    /// Recipients, by message, whose mail server returned the message.
    pub(crate) returned: BTreeSet<(MessageId, String)>,
    /// The Message-ID under which each message was sent first.
    message_ids: BTreeMap<MessageId, String>,
    /// The requests of callers, each with what its caller knows of the outcome.
    pub(crate) requests: Vec<RequestRecord>,
    /// Number of observations of callers so far.
    moments: u64,
    /// Promises that were found broken during the run.
    pub(crate) broken: Vec<String>,
    /// Claims that ended too early.
    lost_claims: u32,
    /// Faults that happened, by kind.
    pub(crate) faults: BTreeMap<&'static str, u32>,
}

#[derive(Debug, Default)]
struct LifeRecord {
    has_ended: bool,
    was_frozen: bool,
}

/// A transaction whose content was sent.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) message: MessageId,
    pub(crate) recipient: String,
    /// True if the peer accepted the content.
    pub(crate) is_taken: bool,
    /// True if the peer's reply was lost on its way back.
    pub(crate) is_reply_lost: bool,
    /// True if the recipient has it already, and the server knew that.
    pub(crate) is_needless: bool,
    life: usize,
    outcome: OutcomeState,
}

/// State of a transaction's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutcomeState {
    /// Its process has it, or will get it.
    UnderWay,
    /// Its process ended or froze, or lost its claim, before the outcome was committed.
    CutOff,
    /// It is in the store.
    Kept,
}

/// Facts about content that is sent; see [`Content`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContentSent<'a> {
    pub(crate) message: MessageId,
    pub(crate) recipient: &'a str,
    pub(crate) is_taken: bool,
    pub(crate) is_reply_lost: bool,
    /// True if the process was frozen between the last check of the store and the content: nothing can keep it from
    /// sending a message that another process has sent meanwhile.
    pub(crate) is_late: bool,
}

impl Content {
    /// Notes that the outcome may never be committed.
    fn cut_off(&mut self) {
        if self.outcome == OutcomeState::UnderWay {
            self.outcome = OutcomeState::CutOff;
        }
    }

    /// Returns true if an honest server may not know at the moment that the peer accepted it.
    fn may_be_repeated(&self) -> bool {
        !self.is_taken || self.is_reply_lost || self.outcome == OutcomeState::CutOff
    }
}

/// Facts that a caller knows about a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestRecord {
    /// The first successful answer: status and body.
    pub(crate) success: Option<(u16, String)>,
    /// Successful answers that were not replayed.
    pub(crate) fresh_successes: u32,
    /// Tries whose outcome is unknown.
    pub(crate) unknown: u32,
    /// When it was requested first, by the order of all observations of callers.
    pub(crate) first_asked: Option<u64>,
    /// When its success was known first, by the same order.
    pub(crate) known_at: Option<u64>,
    /// True if the server confirmed that the file of an import arrived.
    pub(crate) is_uploaded: bool,
    /// Messages that were accepted.
    pub(crate) messages: Vec<MessageId>,
}

impl Ledger {
    pub(crate) fn begin_life(&mut self) -> usize {
        self.lives.push(LifeRecord::default());
        self.lives.len() - 1
    }

    pub(crate) fn life_ended(&mut self, life: usize) {
        self.lives[life].has_ended = true;
        self.cut_off(life);
    }

    pub(crate) fn life_frozen(&mut self, life: usize) {
        self.lives[life].was_frozen = true;
        self.cut_off(life);
    }

    /// Cuts off the transactions that are in progress when a process ends or freezes; also those that it begins after
    /// it was frozen, with an expired claim.
    fn cut_off(&mut self, life: usize) {
        for content in self.contents.iter_mut().filter(|content| content.life == life) {
            content.cut_off();
        }
    }

    /// A job that delivers to the recipients of a domain was claimed again, because its first claim ended too early.
    pub(crate) fn claim_lost(&mut self, message: &str, domain: Option<&str>) {
        let is_concerned = |content: &Content| {
            let at = content.recipient.rsplit_once('@').map_or("", |(_, at)| at);
            content.message.to_string() == message && domain.is_none_or(|domain| domain == at)
        };
        for content in self.contents.iter_mut().filter(|content| is_concerned(content)) {
            content.cut_off();
        }
        self.lost_claims += 1;
    }

    /// Notes content that is sent.
    pub(crate) fn send_content(&mut self, life: usize, sent: ContentSent<'_>) {
        let ContentSent { message, recipient, is_taken, is_reply_lost, is_late } = sent;
        let before = self.contents.iter().rfind(|one| one.message == message && one.recipient == recipient);
        let is_needless = !is_late && before.is_some_and(|before| !before.may_be_repeated());
        let is_cut_off = self.lives[life].has_ended || self.lives[life].was_frozen;
        let outcome = if is_cut_off { OutcomeState::CutOff } else { OutcomeState::UnderWay };
        let recipient = recipient.to_owned();
        let content = Content { message, recipient, is_taken, is_reply_lost, is_needless, life, outcome };
        self.contents.push(content);
    }

    /// Notes the Message-ID of a copy: all copies of a message have the same.
    pub(crate) fn note_message_id(&mut self, message: MessageId, id: &str) {
        let known = self.message_ids.entry(message).or_insert_with(|| id.to_owned());
        if known != id {
            let told = format!("{message} has left as {known} and as {id}");
            self.broken(told);
        }
    }

    /// Notes that the store knows of a delivery to a recipient.
    pub(crate) fn outcome_kept(&mut self, life: usize, message: MessageId, recipient: &str) {
        for content in &mut self.contents {
            if content.life == life && content.message == message && content.recipient == recipient {
                content.outcome = OutcomeState::Kept;
            }
        }
    }

    /// The number of lives of processes that began.
    pub(crate) fn lives(&self) -> usize {
        self.lives.len()
    }

    /// The contents that were sent to a recipient, in order.
    pub(crate) fn contents_to<'a>(
        &'a self,
        message: MessageId,
        recipient: &'a str,
    ) -> impl Iterator<Item = &'a Content> {
        self.contents.iter().filter(move |one| one.message == message && one.recipient == recipient)
    }

    /// Returns true if a server may not know the outcomes of its transactions because of an interruption.
    pub(crate) fn had_interruptions(&self) -> bool {
        self.lost_claims > 0 || self.lives.iter().any(|life| life.has_ended || life.was_frozen)
    }

    /// Notes a call of a webhook node, and if it is accepted.
    pub(crate) fn call(&mut self, run: &str, key: &str, is_taken: bool) {
        *self.calls.entry(run.to_owned()).or_default().entry(key.to_owned()).or_default() += u32::from(is_taken);
    }

    pub(crate) fn receive(&mut self, url: &str, event: &str) {
        *self.received.entry((url.to_owned(), event.to_owned())).or_default() += 1;
    }

    pub(crate) fn has_received(&self, url: &str, event: EventId) -> bool {
        self.received.contains_key(&(url.to_owned(), event.to_string()))
    }

    /// Returns the next number in the order of observations.
    pub(crate) fn moment(&mut self) -> u64 {
        self.moments += 1;
        self.moments
    }

    pub(crate) fn count_fault(&mut self, kind: &'static str) {
        *self.faults.entry(kind).or_default() += 1;
    }

    pub(crate) fn broken(&mut self, what: String) {
        self.broken.push(what);
    }
}
