//! The listener: who may connect, how many, and how it stops.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use messaging_core::ports::inbound::InboundSink;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::session::{Place, Session};

/// Connections that the kernel keeps for us while we are busy.
const BACKLOG: u32 = 256;

/// How long nothing is accepted after accepting failed: most likely there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a client that is turned away may take to read why.
const TURNING_AWAY: Duration = Duration::from_millis(500);

/// How the server listens and what a client may ask of it.
#[derive(Debug, Clone)]
pub struct InboundOptions {
    /// The name in the greeting.
    pub hostname: String,
    /// Connections at a time; further ones hear 421.
    pub max_connections: usize,
    /// The same from one address; of IPv6 from one /64.
    pub max_per_address: usize,
    /// The largest mail in octets, as SIZE (RFC 1870) announces it.
    pub max_letter: usize,
    /// Letters whose content is in memory at a time; further ones wait for a place. Of each no more
    /// than [`report::MAX_READ`](super::report::MAX_READ) octets are kept.
    pub max_letters: usize,
    /// Recipients of a mail: it is about one message, or a few in a digest.
    pub max_recipients: usize,
    /// Refused commands before a client is sent away.
    pub max_errors: usize,
    /// Commands of a connection.
    pub max_commands: usize,
    /// How long a command, a reply, or the store may take (RFC 5321 section 4.5.3.2.7).
    pub command_timeout: Duration,
    /// How long content may take to arrive.
    pub content_timeout: Duration,
    /// How long a connection may last.
    pub connection_timeout: Duration,
    /// How long letters that are being received may take once the server is to stop.
    pub stop_grace: Duration,
}

impl InboundOptions {
    /// The options of a server that calls itself `hostname`.
    pub fn new(hostname: impl Into<String>) -> Self {
        Self {
            hostname: hostname.into(),
            max_connections: 200,
            max_per_address: 20,
            max_letter: 10 << 20,
            max_letters: 100,
            max_recipients: 10,
            max_errors: 10,
            max_commands: 1000,
            command_timeout: Duration::from_mins(5),
            content_timeout: Duration::from_mins(5),
            connection_timeout: Duration::from_mins(30),
            stop_grace: Duration::from_secs(10),
        }
    }
}

/// How far the server is with stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// Letters that have begun are finished.
    Stopping,
    /// Nothing is.
    Aborting,
}

/// A server that has its address and does not answer yet.
#[derive(Debug)]
pub struct Inbound {
    listener: TcpListener,
    address: SocketAddr,
    options: Arc<InboundOptions>,
}

impl Inbound {
    /// Listens at an address; port 0 takes any free one. Must be called within a tokio runtime.
    pub fn bind(address: SocketAddr, options: InboundOptions) -> io::Result<Self> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // A restart must not wait for the connections of the process before.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        Ok(Self { address: listener.local_addr()?, listener, options: Arc::new(options) })
    }

    /// The address, with the port that was found.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Receives letters for `sink` until `shutdown` is done; then takes no further ones, finishes
    /// those that are on the way within [`InboundOptions::stop_grace`], and returns.
    pub async fn run(self, sink: Arc<dyn InboundSink>, shutdown: impl Future<Output = ()>) {
        let Self { listener, options, .. } = self;
        let connections = Arc::new(Semaphore::new(options.max_connections));
        let letters = Arc::new(Semaphore::new(options.max_letters));
        let counts = Arc::new(ConnectionCounts::default());
        let turned_away = Arc::new(Semaphore::new(options.max_connections));
        let (phase, _) = watch::channel(Phase::Running);

        let accepting = async {
            loop {
                let (socket, peer) = accept(&listener).await;
                let visitor = counts.enter(peer.ip(), options.max_per_address);
                let seat = Arc::clone(&connections).try_acquire_owned();
                let (Some(visitor), Ok(seat)) = (visitor, seat) else {
                    turn_away(socket, &options.hostname, &turned_away);
                    continue;
                };
                let place = Place {
                    sink: Arc::clone(&sink),
                    options: Arc::clone(&options),
                    letters: Arc::clone(&letters),
                    phase: phase.subscribe(),
                };
                tokio::spawn(async move {
                    let (reader, writer) = socket.into_split();
                    Session::new(reader, writer, place).run().await;
                    drop((visitor, seat));
                });
            }
        };
        tokio::select! {
            () = accepting => {}
            () = shutdown => {}
        }
        drop(listener);
        phase.send_replace(Phase::Stopping);
        let all = u32::try_from(options.max_connections).unwrap_or(u32::MAX);
        if timeout(options.stop_grace, connections.acquire_many(all)).await.is_err() {
            tracing::warn!("letters were still arriving when the time to stop was up");
            phase.send_replace(Phase::Aborting);
        }
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            // The peer was gone before we looked.
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) => {
            }
            Err(error) => {
                tracing::error!(%error, "failed to accept an SMTP connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Says 421 to a connection there is no place for. When even that would be too much, it is just closed.
fn turn_away(socket: TcpStream, hostname: &str, places: &Arc<Semaphore>) {
    let Ok(place) = Arc::clone(places).try_acquire_owned() else { return };
    let reply = format!("421 4.3.2 {hostname} has too many connections, come back later\r\n");
    tokio::spawn(async move {
        let said = async {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let mut socket = socket;
            socket.write_all(reply.as_bytes()).await?;
            socket.shutdown().await?;
            // Closing with something unread would take the reply back.
            let mut unread = [0; 512];
            while socket.read(&mut unread).await? > 0 {}
            io::Result::Ok(())
        };
        let _ = timeout(TURNING_AWAY, said).await;
        drop(place);
    });
}

/// Who is connected, by address.
#[derive(Debug, Default)]
struct ConnectionCounts(Mutex<HashMap<IpAddr, usize>>);

/// One of them; leaves when dropped.
#[derive(Debug)]
struct Visitor {
    counts: Arc<ConnectionCounts>,
    network: IpAddr,
}

impl ConnectionCounts {
    /// Lets somebody in, unless as many as allowed are in from there.
    fn enter(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<Visitor> {
        let network = network(address);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(network).or_insert(0);
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Visitor { counts: Arc::clone(self), network })
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.network);
            }
        }
    }
}

/// What counts as one address: whoever has one of IPv6 has 2^64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_has_so_many_places() {
        let counts = Arc::new(ConnectionCounts::default());
        let enter = |address: &str| counts.enter(address.parse().unwrap(), 2);
        let first = enter("192.0.2.1").unwrap();
        let second = enter("::ffff:192.0.2.1").unwrap();
        assert!(enter("192.0.2.1").is_none());
        let (a, b) = (enter("2001:db8::1").unwrap(), enter("2001:db8::ffff:2").unwrap());
        assert!(enter("2001:db8::3").is_none());
        let other = enter("2001:db8:0:1::3").unwrap();
        drop((first, second, a, b));
        assert!(enter("192.0.2.1").is_some());
        drop(other);
        assert!(counts.0.lock().unwrap().is_empty());
    }
}
