//! Returned mail from the socket to the status: the application behind the inbound SMTP server.

use std::sync::Arc;

use messaging_core::domain::audience::suppression::{SuppressionReason, SuppressionSource};
use messaging_core::domain::mail::link_token::ReturnPurpose;
use messaging_core::ids::MessageId;
use messaging_transport::inbound::Inbound;
use messaging_transport::smtp_server::SmtpServerOptions;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::support::Product;

const TO: &str = "ann@example.com";

/// A product that receives mail.
struct Receiving {
    product: Product,
    address: std::net::SocketAddr,
}

impl Receiving {
    async fn start() -> Self {
        let product = Product::start().await;
        let server =
            Inbound::bind("127.0.0.1:0".parse().unwrap(), SmtpServerOptions::returned_mail("mail.test")).unwrap();
        let address = server.local_addr();
        tokio::spawn(server.run(Arc::new(product.app.clone()), std::future::pending()));
        Self { product, address }
    }

    /// Sends a message that is delivered.
    async fn delivered(&self, body: serde_json::Value) -> MessageId {
        let message = self.product.send(&body).await;
        self.product.work().await;
        message
    }

    async fn delivered_to(&self, to: &str) -> MessageId {
        self.delivered(json!({"channel": "email", "to": to, "subject": "s", "text": "t"})).await
    }

    /// Sends a letter; returns the reply to the final dot, or to the recipient that was refused.
    async fn post(&self, to: &str, letter: &str) -> String {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (reader, mut writer) = stream.into_split();
        let mut replies = BufReader::new(reader).lines();
        let mut reply = String::new();
        let commands = ["", "HELO mx.example.com\r\n", "MAIL FROM:<>\r\n", &format!("RCPT TO:<{to}>\r\n"), "DATA\r\n"];
        let letter = format!("{}\r\n.\r\n", letter.replace('\n', "\r\n"));
        for command in commands.into_iter().chain([letter.as_str()]) {
            writer.write_all(command.as_bytes()).await.unwrap();
            reply = replies.next_line().await.unwrap().unwrap();
            if reply.starts_with(['4', '5']) {
                break;
            }
        }
        reply
    }
}

/// A notification about recipients: address, action, status, diagnostic.
fn notification(recipients: &[(&str, &str, &str, &str)]) -> String {
    let groups: String = recipients
        .iter()
        .map(|(address, action, status, diagnostic)| {
            format!(
                "\nFinal-Recipient: rfc822; {address}\nAction: {action}\nStatus: {status}\n\
                 Remote-MTA: dns; mx.example.com\nDiagnostic-Code: smtp; {diagnostic}\n"
            )
        })
        .collect();
    format!(
        "From: MAILER-DAEMON@mx.example.com\nTo: x@y.z\nSubject: Undelivered Mail Returned to Sender\nMIME-Version: 1.0\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n\
         --b\nContent-Type: text/plain\n\nIt did not arrive.\n\n\
         --b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example.com\n{groups}\n\
         --b\nContent-Type: message/rfc822\n\nSubject: s\n\nt\n--b--\n"
    )
}

fn complaint(recipient: &str) -> String {
    format!(
        "From: fbl@example.com\nTo: x@y.z\nSubject: complaint\nMIME-Version: 1.0\n\
         Content-Type: multipart/report; report-type=feedback-report; boundary=b\n\n\
         --b\nContent-Type: text/plain\n\nThis is an email abuse report.\n\n\
         --b\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\nUser-Agent: Loop/1.0\nVersion: 1\n\
         Original-Rcpt-To: {recipient}\n\n\
         --b\nContent-Type: message/rfc822\n\nSubject: s\n\nt\n--b--\n"
    )
}

#[tokio::test]
async fn a_bounce_moves_the_message_and_suppresses_the_address_once() {
    let receiving = Receiving::start().await;
    let message = receiving.delivered_to(TO).await;
    let address = receiving.product.return_to(ReturnPurpose::Bounce, message);
    let letter = notification(&[(TO, "failed", "5.1.1", "550 5.1.1 <ann@example.com>: no such user")]);
    for _ in 0..2 {
        assert_eq!(receiving.post(&address, &letter).await, "250 2.0.0 noted");
        assert_eq!(receiving.product.story(message).await, "bounced: Queued Sent Delivered Bounce");
    }
    assert_eq!(
        receiving.product.last_meta(message).await,
        json!({
            "recipient": TO, "bounce_type": "hard", "bounce_class": "invalid_recipient", "smtp_code": 550,
            "enhanced_code": "5.1.1", "response": "550 5.1.1 <ann@example.com>: no such user",
        })
    );
    let record = receiving.product.listed(TO).await.unwrap();
    assert_eq!((record.reason, record.source), (SuppressionReason::Bounce, SuppressionSource::System));
    // The next message to the address does not leave.
    let next = receiving.delivered_to(TO).await;
    assert_eq!(receiving.product.story(next).await, "suppressed: Queued Suppressed");
}

