//! One bound session: what is submitted, what is answered, what comes in; opened again when it breaks.

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

/// The most messages whose answer is waited for at a time.
pub(super) const WINDOW: usize = 16;

/// The most incoming PDUs that are being stored at a time; more are not read meanwhile.
const MAX_INCOMING: usize = 64;

/// How long a session may take to be bound, and a place in the window to become free.
const READY_TIME: Duration = Duration::from_secs(30);

/// How long an answer is waited for.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// After so long without anything read the peer is asked whether it is there, and has as long to answer.
const QUIET_TIME: Duration = Duration::from_secs(30);

/// How often those times are looked at.
const TICK: Duration = Duration::from_secs(5);

/// How often it is asked whether the channel still has the settings of the session.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// A session that sent nothing for so long ends: no receipt comes later.
const IDLE_TIME: Duration = Duration::from_hours(72);

/// How long is waited between attempts to bind when nobody sends: doubled from the first to the last. A bind that was
/// refused is tried again every [`PROBE_EVERY`], whoever wants to send: repeated refusals may get an account blocked.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));

/// The highest sequence number; the next one after it is 1.
const MAX_SEQUENCE: u32 = 0x7FFF_FFFF;

/// The provider's name.
const NAME: &str = "smpp";

/// A status that asks the peer to bring it later again.
const LATER: CommandStatus = CommandStatus::EsmeRxTAppn;

/// A status that tells the peer not to bring it again.
const NEVER: CommandStatus = CommandStatus::EsmeRxRAppn;

/// Whose session it is, and who hears what comes in over it.
pub(super) struct Owner {
    pub(super) workspace: WorkspaceId,
    /// The settings of its channel.
    pub(super) settings: Arc<Map<String, Value>>,
    pub(super) sink: Option<Weak<dyn ProviderSink>>,
}

impl Owner {
    /// Whether the channel still has the settings. Where that is not known it has.
    fn look(&self) -> impl Future<Output = bool> + Send + use<> {
        let (workspace, settings) = (self.workspace, Arc::clone(&self.settings));
        let sink = self.sink.as_ref().and_then(Weak::upgrade);
        async move {
            let Some(sink) = sink else { return true };
            sink.has_settings(workspace, Channel::Sms, NAME, &settings).await.unwrap_or(true)
        }
    }
}

/// Uses a session. It is unbound when the last of its users drops it.
pub(super) struct Session {
    requests: mpsc::Sender<Request>,
    state: watch::Receiver<State>,
    wanted: Arc<Notify>,
    window: Arc<Semaphore>,
}

/// Outcome of submitting one part of a message.
pub(super) enum Submitted {
    /// The message center answered; with status 0 the part has this name.
    Answered { status: u32, id: String },
    /// Nothing was written, and why.
    NotSent(String),
    /// It may have been written, and there was no answer.
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
    /// The attempt of this number failed so.
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

    /// Whether it has ended because nobody used it, or its channel has other settings.
    pub(super) fn has_ended(&self) -> bool {
        self.requests.is_closed()
    }

    /// Waits until it is bound and one more message may be under way, in bounded time.
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
        // The worker gives up before.
        match timeout(ANSWER_TIME * 2 + TICK, answer).await {
            Ok(Ok(submitted)) => submitted,
            _ => Submitted::Lost,
        }
    }
}

/// Owns the connection.
struct Worker {
    owner: Owner,
    account: Account,
    opener: Arc<Opener>,
    requests: mpsc::Receiver<Request>,
    state: watch::Sender<State>,
    wanted: Arc<Notify>,
    /// When somebody sent last.
    used_at: Instant,
    parts: Parts,
}

/// A part that was written.
struct Pending {
    group: Option<Arc<Group>>,
    reply: oneshot::Sender<Submitted>,
    since: Instant,
}

/// The reason why a session ended.
enum End {
    /// Nobody uses it.
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

    /// Waits before the next attempt, and with `is_wanted_early` until somebody wants to send at the latest; whether the
    /// session has ended, because nobody uses it or its channel has other settings.
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

    /// Carries what is to be said until the connection breaks or nobody uses it.
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
                    // Whoever waits hears that there was no answer.
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
                    // What was written is answered first; the next look is soon enough.
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

    /// Judges a received PDU, and answers what is to be done about it.
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
                    // The header alone says whether the part was taken.
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
            // Answers to nothing of ours, or such as nobody waits for.
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

    /// A part was answered: with status 0 it was taken, under this name.
    fn answered(&mut self, header: Header, id: &str, pending: &mut HashMap<u32, Pending>) {
        let Some(Pending { group, reply, .. }) = pending.remove(&header.sequence) else { return };
        if header.status == 0 && !id.is_empty() {
            self.parts.taken(id, group);
        }
        let _ = reply.send(Submitted::Answered { status: header.status, id: id.to_owned() });
    }

    /// Hands over what came in; whether that is durable, with the sequence number to answer.
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

/// A receipt or a message of a recipient, for the inbound sink.
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

/// Whether a bind was refused, which somebody has to do something about.
fn is_refused(answer: &Answer) -> bool {
    answer.class == OutcomeClass::Auth
}

/// How long is waited before the next attempt, after so many failures in a row of which the last was this.
fn pause_after(failures: u32, last: &Answer) -> Duration {
    if is_refused(last) {
        return PROBE_EVERY;
    }
    (BACKOFF.0 * 2_u32.saturating_pow(failures.clamp(1, 16) - 1)).min(BACKOFF.1)
}

/// The next sequence number.
fn next(sequence: &mut u32) {
    *sequence = if *sequence >= MAX_SEQUENCE { 1 } else { *sequence + 1 };
}

/// Writes a PDU, in bounded time; whether that worked.
async fn write(link: &mut Link, command: Command) -> bool {
    matches!(timeout(ANSWER_TIME, link.send(command)).await, Ok(Ok(())))
}
