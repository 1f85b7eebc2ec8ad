//! Tests of a site, from a client on its socket.

use std::time::Duration;

use messaging_core::ports::clock::ManualClock;
use messaging_core::time::Timestamp;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const HOUR: Duration = Duration::from_hours(1);

/// A client that says what it is told to.
struct Client(BufReader<TcpStream>);

impl Client {
    /// Connects and reads the greeting.
    async fn connect(site: &MailboxProvider) -> (Self, String) {
        let mut client = Self(BufReader::new(TcpStream::connect(site.address()).await.unwrap()));
        let greeting = client.hear().await;
        (client, greeting)
    }

    /// Connects and says EHLO.
    async fn ready(site: &MailboxProvider) -> Self {
        let (mut client, greeting) = Self::connect(site).await;
        assert!(greeting.starts_with("220 mx1."), "{greeting}");
        client.say("EHLO mx.acme.test").await;
        client
    }

    /// Reads a reply, its lines with `\n` between them; empty once the connection has ended.
    async fn hear(&mut self) -> String {
        let mut reply = String::new();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).await.unwrap();
            reply.push_str(line.trim_end());
            if line.as_bytes().get(3) != Some(&b'-') {
                return reply;
            }
            reply.push('\n');
        }
    }

    async fn say(&mut self, line: &str) -> String {
        self.0.write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
        self.hear().await
    }

    /// Sends one message; returns the first refusal, else the reply to the dot.
    async fn send(&mut self, recipient: &str) -> String {
        let mut reply = String::new();
        let rcpt = format!("RCPT TO:<{recipient}>");
        for command in ["MAIL FROM:<bounce@acme.test>", &rcpt, "DATA", "Subject: s\r\n\r\nt\r\n."] {
            reply = self.say(command).await;
            if reply.starts_with(['4', '5']) {
                if !reply.starts_with("421") {
                    self.say("RSET").await;
                }
                break;
            }
        }
        reply
    }
}

fn builder(style: SiteStyle) -> MailboxProviderBuilder {
    let policy = SitePolicy { first_day: 8, connections: 2, messages_per_connection: 3, ..style.policy() };
    MailboxProvider::builder("site.test", style).policy(policy)
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_millis(0)))
}

#[tokio::test]
async fn an_hour_takes_its_part_of_the_day_and_the_next_one_takes_more() {
    for (style, words) in [
        (SiteStyle::Gmail, "421-4.7.28 [127.0.0.1] Our system"),
        (SiteStyle::Microsoft, "451 4.7.650 The mail server [127.0.0.1]"),
        (SiteStyle::Yahoo, "421 4.7.0 [TSS04] Messages from 127.0.0.1"),
        (SiteStyle::Icloud, "421 4.7.1 Messages to ann2@one.test"),
        (SiteStyle::Postfix, "450 4.7.1 Error: too much mail from 127.0.0.1"),
    ] {
        let clock = clock();
        let site = builder(style).start(Arc::clone(&clock) as _).await;
        let mut client = Client::ready(&site).await;
        for number in 0..2 {
            assert_eq!(client.send(&format!("ann{number}@one.test")).await, "250 2.0.0 taken", "{style:?}");
        }
        let reply = client.send("ann2@one.test").await;
        assert!(reply.starts_with(words), "{reply}");
        drop(client);
        clock.advance(HOUR);
        let mut client = Client::ready(&site).await;
        assert_eq!(client.send("ann2@one.test").await, "250 2.0.0 taken", "{style:?}");
        let to_ann2: Vec<_> = site.ledger().transactions_to("ann2@one.test").into_iter().collect();
        let answers: Vec<_> = to_ann2.iter().map(|one| one.answered).collect();
        assert_eq!(answers, [Answered::Deferred, Answered::Accepted], "{style:?}");
        assert_eq!((&*to_ann2[0].ehlo, to_ann2[0].source, to_ann2[0].is_tls), ("mx.acme.test", HERE, false));
        assert_eq!(to_ann2[1].at, Timestamp::from_millis(0) + HOUR);
        assert_eq!((site.ledger().day(0).accepted, site.ledger().day(0).deferred), (3, 1));
    }
}

#[tokio::test]
async fn too_many_connections_are_sent_away_until_one_has_ended() {
    let site = builder(SiteStyle::Microsoft).start(clock()).await;
    let mut first = Client::ready(&site).await;
    let _second = Client::ready(&site).await;
    let (mut third, greeting) = Client::connect(&site).await;
    assert!(greeting.starts_with("421 RP-003 "), "{greeting}");
    assert_eq!(third.hear().await, "");
    assert!(first.say("QUIT").await.starts_with("221 "));
    let mut fourth = Client::ready(&site).await;
    assert_eq!(fourth.send("ann@one.test").await, "250 2.0.0 taken");
    assert_eq!((site.ledger().most_connections(HERE), site.ledger().total().too_many), (3, 1));
}

#[tokio::test]
async fn a_connection_carries_so_many_messages() {
    let policy = SitePolicy { messages_per_connection: 2, ..SitePolicy::default() };
    let site = builder(SiteStyle::Yahoo).policy(policy).start(clock()).await;
    let mut client = Client::ready(&site).await;
    for recipient in ["ann@one.test", "bob@one.test"] {
        assert_eq!(client.send(recipient).await, "250 2.0.0 taken");
    }
    assert!(client.send("cat@one.test").await.starts_with("421 Max message per connection reached"));
    assert_eq!(client.hear().await, "");
    assert_eq!(site.ledger().most_messages_per_connection(HERE), 3);
}

