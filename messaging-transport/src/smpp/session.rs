//! One bound SMPP session: submitted parts, their answers, and incoming messages; it is opened again when it breaks.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt as _, StreamExt as _};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::channel::inbound_message::InboundMessage;
use messaging_core::domain::channel::receipt::Receipt;
use messaging_core::domain::delivery::consequence::PROBE_EVERY;
use messaging_core::domain::delivery::outcome::{Answer, OutcomeClass, Response, Scope};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::inbound::{InboundError, ProviderSink, ReceiptLink};
use rusmpp::pdus::{DeliverSm, DeliverSmResp, SubmitSm};
use rusmpp::{Command, CommandId, CommandStatus, Pdu};
use serde_json::{Map, Value};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use super::codec::{Header, Received};
use super::incoming::{Incoming, read};
use super::open::{Link, Opener};
use super::parts::{Group, Named, Parts};
use super::settings::Account;

/// Maximum number of parts that wait for their answer at a time.
pub(super) const WINDOW: usize = 16;

/// Maximum number of incoming PDUs that are being stored at a time; no more are read meanwhile.
const MAX_INCOMING: usize = 64;

/// Time limit for a place in the window to become free and the session to be bound, together.
const READY_TIME: Duration = Duration::from_secs(30);

/// Time limit for the answer to a submitted part, and for writing a PDU.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Time without anything read after which `enquire_link` is sent; the peer has as long to answer it.
const QUIET_TIME: Duration = Duration::from_secs(30);

/// Interval at which the time limits of a session are checked.
const TICK: Duration = Duration::from_secs(5);

/// Interval at which a session checks that the channel still has its settings.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// Time after which a session that has sent nothing ends: no receipt comes later.
const IDLE_TIME: Duration = Duration::from_hours(72);

/// First and longest wait between attempts to bind when nobody sends; it doubles in between. A bind that was refused is
/// tried again every [`PROBE_EVERY`] even if somebody wants to send: repeated refusals may get an account blocked.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));

/// Maximum sequence number; the next one after it is 1.
const MAX_SEQUENCE: u32 = 0x7FFF_FFFF;

/// The provider's name.
const NAME: &str = "smpp";

/// Status that asks the peer to deliver the PDU again later.
const LATER: CommandStatus = CommandStatus::EsmeRxTAppn;

/// Status that tells the peer not to deliver the PDU again.
const NEVER: CommandStatus = CommandStatus::EsmeRxRAppn;

/// The workspace and settings of a session, and the sink for messages that come in over it.
pub(super) struct Owner {
    pub(super) workspace: WorkspaceId,
    /// The settings of the workspace's SMS channel.
    pub(super) settings: Arc<Map<String, Value>>,
    pub(super) sink: Option<Weak<dyn ProviderSink>>,
}

impl Owner {
    /// Returns true if the channel still has the settings, or if that cannot be found out.
    fn look(&self) -> impl Future<Output = bool> + Send + use<> {
        let (workspace, settings) = (self.workspace, Arc::clone(&self.settings));
        let sink = self.sink.as_ref().and_then(Weak::upgrade);
        async move {
            let Some(sink) = sink else { return true };
            sink.has_settings(workspace, Channel::Sms, NAME, &settings).await.unwrap_or(true)
        }
    }
}

/// Handle of a session. The session is unbound when its last handle is dropped.
pub(super) struct Session {
    requests: mpsc::Sender<Request>,
    state: watch::Receiver<State>,
    wanted: Arc<Notify>,
    window: Arc<Semaphore>,
}

/// Outcome of submitting one part of a message.
pub(super) enum Submitted {
    /// The message center answered; with status 0 it accepted the part under this id.
    Answered { status: u32, id: String },
    /// Nothing was written, for this reason.
    NotSent(String),
    /// The part may have been written, and no answer came.
    Lost,
}

struct Request {
    pdu: SubmitSm,
    group: Option<Arc<Group>>,
    reply: oneshot::Sender<Submitted>,
}

#[derive(Debug, Clone)]
enum State {
    Connecting,
    Bound,
    /// The attempt of this number failed with this answer.
    Down(u64, Answer),
}

