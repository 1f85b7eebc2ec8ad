//! One bound session: what is submitted, what is answered, what comes in; opened again when it breaks.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt as _, StreamExt as _};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::inbound_message::InboundMessage;
use messaging_core::domain::outcome::{Answer, OutcomeClass, Response, Scope};
use messaging_core::domain::receipt::Receipt;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::inbound::{InboundError, ProviderSink, ReceiptLink};
use rusmpp::pdus::{DeliverSm, DeliverSmResp, SubmitSm};
use rusmpp::{Command, CommandId, CommandStatus, Pdu};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::incoming::{Incoming, read};
use super::open::{Link, Opener};
use super::parts::{Group, Parts};
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

/// A session that sent nothing for so long is unbound: no receipt comes later.
const IDLE_TIME: Duration = Duration::from_hours(72);

/// How long is waited between attempts to bind when nobody sends: doubled from the first to the last.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));

/// Where sequence numbers begin again.
const MAX_SEQUENCE: u32 = 0x7FFF_FFFF;

/// A status that asks the peer to bring it later again.
const LATER: CommandStatus = CommandStatus::EsmeRxTAppn;

/// Uses a session. It is unbound when the last of its users drops it.
pub(super) struct Session {
    requests: mpsc::Sender<Request>,
    state: watch::Receiver<State>,
    wanted: Arc<Notify>,
    window: Arc<Semaphore>,
}

/// What became of a part.
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
    pub(super) fn start(
        workspace: WorkspaceId,
        account: Account,
        opener: Arc<Opener>,
        sink: Option<Weak<dyn ProviderSink>>,
    ) -> Self {
        let (requests, incoming) = mpsc::channel(WINDOW);
        let (sender, state) = watch::channel(State::Connecting);
        let wanted = Arc::new(Notify::new());
        let worker = Worker {
            workspace,
            account,
            opener,
            sink,
            requests: incoming,
            state: sender,
            wanted: Arc::clone(&wanted),
            parts: Parts::default(),
        };
        tokio::spawn(worker.run());
        Self { requests, state, wanted, window: Arc::new(Semaphore::new(WINDOW)) }
    }

    /// Whether it was unbound because nobody used it.
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
    workspace: WorkspaceId,
    account: Account,
    opener: Arc<Opener>,
    sink: Option<Weak<dyn ProviderSink>>,
    requests: mpsc::Receiver<Request>,
    state: watch::Sender<State>,
    wanted: Arc<Notify>,
    parts: Parts,
}

/// A part that was written.
struct Pending {
    group: Option<Arc<Group>>,
    reply: oneshot::Sender<Submitted>,
    since: Instant,
}