#[tokio::test]
async fn addresses_are_judged_each_for_itself() {
    let site = builder(SiteStyle::Microsoft).start(clock()).await;
    for last in [1, 2] {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((IpAddr::from([127, 0, 0, last]), 0).into()).unwrap();
        let mut client = Client(BufReader::new(socket.connect(site.address()).await.unwrap()));
        client.hear().await;
        let mut replies = Vec::new();
        for number in 0..3 {
            replies.push(client.send(&format!("ann{number}@one.test")).await[..3].to_owned());
        }
        assert_eq!(replies, ["250", "250", "451"]);
    }
    assert_eq!(site.ledger().sources(), [IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2])]);
}

#[tokio::test]
async fn a_blocked_address_is_told_so_where_its_site_does() {
    for (style, words, at_once) in [
        (SiteStyle::Gmail, "550-5.7.28 [127.0.0.1]", false),
        (SiteStyle::Microsoft, "550 5.7.1 Unfortunately, messages from [127.0.0.1]", false),
        (SiteStyle::Yahoo, "553 5.7.1 [BL21]", true),
        (SiteStyle::Icloud, "550 5.7.1 [CS01]", false),
        (SiteStyle::Postfix, "554 5.7.1 Service unavailable; Client host [127.0.0.1] blocked", true),
    ] {
        let clock = clock();
        let site = builder(style).start(Arc::clone(&clock) as _).await;
        site.block(HERE);
        let (mut client, greeting) = Client::connect(&site).await;
        assert_eq!(greeting.starts_with(words), at_once, "{greeting}");
        if !at_once {
            let reply = client.send("ann@one.test").await;
            assert!(reply.starts_with(words), "{reply}");
        }
        assert_eq!(site.ledger().first_blocked_day(HERE), Some(0), "{style:?}");
        clock.advance(15 * 24 * HOUR);
        assert!(!site.reputation(HERE).unwrap().is_blocked());
        assert_eq!(Client::ready(&site).await.send("ann@one.test").await, "250 2.0.0 taken", "{style:?}");
    }
}

#[tokio::test]
async fn mailboxes_are_unknown_or_complain() {
    let mailboxes = |address: &str| match address {
        "nobody@one.test" => Mailbox::Unknown,
        "angry@one.test" => Mailbox::Complaining,
        _ => Mailbox::Content,
    };
    for (style, is_reported) in [(SiteStyle::Yahoo, true), (SiteStyle::Gmail, false)] {
        let policy = SitePolicy::default();
        let site = builder(style).policy(policy).mailboxes(mailboxes).start(clock()).await;
        let mut client = Client::ready(&site).await;
        assert!(client.send("nobody@one.test").await.starts_with('5'));
        for recipient in ["angry@one.test", "ann@one.test"] {
            assert_eq!(client.send(recipient).await, "250 2.0.0 taken");
        }
        let day = site.ledger().day(0);
        assert_eq!((day.unknown, day.complaints, day.accepted), (1, 1, 2));
        let complaints = site.take_complaints();
        let reported: Vec<_> = complaints.iter().map(|one| (one.recipient.as_str(), one.from.as_str())).collect();
        let expected = if is_reported { vec![("angry@one.test", "bounce@acme.test")] } else { Vec::new() };
        assert_eq!(reported, expected);
        assert!(complaints.iter().all(|one| one.header == "Subject: s"));
        assert_eq!(site.take_complaints(), []);
    }
}

#[tokio::test]
async fn a_complaint_is_posted_and_a_refusal_is_told() {
    let complaint =
        Complaint::new(Timestamp::from_millis(0), HERE, "b@acme.test", "ann@one.test", b"S: s", "site.test");
    for (reply, is_taken) in [("250 2.0.0 noted", true), ("550 5.1.1 nobody here", false)] {
        let returned = ScriptedSmtpServer::start().await;
        returned.answer("b@acme.test", reply);
        let posted = complaint.post(returned.address()).await;
        assert_eq!(posted.is_ok(), is_taken, "{posted:?}");
        if let Err(error) = posted {
            assert!(error.to_string().contains("5.1.1 nobody here"), "{error}");
        } else {
            let mail = returned.messages().remove(0);
            assert_eq!((mail.from.as_str(), mail.recipients), ("", vec!["b@acme.test".to_owned()]));
            assert_eq!(String::from_utf8(mail.content).unwrap(), complaint.to_arf());
        }
    }
    // Nobody listens here any more.
    let closed = TcpListener::bind((HERE, 0)).await.unwrap().local_addr().unwrap();
    assert!(complaint.post(closed).await.is_err());
}

#[tokio::test]
async fn a_site_may_have_several_exchangers() {
    let site = builder(SiteStyle::Gmail).exchangers(2).start_tls().start(clock()).await;
    assert_eq!(site.exchangers(), ["mx1.site.test", "mx2.site.test"]);
    let (mut client, _) = Client::connect(&site).await;
    assert!(client.say("EHLO mx.acme.test").await.contains("STARTTLS"));
    assert!(site.root().is_some());
}
