//! Signing in and sending.

use messaging_transport::submission::Refusal;

use super::{ID, PLAIN, Running};

const MAIL: &[u8] = b"From: a@acme.io\r\nTo: ann@x.io\r\nCc: bob@x.io\r\nSubject: s\r\nMessage-ID: <1@acme.io>\r\n\r\nHi\r\n..\r\n.\r\n";

#[tokio::test]
async fn a_message_is_queued_by_whoever_has_a_key() {
    let server = Running::start();
    let mut client = server.connect().await;
    assert_eq!(client.full_reply().await, "220 mail.test ESMTP for submission\r\n");
    assert_eq!(
        client.ask("EHLO client.test").await,
        "250-mail.test\r\n250-PIPELINING\r\n250-SIZE 26214400\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-AUTH PLAIN LOGIN\r\n\
         250 ENHANCEDSTATUSCODES\r\n"
    );
    assert_eq!(client.ask("MAIL FROM:<a@acme.io>").await, "530 5.7.0 sign in with AUTH first\r\n");
    assert_eq!(client.ask(PLAIN).await, "235 2.7.0 signed in\r\n");
    client
        .send(b"MAIL FROM:<a@acme.io>\r\nRCPT TO:<ann@x.io>\r\nRCPT TO:<bob@x.io>\r\nRCPT TO:<carl@x.io>\r\nDATA\r\n")
        .await;
    assert_eq!(client.replies(5).await, "250 250 250 250 354");
    client.send(MAIL).await;
    assert_eq!(client.full_reply().await, format!("250 2.0.0 {ID} queued\r\n"));
    let (message, key) = server.state.submitted.lock().unwrap().remove(0);
    assert_eq!((message.to.as_deref(), message.text.as_deref()), (Some("ann@x.io"), Some("Hi\r\n.\r\n")));
    assert_eq!(message.cc.unwrap(), ["bob@x.io"]);
    assert_eq!(message.bcc.unwrap(), ["carl@x.io"]);
    assert!(key.is_some());
    assert_eq!(*server.state.counted.lock().unwrap(), 1);
    // The next transaction has recipients of its own, and MAIL comes first.
    assert_eq!(client.say("DATA").await, "503");
    assert_eq!(client.say("MAIL FROM:<>").await, "250");
    assert_eq!(client.say("DATA").await, "554");
    assert_eq!(client.say(PLAIN).await, "503");
    assert_eq!(client.say("QUIT").await, "221");
}

#[tokio::test]
async fn every_form_of_signing_in_is_understood() {
    let server = Running::start();
    // The question and the answer.
    let mut client = server.known().await;
    assert_eq!(client.ask("auth plain").await, "334 \r\n");
    assert_eq!(client.say("AHVzZXIAa2V5").await, "235");
    let mut client = server.known().await;
    assert_eq!(client.ask("AUTH LOGIN").await, "334 VXNlcm5hbWU6\r\n");
    assert_eq!(client.ask("dXNlcg==").await, "334 UGFzc3dvcmQ6\r\n");
    assert_eq!(client.say("a2V5").await, "235");
    let mut client = server.known().await;
    assert_eq!(client.ask("AUTH LOGIN dXNlcg==").await, "334 UGFzc3dvcmQ6\r\n");
    assert_eq!(client.say("a2V5").await, "235");
    // Malformed sign-ins.
    let mut client = server.known().await;
    for (line, code) in
        [("AUTH", "501"), ("AUTH CRAM-MD5", "504"), ("AUTH PLAIN ???", "501"), ("AUTH PLAIN YQ==", "501")]
    {
        assert_eq!(client.say(line).await, code, "{line}");
    }
    assert_eq!(client.say("AUTH LOGIN").await, "334");
    assert_eq!(client.say("*").await, "501");
    // A store that is away is no wrong key.
    assert_eq!(client.say("AUTH PLAIN AHVzZXIAYXdheQ==").await, "451");
    assert_eq!(client.say(PLAIN).await, "235");
    // EHLO comes first.
    let mut client = server.connect().await;
    client.reply().await;
    assert_eq!(client.say(PLAIN).await, "503");
}

#[tokio::test]
async fn wrong_keys_end_the_session() {
    let server = Running::start();
    let mut client = server.known().await;
    for _ in 0..2 {
        assert_eq!(client.ask("AUTH PLAIN AHVzZXIAd3Jvbmc=").await, "535 5.7.8 invalid_credentials: no such key\r\n");
    }
    assert_eq!(client.say("AUTH PLAIN AHVzZXIAd3Jvbmc=").await, "535");
    assert_eq!(client.rest().await, "421 4.7.0 too many failed sign-ins\r\n");
}

#[tokio::test]
async fn what_the_key_may_not_do_is_told_at_mail() {
    let server = Running::start();
    let mut client = server.signed_in().await;
    *server.state.forbidden.lock().unwrap() = Some(Refusal::new(550, "5.7.1", "ip_not_allowed: not from there"));
    assert_eq!(client.ask("MAIL FROM:<a@acme.io>").await, "550 5.7.1 ip_not_allowed: not from there\r\n");
    assert_eq!(client.say("RCPT TO:<ann@x.io>").await, "503");
}

#[tokio::test]
async fn a_refused_message_is_not_acknowledged_and_the_session_goes_on() {
    let server = Running::start();
    let mut client = server.at_data().await;
    *server.state.refused.lock().unwrap() = Some(Refusal::TRY_LATER);
    client.send(b"Subject: s\r\n\r\nx\r\n.\r\n").await;
    assert_eq!(client.full_reply().await, "451 4.3.0 try again later\r\n");
    *server.state.refused.lock().unwrap() = None;
    client.send(b"MAIL FROM:<a@acme.io>\r\nRCPT TO:<ann@x.io>\r\nDATA\r\n").await;
    assert_eq!(client.replies(3).await, "250 250 354");
    client.send(b"Subject: s\r\n\r\nx\r\n.\r\n").await;
    assert_eq!(client.reply().await, "250");
}

#[tokio::test]
async fn addresses_are_judged_one_by_one() {
    let server = Running::start();
    let mut client = server.signed_in().await;
    assert_eq!(client.say("MAIL FROM:<a@acme.io> SIZE=100 BODY=8BITMIME").await, "250");
    for bad in ["ann", "ann@", "ann@localhost", "\"a b\"@x.io", "ann@[127.0.0.1]", "a b@x.io", "@x.io"] {
        let reply = client.ask(&format!("RCPT TO:<{bad}>")).await;
        assert_eq!(reply, "553 5.1.3 not an email address\r\n", "{bad}");
    }
    assert_eq!(client.say("RCPT TO:<ann@x.io> NOTIFY=NEVER").await, "250");
    assert_eq!(client.say("RCPT TO:<\u{fc}ser@ex\u{e4}mple.de>").await, "250");
}

#[tokio::test]
async fn stopping_finishes_a_message_on_its_way() {
    let mut server = Running::start();
    *server.state.waits.lock().unwrap() = true;
    let mut idle = server.signed_in().await;
    let mut client = server.at_data().await;
    client.send(b"Subject: s\r\n\r\nx\r\n.\r\n").await;
    server.state.arrived.notified().await;
    server.stop.take().unwrap().send(()).unwrap();
    assert_eq!(idle.rest().await, "421 4.3.2 mail.test is stopping\r\n");
    server.state.go.notify_one();
    assert_eq!(client.rest().await, format!("250 2.0.0 {ID} queued\r\n421 4.3.2 mail.test is stopping\r\n"));
    (&mut server.server).await.unwrap();
    assert_eq!(server.state.submitted.lock().unwrap().len(), 1);
}