impl Session {
    pub(super) fn start(owner: Owner, account: Account, opener: Arc<Opener>) -> Self {
        let (requests, incoming) = mpsc::channel(WINDOW);
        let (sender, state) = watch::channel(State::Connecting);
        let wanted = Arc::new(Notify::new());
        let worker = Worker {
            owner,
            account,
            opener,
            requests: incoming,
            state: sender,
            wanted: Arc::clone(&wanted),
            used_at: Instant::now(),
            parts: Parts::default(),
        };
        tokio::spawn(worker.run());
        Self { requests, state, wanted, window: Arc::new(Semaphore::new(WINDOW)) }
    }

    /// Returns true if the session has ended: nobody used it, or its channel has other settings.
    pub(super) fn has_ended(&self) -> bool {
        self.requests.is_closed()
    }

    /// Waits until the session is bound and one more part may be under way, in bounded time.
    pub(super) async fn place(&self) -> Result<OwnedSemaphorePermit, Answer> {
        let end = Instant::now() + READY_TIME;
        let late = |text: &str| Answer::new(OutcomeClass::Retry(Scope::Account), Response::of_text(text));
        let permit = tokio::time::timeout_at(end, Arc::clone(&self.window).acquire_owned()).await;
        let Ok(Ok(permit)) = permit else { return Err(late("the message center is slower than what is sent to it")) };
        let mut state = self.state.clone();
        let failed_before = match &*state.borrow_and_update() {
            State::Bound => return Ok(permit),
            State::Down(_, refusal) if is_refused(refusal) => return Err(refusal.clone()),
            State::Down(attempt, _) => Some(*attempt),
            State::Connecting => None,
        };
        if failed_before.is_some() {
            self.wanted.notify_one();
        }
        let is_decided = |state: &State| match state {
            State::Bound => true,
            State::Down(attempt, _) => Some(*attempt) != failed_before,
            State::Connecting => false,
        };
        match tokio::time::timeout_at(end, state.wait_for(is_decided)).await {
            Ok(Ok(state)) => match &*state {
                State::Down(_, answer) => Err(answer.clone()),
                _ => Ok(permit),
            },
            _ => Err(late("the session was not bound in time")),
        }
    }

    /// Submits a part and waits for the answer, in bounded time.
    pub(super) async fn submit(&self, pdu: SubmitSm, group: Option<Arc<Group>>) -> Submitted {
        let (reply, answer) = oneshot::channel();
        if self.requests.send(Request { pdu, group, reply }).await.is_err() {
            return Submitted::NotSent("the session has ended".to_owned());
        }
        // The worker gives up earlier.
        match timeout(ANSWER_TIME * 2 + TICK, answer).await {
            Ok(Ok(submitted)) => submitted,
            _ => Submitted::Lost,
        }
    }
}

/// The task that owns the connection.
struct Worker {
    owner: Owner,
    account: Account,
    opener: Arc<Opener>,
    requests: mpsc::Receiver<Request>,
    state: watch::Sender<State>,
    wanted: Arc<Notify>,
    /// Time at which a part was last submitted.
    used_at: Instant,
    parts: Parts,
}

/// A part that was written and waits for its answer.
struct Pending {
    group: Option<Arc<Group>>,
    reply: oneshot::Sender<Submitted>,
    since: Instant,
}

/// The reason why a session ended.
enum End {
    /// The last handle was dropped, or the session ends.
    Unused,
    /// The connection broke, or the peer does not answer any more.
    Broken(&'static str),
}

impl Worker {
    async fn run(mut self) {
        let (mut attempt, mut failures) = (0, 0);
        loop {
            attempt += 1;
            self.state.send_replace(State::Connecting);
            let answer = match self.opener.open(&self.account).await {
                Ok(link) => {
                    failures = 0;
                    self.state.send_replace(State::Bound);
                    match self.serve(link).await {
                        End::Unused => return,
                        End::Broken(why) => Answer::new(OutcomeClass::Retry(Scope::Account), Response::of_text(why)),
                    }
                }
                Err(answer) => answer,
            };
            tracing::info!(host = %self.account.host, reason = %answer.response.text, "an SMPP session is not bound");
            failures += 1;
            let pause = pause_after(failures, &answer);
            let is_wanted_early = !is_refused(&answer);
            self.state.send_replace(State::Down(attempt, answer));
            if self.rest(pause, is_wanted_early).await {
                return;
            }
        }
    }

