//! Submission by SMTP: mail is accepted and refused by the same rules and limits as `POST /messages`.

use std::sync::Arc;
use std::time::Duration;

use messaging_core::changes::{Document, Expect, Write};
use messaging_core::ports::transport::Content;
use messaging_core::scope::{Role, Scope};
use messaging_transport::smtp_server::SmtpServerOptions;
use messaging_transport::submission::Submission;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::{TestServer, any_port};
use crate::messages::sending_server;

/// Longest time for a step; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_mins(1);

const MAIL: &str = "From: Shop <shop@acme.com>\nTo: ann@example.com\nSubject: Hi\nMessage-ID: <1@acme.com>\n\nHello\n";

/// A program that submits mail.
struct Program(BufReader<TcpStream>);

impl Program {
    /// One that has not signed in.
    async fn stranger(server: &TestServer) -> Self {
        let mut options = SmtpServerOptions::submission("mail.test");
        options.sign_in_delay = Duration::ZERO;
        let submission = Submission::bind(any_port(), options).unwrap();
        let address = submission.local_addr();
        tokio::spawn(submission.run(Arc::clone(&server.submissions), std::future::pending()));
        let mut program = Self(BufReader::new(TcpStream::connect(address).await.unwrap()));
        program.reply().await;
        assert!(program.say("EHLO program.test").await.starts_with("250"));
        program
    }

    async fn of(server: &TestServer, key: &str) -> Self {
        let mut program = Self::stranger(server).await;
        assert_eq!(program.sign_in(key).await, "235 2.7.0 signed in");
        program
    }

    async fn sign_in(&mut self, key: &str) -> String {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        self.say(&format!("AUTH PLAIN {}", STANDARD.encode(format!("\0anybody\0{key}")))).await
    }

    async fn say(&mut self, line: &str) -> String {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
        self.reply().await
    }

    /// The last line of a reply.
    async fn reply(&mut self) -> String {
        loop {
            let mut line = String::new();
            timeout(PATIENCE, self.0.read_line(&mut line)).await.expect("a reply comes").unwrap();
            if line.get(3..4) != Some("-") {
                return line.trim_end().to_owned();
            }
        }
    }

    /// Submits a mail; returns the first refusal, or the reply to the final dot.
    async fn submit(&mut self, recipients: &[&str], mail: &str) -> String {
        let recipients = recipients.iter().map(|recipient| format!("RCPT TO:<{recipient}>"));
        let mail = format!("{}.", mail.replace('\n', "\r\n"));
        let commands =
            ["MAIL FROM:<shop@acme.com>".to_owned()].into_iter().chain(recipients).chain(["DATA".to_owned(), mail]);
        let mut reply = String::new();
        for command in commands {
            reply = self.say(&command).await;
            if reply.starts_with(['4', '5']) {
                self.say("RSET").await;
                break;
            }
        }
        reply
    }
}

/// The id in the reply to an accepted mail.
#[track_caller]
fn accepted(reply: &str) -> String {
    let id = reply.strip_prefix("250 2.0.0 ").and_then(|rest| rest.strip_suffix(" queued"));
    id.unwrap_or_else(|| panic!("{reply}")).to_owned()
}

#[tokio::test]
async fn a_submitted_mail_is_a_message_like_any_other() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend, Scope::PiiRead]).await;
    let mut program = Program::of(&server, &key).await;
    let mail = "From: =?utf-8?q?J=C3=B6rg?= <shop@acme.com>\nTo: Ann <ann@example.com>, bob@example.com\nSubject: Hi\n\
        X-Order: 17\nReply-To: help@acme.com\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHello\n--b\n\
        Content-Type: text/csv\nContent-Disposition: attachment; filename=a.csv\n\na;b\n--b--\n";
    let id = accepted(&program.submit(&["ann@example.com", "bob@example.com", "carl@example.com"], mail).await);
    server.app.run_until_idle().await.unwrap();
    let sent = server.transport.take();
    let Content::Email(email) = &sent[0].content else { panic!("{sent:?}") };
    assert_eq!((email.subject.as_str(), email.to.as_str()), ("Hi", "ann@example.com"));
    assert_eq!(email.attachments.len(), 1);
    let report = server.get(&format!("/v1/messages/{id}"), &key).await.json();
    assert_eq!(report["status"], "delivered");
    let content = server.get(&format!("/v1/messages/{id}/content"), &key).await.json();
    let request = &content["request"];
    assert_eq!((&request["cc"][0], &request["bcc"][0]), (&"bob@example.com".into(), &"carl@example.com".into()));
    assert_eq!((&request["from_name"], &request["headers"]["X-Order"]), (&"Jörg".into(), &"17".into()));
}

