//! Fake message center that speaks SMPP 3.4 (cargo feature `smpp`).

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::{SinkExt as _, StreamExt as _};
use rusmpp::pdus::{BindTransceiverResp, DeliverSm, SubmitSm, SubmitSmResp};
use rusmpp::tlvs::MessageDeliveryRequestTlvValue as Tlv;
use rusmpp::tokio_codec::CommandCodec;
use rusmpp::types::{COctetString, OctetString};
use rusmpp::values::{EsmClass, MessageState};
use rusmpp::{Command, CommandId, CommandStatus, Pdu};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::codec::Framed;

use super::case::{Case, Order, Refusal, Report, Trouble};

/// Maximum number of PDUs that wait to be written on a connection.
const MAX_WAITING: usize = 4096;

/// Number of parts and answers that are kept, the newest.
const REMEMBERED: usize = 10_000;

/// `esm_class` of a receipt.
const IS_RECEIPT: u8 = 0x04;

/// A message center on a loopback socket. It ends when dropped.
pub struct FakeSmpp {
    address: SocketAddr,
    has_tls: bool,
    shared: Arc<Shared>,
    task: AbortHandle,
}

/// A part of a message that was submitted.
#[derive(Debug, Clone)]
pub struct FakePart {
    /// The message center's id of it.
    pub id: String,
    /// The PDU.
    pub pdu: SubmitSm,
}

struct Shared {
    system_id: String,
    password: Mutex<String>,
    state: Mutex<State>,
    submitted: watch::Sender<usize>,
    answered: watch::Sender<usize>,
    binds: watch::Sender<usize>,
    next_id: AtomicU64,
    connections: AtomicU64,
    /// Number of the newest connection that gets no answers; older ones get none either.
    mute_to: AtomicU64,
    has_tlvs: AtomicBool,
    nacks: watch::Sender<Vec<u32>>,
    unbinds: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    parts: VecDeque<FakePart>,
    answers: VecDeque<u32>,
    names: VecDeque<String>,
    links: Vec<mpsc::Sender<Instruction>>,
}

/// An instruction to the task of a connection.
enum Instruction {
    Write(Box<Command>),
    WriteRaw(Vec<u8>),
    Close,
}

impl fmt::Debug for FakeSmpp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeSmpp").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for FakeSmpp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakeSmpp {
    /// Starts a message center with one account on a free loopback port.
    pub async fn start(system_id: &str, password: &str) -> io::Result<Self> {
        Self::listen(system_id, password, None).await
    }

    /// Starts a message center that speaks TLS from the first octet.
    pub async fn start_tls(system_id: &str, password: &str, acceptor: TlsAcceptor) -> io::Result<Self> {
        Self::listen(system_id, password, Some(acceptor)).await
    }

    async fn listen(system_id: &str, password: &str, acceptor: Option<TlsAcceptor>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            system_id: system_id.to_owned(),
            password: Mutex::new(password.to_owned()),
            state: Mutex::default(),
            submitted: watch::Sender::new(0),
            answered: watch::Sender::new(0),
            binds: watch::Sender::new(0),
            next_id: AtomicU64::new(1),
            connections: AtomicU64::new(0),
            mute_to: AtomicU64::new(0),
            has_tlvs: AtomicBool::new(false),
            nacks: watch::Sender::new(Vec::new()),
            unbinds: watch::Sender::new(0),
        });
        let task = tokio::spawn(accept(listener, acceptor.clone(), Arc::clone(&shared)));
        Ok(Self { address, has_tls: acceptor.is_some(), shared, task: task.abort_handle() })
    }

    /// Returns the settings of a channel that uses it.
    pub fn settings(&self) -> Value {
        json!({"host": self.address.ip().to_string(), "port": self.address.port(), "system_id": self.shared.system_id,
            "password": *lock(&self.shared.password), "sender": "ACME", "tls": self.has_tls})
    }

    /// Accepts only this password from now on.
    pub fn set_password(&self, password: &str) {
        password.clone_into(&mut lock(&self.shared.password));
    }

    /// Stops answering on the connections that are open, which stay so.
    pub fn mute_connections(&self) {
        let newest = self.shared.connections.load(Ordering::Relaxed);
        self.shared.mute_to.store(newest, Ordering::Relaxed);
    }

    /// If true, receipts name their message by optional parameters only, and not in their text.
    pub fn set_tlvs(&self, has_tlvs: bool) {
        self.shared.has_tlvs.store(has_tlvs, Ordering::Relaxed);
    }

    /// Returns the newest 10,000 parts, oldest first.
    pub fn parts(&self) -> Vec<FakePart> {
        lock(&self.shared.state).parts.iter().cloned().collect()
    }

    /// Waits until `count` parts were submitted.
    pub async fn submitted(&self, count: usize) -> Vec<FakePart> {
        let _ = self.shared.submitted.subscribe().wait_for(|&found| found >= count).await;
        self.parts()
    }

    /// Waits until `count` of its deliveries were answered; returns the statuses.
    pub async fn answers(&self, count: usize) -> Vec<u32> {
        let _ = self.shared.answered.subscribe().wait_for(|&found| found >= count).await;
        lock(&self.shared.state).answers.iter().copied().collect()
    }

    /// Waits until there were `count` attempts to bind since the start, refused ones included.
    pub async fn binds(&self, count: usize) -> usize {
        let mut binds = self.shared.binds.subscribe();
        binds.wait_for(|&found| found >= count).await.map_or(0, |count| *count)
    }

    /// Waits until `count` PDUs were answered by `generic_nack`; returns the statuses.
    pub async fn nacks(&self, count: usize) -> Vec<u32> {
        let mut nacks = self.shared.nacks.subscribe();
        nacks.wait_for(|found| found.len() >= count).await.map_or_else(|_| Vec::new(), |found| found.clone())
    }

    /// Waits until `count` sessions were unbound.
    pub async fn unbinds(&self, count: usize) {
        let _ = self.shared.unbinds.subscribe().wait_for(|&found| found >= count).await;
    }

    /// Gives the next part this id.
    pub fn name_next(&self, name: &str) {
        lock(&self.shared.state).names.push_back(name.to_owned());
    }

    /// Writes raw octets over the newest session.
    pub async fn write_raw(&self, octets: Vec<u8>) {
        self.instruct(Instruction::WriteRaw(octets)).await;
    }

    /// Closes every connection.
    pub async fn close_connections(&self) {
        let links = std::mem::take(&mut lock(&self.shared.state).links);
        for link in links {
            let _ = link.send(Instruction::Close).await;
        }
    }

    /// Reports the final state of a part: `stat` as in a receipt.
    ///
    /// # Panics
    ///
    /// If the name or the state is too long for a receipt.
    pub async fn report(&self, id: &str, stat: &str) {
        self.deliver(receipt(&self.shared, id, stat)).await;
    }

    /// Lets a recipient write.
    ///
    /// # Panics
    ///
    /// If the number or the text is too long for one part, or not ASCII.
    pub async fn write(&self, from: &str, text: &str) {
        let number = COctetString::from_string(from.trim_start_matches('+').to_owned()).expect("a number");
        let text = OctetString::from_slice(text.as_bytes()).expect("a short text");
        let pdu = DeliverSm::builder().source_addr(number).esm_class(EsmClass::from(0)).short_message(text).build();
        self.deliver(pdu).await;
    }

    async fn deliver(&self, pdu: DeliverSm) {
        self.instruct(Instruction::Write(Box::new(self.shared.command(pdu)))).await;
    }

    async fn instruct(&self, instruction: Instruction) {
        let link = lock(&self.shared.state).links.last().cloned();
        if let Some(link) = link {
            let _ = link.send(instruction).await;
        }
    }
}