    /// Waits before the next attempt to bind; with `is_wanted_early` only until somebody wants to send. Returns true if
    /// the session has ended, because nobody uses it or its channel has other settings.
    async fn rest(&mut self, pause: Duration, is_wanted_early: bool) -> bool {
        let end = Instant::now() + pause;
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = sleep_until(end) => return false,
                () = self.wanted.notified(), if is_wanted_early => return false,
                now = look.tick() => {
                    if now.saturating_duration_since(self.used_at) >= IDLE_TIME || !self.owner.look().await {
                        return true;
                    }
                }
                request = self.requests.recv() => match request {
                    Some(request) => {
                        let _ = request.reply.send(Submitted::NotSent("the session is not bound".to_owned()));
                    }
                    None => return true,
                },
            }
        }
    }

    /// Reads and writes PDUs until the connection breaks or nobody uses the session.
    async fn serve(&mut self, mut link: Link) -> End {
        let mut pending: HashMap<u32, Pending> = HashMap::new();
        let (mut storing, mut looking) = (FuturesUnordered::new(), FuturesUnordered::new());
        let mut sequence = 1;
        let (mut read_at, mut looked_at, mut asked_at) = (Instant::now(), Instant::now(), None);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let command = tokio::select! {
                request = self.requests.recv(), if pending.len() < WINDOW => {
                    let Some(Request { pdu, group, reply }) = request else {
                        next(&mut sequence);
                        let _ = write(&mut link, Command::new(CommandStatus::EsmeRok, sequence, Pdu::Unbind)).await;
                        return End::Unused;
                    };
                    next(&mut sequence);
                    self.used_at = Instant::now();
                    pending.insert(sequence, Pending { group, reply, since: self.used_at });
                    Command::new(CommandStatus::EsmeRok, sequence, pdu)
                }
                received = link.next(), if storing.len() < MAX_INCOMING => {
                    let Some(Ok(received)) = received else { return End::Broken("the connection broke") };
                    read_at = Instant::now();
                    asked_at = None;
                    match self.react(&received, &mut pending) {
                        Reaction::Nothing => continue,
                        Reaction::Answer(answer) => answer,
                        Reaction::Deliver(pdu) => {
                            storing.push(self.store(received.header().sequence, &pdu));
                            continue;
                        }
                        Reaction::End => {
                            let bye = Command::new(CommandStatus::EsmeRok, received.header().sequence, Pdu::UnbindResp);
                            let _ = write(&mut link, bye).await;
                            return End::Broken("the message center has unbound us");
                        }
                    }
                }
                Some((number, is_stored)) = storing.next() => {
                    let status = if is_stored { CommandStatus::EsmeRok } else { LATER };
                    Command::new(status, number, DeliverSmResp::default())
                }
                now = tick.tick() => {
                    if now.saturating_duration_since(looked_at) >= LOOK_EVERY && looking.is_empty() {
                        looked_at = now;
                        looking.push(self.owner.look());
                    }
                    // Dropping a pending part tells its sender that no answer came.
                    pending.retain(|_, one| now.saturating_duration_since(one.since) < ANSWER_TIME);
                    let is_quiet = now.saturating_duration_since(read_at) >= QUIET_TIME && storing.len() < MAX_INCOMING;
                    match asked_at {
                        Some(asked) if now.saturating_duration_since(asked) >= QUIET_TIME => {
                            return End::Broken("the message center does not answer any more");
                        }
                        None if is_quiet => {}
                        _ if now.saturating_duration_since(self.used_at) >= IDLE_TIME => {
                            self.requests.close();
                            continue;
                        }
                        _ => continue,
                    }
                    asked_at = Some(now);
                    next(&mut sequence);
                    Command::new(CommandStatus::EsmeRok, sequence, Pdu::EnquireLink)
                }
                Some(has_settings) = looking.next() => {
                    // Parts that were written are answered first; the next check is soon enough.
                    if !has_settings && pending.is_empty() {
                        self.requests.close();
                    }
                    continue;
                }
            };
            if !write(&mut link, command).await {
                return End::Broken("the connection broke");
            }
        }
    }

    /// Judges a received PDU and returns the reaction to it.
    fn react(&mut self, received: &Received, pending: &mut HashMap<u32, Pending>) -> Reaction {
        let header = received.header();
        let number = header.sequence;
        let pdu = match received {
            Received::Whole(command) => command.pdu(),
            Received::Malformed(_) => None,
        };
        match (header.id, pdu) {
            (CommandId::SubmitSmResp | CommandId::GenericNack, pdu) => {
                let id = match pdu {
                    Some(Pdu::SubmitSmResp(answer)) => answer.message_id().as_str(),
                    // The header alone says if the part was accepted.
                    _ => "",
                };
                self.answered(header, id, pending);
                Reaction::Nothing
            }
            (_, Some(Pdu::DeliverSm(pdu))) => Reaction::Deliver(pdu.clone()),
            (CommandId::DeliverSm, None) => Reaction::Answer(Command::new(NEVER, number, DeliverSmResp::default())),
            (CommandId::EnquireLink, _) => {
                Reaction::Answer(Command::new(CommandStatus::EsmeRok, number, Pdu::EnquireLinkResp))
            }
            (CommandId::Unbind, _) => Reaction::End,
            // An answer to nothing of ours, or one that nobody waits for.
            _ if header.is_answer() => Reaction::Nothing,
            _ => {
                let status = match received {
                    Received::Whole(_) => CommandStatus::EsmeRinvcmdid,
                    Received::Malformed(_) => CommandStatus::EsmeRinvcmdlen,
                };
                Reaction::Answer(Command::new(status, number, Pdu::GenericNack))
            }
        }
    }

    /// Handles the answer to a part: with status 0 the part was accepted, under this id.
    fn answered(&mut self, header: Header, id: &str, pending: &mut HashMap<u32, Pending>) {
        let Some(Pending { group, reply, .. }) = pending.remove(&header.sequence) else { return };
        if header.status == 0 && !id.is_empty() {
            self.parts.taken(id, group);
        }
        let _ = reply.send(Submitted::Answered { status: header.status, id: id.to_owned() });
    }

    /// Passes what came in to the sink. Resolves to the sequence number to answer, and true unless it could not be
    /// stored.
    fn store(&mut self, number: u32, pdu: &DeliverSm) -> impl Future<Output = (u32, bool)> + Send + use<> {
        let (workspace_id, channel) = (self.owner.workspace, Channel::Sms);
        let arrival = match read(pdu) {
            Incoming::Nothing => None,
            Incoming::Message { from, event } => {
                Some(Arrival::Message(InboundMessage { workspace_id, channel, from, event }))
            }
            Incoming::Ended { id, answer } => {
                let is_delivered = matches!(answer.class, OutcomeClass::Accepted(_));
                self.parts.ended(&id, is_delivered).map(|Named { name: provider_message_id, spellings }| {
                    let provider = NAME.to_owned();
                    let link =
                        ReceiptLink::Provider { workspace_id, channel, provider, provider_message_id, spellings };
                    Arrival::Receipt(link, Receipt::Outcome(answer))
                })
            }
        };
        let sink = self.owner.sink.as_ref().and_then(Weak::upgrade);
        async move {
            let (Some(arrival), Some(sink)) = (arrival, sink) else { return (number, true) };
            let stored: Result<(), InboundError> = match &arrival {
                Arrival::Message(message) => sink.receive_message(message).await,
                Arrival::Receipt(link, receipt) => sink.receive_receipt(link, receipt).await,
            };
            (number, stored.is_ok())
        }
    }
}

