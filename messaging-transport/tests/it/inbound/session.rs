//! The commands and their order.

use messaging_core::domain::mail::report::Report;
use tokio::io::AsyncWriteExt as _;

use super::Running;
use crate::submission::tls::handshake;
use crate::submission::tls_in;

const BOUNCE: &str = "From: MAILER-DAEMON@mx.test\r\nSubject: failure notice\r\n\r\n\
    Hi. This is the qmail-send program at mx.test.\r\n\r\n<ann@example.com>:\r\nRemote host said: 550 5.1.1 no such user\r\n";

#[tokio::test]
async fn a_letter_is_received_and_noted_before_it_is_acknowledged() {
    let server = Running::start();
    let mut client = server.connect().await;
    assert_eq!(client.full_reply().await, "220 mail.test ESMTP for returned mail\r\n");
    client.send(b"EHLO [192.0.2.1]\r\n").await;
    let hello = client.full_reply().await;
    assert_eq!(
        hello,
        "250-mail.test\r\n250-PIPELINING\r\n250-SIZE 10485760\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n\
         250 ENHANCEDSTATUSCODES\r\n"
    );
    assert_eq!(client.say("MAIL FROM:<> SIZE=1000 BODY=8BITMIME SMTPUTF8").await, "250");
    assert_eq!(client.say("RCPT TO:<one@b.test> NOTIFY=NEVER").await, "250");
    assert_eq!(client.say("RCPT TO:<Two@B.test>").await, "250");
    assert_eq!(client.say("DATA").await, "354");
    assert_eq!(server.notes.count(), 0);
    client.send(format!("{BOUNCE}..\r\n.\r\n").as_bytes()).await;
    assert_eq!(client.full_reply().await, "250 2.0.0 noted\r\n");
    assert_eq!(server.notes.count(), 2);
    let noted = server.notes.received.lock().unwrap().clone();
    let Report::Delivery(reports) = &noted[0].1 else { panic!("{noted:?}") };
    assert_eq!(reports[0].addresses, ["ann@example.com"]);
    assert_eq!(reports[0].response.enhanced.as_deref(), Some("5.1.1"));
    // The next transaction has recipients of its own.
    assert_eq!(client.say("MAIL FROM:<someone@example.com>").await, "250");
    assert_eq!(client.say("DATA").await, "554");
    assert_eq!(client.say("RSET").await, "250");
    assert_eq!(client.say("QUIT").await, "221");
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn commands_out_of_order_are_refused() {
    let server = Running::start();
    let mut client = server.connect().await;
    client.reply().await;
    for (line, expected) in [
        ("MAIL FROM:<>", "503"),
        ("RCPT TO:<one@b.test>", "503"),
        ("DATA", "503"),
        ("HELO client.test", "250"),
        ("RCPT TO:<one@b.test>", "503"),
        ("mail from: <>", "250"),
        ("MAIL FROM:<>", "503"),
        ("EHLO client.test", "250"),
        ("DATA", "503"),
        ("NOOP anything", "250"),
        ("VRFY one@b.test", "252"),
        ("HELP", "214"),
    ] {
        assert_eq!(client.say(line).await, expected, "{line}");
    }
}

#[tokio::test]
async fn what_is_not_offered_is_refused() {
    let server = Running::with(|options| options.max_errors = 100);
    let mut client = server.known().await;
    for (line, expected) in [
        ("STARTTLS", "502"),
        ("AUTH PLAIN AGEAYg==", "502"),
        ("EXPN list", "502"),
        ("ETRN b.test", "502"),
        ("LHLO client.test", "502"),
        ("XYZZY", "500"),
        ("", "500"),
        ("MAIL FROM:<a@b.test> BODY=BINARYMIME", "555"),
        ("MAIL FROM:<a@b.test> REQUIRETLS", "555"),
        ("MAIL FROM:<a@b.test> FROBNICATE=1", "555"),
        ("MAIL FROM:<a@b.test> SIZE=10485761", "552"),
        ("MAIL FROM:<a@b.test> SIZE=x", "501"),
        ("MAIL FROM:", "501"),
        ("MAIL <a@b.test>", "501"),
        ("MAIL FROM:<\u{fc}ser@b.test> SMTPUTF8 SIZE=10485760", "250"),
        ("RCPT TO:<one@b.test", "501"),
        ("RCPT TO:<>", "550"),
    ] {
        assert_eq!(client.say(line).await, expected, "{line}");
    }
    for line in ["BDAT 5 LAST\r\nQUIT\r\n", "bdat x\r\nRSET\r\n"] {
        let mut client = server.known().await;
        client.send(line.as_bytes()).await;
        assert!(client.rest().await.starts_with("502 5.5.1"), "{line}");
    }
}

#[tokio::test]
async fn only_our_own_addresses_are_taken_and_all_others_hear_the_same() {
    let server = Running::with(|options| options.max_errors = 100);
    let mut client = server.known().await;
    client.say("MAIL FROM:<>").await;
    for address in
        ["ten@b.test", "one@c.test", "postmaster", "postmaster@b.test", "one%c.test@b.test", "\"one\"@c.test"]
    {
        client.send(format!("RCPT TO:<{address}>\r\n").as_bytes()).await;
        assert_eq!(client.full_reply().await, "550 5.1.1 no such address\r\n", "{address}");
    }
    assert_eq!(client.say("RCPT TO:<unavailable@b.test>").await, "451");
    assert_eq!(client.say("DATA").await, "554");
    assert_eq!(server.notes.count(), 0);
}

#[tokio::test]
async fn what_cannot_be_kept_is_not_acknowledged() {
    let server = Running::start();
    let mut client = server.known().await;
    let two = super::Notes::known()["two@b.test"].message_id;
    server.notes.broken.lock().unwrap().push(two);
    client.send(b"MAIL FROM:<>\r\nRCPT TO:<one@b.test>\r\nRCPT TO:<two@b.test>\r\nDATA\r\n").await;
    assert_eq!(client.replies(4).await, "250 250 250 354");
    client.send(format!("{BOUNCE}.\r\n").as_bytes()).await;
    assert_eq!(client.full_reply().await, "451 4.3.0 try again later\r\n");
    server.notes.broken.lock().unwrap().clear();
    client.send(format!("MAIL FROM:<>\r\nRCPT TO:<two@b.test>\r\nDATA\r\n{BOUNCE}.\r\n").as_bytes()).await;
    assert_eq!(client.replies(4).await, "250 250 354 250");
}

#[tokio::test]
async fn everything_may_come_at_once() {
    let server = Running::start();
    let mut client = server.connect().await;
    let mut all = "EHLO c.test\r\n".to_owned();
    for _ in 0..20 {
        all.push_str("MAIL FROM:<>\r\nRCPT TO:<one@b.test>\r\nRCPT TO:<two@b.test>\r\nDATA\r\n");
        all.push_str(BOUNCE);
        all.push_str(".\r\n");
    }
    all.push_str("QUIT\r\nNOOP\r\n");
    client.send(all.as_bytes()).await;
    // The client sends nothing more; its commands are answered all the same.
    client.0.shutdown().await.unwrap();
    assert_eq!(client.replies(2).await, "220 250");
    for _ in 0..20 {
        assert_eq!(client.replies(5).await, "250 250 250 354 250");
    }
    assert_eq!(client.rest().await, "221 2.0.0 bye\r\n");
    assert_eq!(server.notes.count(), 40);
}

#[tokio::test]
async fn a_letter_that_breaks_off_has_no_effect() {
    let server = Running::start();
    let mut client = server.at_data().await;
    client.send(BOUNCE.as_bytes()).await;
    client.0.shutdown().await.unwrap();
    assert_eq!(client.rest().await, "");
    assert_eq!(server.notes.count(), 0);
}

#[tokio::test]
async fn stopping_ends_idle_sessions_and_finishes_letters() {
    let mut server = Running::start();
    let mut idle = server.known().await;
    let mut busy = server.at_data().await;
    busy.send(BOUNCE.as_bytes()).await;
    server.stop.take().unwrap().send(()).unwrap();
    assert!(idle.rest().await.starts_with("421 4.3.2"));
    busy.send(b".\r\nNOOP\r\n").await;
    assert_eq!(busy.reply().await, "250");
    assert!(busy.rest().await.starts_with("421 4.3.2"));
    assert_eq!(server.notes.count(), 1);
    server.server.await.unwrap();
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn stopping_does_not_wait_for_ever() {
    let mut server = Running::with(|options| options.stop_grace = std::time::Duration::from_millis(50));
    let mut busy = server.at_data().await;
    busy.send(b"Subject: x\r\n").await;
    server.stop.take().unwrap().send(()).unwrap();
    server.server.await.unwrap();
    assert_eq!(busy.rest().await, "");
    assert_eq!(server.notes.count(), 0);
}

#[tokio::test]
async fn starttls_is_offered_with_a_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let (tls, root) = tls_in(directory.path());
    let server = Running::with(|options| options.tls = Some(tls));
    let mut client = server.connect().await;
    client.reply().await;
    client.send(b"EHLO mx.test\r\n").await;
    let offered = client.full_reply().await;
    assert!(offered.contains("250-STARTTLS\r\n") && !offered.contains("AUTH"), "{offered}");
    // Hosts without TLS are taken as before.
    assert_eq!(client.say("MAIL FROM:<>").await, "250");
    client.send(b"STARTTLS\r\nRCPT TO:<one@b.test>\r\n").await;
    assert_eq!(client.reply().await, "220");
    let mut client = handshake(client.0, &root).await.unwrap();
    assert_eq!(client.say("RCPT TO:<one@b.test>").await, "503", "nothing of before counts");
    assert_eq!(client.say("EHLO mx.test").await, "250");
    client.send(b"MAIL FROM:<>\r\nRCPT TO:<one@b.test>\r\nDATA\r\n").await;
    for code in ["250", "250", "354"] {
        assert_eq!(client.reply().await, code);
    }
    client.send(format!("{BOUNCE}.\r\n").as_bytes()).await;
    assert_eq!(client.reply().await, "250");
    assert_eq!(server.notes.count(), 1);
}
