//! An SMTP peer that does as it is told.

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

/// Any free port.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A peer on a loopback port. It takes every message until it is told otherwise, and ends when dropped.
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
    /// Starts a peer that offers PIPELINING, SMTPUTF8, 8BITMIME and SIZE, without TLS or login.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// A peer that offers something else.
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

    /// The root to trust, of a peer with TLS.
    pub fn root(&self) -> Option<CertificateDer<'static>> {
        self.root.clone()
    }

    /// The certificate of a peer with TLS.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.certificate.clone()
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

    /// The number of connections that were made so far.
    pub fn connections(&self) -> usize {
        lock(&self.shared.log).connections
    }

    /// The addresses that connections came from, in their order.
    pub fn peers(&self) -> Vec<IpAddr> {
        lock(&self.shared.log).peers.clone()
    }

    /// The number of connections that are open.
    pub fn open(&self) -> usize {
        lock(&self.shared.log).open
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
    policy: Option<Arc<dyn Policy>>,
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

    /// Asks `policy` where nothing is scripted, and keeps neither commands nor messages.
    pub(crate) fn policy(mut self, policy: Arc<dyn Policy>) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Starts listening.
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

/// Owns the tasks of the connections: they end with it.
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
            // Also when the peer broke it off.
            _ = connection::serve(Arc::clone(&shared), stream, number, is_implicit).await;
            if let Some(policy) = &shared.policy {
                policy.ended(number);
            }
            lock(&shared.log).open -= 1;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// TLS with a certificate for the names, and the root that signed it.
///
/// # Panics
///
/// If one of the names cannot stand in a certificate.
pub fn certify(names: Vec<String>) -> (TlsAcceptor, CertificateDer<'static>) {
    let (acceptor, (root, _)) = issue(names);
    (acceptor, root)
}

/// TLS with a certificate for the names, the root that signed it, and the certificate.
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
