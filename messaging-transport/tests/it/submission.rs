//! Submission over the wire: the commands that are allowed and when, with and without TLS, and the messages that the
//! server hands over.

mod limits;
mod session;
pub(crate) mod tls;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::domain::message::message_input::MessageInput;
use messaging_core::ids::MessageId;
use messaging_core::ports::clock::SystemClock;
use messaging_transport::smtp_server::{ServerTls, SmtpServerOptions};
use messaging_transport::submission::{Refusal, Room, Submission, SubmissionSink, Submitter};
use rustls_pki_types::CertificateDer;
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::smtp_client::Client;

/// AUTH PLAIN with `\0user\0key` in base64.
const PLAIN: &str = "AUTH PLAIN AHVzZXIAa2V5";

const ID: &str = "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";

/// A sink with the key `key`.
#[derive(Default)]
struct SinkState {
    submitted: Mutex<Vec<(MessageInput, Option<String>)>>,
    /// The refusal that `may_send` answers with, if any.
    forbidden: Mutex<Option<Refusal>>,
    /// The refusal that `submit` answers with, if any.
    refused: Mutex<Option<Refusal>>,
    counted: Mutex<usize>,
    rooms: Mutex<Vec<usize>>,
    /// True if `submit` waits for `go` before it answers.
    waits: Mutex<bool>,
    arrived: Notify,
    go: Notify,
}

struct SignedIn(Arc<SinkState>);

struct Sink(Arc<SinkState>);

#[async_trait]
impl SubmissionSink for Sink {
    async fn sign_in(&self, key: &str, client: IpAddr) -> Result<Box<dyn Submitter>, Refusal> {
        assert!(client.is_loopback());
        match key {
            "key" => Ok(Box::new(SignedIn(Arc::clone(&self.0)))),
            "away" => Err(Refusal::TRY_LATER),
            _ => Err(Refusal::new(535, "5.7.8", "invalid_credentials: no such key")),
        }
    }
}

#[async_trait]
impl Submitter for SignedIn {
    async fn may_send(&self) -> Result<(), Refusal> {
        self.0.forbidden.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    async fn count(&self) -> Result<(), Refusal> {
        *self.0.counted.lock().unwrap() += 1;
        Ok(())
    }

    async fn make_room(&self, octets: usize) -> Result<Room, Refusal> {
        if octets > 10 << 20 {
            return Err(Refusal::new(451, "4.3.0", "unavailable: too much at once"));
        }
        self.0.rooms.lock().unwrap().push(octets);
        Ok(Box::new(()))
    }

    async fn submit(&self, message: MessageInput, idempotency_key: Option<String>) -> Result<MessageId, Refusal> {
        if *self.0.waits.lock().unwrap() {
            self.0.arrived.notify_one();
            self.0.go.notified().await;
        }
        if let Some(refusal) = self.0.refused.lock().unwrap().clone() {
            return Err(refusal);
        }
        self.0.submitted.lock().unwrap().push((message, idempotency_key));
        Ok(ID.parse().unwrap())
    }
}

/// A running server.
struct Running {
    address: SocketAddr,
    state: Arc<SinkState>,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
}

impl Running {
    fn start() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut SmtpServerOptions)) -> Self {
        let mut options = SmtpServerOptions::submission("mail.test");
        options.sign_in_delay = Duration::ZERO;
        change(&mut options);
        let server = Submission::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
        let address = server.local_addr();
        let state = Arc::new(SinkState::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let sink = Arc::new(Sink(Arc::clone(&state)));
        let server = tokio::spawn(server.run(sink, async move { drop(stopped.await) }));
        Self { address, state, stop: Some(stop), server }
    }

    async fn connect(&self) -> Client<TcpStream> {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// A client that has said EHLO.
    async fn known(&self) -> Client<TcpStream> {
        let mut client = self.connect().await;
        assert_eq!(client.reply().await, "220");
        assert_eq!(client.say("EHLO client.test").await, "250");
        client
    }

    /// A client that has signed in.
    async fn signed_in(&self) -> Client<TcpStream> {
        let mut client = self.known().await;
        assert_eq!(client.say(PLAIN).await, "235");
        client
    }

    /// A client that may send content.
    async fn at_data(&self) -> Client<TcpStream> {
        let mut client = self.signed_in().await;
        client.send(b"MAIL FROM:<a@acme.io>\r\nRCPT TO:<ann@x.io>\r\nDATA\r\n").await;
        assert_eq!(client.replies(3).await, "250 250 354");
        client
    }
}

/// A certificate of `mail.test` and its key in PEM, and the certificate as DER.
fn certificate() -> (String, String, CertificateDer<'static>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(vec!["mail.test".to_owned()]).unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem(), certificate.der().clone())
}

/// Writes a certificate and its key to files in a directory and loads them for a server.
pub(crate) fn tls_in(directory: &Path) -> (Arc<ServerTls>, CertificateDer<'static>) {
    let (certificate, key, der) = certificate();
    std::fs::write(directory.join("cert.pem"), certificate).unwrap();
    std::fs::write(directory.join("key.pem"), key).unwrap();
    let clock = Arc::new(SystemClock);
    let tls = ServerTls::load(directory.join("cert.pem"), directory.join("key.pem"), clock).unwrap();
    (Arc::new(tls), der)
}
