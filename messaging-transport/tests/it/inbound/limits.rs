//! Limits of a client of the inbound server: it cannot take more than its share of lines, time, memory and places.

use std::time::Duration;

use tokio::time::Instant;

use super::Running;
use crate::smtp_client::PATIENCE;

#[tokio::test]
async fn a_line_has_an_end() {
    let server = Running::start();
    let mut client = server.known().await;
    client.send(&b"A".repeat(100_000)).await;
    assert_eq!(client.rest().await, "500 5.5.2 the line is too long\r\n");
    let mut client = server.known().await;
    let long = format!("NOOP {}", "x".repeat(998 - 5));
    assert_eq!(client.say(&long).await, "250");
    assert_eq!(client.say(&format!("{long}x")).await, "500");
}

#[tokio::test]
async fn too_many_errors_end_the_session() {
    let server = Running::start();
    let mut client = server.known().await;
    client.say("MAIL FROM:<>").await;
    for _ in 0..9 {
        assert_eq!(client.say("RCPT TO:<guess@b.test>").await, "550");
    }
    assert_eq!(client.say("RCPT TO:<one@b.test>").await, "250");
    client.send(b"RCPT TO:<guess@b.test>\r\nNOOP\r\n").await;
    assert_eq!(client.rest().await, "550 5.1.1 no such address\r\n421 4.7.0 too many errors\r\n");
}

#[tokio::test]
async fn too_many_commands_end_the_session() {
    let server = Running::with(|options| options.max_commands = 5);
    let mut client = server.known().await;
    client.send(b"NOOP\r\nNOOP\r\nNOOP\r\nNOOP\r\nNOOP\r\n").await;
    assert_eq!(client.replies(4).await, "250 250 250 250");
    assert_eq!(client.rest().await, "421 4.7.0 too many commands\r\n");
}

#[tokio::test]
async fn a_letter_has_few_recipients() {
    let server = Running::with(|options| options.max_recipients = 2);
    let mut client = server.known().await;
    client.say("MAIL FROM:<>").await;
    let mut codes = Vec::new();
    for name in ["one", "one", "two", "three"] {
        codes.push(client.say(&format!("RCPT TO:<{name}@b.test>")).await);
    }
    // The same address twice is one recipient.
    assert_eq!(codes, ["250", "250", "250", "452"]);
    client.send(b"DATA\r\nSubject: x\r\n\r\n.\r\n").await;
    assert_eq!(client.replies(2).await, "354 250");
    assert_eq!(server.notes.count(), 2);
}

#[tokio::test]
async fn a_letter_has_a_size() {
    let server = Running::with(|options| options.max_letter = 10_000);
    let line = format!("{}\r\n", "x".repeat(98));
    let mut client = server.at_data().await;
    client.send(line.repeat(100).as_bytes()).await;
    client.send(b".\r\n").await;
    assert_eq!(client.reply().await, "250");
    client.send(b"MAIL FROM:<>\r\nRCPT TO:<one@b.test>\r\nDATA\r\n").await;
    assert_eq!(client.replies(3).await, "250 250 354");
    client.send(line.repeat(101).as_bytes()).await;
    client.send(b".\r\nNOOP\r\n").await;
    assert_eq!(client.replies(2).await, "552 250");
    assert_eq!(server.notes.count(), 1);
    // A client that goes on without end is cut off.
    let mut client = server.at_data().await;
    client.send(line.repeat(300).as_bytes()).await;
    assert_eq!(client.rest().await, "552 5.3.4 the message is too large\r\n");
}

#[tokio::test]
async fn connections_have_places() {
    let server = Running::with(|options| options.max_per_address = 2);
    let first = server.known().await;
    let mut second = server.known().await;
    let mut third = server.connect().await;
    assert_eq!(third.rest().await, "421 4.3.2 mail.test has too many connections, come back later\r\n");
    assert_eq!(second.say("QUIT").await, "221");
    assert_eq!(second.rest().await, "");
    // The place is free once the server has noticed that its client is gone.
    let started = Instant::now();
    loop {
        let mut client = server.connect().await;
        if client.reply().await == "220" {
            break;
        }
        assert!(started.elapsed() < PATIENCE);
    }
    drop(first);

    let server = Running::with(|options| options.max_connections = 1);
    let _first = server.known().await;
    assert_eq!(server.connect().await.reply().await, "421");
}

#[tokio::test]
async fn letters_in_memory_have_places() {
    let server = Running::with(|options| {
        options.max_letters = 1;
        options.command_timeout = Duration::from_millis(300);
    });
    let mut first = server.at_data().await;
    let mut second = server.known().await;
    second.send(b"MAIL FROM:<>\r\nRCPT TO:<one@b.test>\r\nDATA\r\n").await;
    assert_eq!(second.replies(3).await, "250 250 452");
    first.send(b".\r\n").await;
    assert_eq!(first.reply().await, "250");
}

#[tokio::test]
async fn silence_ends_the_session() {
    let server = Running::with(|options| options.command_timeout = Duration::from_millis(100));
    let mut client = server.connect().await;
    assert_eq!(client.reply().await, "220");
    assert_eq!(client.rest().await, "421 4.4.2 that took too long\r\n");
}

#[tokio::test]
async fn content_has_a_time() {
    let server = Running::with(|options| options.content_timeout = Duration::from_millis(100));
    let mut client = server.at_data().await;
    client.send(b"Subject: x\r\n").await;
    assert_eq!(client.rest().await, "421 4.4.2 that took too long\r\n");
    assert_eq!(server.notes.count(), 0);
}

#[tokio::test]
async fn a_connection_has_a_time_however_busy_it_is() {
    let server = Running::with(|options| options.connection_timeout = Duration::from_millis(300));
    let mut client = server.known().await;
    let started = Instant::now();
    // One command after another, each answered in time.
    loop {
        use tokio::io::AsyncWriteExt as _;
        if client.0.write_all(b"NOOP\r\n").await.is_err() {
            break;
        }
        match client.full_reply().await.as_str() {
            "250 2.0.0 ok\r\n" => assert!(started.elapsed() < PATIENCE),
            last => {
                assert!(last.is_empty() || last.starts_with("421"), "{last}");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_given_up() {
    let server = Running::with(|options| {
        options.command_timeout = Duration::from_millis(200);
        options.max_commands = usize::MAX;
        options.max_connections = 1;
    });
    let mut deaf = server.known().await;
    // Until neither side has room for more, or the server has given up.
    let lines = b"HELP\r\n".repeat(10_000);
    let writing = async {
        use tokio::io::AsyncWriteExt as _;
        while deaf.0.write_all(&lines).await.is_ok() {}
    };
    tokio::time::timeout(PATIENCE, writing).await.expect("the server gives up");
}