impl Shared {
    fn command(&self, pdu: impl Into<Pdu>) -> Command {
        let number = self.next_id.fetch_add(1, Ordering::Relaxed);
        Command::new(CommandStatus::EsmeRok, u32::try_from(number).unwrap_or(1), pdu)
    }

    /// Returns the PDUs that follow a submission; `None` closes the connection.
    fn submit(&self, sequence: u32, pdu: &SubmitSm) -> Option<Vec<Command>> {
        let name = lock(&self.state).names.pop_front();
        let id = name.unwrap_or_else(|| format!("{:08x}", self.next_id.fetch_add(1, Ordering::Relaxed)));
        remember(&mut lock(&self.state).parts, FakePart { id: id.clone(), pdu: pdu.clone() });
        self.submitted.send_modify(|count| *count += 1);
        let taken = || {
            let id = COctetString::from_string(id.clone()).expect("a short name");
            Command::new(CommandStatus::EsmeRok, sequence, SubmitSmResp::builder().message_id(id).build())
        };
        match Case::of(pdu.destination_addr.as_str()) {
            Case::Accepted(reports, order) => {
                let stats: Vec<_> = reports.iter().copied().filter_map(stat).collect();
                let mut about = vec![id.clone(); stats.len()];
                if order == Order::Unknown && !about.is_empty() {
                    about[0].insert(0, '9');
                }
                let repeated = if order == Order::Twice { 2 } else { 1 };
                let told = about.iter().zip(&stats).flat_map(|pair| std::iter::repeat_n(pair, repeated));
                let mut commands: Vec<_> = told.map(|(id, stat)| self.command(receipt(self, id, stat))).collect();
                let at = if order == Order::BeforeAnswer { commands.len() } else { 0 };
                commands.insert(at, taken());
                Some(commands)
            }
            Case::Refused(refusal) => {
                let status = CommandStatus::from(status(refusal));
                Some(vec![Command::new(status, sequence, SubmitSmResp::default())])
            }
            Case::Trouble(Trouble::Silent) => Some(Vec::new()),
            Case::Trouble(Trouble::Reset | Trouble::ResetWhenTaken) => None,
            Case::Trouble(_) => Some(vec![taken()]),
        }
    }
}

