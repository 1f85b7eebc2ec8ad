//! Scripted HTTP peer, as the receiver of webhooks or of other calls.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls_pki_types::CertificateDer;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::scripted::{Gate, certify};

/// Answer of the peer to a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// This status and body.
    Status(u16, String),
    /// This status, these headers, and a body.
    Headers(u16, Vec<(&'static str, String)>, String),
    /// These octets, and the connection is closed.
    Raw(Vec<u8>),
    /// These octets, and the connection is reset.
    Reset(Vec<u8>),
    /// A status of 200 and an endless body, for as long as the client reads it.
    Endless,
    /// These octets one by one, with a pause before each; then the connection stays open.
    Drip(Vec<u8>),
    /// No answer, while the connection stays open.
    Silence,
    /// Waits for the gate and then answers 200.
    Wait(Gate),
}

impl Answer {
    /// Returns a status with an empty body.
    pub fn status(status: u16) -> Self {
        Self::Status(status, String::new())
    }
}

/// A request that the peer has read.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The headers, names in lower case.
    pub headers: HashMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
    /// Number of the connection, from 1.
    pub connection: usize,
}

impl HttpRequest {
    /// Returns a header that must be there.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no header {name}"))
    }

    /// Returns the body as JSON.
    ///
    /// # Panics
    ///
    /// If it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("a body of JSON")
    }
}

#[derive(Default)]
struct Script {
    next: VecDeque<Answer>,
    at: HashMap<String, Answer>,
    always: Option<Answer>,
}

struct Shared {
    acceptor: Option<TlsAcceptor>,
    script: Mutex<Script>,
    requests: Mutex<Vec<HttpRequest>>,
    count: watch::Sender<usize>,
    open: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A peer on a loopback port. It answers 200 unless scripted otherwise, and ends when dropped.
pub struct ScriptedHttpServer {
    address: SocketAddr,
    root: Option<CertificateDer<'static>>,
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl Drop for ScriptedHttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ScriptedHttpServer {
    /// Starts a peer without TLS.
    pub async fn start() -> Self {
        Self::listen(None).await
    }

    /// Starts a peer with TLS and a certificate for these names.
    pub async fn tls(names: &[&str]) -> Self {
        Self::listen(Some(names.iter().map(|&name| name.to_owned()).collect())).await
    }

    async fn listen(names: Option<Vec<String>>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let (acceptor, root) = names.map(certify).unzip();
        let shared = Shared {
            acceptor,
            script: Mutex::default(),
            requests: Mutex::default(),
            count: watch::Sender::new(0),
            open: AtomicUsize::new(0),
        };
        let shared = Arc::new(shared);
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, root, shared, task: task.abort_handle() }
    }

    /// Returns the address that the server listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path, with the address as its host.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the root to trust, for a peer with TLS.
    pub fn root(&self) -> Option<CertificateDer<'static>> {
        self.root.clone()
    }

    /// Answers the next request with this; several calls make a queue.
    pub fn next(&self, answer: Answer) {
        lock(&self.shared.script).next.push_back(answer);
    }

    /// Answers every request for a path with this.
    pub fn at(&self, path: &str, answer: Answer) {
        lock(&self.shared.script).at.insert(path.to_owned(), answer);
    }

    /// Answers every request with this.
    pub fn always(&self, answer: Answer) {
        lock(&self.shared.script).always = Some(answer);
    }

    /// Holds up the answer to the next request.
    pub fn gate(&self) -> Gate {
        let gate = Gate::default();
        self.next(Answer::Wait(gate.clone()));
        gate
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<HttpRequest> {
        lock(&self.shared.requests).clone()
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::Relaxed)
    }

    /// Waits until there were `count` requests.
    pub async fn received(&self, count: usize) -> Vec<HttpRequest> {
        self.shared.count.subscribe().wait_for(|&received| received >= count).await.expect("the sender is ours");
        self.requests()
    }
}

/// Accepts connections and owns their tasks, which end with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    while let Ok((stream, _)) = listener.accept().await {
        number += 1;
        let shared = Arc::clone(&shared);
        shared.open.fetch_add(1, Ordering::Relaxed);
        connections.spawn(async move {
            // A peer that leaves early is no error here.
            let _ = match shared.acceptor.clone() {
                Some(acceptor) => match acceptor.accept(stream).await {
                    Ok(stream) => serve(&shared, stream, number, |stream| stream.get_ref().0).await,
                    Err(error) => Err(error),
                },
                None => serve(&shared, stream, number, |stream| stream).await,
            };
            shared.open.fetch_sub(1, Ordering::Relaxed);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    shared: &Shared,
    stream: S,
    number: usize,
    socket: impl Fn(&S) -> &TcpStream,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream, number).await? {
        let answer = {
            let mut script = lock(&shared.script);
            let next = script.next.pop_front().or_else(|| script.at.get(&request.target).cloned());
            next.or_else(|| script.always.clone()).unwrap_or_else(|| Answer::status(200))
        };
        lock(&shared.requests).push(request);
        shared.count.send_modify(|count| *count += 1);
        let octets = match answer {
            Answer::Status(status, body) => reply(status, &[], &body),
            Answer::Headers(status, headers, body) => reply(status, &headers, &body),
            Answer::Wait(gate) => {
                gate.pass().await;
                reply(200, &[], "")
            }
            Answer::Raw(octets) => {
                stream.write_all(&octets).await?;
                // TLS ends with a notice: otherwise the end could have been cut off.
                return stream.shutdown().await;
            }
            Answer::Reset(octets) => {
                stream.write_all(&octets).await?;
                stream.flush().await?;
                return socket(stream.get_ref()).set_zero_linger();
            }
            Answer::Endless => {
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                loop {
                    stream.write_all(&[b'x'; 4096]).await?;
                }
            }
            Answer::Drip(octets) => {
                for octet in octets {
                    stream.write_all(&[octet]).await?;
                    stream.flush().await?;
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
                return std::future::pending().await;
            }
            Answer::Silence => return std::future::pending().await,
        };
        stream.write_all(&octets).await?;
        stream.flush().await?;
    }
    Ok(())
}

fn reply(status: u16, headers: &[(&'static str, String)], body: &str) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Scripted\r\n");
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    if status != 204 {
        let _ = write!(text, "Content-Length: {}\r\n", body.len());
    }
    text.push_str("\r\n");
    text.push_str(body);
    text.into_bytes()
}

/// Reads the next request; `None` at the end of the connection.
async fn read(stream: &mut (impl AsyncBufRead + Unpin), connection: usize) -> io::Result<Option<HttpRequest>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(ToOwned::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(HttpRequest { method, target, headers, body, connection }))
}