#[tokio::test]
async fn the_same_mail_twice_is_one_message() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let mut program = Program::of(&server, &key).await;
    let first = accepted(&program.submit(&["ann@example.com"], MAIL).await);
    // The reply to the first was lost, so it comes again, by another connection.
    let mut again = Program::of(&server, &key).await;
    assert_eq!(accepted(&again.submit(&["ann@example.com"], MAIL).await), first);
    let changed = MAIL.replace("Hello", "Good bye");
    let reply = again.submit(&["ann@example.com"], &changed).await;
    assert!(reply.starts_with("550 5.6.0 idempotency_key_reused"), "{reply}");
    let other = accepted(&again.submit(&["bob@example.com"], MAIL).await);
    assert_ne!(other, first);
    // Without a Message-ID nothing tells a repetition.
    let without = MAIL.replace("Message-ID: <1@acme.com>\n", "");
    let reply = again.submit(&["ann@example.com"], &without).await;
    assert_ne!(accepted(&again.submit(&["ann@example.com"], &without).await), accepted(&reply));
    let listed = server.get("/v1/messages", &key).await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn only_keys_that_may_send_send() {
    let server = sending_server().await;
    let mut program = Program::stranger(&server).await;
    let wrong = format!("mk_live_{}.{}", "a".repeat(12), "b".repeat(40));
    let reply = program.sign_in(&wrong).await;
    assert!(reply.starts_with("535 5.7.8 invalid_credentials"), "{reply}");
    let session = server.session(Some(Role::Owner)).await;
    assert!(program.sign_in(&session).await.starts_with("535 5.7.8"), "a session is no key");
    assert!(program.submit(&["ann@example.com"], MAIL).await.starts_with("530 5.7.0"));

    let reading = server.key(&[Scope::ContactsRead]).await;
    let reply = Program::of(&server, &reading).await.submit(&["ann@example.com"], MAIL).await;
    assert_eq!(reply, "550 5.7.1 scope_required: scope required: messages:send");
    let elsewhere = |key: &mut messaging_core::domain::security::api_key::ApiKey| {
        key.ip_allowlist = vec!["192.0.2.0/24".parse().unwrap()];
    };
    let elsewhere = server.key_with(&[Scope::MessagesSend], elsewhere).await;
    let reply = Program::of(&server, &elsewhere).await.submit(&["ann@example.com"], MAIL).await;
    assert!(reply.starts_with("550 5.7.1 ip_not_allowed"), "{reply}");
    assert!(
        server.get("/v1/messages", &server.key(&[Scope::All]).await).await.json()["data"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_key_that_is_revoked_sends_nothing_more_on_an_open_connection() {
    let server = sending_server().await;
    let (text, write) = server.new_key(&[Scope::MessagesSend], |_| {});
    let Write::Put(Document::ApiKey(key), _) = &write else { panic!("a key") };
    let mut revoked = key.clone();
    server.commit([write]).await;
    let mut program = Program::of(&server, &text).await;
    accepted(&program.submit(&["ann@example.com"], MAIL).await);
    revoked.revoked_at = Some(server.app.now());
    let stored = server.app.store().api_key(server.workspace, revoked.id).await.unwrap().unwrap();
    server.commit([Write::put(revoked, Expect::Revision(stored.revision))]).await;
    // A cached key expires after a second.
    server.clock.advance(Duration::from_secs(2));
    let reply = program.submit(&["ann@example.com"], MAIL).await;
    assert!(reply.starts_with("535 5.7.8 invalid_credentials"), "{reply}");
}

#[tokio::test]
async fn a_mail_takes_a_token_of_the_same_bucket_as_a_request() {
    let server = sending_server().await;
    let key = server.key_with(&[Scope::MessagesSend], |key| key.rate_limit = 2).await;
    let mut program = Program::of(&server, &key).await;
    accepted(&program.submit(&["ann@example.com"], MAIL).await);
    assert_eq!(server.get("/v1/messages", &key).await.status, 200);
    let reply = program.submit(&["ann@example.com"], MAIL).await;
    assert!(reply.starts_with("451 4.7.1 rate_limited"), "{reply}");
    server.clock.advance(Duration::from_secs(30));
    accepted(&program.submit(&["ann@example.com"], MAIL).await);
}

#[tokio::test]
async fn every_refusal_has_its_reply() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let mut program = Program::of(&server, &key).await;
    let with = |header: &str| MAIL.replace("Subject", &format!("{header}\nSubject"));
    let many: Vec<String> = (0..60).map(|number| format!("r{number}@example.com")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let seen = MAIL.replace("ann@example.com", &many.join(",\n "));
    let long = format!("{}\n", "x".repeat(998)).repeat(2200);
    let file = format!("{}\n", "QUFB".repeat(19)).repeat(280_000);
    let large = format!(
        "From: shop@acme.com\nSubject: Hi\nContent-Type: application/x-a\nContent-Transfer-Encoding: base64\n\n{file}"
    );
    let other = MAIL.replace("shop@acme.com", "shop@other.com");
    for (recipients, mail, expected) in [
        (&["ann@example.com"][..], other.as_str(), "550 5.7.1 sender_domain_not_verified"),
        (&["ann@example.com"], &MAIL.replace("shop@acme.com", "shop@acme"), "553 5.1.3 validation_failed: /from_email"),
        (&["ann@"], MAIL, "553 5.1.3"),
        (&many, &seen, "452 4.5.3 validation_failed: /cc"),
        (&["ann@example.com"], &with("Sender: a@acme.com"), "550 5.7.1 validation_failed: /headers/Sender"),
        (
            &["ann@example.com"],
            &with("List-Unsubscribe: <https://x>"),
            "550 5.7.1 validation_failed: /headers/List-Unsubscribe",
        ),
        (&["ann@example.com"], &MAIL.replace("Subject: Hi\n", ""), "550 5.6.0 validation_failed: /subject"),
        (&["ann@example.com"], &format!("{MAIL}{long}"), "552 5.3.4 validation_failed: /text"),
        (&["ann@example.com"], &large, "552 5.3.4 validation_failed: /attachments"),
    ] {
        let reply = program.submit(recipients, mail).await;
        assert!(reply.starts_with(expected), "{expected}: {reply}");
    }
    // Header fields that a client may not set are dropped, not refused.
    let dropped = with("Received: from x\nReturn-Path: <a@b.c>\nBcc: x@example.com\nDKIM-Signature: v=1");
    accepted(&program.submit(&["ann@example.com"], &dropped).await);
    assert_eq!(server.get("/v1/messages", &key).await.json()["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn nothing_is_acknowledged_that_is_not_stored() {
    let server = sending_server().await;
    let key = server.key(&[Scope::MessagesSend]).await;
    let mut program = Program::of(&server, &key).await;
    assert!(program.say("MAIL FROM:<shop@acme.com>").await.starts_with("250"));
    assert!(program.say("RCPT TO:<ann@example.com>").await.starts_with("250"));
    assert!(program.say("DATA").await.starts_with("354"));
    server.app.store().close().await;
    let reply = program.say(&format!("{}.", MAIL.replace('\n', "\r\n"))).await;
    assert!(reply.starts_with("451 4.3.0 unavailable"), "{reply}");
}