/// A receipt, or a message from a recipient, for the inbound sink.
enum Arrival {
    Receipt(ReceiptLink, Receipt),
    Message(InboundMessage),
}

/// The reaction to a received PDU.
enum Reaction {
    Nothing,
    Answer(Command),
    Deliver(DeliverSm),
    End,
}

/// Returns true if the bind was refused for a reason that lasts until somebody acts, such as wrong credentials.
fn is_refused(answer: &Answer) -> bool {
    answer.class == OutcomeClass::Auth
}

/// Returns the wait before the next attempt to bind, after `failures` in a row of which `last` is the last.
fn pause_after(failures: u32, last: &Answer) -> Duration {
    if is_refused(last) {
        return PROBE_EVERY;
    }
    (BACKOFF.0 * 2_u32.saturating_pow(failures.clamp(1, 16) - 1)).min(BACKOFF.1)
}

/// Advances to the next sequence number.
fn next(sequence: &mut u32) {
    *sequence = if *sequence >= MAX_SEQUENCE { 1 } else { *sequence + 1 };
}

/// Writes a PDU, in bounded time; returns true if that worked.
async fn write(link: &mut Link, command: Command) -> bool {
    matches!(timeout(ANSWER_TIME, link.send(command)).await, Ok(Ok(())))
}