#[tokio::test]
async fn a_copy_bounces_for_itself() {
    let receiving = Receiving::start().await;
    let body = json!({"channel": "email", "to": TO, "cc": ["boss@example.com"], "subject": "s", "text": "t"});
    let message = receiving.delivered(body).await;
    let address = receiving.product.return_to(ReturnPurpose::Bounce, message);
    let letter = notification(&[
        ("boss@example.com", "failed", "5.1.1", "550 5.1.1 unknown user"),
        ("stranger@example.com", "failed", "5.1.1", "550 5.1.1 unknown user"),
    ]);
    assert_eq!(receiving.post(&address, &letter).await, "250 2.0.0 noted");
    assert_eq!(receiving.product.report(message).await.status.as_str(), "delivered");
    assert_eq!(receiving.product.last_meta(message).await["recipient"], "boss@example.com");
    assert!(receiving.product.listed("boss@example.com").await.is_some());
    for other in [TO, "stranger@example.com"] {
        assert_eq!(receiving.product.listed(other).await, None, "{other}");
    }
}

#[tokio::test]
async fn a_complaint_ends_it() {
    let receiving = Receiving::start().await;
    let message = receiving.delivered_to(TO).await;
    let address = receiving.product.return_to(ReturnPurpose::Bounce, message);
    for _ in 0..2 {
        assert_eq!(receiving.post(&address, &complaint(TO)).await, "250 2.0.0 noted");
    }
    assert_eq!(receiving.product.story(message).await, "complained: Queued Sent Delivered Complaint");
    assert_eq!(receiving.product.last_meta(message).await, json!({"recipient": TO, "feedback_type": "abuse"}));
    assert_eq!(receiving.product.listed(TO).await.unwrap().reason, SuppressionReason::Complaint);
}

#[tokio::test]
async fn a_letter_to_the_unsubscribe_address_unsubscribes() {
    let receiving = Receiving::start().await;
    let message = receiving.delivered_to(TO).await;
    let address = receiving.product.return_to(ReturnPurpose::Unsubscribe, message);
    // A bounce to this address is no request to unsubscribe.
    let bounce = notification(&[("x@y.z", "failed", "5.1.1", "550 5.1.1 unknown user")]);
    assert_eq!(receiving.post(&address, &bounce).await, "250 2.0.0 noted");
    assert_eq!(receiving.product.story(message).await, "delivered: Queued Sent Delivered");
    let letter = "From: Ann <ann@example.com>\nSubject: unsubscribe\n\n";
    for _ in 0..2 {
        assert_eq!(receiving.post(&address.to_uppercase(), letter).await, "250 2.0.0 noted");
    }
    assert_eq!(receiving.product.story(message).await, "delivered: Queued Sent Delivered Unsubscribe");
    assert_eq!(receiving.product.last_meta(message).await, json!({"method": "mailto"}));
    let record = receiving.product.listed(TO).await.unwrap();
    assert_eq!((record.reason, record.source), (SuppressionReason::Unsubscribe, SuppressionSource::Recipient));
}

#[tokio::test]
async fn other_addresses_are_refused_and_other_letters_change_nothing() {
    let receiving = Receiving::start().await;
    let message = receiving.delivered_to(TO).await;
    let address = receiving.product.return_to(ReturnPurpose::Bounce, message);
    let letter = notification(&[(TO, "failed", "5.1.1", "550 5.1.1 no such user")]);
    let (local, _) = address.split_once('@').unwrap();
    let (_, token) = local.split_once('+').unwrap();
    let last = if token.ends_with('0') { "4" } else { "0" };
    for wrong in [
        format!("unsubscribe+{token}@bounce.sandbox.test"),
        format!("bounce+{}{last}@bounce.sandbox.test", &token[..token.len() - 1]),
        format!("{local}@bounce.example.com"),
        format!("{local}@sandbox.test"),
        "bounce@bounce.sandbox.test".to_owned(),
        "postmaster@bounce.sandbox.test".to_owned(),
    ] {
        assert_eq!(receiving.post(&wrong, &letter).await, "550 5.1.1 no such address", "{wrong}");
    }
    for nothing in [
        "From: Ann <ann@example.com>\nSubject: Re: s\n\nThank you!\n",
        "From: Ann <ann@example.com>\nSubject: Out of office\nAuto-Submitted: auto-replied\n\nI am away, write to 550 5.1.1.\n",
        "",
    ] {
        assert_eq!(receiving.post(&address, nothing).await, "250 2.0.0 noted");
    }
    assert_eq!(receiving.product.story(message).await, "delivered: Queued Sent Delivered");
    assert_eq!(receiving.product.listed(TO).await, None);
}

#[tokio::test]
async fn a_store_that_is_gone_acknowledges_nothing() {
    let receiving = Receiving::start().await;
    let message = receiving.delivered_to(TO).await;
    let address = receiving.product.return_to(ReturnPurpose::Bounce, message);
    receiving.product.store.close().await;
    let letter = notification(&[(TO, "failed", "5.1.1", "550 5.1.1 no such user")]);
    assert_eq!(receiving.post(&address, &letter).await, "451 4.3.0 try again later");
}

#[tokio::test]
async fn a_delay_is_told_and_moves_nothing() {
    let receiving = Receiving::start().await;
    let message = receiving.delivered_to(TO).await;
    let address = receiving.product.return_to(ReturnPurpose::Bounce, message);
    let letter = notification(&[(TO, "delayed", "4.4.1", "421 4.4.1 connection timed out")]);
    assert_eq!(receiving.post(&address, &letter).await, "250 2.0.0 noted");
    assert_eq!(receiving.product.story(message).await, "delivered: Queued Sent Delivered Deferred");
    assert_eq!(
        receiving.product.last_meta(message).await,
        json!({
            "recipient": TO, "smtp_code": 421, "enhanced_code": "4.4.1", "response": "421 4.4.1 connection timed out",
        })
    );
}