/// Why a session is over.
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
            self.state.send_replace(State::Down(attempt, answer));
            if self.rest(failures).await {
                return;
            }
        }
    }

    /// Waits before the next attempt, until somebody wants to send at the latest; whether nobody uses it any more.
    async fn rest(&mut self, failures: u32) -> bool {
        let pause = (BACKOFF.0 * 2_u32.saturating_pow(failures.min(16) - 1)).min(BACKOFF.1);
        let pause = sleep(pause);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => return false,
                () = self.wanted.notified() => return false,
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
        let mut storing = FuturesUnordered::new();
        let mut sequence = 1;
        let (mut read_at, mut used_at, mut asked_at) = (Instant::now(), Instant::now(), None);
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
                    used_at = Instant::now();
                    pending.insert(sequence, Pending { group, reply, since: used_at });
                    Command::new(CommandStatus::EsmeRok, sequence, pdu)
                }
                command = link.next(), if storing.len() < MAX_INCOMING => {
                    let Some(Ok(command)) = command else { return End::Broken("the connection broke") };
                    read_at = Instant::now();
                    asked_at = None;
                    match self.heard(&command, &mut pending) {
                        Heard::Nothing => continue,
                        Heard::Answer(answer) => answer,
                        Heard::Deliver(pdu) => {
                            storing.push(self.store(command.sequence_number(), &pdu));
                            continue;
                        }
                        Heard::End => {
                            let bye = Command::new(CommandStatus::EsmeRok, command.sequence_number(), Pdu::UnbindResp);
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
                    // Whoever waits hears that there was no answer.
                    pending.retain(|_, one| now.saturating_duration_since(one.since) < ANSWER_TIME);
                    let is_quiet = now.saturating_duration_since(read_at) >= QUIET_TIME && storing.len() < MAX_INCOMING;
                    match asked_at {
                        Some(asked) if now.saturating_duration_since(asked) >= QUIET_TIME => {
                            return End::Broken("the message center does not answer any more");
                        }
                        None if is_quiet => {}
                        _ if now.saturating_duration_since(used_at) >= IDLE_TIME => {
                            self.requests.close();
                            continue;
                        }
                        _ => continue,
                    }
                    asked_at = Some(now);
                    next(&mut sequence);
                    Command::new(CommandStatus::EsmeRok, sequence, Pdu::EnquireLink)
                }
            };
            if !write(&mut link, command).await {
                return End::Broken("the connection broke");
            }
        }
    }

    /// What follows from a PDU.
    fn heard(&mut self, command: &Command, pending: &mut HashMap<u32, Pending>) -> Heard {
        let number = command.sequence_number();
        match (command.id(), command.pdu()) {
            (CommandId::SubmitSmResp | CommandId::GenericNack, pdu) => {
                let Some(Pending { group, reply, .. }) = pending.remove(&number) else { return Heard::Nothing };
                let status = u32::from(command.status());
                let id = match pdu {
                    Some(Pdu::SubmitSmResp(answer)) => answer.message_id().as_str().to_owned(),
                    _ => String::new(),
                };
                if let Some(group) = group.filter(|_| status == 0) {
                    self.parts.taken(&id, group);
                }
                let _ = reply.send(Submitted::Answered { status, id });
                Heard::Nothing
            }
            (_, Some(Pdu::DeliverSm(pdu))) => Heard::Deliver(pdu.clone()),
            (CommandId::EnquireLink, _) => {
                Heard::Answer(Command::new(CommandStatus::EsmeRok, number, Pdu::EnquireLinkResp))
            }
            (CommandId::Unbind, _) => Heard::End,
            (CommandId::EnquireLinkResp | CommandId::UnbindResp, _) => Heard::Nothing,
            // Answers to nothing of ours; their identifiers have the highest bit.
            (id, _) if u32::from(id) & 0x8000_0000 != 0 => Heard::Nothing,
            _ => Heard::Answer(Command::new(CommandStatus::EsmeRinvcmdid, number, Pdu::GenericNack)),
        }
    }

    /// Hands over what came in; whether that is durable, with the sequence number to answer.
    fn store(&mut self, number: u32, pdu: &DeliverSm) -> impl Future<Output = (u32, bool)> + Send + use<> {
        let (workspace_id, channel) = (self.workspace, Channel::Sms);
        let news = match read(pdu) {
            Incoming::Nothing => None,
            Incoming::Message { from, news } => {
                Some(News::Message(InboundMessage { workspace_id, channel, from, news }))
            }
            Incoming::Ended { id, answer } => {
                let is_delivered = matches!(answer.class, OutcomeClass::Accepted(_));
                self.parts.ended(&id, is_delivered).map(|provider_message_id| {
                    let provider = "smpp".to_owned();
                    let link = ReceiptLink::Provider { workspace_id, channel, provider, provider_message_id };
                    News::Receipt(link, Receipt::Outcome(answer))
                })
            }
        };
        let sink = self.sink.as_ref().and_then(Weak::upgrade);
        async move {
            let (Some(news), Some(sink)) = (news, sink) else { return (number, true) };
            let stored: Result<(), InboundError> = match &news {
                News::Message(message) => sink.receive_message(message).await,
                News::Receipt(link, receipt) => sink.receive_receipt(link, receipt).await,
            };
            (number, stored.is_ok())
        }
    }
}

/// What is handed over.
enum News {
    Receipt(ReceiptLink, Receipt),
    Message(InboundMessage),
}

/// What follows from a PDU.
enum Heard {
    Nothing,
    Answer(Command),
    Deliver(DeliverSm),
    End,
}

/// The next sequence number.
fn next(sequence: &mut u32) {
    *sequence = if *sequence >= MAX_SEQUENCE { 1 } else { *sequence + 1 };
}

/// Writes a PDU, in bounded time; whether that worked.
async fn write(link: &mut Link, command: Command) -> bool {
    matches!(timeout(ANSWER_TIME, link.send(command)).await, Ok(Ok(())))
}
