//! Listener of the SMTP server: admission of connections, their limits, and its shutdown.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use messaging_core::domain::security::caller_network::CallerNetwork;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::handler::Service;
use super::options::{Phase, SmtpServerOptions};
use super::session::{Session, SessionContext};
use super::stream::Stream;
use crate::listen::{self, AcceptFailures};

/// Maximum number of connections that the kernel keeps while the server is busy.
const BACKLOG: u32 = 256;

/// Time that a rejected client gets to read the reason.
const TURNING_AWAY: Duration = Duration::from_millis(500);

/// A server that is bound to its address but does not answer yet.
#[derive(Debug)]
pub(crate) struct SmtpServer {
    listener: TcpListener,
    address: SocketAddr,
    options: Arc<SmtpServerOptions>,
}

impl SmtpServer {
    /// Binds to an address; port 0 takes any free one. Must be called within a tokio runtime.
    pub(crate) fn bind(address: SocketAddr, options: SmtpServerOptions) -> io::Result<Self> {
        let listener = listen::bind(address, BACKLOG)?;
        Ok(Self { address: listener.local_addr()?, listener, options: Arc::new(options) })
    }

    /// Returns the address, with the actual port.
    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Receives mails for `service` until `shutdown` is done; then accepts no further ones, finishes those under way
    /// within [`SmtpServerOptions::stop_grace`], and returns.
    pub(crate) async fn run(self, service: Arc<dyn Service>, shutdown: impl Future<Output = ()>) {
        let Self { listener, options, .. } = self;
        let connections = Arc::new(Semaphore::new(options.max_connections));
        let letters = Arc::new(Semaphore::new(options.max_letters));
        let counts = Arc::new(ConnectionCounts::default());
        let turned_away = Arc::new(Semaphore::new(options.max_connections));
        let (phase, _) = watch::channel(Phase::Running);

        let accepting = async {
            let mut failures = AcceptFailures::default();
            loop {
                let (socket, peer) = listen::accept(&listener, &mut failures, || false).await;
                let visitor = counts.enter(peer.ip(), options.max_per_address);
                let seat = Arc::clone(&connections).try_acquire_owned();
                let (Some(visitor), Ok(seat)) = (visitor, seat) else {
                    turn_away(socket, &options.hostname, &turned_away);
                    continue;
                };
                let context = SessionContext {
                    service: Arc::clone(&service),
                    options: Arc::clone(&options),
                    letters: Arc::clone(&letters),
                    phase: phase.subscribe(),
                    client: peer.ip(),
                };
                tokio::spawn(async move {
                    Session::new(Stream::Plain(socket), context).run().await;
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

/// Replies 421 to a connection above the limits. If too many are being rejected, the connection is just closed.
fn turn_away(socket: TcpStream, hostname: &str, places: &Arc<Semaphore>) {
    let Ok(place) = Arc::clone(places).try_acquire_owned() else { return };
    let reply = format!("421 4.3.2 {hostname} has too many connections, come back later\r\n");
    tokio::spawn(async move {
        let said = async {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let mut socket = socket;
            socket.write_all(reply.as_bytes()).await?;
            socket.shutdown().await?;
            // Closing the socket with unread input would discard the reply.
            let mut unread = [0; 512];
            while socket.read(&mut unread).await? > 0 {}
            io::Result::Ok(())
        };
        let _ = timeout(TURNING_AWAY, said).await;
        drop(place);
    });
}

/// Number of open connections from each address or network.
#[derive(Debug, Default)]
struct ConnectionCounts(Mutex<HashMap<CallerNetwork, usize>>);

/// One counted connection; no longer counted when dropped.
#[derive(Debug)]
struct Visitor {
    counts: Arc<ConnectionCounts>,
    network: CallerNetwork,
}

impl ConnectionCounts {
    /// Counts a connection, unless its address or network has the maximum number already.
    fn enter(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<Visitor> {
        let network = CallerNetwork::of(address);
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
