//! Mail to `postmaster` and `abuse` of the installation's names, from the socket to the operator.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use messaging_core::domain::channel::address::EmailAddress;
use messaging_core::ports::transport::{Content, Email};
use messaging_engine::{Caller, Settings, admin};
use messaging_transport::inbound::Inbound;
use messaging_transport::smtp_server::SmtpServerOptions;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::bed::Call;
use crate::support::Product;

const MAIL: &str =
    "From: Eve <eve@example.com>\r\nSubject: =?utf-8?q?Sch=C3=B6n?=\r\nMessage-ID: <1@example.com>\r\n\r\nHello\r\n";

struct Receiving {
    product: Product,
    address: std::net::SocketAddr,
}

impl Receiving {
    async fn start() -> Self {
        let product = Product::start().await;
        let options = SmtpServerOptions::returned_mail("mx.service.test");
        let server = Inbound::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
        let address = server.local_addr();
        let settings = Settings::default().hostname("mx.service.test").postmaster("operator@sandbox.test");
        let app = product.another_process_told(settings);
        tokio::spawn(server.run(Arc::new(app), std::future::pending()));
        Self { product, address }
    }

    /// Sends a mail; returns the code of the reply to the final dot, or of the first refusal.
    async fn post(&self, from: &str, to: &str, mail: &str) -> String {
        let mut stream = BufReader::new(TcpStream::connect(self.address).await.unwrap());
        let commands =
            ["", "HELO x\r\n", &format!("MAIL FROM:<{from}>\r\n"), &format!("RCPT TO:<{to}>\r\n"), "DATA\r\n"];
        let mut reply = String::new();
        for command in commands.into_iter().chain([format!("{mail}.\r\n").as_str()]) {
            stream.get_mut().write_all(command.as_bytes()).await.unwrap();
            reply.clear();
            stream.read_line(&mut reply).await.unwrap();
            if reply.starts_with(['4', '5']) {
                break;
            }
        }
        reply[..3].to_owned()
    }

    /// The emails sent since the last call.
    async fn sent(&self) -> Vec<Email> {
        self.product.work().await;
        let sent = self.product.transport.take();
        sent.into_iter()
            .map(|sent| match sent.content {
                Content::Email(email) => *email,
                other => panic!("{other:?}"),
            })
            .collect()
    }
}

#[tokio::test]
async fn mail_to_the_operator_is_handed_on_once() {
    let server = Receiving::start().await;
    for _ in 0..2 {
        assert_eq!(server.post("eve@example.com", "Postmaster@MX.service.test", MAIL).await, "250");
    }
    let sent = server.sent().await;
    assert_eq!(sent.len(), 1, "the same mail twice is handed on once");
    let email = &sent[0];
    assert_eq!((email.to.as_str(), email.subject.as_str()), ("operator@sandbox.test", "[postmaster] Sch\u{f6}n"));
    assert_eq!(email.from.address.as_str(), "postmaster@sandbox.test");
    assert_eq!(email.reply_to.as_ref().map(EmailAddress::as_str), Some("eve@example.com"));
    assert_eq!(
        (email.attachments[0].filename.as_str(), &email.attachments[0].content[..]),
        ("mail.eml", MAIL.as_bytes())
    );
    for (to, code) in [
        ("abuse@bounce.sandbox.test", "250"),
        // Without a domain (RFC 5321 section 4.5.1).
        ("postmaster", "250"),
        ("Postmaster", "250"),
        ("postmaster@bounce.other.test", "550"),
        ("postmaster@sandbox.test", "550"),
        ("root@mx.service.test", "550"),
        ("postmaster@example.com", "550"),
    ] {
        assert_eq!(server.post("eve@example.com", to, MAIL).await, code, "{to}");
    }
    assert_eq!(server.sent().await.len(), 1);
}

#[tokio::test]
async fn claims_of_the_name_by_others_keep_no_mail_from_the_operator() {
    let server = Receiving::start().await;
    server.product.claim_elsewhere("sandbox.test", 250, None).await;
    assert_eq!(server.post("eve@example.com", "postmaster@bounce.sandbox.test", MAIL).await, "250");
    assert_eq!(server.sent().await.len(), 1);
}

#[tokio::test]
async fn a_workspace_under_deletion_hands_no_mail_to_the_operator_on() {
    let server = Receiving::start().await;
    let to = "postmaster@mx.service.test";
    admin::delete_workspace(&server.product.app, server.product.workspace, false).await.unwrap();
    assert_eq!(server.post("eve@example.com", to, MAIL).await, "550");
    let owner = Caller::Operator(Some(server.product.workspace));
    let target = format!("/workspaces/{}/restore", server.product.workspace);
    assert_eq!(server.product.bed.call(Call::new(&owner, Method::POST, &target)).await.status, 200);
    // The process that receives mail checks once a second.
    server.product.clock.advance(Duration::from_secs(2));
    assert_eq!(server.post("eve@example.com", to, MAIL).await, "250");
}

#[tokio::test]
async fn what_could_go_in_a_circle_is_taken_and_not_handed_on() {
    let server = Receiving::start().await;
    let to = "postmaster@mx.service.test";
    assert_eq!(server.post("", to, MAIL).await, "250");
    assert_eq!(server.post("eve@example.com", to, &format!("Auto-Submitted: auto-replied\r\n{MAIL}")).await, "250");
    let looped = format!("X-Loop: abuse@mx.service.test\r\n{MAIL}");
    assert_eq!(server.post("eve@example.com", to, &looped).await, "250");
    let hops = "Received: from x\r\n".repeat(101);
    assert_eq!(server.post("eve@example.com", to, &format!("{hops}{MAIL}")).await, "250");
    assert!(server.sent().await.is_empty());
    // A forwarded mail is marked as such, and is not forwarded again.
    assert_eq!(server.post("eve@example.com", to, MAIL).await, "250");
    let headers = server.sent().await.remove(0).headers;
    let has = |name: &str| headers.iter().any(|(known, _)| known == name);
    assert!(has("X-Loop") && has("Auto-Submitted"), "{headers:?}");
}

#[tokio::test]
async fn strangers_do_not_flood_the_operator() {
    let server = Receiving::start().await;
    let to = "abuse@mx.service.test";
    for number in 0..30 {
        let mail = MAIL.replace("Hello", &format!("Hello {number}"));
        assert_eq!(server.post("eve@example.com", to, &mail).await, "250");
    }
    assert_eq!(server.post("eve@example.com", to, MAIL).await, "451");
    server.product.clock.advance(Duration::from_hours(1));
    assert_eq!(server.post("eve@example.com", to, MAIL).await, "250");
    let large = format!("{MAIL}{}", format!("{}\r\n", "x".repeat(998)).repeat(1100));
    assert_eq!(server.post("eve@example.com", to, &large).await, "552");
}
