//! A mail server that accepts and counts everything, and a minimal client that sends to it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The octets that end the content of a message (RFC 5321 section 4.1.1.4).
const END: &[u8] = b"\r\n.\r\n";

/// A sink on loopback.
#[derive(Debug)]
pub struct Sink {
    /// The address that the sink listens at.
    pub address: std::net::SocketAddr,
    count: Arc<watch::Sender<u64>>,
    arrivals: Arc<Arrivals>,
}

/// Time at which each message arrived, by the number in its recipient's name.
type Arrivals = Mutex<HashMap<u64, Instant>>;

impl Sink {
    /// Starts one.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let count = Arc::new(watch::Sender::new(0));
        let arrivals = Arc::<Arrivals>::default();
        let (counter, times) = (Arc::clone(&count), Arc::clone(&arrivals));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&counter), Arc::clone(&times)));
            }
        });
        Ok(Self { address, count, arrivals })
    }

    /// Number of messages so far.
    pub fn count(&self) -> u64 {
        *self.count.borrow()
    }

    /// Returns the arrival times by number, and forgets them.
    pub fn take_arrivals(&self) -> HashMap<u64, Instant> {
        std::mem::take(&mut *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until this many messages have arrived.
    pub async fn reach(&self, count: u64) {
        let mut counted = self.count.subscribe();
        counted.wait_for(|&now| now >= count).await.expect("the sink lives as long as it is asked");
    }
}

/// One connection. An error ends it; the client notices.
async fn serve(mut stream: TcpStream, count: Arc<watch::Sender<u64>>, arrivals: Arc<Arrivals>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(b"220 sink.test ESMTP\r\n").await?;
    let mut buffer: Vec<u8> = Vec::with_capacity(64 << 10);
    let mut in_content = false;
    let mut answers = Vec::new();
    let mut number = None;
    loop {
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        let mut used = 0;
        loop {
            let rest = &buffer[used..];
            let end: &[u8] = if in_content { END } else { b"\r\n" };
            let Some(at) = rest.windows(end.len()).position(|window| window == end) else { break };
            let line = &rest[..at];
            used += at + end.len();
            if in_content {
                in_content = false;
                if let Some(number) = number.take() {
                    arrivals.lock().unwrap_or_else(PoisonError::into_inner).insert(number, Instant::now());
                }
                count.send_modify(|count| *count += 1);
                answers.extend_from_slice(b"250 2.0.0 taken\r\n");
                continue;
            }
            match line.get(..4).unwrap_or_default() {
                b"EHLO" => answers.extend_from_slice(b"250-sink.test\r\n250-PIPELINING\r\n250 8BITMIME\r\n"),
                b"RCPT" => {
                    let digits: String = line
                        .iter()
                        .skip_while(|byte| !byte.is_ascii_digit())
                        .take_while(|byte| byte.is_ascii_digit())
                        .map(|&byte| char::from(byte))
                        .collect();
                    number = digits.parse().ok();
                    answers.extend_from_slice(b"250 ok\r\n");
                }
                b"DATA" => {
                    in_content = true;
                    answers.extend_from_slice(b"354 go on\r\n");
                }
                b"QUIT" => {
                    stream.write_all(b"221 bye\r\n").await?;
                    return Ok(());
                }
                _ => answers.extend_from_slice(b"250 ok\r\n"),
            }
        }
        buffer.drain(..used);
        stream.write_all(&answers).await?;
        answers.clear();
    }
}

/// Sends messages with the numbers up to `last` over one connection, two round trips each.
///
/// `make` returns the content, ending in CRLF, without a line that is a lone dot.
pub async fn fill(
    address: std::net::SocketAddr,
    numbers: Arc<AtomicU64>,
    last: u64,
    make: impl Fn(u64) -> Vec<u8>,
) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    expect(&mut stream, 1).await?;
    stream.write_all(b"EHLO floor.test\r\n").await?;
    expect(&mut stream, 3).await?;
    loop {
        let n = numbers.fetch_add(1, Ordering::Relaxed);
        if n > last {
            return Ok(());
        }
        let mut content = make(n);
        let head = format!(
            "MAIL FROM:<bounce@sandbox.test> SIZE={}\r\nRCPT TO:<user-{n:012}@example.test>\r\nDATA\r\n",
            content.len()
        );
        stream.write_all(head.as_bytes()).await?;
        expect(&mut stream, 3).await?;
        content.extend_from_slice(&END[2..]);
        stream.write_all(&content).await?;
        expect(&mut stream, 1).await?;
    }
}

/// Reads this many lines.
async fn expect(stream: &mut TcpStream, lines: usize) -> std::io::Result<()> {
    let mut buffer = [0; 1024];
    let mut seen = 0;
    while seen < lines {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        seen += buffer[..length].split(|&byte| byte == b'\n').count() - 1;
    }
    Ok(())
}
