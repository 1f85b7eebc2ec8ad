//! Script of a peer, and the record of what clients do.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// A point of the conversation at which the peer can be told to misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// On connecting.
    Greeting,
    /// On EHLO.
    Ehlo,
    /// On HELO.
    Helo,
    /// On STARTTLS.
    StartTls,
    /// On each line of an AUTH dialog.
    Auth,
    /// On MAIL.
    Mail,
    /// On each RCPT.
    Rcpt,
    /// On DATA.
    Data,
    /// On the first line of the content.
    Content,
    /// On the dot that ends the content.
    Dot,
    /// On RSET.
    Rset,
}

/// Action of the peer in place of the usual one.
#[derive(Debug, Clone)]
pub enum Action {
    /// Answers with these lines (`\n` between them). A 2yz or 3yz reply has the effect of the usual one.
    Reply(String),
    /// Answers with these lines and closes.
    ReplyAndClose(String),
    /// Closes without an answer, and without accepting a message.
    Close,
    /// Does the usual, even accepts the message, but closes without an answer.
    LoseReply,
    /// Writes these octets and does nothing else.
    Raw(Vec<u8>),
    /// Writes this line again and again, for as long as the client reads it.
    Flood(String),
    /// Waits for the gate and then does the usual.
    Wait(Gate),
}

impl Action {
    /// Returns [`Action::Reply`].
    pub fn reply(lines: &str) -> Self {
        Self::Reply(lines.to_owned())
    }
}

/// Holds the peer up until a test lets it pass.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    is_reached: watch::Sender<bool>,
    is_open: watch::Sender<bool>,
}

impl Gate {
    /// Waits until the peer has reached the gate.
    pub async fn reached(&self) {
        self.is_reached.subscribe().wait_for(|&reached| reached).await.expect("the sender is ours");
    }

    /// Lets the peer pass.
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }

    pub(crate) async fn pass(&self) {
        self.is_reached.send_replace(true);
        self.is_open.subscribe().wait_for(|&open| open).await.expect("the sender is ours");
    }
}

/// A message that the peer accepted.
#[derive(Debug, Clone)]
pub struct Received {
    /// The path of MAIL, without its angle brackets.
    pub from: String,
    /// Parameters behind the path, in upper case: `SIZE=100`, `SMTPUTF8`.
    pub parameters: Vec<String>,
    /// The paths of the accepted RCPTs.
    pub recipients: Vec<String>,
    /// The content, its dots unstuffed.
    pub content: Vec<u8>,
    /// True if the message came over TLS.
    pub is_tls: bool,
    /// The user name of the client's login; `None` without one.
    pub username: Option<String>,
    /// Number of the connection, from 1.
    pub connection: usize,
}

/// Decides at every stage for which nothing is scripted. A peer with a policy keeps neither commands nor messages; the
/// policy records what it needs.
pub(crate) trait Policy: Send + Sync {
    /// Returns the action at this point of a connection; `None` for the usual one.
    fn decide(&self, at: &Situation<'_>) -> Option<Action>;

    /// Notes that a connection has ended, or that QUIT was said; may be called twice for one connection.
    fn ended(&self, connection: usize);
}

/// A point of a connection, as a [`Policy`] sees it.
pub(crate) struct Situation<'a> {
    pub(crate) stage: Stage,
    /// Number of the connection, from 1.
    pub(crate) connection: usize,
    /// Address of the client.
    pub(crate) source: IpAddr,
    /// Name of the last EHLO or HELO, the one being answered included; empty before.
    pub(crate) ehlo: &'a str,
    pub(crate) is_tls: bool,
    pub(crate) subject: Subject<'a>,
}

/// The mail transaction at a stage.
#[derive(Clone, Copy, Default)]
pub(crate) struct Subject<'a> {
    /// The path of MAIL; empty at other stages than MAIL, RCPT and the dot.
    pub(crate) from: &'a str,
    /// The path of this RCPT, or at the dot the paths of all that were accepted.
    pub(crate) recipients: &'a [String],
    /// The content, at the dot.
    pub(crate) content: &'a [u8],
}

#[expect(clippy::struct_excessive_bools, reason = "each is an extension that is offered or not")]
#[derive(Clone, Default)]
pub(super) struct Config {
    pub(super) no_ehlo: bool,
    pub(super) no_pipelining: bool,
    pub(super) no_utf8: bool,
    pub(super) no_eight_bit: bool,
    pub(super) size: Option<usize>,
    pub(super) starts_tls: bool,
    pub(super) login: Option<(String, String)>,
    pub(super) mechanisms: Vec<String>,
}

#[derive(Default)]
pub(super) struct Script {
    pub(super) next: HashMap<Stage, VecDeque<Action>>,
    pub(super) always: HashMap<Stage, Action>,
    pub(super) recipients: HashMap<String, String>,
}

#[derive(Default)]
pub(super) struct Log {
    pub(super) connections: usize,
    /// Address that each connection came from.
    pub(super) peers: Vec<IpAddr>,
    pub(super) open: usize,
    pub(super) commands: Vec<String>,
    pub(super) pipelined: usize,
    pub(super) messages: Vec<Received>,
}

pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) acceptor: Option<TlsAcceptor>,
    pub(super) policy: Option<Arc<dyn Policy>>,
    pub(super) script: Mutex<Script>,
    pub(super) log: Mutex<Log>,
    /// Number of messages that were accepted so far.
    pub(super) taken: watch::Sender<usize>,
}

impl Shared {
    pub(super) fn action(&self, stage: Stage) -> Option<Action> {
        let mut script = lock(&self.script);
        let next = script.next.get_mut(&stage).and_then(VecDeque::pop_front);
        next.or_else(|| script.always.get(&stage).cloned())
    }

    /// Records a command, unless there is a policy.
    pub(super) fn note_command(&self, line: &str) {
        if self.policy.is_none() {
            lock(&self.log).commands.push(line.to_owned());
        }
    }

    /// Records a message that was accepted, unless there is a policy.
    pub(super) fn note_message(&self, message: Received) {
        if self.policy.is_none() {
            lock(&self.log).messages.push(message);
        }
        self.taken.send_modify(|taken| *taken += 1);
    }

    pub(super) fn recipient(&self, address: &str) -> Option<String> {
        lock(&self.script).recipients.get(address).cloned()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
