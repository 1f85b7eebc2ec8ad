//! An SMTP peer that does as it is told.

mod connection;

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// Any free port.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

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

/// What the peer does in place of the usual.
#[derive(Debug, Clone)]
pub enum Action {
    /// Answers with these lines (`\n` between them). A 2yz or 3yz reply has the effect of the usual one.
    Reply(String),
    /// Answers with these lines and closes.
    ReplyAndClose(String),
    /// Closes without an answer, and without taking a message.
    Close,
    /// Does what is asked, takes the message even, but closes without an answer.
    LoseReply,
    /// Writes these octets and does nothing else.
    Raw(Vec<u8>),
    /// Writes this line again and again, for as long as somebody reads it.
    Flood(String),
    /// Waits for the gate and then does the usual.
    Wait(Gate),
}

impl Action {
    /// [`Action::Reply`].
    pub fn reply(lines: &str) -> Self {
        Self::Reply(lines.to_owned())
    }
}

/// Holds the peer up until a test has seen what it wants to see.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    is_reached: watch::Sender<bool>,
    is_open: watch::Sender<bool>,
}

impl Gate {
    /// Waits until the peer stands before the gate.
    pub async fn reached(&self) {
        self.is_reached.subscribe().wait_for(|&reached| reached).await.expect("the sender is ours");
    }

    /// Lets the peer pass.
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }

    pub(super) async fn pass(&self) {
        self.is_reached.send_replace(true);
        self.is_open.subscribe().wait_for(|&open| open).await.expect("the sender is ours");
    }
}

/// A message that the peer took.
#[derive(Debug, Clone)]
pub struct Received {
    /// The path of MAIL, without its angle brackets.
    pub from: String,
    /// What followed the path, in upper case: `SIZE=100`, `SMTPUTF8`.
    pub parameters: Vec<String>,
    /// The paths of the accepted RCPTs.
    pub recipients: Vec<String>,
    /// The content, its dots unstuffed.
    pub content: Vec<u8>,
    /// Whether it came under TLS.
    pub is_tls: bool,
    /// Who had logged in.
    pub username: Option<String>,
    /// The number of the connection, from 1.
    pub connection: usize,
}

#[expect(clippy::struct_excessive_bools, reason = "each is an extension that is offered or not")]
#[derive(Clone, Default)]
struct Config {
    no_ehlo: bool,
    no_pipelining: bool,
    no_utf8: bool,
    no_eight_bit: bool,
    size: Option<usize>,
    starts_tls: bool,
    login: Option<(String, String)>,
    mechanisms: Vec<String>,
}

#[derive(Default)]
struct Script {
    next: HashMap<Stage, VecDeque<Action>>,
    always: HashMap<Stage, Action>,
    recipients: HashMap<String, String>,
}

#[derive(Default)]
struct Log {
    connections: usize,
    open: usize,
    broken_off: usize,
    commands: Vec<String>,
    pipelined: usize,
    messages: Vec<Received>,
}

struct Shared {
    config: Config,
    acceptor: Option<TlsAcceptor>,
    script: Mutex<Script>,
    log: Mutex<Log>,
    /// How many messages were taken.
    taken: watch::Sender<usize>,
}

impl Shared {
    fn action(&self, stage: Stage) -> Option<Action> {
        let mut script = lock(&self.script);
        let next = script.next.get_mut(&stage).and_then(VecDeque::pop_front);
        next.or_else(|| script.always.get(&stage).cloned())
    }

