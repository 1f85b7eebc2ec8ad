//! A proxy between a program and a PostgreSQL server, for tests: it delays bytes, or lets nothing through.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::cluster::Database;

/// Length of the queue of connections that nobody accepts.
const BACKLOG: u32 = 64;

/// Time after which a connection counts as unanswered.
const UNANSWERED: Duration = Duration::from_millis(200);

/// Fate of bytes and connections that reach the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// They get through.
    Open,
    /// They wait, as they do when packets vanish. Connections are accepted.
    Silent,
    /// They wait, and no connection is accepted.
    Deaf,
    /// Connections are closed.
    Refused,
}

/// A proxy in front of the server of a database.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    socket: PathBuf,
    passage: watch::Sender<Passage>,
    /// Delay of bytes in each direction.
    delay: Duration,
}

impl Proxy {
    /// Starts a proxy in front of the server of a database; `delay` is the time bytes take one way.
    pub fn start(database: &Database, delay: Duration) -> Self {
        let socket = database.url.split_once("host=").unwrap().1;
        let socket = Path::new(socket).join(".s.PGSQL.5432");
        let shared = Shared { socket, passage: watch::Sender::new(Passage::Open), delay };
        let shared = Arc::new(shared);
        let listening = TcpSocket::new_v4().unwrap();
        listening.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = listening.listen(BACKLOG).unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&shared)));
        Self { address, shared, _serving: serving }
    }

    /// Address of the proxy, as the host of a URL.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Sets the fate of bytes and connections from now on.
    pub async fn set(&self, passage: Passage) {
        self.shared.passage.send_replace(passage);
        if passage == Passage::Deaf {
            // Connections that nobody accepts, until there is no room for further ones.
            let mut kept = Vec::new();
            while let Ok(Ok(stream)) = tokio::time::timeout(UNANSWERED, TcpStream::connect(self.address)).await {
                kept.push(stream);
            }
            tokio::spawn(async move {
                std::future::pending::<()>().await;
                drop(kept);
            });
        }
    }
}

/// URL of a database with proxies as its hosts.
pub fn url(database: &Database, proxies: &[&Proxy]) -> String {
    let hosts: Vec<_> = proxies.iter().map(|proxy| proxy.host()).collect();
    let name = database.url.split(['/', '?']).nth(3).unwrap();
    format!("postgresql://tests@{}/{name}?sslmode=disable", hosts.join(","))
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut passage = shared.passage.subscribe();
    loop {
        if passage.wait_for(|passage| *passage != Passage::Deaf).await.is_err() {
            return;
        }
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { return };
                connections.spawn(carry(client, Arc::clone(&shared)));
            }
            _ = passage.changed() => {}
        }
    }
}

async fn carry(client: TcpStream, shared: Arc<Shared>) {
    let mut passage = shared.passage.subscribe();
    let refused = async move { drop(passage.wait_for(|passage| *passage == Passage::Refused).await) };
    let carrying = async {
        client.set_nodelay(true).ok()?;
        let server = UnixStream::connect(&shared.socket).await.ok()?;
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        tokio::select! {
            () = copy(&shared, from_client, to_server) => {}
            () = copy(&shared, from_server, to_client) => {}
        }
        Some(())
    };
    tokio::select! {
        () = refused => {}
        _ = carrying => {}
    }
}

/// Carries bytes one way.
async fn copy(shared: &Shared, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let reading = async move {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut bytes).await {
            if sender.send((Instant::now() + shared.delay, bytes[..length].to_vec())).is_err() {
                return;
            }
        }
    };
    let writing = async {
        let mut passage = shared.passage.subscribe();
        while let Some((at, bytes)) = receiver.recv().await {
            tokio::time::sleep_until(at).await;
            if passage.wait_for(|passage| *passage == Passage::Open).await.is_err() {
                return;
            }
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(reading, writing);
}
