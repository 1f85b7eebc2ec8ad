//! An SMTP server on loopback whose answers a test scripts, and which records what it received.

mod connection;
mod script;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

pub use self::script::{Action, Gate, Received, Stage};
use self::script::{Config, Shared, lock};
pub(crate) use self::script::{Policy, Situation};

/// Loopback address with any free port.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server on a loopback port. It accepts every message unless it is scripted otherwise, and ends when dropped.
pub struct ScriptedSmtpServer {
    address: SocketAddr,
    root: Option<CertificateDer<'static>>,
    certificate: Option<CertificateDer<'static>>,
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Drop for ScriptedSmtpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ScriptedSmtpServer {
    /// Starts a server that offers PIPELINING, SMTPUTF8, 8BITMIME and SIZE, without TLS or login.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Configures a server with other capabilities.
    pub fn builder() -> ScriptedSmtpServerBuilder {
        let config = Config::default();
        ScriptedSmtpServerBuilder { config, policy: None, address: LOOPBACK, is_implicit: false, names: None }
    }

    /// The address that the server listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The root certificate to trust; `None` without TLS.
    pub fn root(&self) -> Option<CertificateDer<'static>> {
        self.root.clone()
    }

    /// The server's certificate; `None` without TLS.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.certificate.clone()
    }

    /// Does `action` at the next `stage`, once; several calls make a queue.
    pub fn next(&self, stage: Stage, action: Action) {
        lock(&self.shared.script).next.entry(stage).or_default().push_back(action);
    }

    /// Does `action` at every `stage` for which no action of [`Self::next`] is queued.
    pub fn always(&self, stage: Stage, action: Action) {
        lock(&self.shared.script).always.insert(stage, action);
    }

    /// Makes the server wait at the next `stage` until the gate is opened.
    pub fn gate(&self, stage: Stage) -> Gate {
        let gate = Gate::default();
        self.next(stage, Action::Wait(gate.clone()));
        gate
    }

    /// Answers every RCPT command for an address with `reply`.
    pub fn answer(&self, recipient: &str, reply: &str) {
        lock(&self.shared.script).recipients.insert(recipient.to_owned(), reply.to_owned());
    }

    /// The messages accepted so far.
    pub fn messages(&self) -> Vec<Received> {
        lock(&self.shared.log).messages.clone()
    }

    /// Waits until `count` messages were accepted, and returns all so far. Has no time limit of its own.
    pub async fn received(&self, count: usize) -> Vec<Received> {
        self.shared.taken.subscribe().wait_for(|&taken| taken >= count).await.expect("the sender is ours");
        self.messages()
    }

    /// The number of connections that were made so far.
    pub fn connections(&self) -> usize {
        lock(&self.shared.log).connections
    }

    /// The client addresses of all connections so far, in the order of the connections.
    pub fn peers(&self) -> Vec<IpAddr> {
        lock(&self.shared.log).peers.clone()
    }

    /// The number of connections that are open.
    pub fn open(&self) -> usize {
        lock(&self.shared.log).open
    }

    /// The commands received so far, unchanged, including the secrets of AUTH.
    pub fn commands(&self) -> Vec<String> {
        lock(&self.shared.log).commands.clone()
    }

    /// Number of commands that arrived before the preceding command was answered.
    pub fn pipelined(&self) -> usize {
        lock(&self.shared.log).pipelined
    }
}

/// Configuration of a [`ScriptedSmtpServer`].
pub struct ScriptedSmtpServerBuilder {
    config: Config,
    policy: Option<Arc<dyn Policy>>,
    address: SocketAddr,
    is_implicit: bool,
    names: Option<Vec<String>>,
}

impl ScriptedSmtpServerBuilder {
    /// Accepts HELO and refuses EHLO.
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

    /// Offers SIZE with a limit in bytes.
    pub fn size(mut self, octets: usize) -> Self {
        self.config.size = Some(octets);
        self
    }

    /// Offers STARTTLS, with a certificate for `127.0.0.1` and `localhost`.
    pub fn start_tls(mut self) -> Self {
        self.config.starts_tls = true;
        self.named(&["127.0.0.1", "localhost"])
    }

    /// Speaks TLS from the first byte, with a certificate for `127.0.0.1` and `localhost`.
    pub fn implicit_tls(mut self) -> Self {
        self.is_implicit = true;
        self.named(&["127.0.0.1", "localhost"])
    }

    /// Issues the certificate for these names instead.
    pub fn named(mut self, names: &[&str]) -> Self {
        self.names = Some(names.iter().map(|&name| name.to_owned()).collect());
        self
    }

    /// Offers AUTH with these mechanisms, and accepts this user name and password alone.
    pub fn login(mut self, mechanisms: &[&str], username: &str, password: &str) -> Self {
        self.config.mechanisms = mechanisms.iter().map(|&mechanism| mechanism.to_owned()).collect();
        self.config.login = Some((username.to_owned(), password.to_owned()));
        self
    }

    /// Listens at `address` instead of a free port of 127.0.0.1.
    pub fn at(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Lets `policy` decide where nothing is scripted. The server then records neither commands nor messages.
    pub(crate) fn policy(mut self, policy: Arc<dyn Policy>) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Starts the server.
    pub async fn start(self) -> ScriptedSmtpServer {
        let listener = TcpListener::bind(self.address).await.expect("a loopback port");
        let address = listener.local_addr().expect("a bound socket");
        let (acceptor, certificates) = self.names.map(issue).unzip();
        let (root, certificate) = certificates.unzip();
        let shared = Arc::new(Shared {
            config: self.config,
            acceptor,
            policy: self.policy,
            script: Mutex::default(),
            log: Mutex::default(),
            taken: watch::Sender::new(0),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared), self.is_implicit));
        ScriptedSmtpServer { address, root, certificate, shared, task: task.abort_handle() }
    }
}

/// Accepts connections and serves each in a task; the tasks end with this one.
async fn accept(listener: TcpListener, shared: Arc<Shared>, is_implicit: bool) {
    let mut connections = JoinSet::new();
    while let Ok((stream, peer)) = listener.accept().await {
        let number = {
            let mut log = lock(&shared.log);
            log.connections += 1;
            log.peers.push(peer.ip());
            log.open += 1;
            log.connections
        };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            // An error means that the client broke the connection, which ends it like QUIT.
            _ = connection::serve(Arc::clone(&shared), stream, number, is_implicit).await;
            if let Some(policy) = &shared.policy {
                policy.ended(number);
            }
            lock(&shared.log).open -= 1;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// A TLS acceptor with a new certificate for the names, and the root certificate that signed it.
///
/// # Panics
///
/// If one of the names is not allowed in a certificate.
pub fn certify(names: Vec<String>) -> (TlsAcceptor, CertificateDer<'static>) {
    let (acceptor, (root, _)) = issue(names);
    (acceptor, root)
}

/// A TLS acceptor with a new certificate for the names, and in a pair the root certificate and the certificate itself.
fn issue(names: Vec<String>) -> (TlsAcceptor, (CertificateDer<'static>, CertificateDer<'static>)) {
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
    (TlsAcceptor::from(Arc::new(config)), (root_certificate.der().clone(), leaf.der().clone()))
}