    fn recipient(&self, address: &str) -> Option<String> {
        lock(&self.script).recipients.get(address).cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A peer on a loopback port. It takes every message until it is told otherwise, and ends when dropped.
pub struct ScriptedSmtpServer {
    address: SocketAddr,
    root: Option<CertificateDer<'static>>,
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Drop for ScriptedSmtpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ScriptedSmtpServer {
    /// Starts a peer that offers PIPELINING, SMTPUTF8, 8BITMIME and SIZE, without TLS or login.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// A peer that offers something else.
    pub fn builder() -> ScriptedSmtpServerBuilder {
        ScriptedSmtpServerBuilder { config: Config::default(), address: LOOPBACK, is_implicit: false, names: None }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The root to trust, of a peer with TLS.
    pub fn root(&self) -> Option<CertificateDer<'static>> {
        self.root.clone()
    }

    /// At the next `stage`, does this; several calls make a queue.
    pub fn next(&self, stage: Stage, action: Action) {
        lock(&self.shared.script).next.entry(stage).or_default().push_back(action);
    }

    /// At every `stage`, does this.
    pub fn always(&self, stage: Stage, action: Action) {
        lock(&self.shared.script).always.insert(stage, action);
    }

    /// Holds up the next `stage`.
    pub fn gate(&self, stage: Stage) -> Gate {
        let gate = Gate::default();
        self.next(stage, Action::Wait(gate.clone()));
        gate
    }

    /// Answers every RCPT of this address with these lines.
    pub fn answer(&self, recipient: &str, reply: &str) {
        lock(&self.shared.script).recipients.insert(recipient.to_owned(), reply.to_owned());
    }

    /// The messages taken so far.
    pub fn messages(&self) -> Vec<Received> {
        lock(&self.shared.log).messages.clone()
    }

    /// Waits until `count` messages were taken.
    pub async fn received(&self, count: usize) -> Vec<Received> {
        self.shared.taken.subscribe().wait_for(|&taken| taken >= count).await.expect("the sender is ours");
        self.messages()
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        lock(&self.shared.log).connections
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        lock(&self.shared.log).open
    }

    /// How many connections have ended without QUIT: they were open when the client died, or one side hung up.
    pub fn broken_off(&self) -> usize {
        lock(&self.shared.log).broken_off
    }

    /// The commands so far, as sent; the secrets of AUTH too.
    pub fn commands(&self) -> Vec<String> {
        lock(&self.shared.log).commands.clone()
    }

    /// How many commands came before the one ahead of them was answered.
    pub fn pipelined(&self) -> usize {
        lock(&self.shared.log).pipelined
    }
}

/// Says what a [`ScriptedSmtpServer`] offers.
pub struct ScriptedSmtpServerBuilder {
    config: Config,
    address: SocketAddr,
    is_implicit: bool,
    names: Option<Vec<String>>,
}

impl ScriptedSmtpServerBuilder {
    /// Knows HELO only.
    pub fn without_ehlo(mut self) -> Self {
        self.config.no_ehlo = true;
        self
    }

    /// Does not offer PIPELINING.
    pub fn without_pipelining(mut self) -> Self {
        self.config.no_pipelining = true;
        self
    }

    /// Does not offer 8BITMIME.
    pub fn without_eight_bit(mut self) -> Self {
        self.config.no_eight_bit = true;
        self
    }

    /// Does not offer SMTPUTF8.
    pub fn without_utf8(mut self) -> Self {
        self.config.no_utf8 = true;
        self
    }

    /// Offers SIZE with this limit.
    pub fn size(mut self, octets: usize) -> Self {
        self.config.size = Some(octets);
        self
    }

    /// Offers STARTTLS, with a certificate for `127.0.0.1` and `localhost`.
    pub fn start_tls(mut self) -> Self {
        self.config.starts_tls = true;
        self.named(&["127.0.0.1", "localhost"])
    }

    /// Speaks TLS from the first octet, with a certificate for `127.0.0.1` and `localhost`.
    pub fn implicit_tls(mut self) -> Self {
        self.is_implicit = true;
        self.named(&["127.0.0.1", "localhost"])
    }

    /// Has a certificate for these names instead.
    pub fn named(mut self, names: &[&str]) -> Self {
        self.names = Some(names.iter().map(|&name| name.to_owned()).collect());
        self
    }

    /// Offers AUTH with these mechanisms and knows this user.
    pub fn login(mut self, mechanisms: &[&str], username: &str, password: &str) -> Self {
        self.config.mechanisms = mechanisms.iter().map(|&mechanism| mechanism.to_owned()).collect();
        self.config.login = Some((username.to_owned(), password.to_owned()));
        self
    }

    /// Listens here, and not at any free port of 127.0.0.1.
    pub fn at(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Starts listening.
    pub async fn start(self) -> ScriptedSmtpServer {
        let listener = TcpListener::bind(self.address).await.expect("a loopback port");
        let address = listener.local_addr().expect("a bound socket");
        let (acceptor, root) = self.names.map(certify).unzip();
        let shared = Arc::new(Shared {
            config: self.config,
            acceptor,
            script: Mutex::default(),
            log: Mutex::default(),
            taken: watch::Sender::new(0),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared), self.is_implicit));
        ScriptedSmtpServer { address, root, shared, task: task.abort_handle() }
    }
}

/// Owns the tasks of the connections: they end with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>, is_implicit: bool) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let number = {
            let mut log = lock(&shared.log);
            log.connections += 1;
            log.open += 1;
            log.connections
        };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let ended = connection::serve(Arc::clone(&shared), stream, number, is_implicit).await;
            let mut log = lock(&shared.log);
            log.open -= 1;
            log.broken_off += usize::from(ended.is_err());
        });
        while connections.try_join_next().is_some() {}
    }
}

/// A certificate for the names, and the root that signed it.
pub(super) fn certify(names: Vec<String>) -> (TlsAcceptor, CertificateDer<'static>) {
    let mut root = CertificateParams::new(Vec::new()).expect("no names");
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root_key = KeyPair::generate().expect("a key");
    let root_certificate = root.self_signed(&root_key).expect("a certificate");
    let key = KeyPair::generate().expect("a key");
    let issuer = Issuer::new(root, root_key);
    let leaf = CertificateParams::new(names).expect("names").signed_by(&key, &issuer).expect("a certificate");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of the provider")
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .expect("a certificate and its key");
    (TlsAcceptor::from(Arc::new(config)), root_certificate.der().clone())
}
