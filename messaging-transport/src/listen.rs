//! Listening for connections over TCP.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::sleep;

/// How long nothing is accepted after accepting failed: most likely there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Listens at an address; port 0 takes any free one. The kernel keeps at most `backlog` connections for us while we
/// are busy. Must be called within a tokio runtime.
pub fn bind(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for the connections of the process before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

/// The next connection. `make_room` closes one, if it can, when accepting fails.
pub async fn accept(listener: &TcpListener, make_room: impl Fn() -> bool) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            // The peer was gone before we looked.
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                let has_room = make_room();
                tracing::error!(%error, has_room, "failed to accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_about_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}
