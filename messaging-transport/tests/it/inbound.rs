//! Receiving returned mail: what a client may say, what it may not, and what it can make the server
//! hold or wait for.

mod limits;
mod session;
mod smuggling;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use messaging_core::domain::mail::link_token::ReturnPurpose;
use messaging_core::domain::mail::report::Report;
use messaging_core::ids::MessageId;
use messaging_core::ports::inbound::{InboundError, InboundSink, ReturnAddress};
use messaging_core::ports::store::StoreError;
use messaging_transport::inbound::Inbound;
use messaging_transport::smtp_server::SmtpServerOptions;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::smtp_client::Client;

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

    fn with(change: impl FnOnce(&mut SmtpServerOptions)) -> Self {
        let mut options = SmtpServerOptions::returned_mail("mail.test");
        change(&mut options);
        let server = Inbound::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
        let address = server.local_addr();
        let notes = Arc::new(Notes::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(server.run(Arc::clone(&notes) as _, async move { drop(stopped.await) }));
        Self { address, notes, stop: Some(stop), server }
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

    /// A client that may send content.
    async fn at_data(&self) -> Client<TcpStream> {
        let mut client = self.known().await;
        client.send(b"MAIL FROM:<>\r\nRCPT TO:<one@b.test>\r\nDATA\r\n").await;
        assert_eq!(client.replies(3).await, "250 250 354");
        client
    }
}
