//! Callers that each wait for their answer before they ask again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Calls `one` with rising numbers from `callers` tasks for `turn`; answers calls a second.
pub async fn closed_loop<F, R>(callers: usize, turn: Duration, numbers: &Arc<AtomicU64>, one: F) -> f64
where
    F: Fn(u64) -> R + Clone + Send + 'static,
    R: Future<Output = ()> + Send,
{
    let began = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (one, numbers) = (one.clone(), Arc::clone(numbers));
            tokio::spawn(async move {
                let mut count = 0_u64;
                while began.elapsed() < turn {
                    one(numbers.fetch_add(1, Ordering::Relaxed)).await;
                    count += 1;
                }
                count
            })
        })
        .collect();
    rate(tasks, began).await
}

/// Calls `one` once with each of `numbers` from `callers` tasks; answers calls a second.
pub async fn each<F, R>(callers: usize, numbers: Range<u64>, one: F) -> f64
where
    F: Fn(u64) -> R + Clone + Send + 'static,
    R: Future<Output = ()> + Send,
{
    let (next, end) = (Arc::new(AtomicU64::new(numbers.start)), numbers.end);
    let began = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (one, next) = (one.clone(), Arc::clone(&next));
            tokio::spawn(async move {
                let mut called = 0;
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= end {
                        return called;
                    }
                    one(n).await;
                    called += 1;
                }
            })
        })
        .collect();
    rate(tasks, began).await
}

/// Posts over `connections` kept connections for `turn`; answers requests a second.
///
/// `head` is the request up to its Content-Length, made for each number.
pub async fn http(
    address: std::net::SocketAddr,
    connections: usize,
    turn: Duration,
    numbers: &Arc<AtomicU64>,
    head: impl Fn(u64) -> String + Clone + Send + 'static,
) -> f64 {
    let began = Instant::now();
    let tasks: Vec<_> = (0..connections)
        .map(|_| {
            let (head, numbers) = (head.clone(), Arc::clone(numbers));
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.expect("the server listens");
                stream.set_nodelay(true).expect("a TCP socket");
                let mut buffer = vec![0; 4096];
                let mut count = 0_u64;
                while began.elapsed() < turn {
                    let n = numbers.fetch_add(1, Ordering::Relaxed);
                    let body = crate::message(n);
                    let request = format!("{}Content-Length: {}\r\n\r\n{body}", head(n), body.len());
                    stream.write_all(request.as_bytes()).await.expect("the server reads");
                    // Answers are short and come in one piece.
                    let length = stream.read(&mut buffer).await.expect("the server answers");
                    let status = buffer.get(9..12).unwrap_or_default();
                    assert_eq!(status, b"202", "{}", String::from_utf8_lossy(&buffer[..length]));
                    count += 1;
                }
                count
            })
        })
        .collect();
    rate(tasks, began).await
}

/// Calls a second of all callers together, once they are done.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub(crate) async fn rate(callers: Vec<JoinHandle<u64>>, began: Instant) -> f64 {
    let mut total = 0;
    for caller in callers {
        total += caller.await.expect("a caller does not panic");
    }
    total as f64 / began.elapsed().as_secs_f64()
}