/// Adds the newest item, and drops the oldest if there are too many.
fn remember<T>(remembered: &mut VecDeque<T>, newest: T) {
    if remembered.len() >= REMEMBERED {
        remembered.pop_front();
    }
    remembered.push_back(newest);
}

/// Returns the `stat` of a report, if message centers have one.
const fn stat(report: Report) -> Option<&'static str> {
    match report {
        Report::Delivered => Some("DELIVRD"),
        Report::Failed(Refusal::Soft) => Some("EXPIRED"),
        Report::Failed(Refusal::Policy) => Some("REJECTD"),
        Report::Failed(_) => Some("UNDELIV"),
        Report::Sent | Report::Read => None,
    }
}

const fn status(refusal: Refusal) -> u32 {
    match refusal {
        Refusal::Address => 0x0B,
        Refusal::Content => 0x01,
        Refusal::Retry => 0x08,
        Refusal::ThrottledRecipient => 0x14,
        Refusal::Throttled(_) => 0x58,
        Refusal::Auth => 0x0F,
        // Message centers have values of their own for these.
        Refusal::Blocked | Refusal::OptedOut | Refusal::Soft | Refusal::Policy => 0x0400,
    }
}

fn receipt(shared: &Shared, id: &str, stat: &str) -> DeliverSm {
    let mut pdu = DeliverSm::builder().esm_class(EsmClass::from(IS_RECEIPT)).build();
    if shared.has_tlvs.load(Ordering::Relaxed) {
        let state = match stat {
            "DELIVRD" => MessageState::Delivered,
            "EXPIRED" => MessageState::Expired,
            "REJECTD" => MessageState::Rejected,
            _ => MessageState::Undeliverable,
        };
        pdu.push_tlv(Tlv::ReceiptedMessageId(COctetString::from_string(id.to_owned()).expect("a short name")));
        pdu.push_tlv(Tlv::MessageState(state));
    } else {
        let text =
            format!("id:{id} sub:001 dlvrd:000 submit date:2601010000 done date:2601010001 stat:{stat} err:000 text:");
        pdu.set_short_message(OctetString::from_slice(text.as_bytes()).expect("a short text"));
    }
    pdu
}

/// Accepts connections and owns their tasks, which end with it.
async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        connections.spawn(async move {
            match acceptor {
                None => serve(stream, shared).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, shared).await;
                    }
                }
            }
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>) {
    let mut link = Framed::new(stream, CommandCodec::new());
    let (orders, mut told) = mpsc::channel(MAX_WAITING);
    let number = shared.connections.fetch_add(1, Ordering::Relaxed) + 1;
    let mut is_bound = false;
    loop {
        let commands = tokio::select! {
            order = told.recv() => match order {
                Some(Instruction::Write(command)) => vec![*command],
                Some(Instruction::WriteRaw(octets)) => {
                    if link.get_mut().write_all(&octets).await.is_err() {
                        return;
                    }
                    Vec::new()
                }
                Some(Instruction::Close) | None => return,
            },
            command = link.next() => {
                let Some(Ok(command)) = command else { return };
                let sequence = command.sequence_number();
                match (command.id(), command.pdu()) {
                    _ if number <= shared.mute_to.load(Ordering::Relaxed) => Vec::new(),
                    (_, Some(Pdu::BindTransceiver(bind))) => {
                        let is_known = bind.system_id.as_str() == shared.system_id;
                        let is_right = bind.password.as_str() == *lock(&shared.password);
                        let status = match (is_known, is_right) {
                            (false, _) => CommandStatus::EsmeRinvsysid,
                            (_, false) => CommandStatus::EsmeRinvpaswd,
                            _ => CommandStatus::EsmeRok,
                        };
                        is_bound = status == CommandStatus::EsmeRok;
                        if is_bound {
                            let links = &mut lock(&shared.state).links;
                            links.retain(|link| !link.is_closed());
                            links.push(orders.clone());
                        }
                        shared.binds.send_modify(|count| *count += 1);
                        vec![Command::new(status, sequence, BindTransceiverResp::default())]
                    }
                    (_, Some(Pdu::SubmitSm(pdu))) if is_bound => {
                        let Some(commands) = shared.submit(sequence, pdu) else { return };
                        commands
                    }
                    (CommandId::EnquireLink, _) => {
                        vec![Command::new(CommandStatus::EsmeRok, sequence, Pdu::EnquireLinkResp)]
                    }
                    (CommandId::DeliverSmResp, _) => {
                        remember(&mut lock(&shared.state).answers, u32::from(command.status()));
                        shared.answered.send_modify(|count| *count += 1);
                        Vec::new()
                    }
                    (CommandId::GenericNack, _) => {
                        shared.nacks.send_modify(|nacks| nacks.push(u32::from(command.status())));
                        Vec::new()
                    }
                    (CommandId::Unbind, _) => {
                        shared.unbinds.send_modify(|count| *count += 1);
                        return;
                    }
                    _ => Vec::new(),
                }
            }
        };
        for command in commands {
            if link.send(command).await.is_err() {
                return;
            }
        }
    }
}
