//! Stands for all other hosts to which a browser may be made to connect.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Time a connection may be open before it names its host.
const PATIENCE: Duration = Duration::from_secs(5);

/// Accepts connections, notes the host they were meant for, and closes them.
pub(crate) struct Elsewhere {
    pub(crate) address: SocketAddr,
    hosts: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

impl Elsewhere {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let hosts = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&hosts);
        let accepting = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let noted = Arc::clone(&noted);
                tokio::spawn(async move {
                    let mut first = vec![0; 4096];
                    // A connection that the browser opened in advance sends nothing.
                    let read = tokio::time::timeout(PATIENCE, stream.read(&mut first)).await;
                    if let Ok(Ok(length)) = read {
                        noted.lock().unwrap().push(host(&first[..length]));
                    }
                });
            }
        });
        Self { address, hosts, accepting }
    }

    /// The hosts since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.hosts.lock().unwrap())
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// The host that the first bytes of a connection are meant for, of HTTP or of TLS.
fn host(first: &[u8]) -> String {
    server_name(first).unwrap_or_else(|| {
        let text = String::from_utf8_lossy(first);
        let host = text.lines().find_map(|line| line.strip_prefix("Host: ")).map(str::to_owned);
        host.unwrap_or_else(|| format!("a host that was not named: {text:.80}"))
    })
}

/// The server name of a `ClientHello` (RFC 8446 section 4.1.2, RFC 6066 section 3).
fn server_name(hello: &[u8]) -> Option<String> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
    // The record's and the message's header, version and random; then three vectors before the extensions.
    let mut rest = hello.strip_prefix(&[22])?.get(42..)?;
    for size in [1, 2, 1] {
        rest = rest.get(size + number(rest.get(..size)?)..)?;
    }
    rest = rest.get(2..)?;
    loop {
        let (kind, length) = (number(rest.get(..2)?), number(rest.get(2..4)?));
        let extension = rest.get(4..4 + length)?;
        if kind == 0 {
            return Some(String::from_utf8_lossy(extension.get(5..)?).into_owned());
        }
        rest = rest.get(4 + length..)?;
    }
}
