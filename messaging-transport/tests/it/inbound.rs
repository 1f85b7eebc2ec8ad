//! Receiving returned mail: what a client may say, what it may not, and what it can make the server
//! hold or wait for.

mod limits;
mod session;
mod smuggling;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use messaging_core::domain::link_token::ReturnPurpose;
use messaging_core::domain::report::Report;
use messaging_core::ids::MessageId;
use messaging_core::ports::inbound::{InboundError, InboundSink, ReturnAddress};
use messaging_core::ports::store::StoreError;
use messaging_transport::inbound::{Inbound, InboundOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than anything here takes; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A sink with the addresses `one@b.test` to `nine@b.test`, which writes down what it gets.
#[derive(Default)]
struct Notes {
    received: Mutex<Vec<(MessageId, Report)>>,
    /// Addresses whose reports cannot be kept.
    broken: Mutex<Vec<MessageId>>,
}

impl Notes {
    fn known() -> HashMap<String, ReturnAddress> {
        let names = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
        let address = |(number, name): (usize, &str)| {
            let known = ReturnAddress {
                recipient: None,
                workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
                message_id: format!("msg_01JB3Q8Z5N6W7X8Y9ZABCDEFG{number}").parse().unwrap(),
                purpose: ReturnPurpose::Bounce,
            };
            (format!("{name}@b.test"), known)
        };
        names.into_iter().enumerate().map(address).collect()
    }

    fn count(&self) -> usize {
        self.received.lock().unwrap().len()
    }
}

#[async_trait]
impl InboundSink for Notes {
    async fn return_address(&self, address: &str) -> Result<Option<ReturnAddress>, StoreError> {
        if address == "unavailable@b.test" {
            return Err(StoreError::Unavailable);
        }
        Ok(Self::known().get(&address.to_lowercase()).copied())
    }

    async fn receive(&self, to: &ReturnAddress, report: &Report) -> Result<(), InboundError> {
        if self.broken.lock().unwrap().contains(&to.message_id) {
            return Err(InboundError::new(StoreError::Unavailable));
        }
        self.received.lock().unwrap().push((to.message_id, report.clone()));
        Ok(())
    }
}

/// A running server.
struct Running {
    address: SocketAddr,
    notes: Arc<Notes>,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
}

impl Running {
    fn start() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut InboundOptions)) -> Self {
        let mut options = InboundOptions::new("mail.test");
        change(&mut options);
        let server = Inbound::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
        let address = server.local_addr();
        let notes = Arc::new(Notes::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(server.run(Arc::clone(&notes) as _, async move { drop(stopped.await) }));
        Self { address, notes, stop: Some(stop), server }
    }

    async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// A client that has said EHLO.
    async fn known(&self) -> Client {
        let mut client = self.connect().await;
        assert_eq!(client.reply().await, "220");
        assert_eq!(client.say("EHLO client.test").await, "250");
        client
    }

    /// A client that may send content.
    async fn at_data(&self) -> Client {
        let mut client = self.known().await;
        client.send(b"MAIL FROM:<>\r\nRCPT TO:<one@b.test>\r\nDATA\r\n").await;
        assert_eq!(client.replies(3).await, "250 250 354");
        client
    }
}

/// A client in the raw.
struct Client(TcpStream);

impl Client {
    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// Sends a line and answers the code of the reply.
    async fn say(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n").as_bytes()).await;
        self.reply().await
    }

    async fn reply(&mut self) -> String {
        self.full_reply().await.chars().take(3).collect()
    }

    /// The codes of several replies.
    async fn replies(&mut self, count: usize) -> String {
        let mut codes = Vec::new();
        for _ in 0..count {
            codes.push(self.reply().await);
        }
        codes.join(" ")
    }

    /// A reply, all lines; empty at the end of the connection.
    async fn full_reply(&mut self) -> String {
        let mut text = String::new();
        loop {
            let line = self.line().await;
            text.push_str(&line);
            if line.get(3..4) != Some("-") {
                return text;
            }
        }
    }

    async fn line(&mut self) -> String {
        let mut line = Vec::new();
        timeout(PATIENCE, async {
            while let Ok(byte) = self.0.read_u8().await {
                line.push(byte);
                if byte == b'\n' {
                    break;
                }
            }
        })
        .await
        .expect("a line comes");
        String::from_utf8(line).unwrap()
    }

    /// Everything up to the end of the connection.
    async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        // A reset is an end as well.
        let _ = timeout(PATIENCE, self.0.read_to_end(&mut rest)).await.expect("the connection ends");
        String::from_utf8(rest).unwrap()
    }
}
