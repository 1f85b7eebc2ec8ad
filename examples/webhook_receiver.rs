//! A receiver of webhooks: trusts a request if its signature is right and its timestamp is recent.
//!
//! Run it with `cargo run -p messaging-examples --bin webhook_receiver -- --listen 127.0.0.1:3000 --secret whsec_…`,
//! with the secret that creating the webhook answered. Without arguments it plays both sides: it sends itself
//! one good request, one that was changed on the way, and one that is too old, shows what it makes of them,
//! and stops.

use std::error::Error;
use std::time::Duration;

use messaging::core::domain::security::signature::{Distrust, SigningKey, new_secret};
use messaging::core::ports::clock::{Clock as _, SystemClock, SystemEntropy};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Longest body that is read; webhooks are shorter.
const MAX_BODY: usize = 1 << 20;

/// Time within which a client has to send its request.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Request {
    id: String,
    timestamp: String,
    signature: String,
    body: Vec<u8>,
}

/// Reads a request. Any HTTP server will do, as long as the body is kept as it was received: a body that was parsed and
/// written again has another signature.
async fn read(stream: &mut (impl AsyncBufRead + Unpin)) -> Result<Request, Box<dyn Error + Send + Sync>> {
    let (mut request, mut length) = (Request::default(), 0);
    // The head of a request fits into 16 KiB.
    let mut head = stream.take(16 << 10);
    loop {
        let mut line = String::new();
        head.read_line(&mut line).await?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim().to_owned();
        match name.to_ascii_lowercase().as_str() {
            "webhook-id" => request.id = value,
            "webhook-timestamp" => request.timestamp = value,
            "webhook-signature" => request.signature = value,
            "content-length" => length = value.parse()?,
            _ => {}
        }
    }
    if length > MAX_BODY {
        return Err("the body is too long".into());
    }
    request.body.resize(length, 0);
    head.into_inner().read_exact(&mut request.body).await?;
    Ok(request)
}

/// Checks a request. A receiver checks, notes the id, answers at once, and works later.
fn judge(key: &SigningKey, request: &Request) -> Result<(), Distrust> {
    // Refuses timestamps that are more than five minutes away, so that a recorded request cannot be replayed later.
    key.verify(&request.id, &request.timestamp, &request.signature, &request.body, SystemClock.now())
}

#[expect(clippy::print_stdout, reason = "this program shows what happened")]
async fn receive(key: &SigningKey, stream: TcpStream) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut stream = BufReader::new(stream);
    let request = tokio::time::timeout(PATIENCE, read(&mut stream)).await??;
    let status = match judge(key, &request) {
        // The same event may arrive twice, always with the same id: a receiver that acts on it keeps the ids.
        Ok(()) => {
            println!("{}: {}", request.id, String::from_utf8_lossy(&request.body));
            "204 No Content"
        }
        Err(distrust) => {
            println!("refused: {distrust}");
            "401 Unauthorized"
        }
    };
    stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes()).await?;
    Ok(stream.shutdown().await?)
}

/// The value of an argument.
fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let secret = argument("--secret").unwrap_or_else(|| new_secret(&SystemEntropy::default()).into_inner());
    let key = SigningKey::parse(&secret)?;
    let listener = TcpListener::bind(argument("--listen").as_deref().unwrap_or("127.0.0.1:0")).await?;
    if argument("--listen").is_none() {
        return play(&key, &listener).await;
    }
    loop {
        let (stream, _) = listener.accept().await?;
        // An example handles one connection after another; one that breaks off does no harm.
        let _ = receive(&key, stream).await;
    }
}

/// Sends itself three requests.
async fn play(key: &SigningKey, listener: &TcpListener) -> Result<(), Box<dyn Error + Send + Sync>> {
    let body = r#"{"type":"bounce"}"#;
    let now = SystemClock.now().as_seconds();
    for (time, sent, expected) in [
        (now, body, "HTTP/1.1 204 No Content"),
        (now, r#"{"type":"sent"} "#, "HTTP/1.1 401 Unauthorized"),
        (now - 600, body, "HTTP/1.1 401 Unauthorized"),
    ] {
        let signature = key.sign("evt_1", time, body.as_bytes());
        let request = format!(
            "POST /hook HTTP/1.1\r\nHost: localhost\r\nwebhook-id: evt_1\r\nwebhook-timestamp: {time}\r\n\
             webhook-signature: {signature}\r\nContent-Length: {}\r\n\r\n{sent}",
            sent.len()
        );
        let mut sender = TcpStream::connect(listener.local_addr()?).await?;
        sender.write_all(request.as_bytes()).await?;
        receive(key, listener.accept().await?.0).await?;
        let mut answer = String::new();
        sender.read_to_string(&mut answer).await?;
        assert_eq!(answer.lines().next(), Some(expected));
    }
    Ok(())
}
