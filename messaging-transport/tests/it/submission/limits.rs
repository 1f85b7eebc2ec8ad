//! Limits of a submitting client: it cannot hide commands in content, take more than its share, or stay without a key.

use std::time::Duration;

use super::Running;

#[tokio::test]
async fn no_other_end_of_content_is_believed() {
    let server = Running::start();
    for content in [
        &b"Subject: s\r\n\r\na\n.\r\nMAIL FROM:<b@acme.io>\r\n"[..],
        b"Subject: s\r\n\r\na\r\n.\nMAIL FROM:<b@acme.io>\r\n",
        b"Subject: s\r\n\r\na\r.\r\nMAIL FROM:<b@acme.io>\r\n",
        b"Subject: s\n\na\n.\nMAIL FROM:<b@acme.io>\n",
    ] {
        let mut client = server.at_data().await;
        client.send(content).await;
        assert_eq!(client.rest().await, "550 5.6.0 a CR or LF stands alone in the message\r\n");
    }
    assert!(server.state.submitted.lock().unwrap().is_empty());
    let mut client = server.known().await;
    client.send(b"NOOP\nNOOP\r\n").await;
    assert_eq!(client.rest().await, "500 5.5.2 lines end with CR and LF\r\n");
    let mut client = server.signed_in().await;
    assert_eq!(client.say("BDAT 10 LAST").await, "502");
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn a_message_has_at_most_101_recipients() {
    let server = Running::start();
    let mut client = server.signed_in().await;
    client.say("MAIL FROM:<a@acme.io>").await;
    for number in 0..101 {
        assert_eq!(client.say(&format!("RCPT TO:<r{number}@x.io>")).await, "250");
    }
    assert_eq!(client.ask("RCPT TO:<one.more@x.io>").await, "452 4.5.3 too many recipients\r\n");
    assert_eq!(client.say("RCPT TO:<r0@x.io>").await, "250", "the same address is no further one");
    assert_eq!(client.say("DATA").await, "354");
}

#[tokio::test]
async fn a_message_has_a_size_and_keeps_to_what_it_announced() {
    let server = Running::start();
    let mut client = server.signed_in().await;
    assert_eq!(client.ask("MAIL FROM:<a@acme.io> SIZE=26214401").await, "552 5.3.4 the message is too large\r\n");
    let line = format!("{}\r\n", "x".repeat(98));
    // Short messages need no room, long ones hold the size they announced, and no client may announce little and send
    // much.
    client.send(b"MAIL FROM:<a@acme.io> SIZE=100000\r\nRCPT TO:<ann@x.io>\r\nDATA\r\n").await;
    assert_eq!(client.replies(3).await, "250 250 354");
    client.send(format!("Subject: s\r\n\r\n{}.\r\n", line.repeat(1000)).as_bytes()).await;
    assert_eq!(client.reply().await, "250");
    assert_eq!(*server.state.rooms.lock().unwrap(), [265_536]);
    client.send(b"MAIL FROM:<a@acme.io> SIZE=100\r\nRCPT TO:<ann@x.io>\r\nDATA\r\n").await;
    assert_eq!(client.replies(3).await, "250 250 354");
    client.send(format!("{}.\r\n", line.repeat(1000)).as_bytes()).await;
    assert_eq!(client.full_reply().await, "552 5.3.4 the message is too large\r\n");
    // Without room the rest of the message is not read.
    client.send(b"MAIL FROM:<a@acme.io>\r\nRCPT TO:<ann@x.io>\r\nDATA\r\n").await;
    assert_eq!(client.replies(3).await, "250 250 354");
    client.send(line.repeat(1000).as_bytes()).await;
    assert_eq!(client.rest().await, "451 4.3.0 unavailable: too much at once\r\n");
}

#[tokio::test]
async fn strangers_do_not_stay() {
    let server = Running::with(|options| options.stranger_timeout = Duration::from_millis(100));
    let mut client = server.connect().await;
    assert_eq!(client.rest().await, "220 mail.test ESMTP for submission\r\n421 4.4.2 that took too long\r\n");
    let server = Running::start();
    let mut client = server.known().await;
    let mut last = String::new();
    for _ in 0..10 {
        last = client.ask("MAIL FROM:<a@acme.io>").await;
    }
    assert_eq!(last, "530 5.7.0 sign in with AUTH first\r\n");
    assert_eq!(client.rest().await, "421 4.7.0 too many errors\r\n");
}

#[tokio::test]
async fn content_that_stands_still_is_given_up() {
    let server = Running::with(|options| options.stall_timeout = Duration::from_millis(100));
    let mut client = server.at_data().await;
    assert_eq!(client.rest().await, "421 4.4.2 that took too long\r\n");
    assert!(server.state.submitted.lock().unwrap().is_empty());
}
