//! Listening for connections over TCP.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::sleep;

/// Pause after a failure to accept: most likely there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Interval between two log lines of a listener that cannot accept connections.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// Listens at an address; port 0 takes any free one. The kernel keeps at most `backlog` connections while the process
/// is busy. Must be called within a tokio runtime.
pub fn bind(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for the connections of the process before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

/// Counts the failures of a listener to accept connections. One of them a minute is logged, with the number of all
/// since the previous log line: a process without free file descriptors fails twenty times a second.
#[derive(Debug, Default)]
pub struct AcceptFailures {
    logged_at: Option<Instant>,
    count: u64,
}

impl AcceptFailures {
    /// Counts a failure; returns the number since the previous log line, if it is time for another one.
    fn note(&mut self, now: Instant) -> Option<u64> {
        self.count += 1;
        if self.logged_at.is_some_and(|logged_at| now.duration_since(logged_at) < LOG_EVERY) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

/// Accepts the next connection. `make_room` closes one, if it can, when accepting fails. `failures` belongs to the
/// listener.
pub async fn accept(
    listener: &TcpListener,
    failures: &mut AcceptFailures,
    make_room: impl Fn() -> bool,
) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            // The peer closed the connection before it was accepted.
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                let has_room = make_room();
                if let Some(failures) = failures.note(Instant::now()) {
                    tracing::error!(%error, has_room, failures, "failed to accept a connection");
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_a_minute_is_logged_with_the_number_of_all() {
        let mut failures = AcceptFailures::default();
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let logged = [0, 1, 59, 60, 61, 200].map(|seconds| failures.note(after(seconds)));
        assert_eq!(logged, [Some(1), None, None, Some(3), None, Some(2)]);
    }
}
