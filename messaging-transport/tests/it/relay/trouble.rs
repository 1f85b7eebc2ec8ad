use messaging_testing::{Action, Gate, ScriptedSmtpServer, Stage};
use tokio::net::TcpListener;

use super::*;

/// Does this at the stage, with and without PIPELINING, and compares the kind of result.
async fn check(stage: Stage, action: Action, email: Email, timeouts: Timeouts, expected: &str) {
    for is_pipelined in [true, false] {
        let mut builder = ScriptedSmtpServer::builder().start_tls().login(&["PLAIN"], "user", "secret");
        if !is_pipelined {
            builder = builder.without_pipelining();
        }
        let server = builder.start().await;
        server.next(stage, action.clone());
        let relay = super::builder(&server).timeouts(timeouts).build();
        let login = with_login(&server, "starttls", "user", "secret");
        let result = send_with(&relay, &login, &["a@b.co", "c@d.co"], email.clone()).await;
        assert_eq!(word(&result), expected, "{stage:?} {is_pipelined} {result:?}");
        assert_eq!(server.connections(), 1, "{stage:?}");
    }
}

const BEFORE_CONTENT: [Stage; 7] =
    [Stage::Greeting, Stage::Ehlo, Stage::StartTls, Stage::Auth, Stage::Mail, Stage::Rcpt, Stage::Data];

const PATIENT: Timeouts = Timeouts::all(PATIENCE);

#[tokio::test]
async fn a_peer_that_closes_cannot_have_the_message_before_its_end() {
    for stage in BEFORE_CONTENT {
        check(stage, Action::Close, email(), PATIENT, "unreachable").await;
    }
    check(Stage::Content, Action::Close, large_email(), PATIENT, "unreachable").await;
}

#[tokio::test]
async fn a_lost_reply_to_the_content_is_ambiguous() {
    check(Stage::Dot, Action::Close, email(), PATIENT, "ambiguous").await;
    check(Stage::Dot, Action::LoseReply, email(), PATIENT, "ambiguous").await;
    let timeouts = Timeouts { dot: IMPATIENCE, ..PATIENT };
    check(Stage::Dot, Action::Raw(b"250-half of a reply\r\n250".to_vec()), email(), timeouts, "ambiguous").await;
}

#[tokio::test]
async fn a_silent_peer_is_left() {
    for stage in BEFORE_CONTENT {
        // The steps ahead of the silence are not to fail because this machine is busy.
        let timeouts = match stage {
            Stage::Greeting => Timeouts { greeting: IMPATIENCE, ..PATIENT },
            Stage::Mail => Timeouts { mail: IMPATIENCE, ..PATIENT },
            Stage::Rcpt => Timeouts { rcpt: IMPATIENCE, ..PATIENT },
            Stage::Data => Timeouts { data: IMPATIENCE, ..PATIENT },
            _ => Timeouts { command: IMPATIENCE, ..PATIENT },
        };
        check(stage, Action::Wait(Gate::default()), email(), timeouts, "unreachable").await;
    }
    let timeouts = Timeouts { dot: IMPATIENCE, ..PATIENT };
    check(Stage::Dot, Action::Wait(Gate::default()), email(), timeouts, "ambiguous").await;
    let timeouts = Timeouts { block: IMPATIENCE, dot: IMPATIENCE, ..PATIENT };
    check(Stage::Content, Action::Wait(Gate::default()), large_email(), timeouts, "unreachable").await;
}

#[tokio::test]
async fn a_silent_handshake_is_left() {
    // A peer that takes the connection and says nothing at all.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let settings = json!({"host": "127.0.0.1", "port": listener.local_addr().unwrap().port(), "tls": "tls"});
    let relay = SmtpRelay::builder().timeouts(Timeouts::all(IMPATIENCE)).allow_private(true);
    let stranger = ScriptedSmtpServer::builder().implicit_tls().start().await;
    let relay = relay.extra_root(stranger.root().unwrap()).build();
    assert_eq!(word(&send_with(&relay, &settings, &["a@b.co"], email()).await), "unreachable");
}

#[tokio::test]
async fn closing_down_is_a_deferral_at_every_stage() {
    for stage in BEFORE_CONTENT.into_iter().chain([Stage::Dot]) {
        let closing = || "421 4.3.2 shutting down".to_owned();
        // Until it has heard of a recipient, what it says is about us.
        let is_late = matches!(stage, Stage::Rcpt | Stage::Data | Stage::Dot);
        let expected = if is_late { "deferred deferred" } else { "provider provider" };
        check(stage, Action::ReplyAndClose(closing()), email(), PATIENT, expected).await;
        check(stage, Action::Reply(closing()), email(), PATIENT, expected).await;
    }
    let closing = Action::ReplyAndClose("421 4.3.2 shutting down".to_owned());
    let server = ScriptedSmtpServer::start().await;
    server.answer("no@b.co", "550 5.1.1 no");
    server.next(Stage::Rcpt, Action::reply("250 yes"));
    server.next(Stage::Rcpt, Action::reply("550 5.1.1 no"));
    server.next(Stage::Rcpt, closing);
    let outcomes = send(&relay(&server), &server, &["a@b.co", "c@d.co", "e@f.co", "g@h.co"]).await.unwrap();
    assert_eq!(word(&Ok(outcomes.clone())), "deferred refused deferred deferred");
    assert_outcome(&outcomes[0], "deferred", 421, Some("4.3.2"), "4.3.2 shutting down");
}

#[tokio::test]
async fn a_refusal_at_the_door() {
    let refusal = || Action::ReplyAndClose("554 5.7.1 no service".into());
    check(Stage::Greeting, refusal(), email(), PATIENT, "provider provider").await;
    check(Stage::Greeting, Action::reply("450 4.7.1 later"), email(), PATIENT, "provider provider").await;
    check(Stage::Ehlo, Action::reply("451 4.7.1 later"), email(), PATIENT, "provider provider").await;
    check(Stage::Ehlo, Action::reply("354 what"), email(), PATIENT, "unreachable").await;
    let server = ScriptedSmtpServer::builder().without_ehlo().start().await;
    server.next(Stage::Helo, Action::reply("550 5.7.1 not you"));
    let outcomes = send(&relay(&server), &server, &["a@b.co"]).await.unwrap();
    assert_outcome(&outcomes[0], "provider", 550, Some("5.7.1"), "5.7.1 not you");
}

#[tokio::test]
async fn a_refusal_within_the_content_is_heard() {
    let reply = Action::ReplyAndClose("552 5.3.4 too large".into());
    // The peer closes with octets unread, which may destroy its reply on the way: both are right.
    let server = ScriptedSmtpServer::start().await;
    server.next(Stage::Content, reply);
    let result = send_with(&relay(&server), &settings(&server, "none"), &["a@b.co"], large_email()).await;
    assert!(["refused", "unreachable"].contains(&word(&result).as_str()), "{result:?}");
}

#[tokio::test]
async fn nonsense_ends_the_connection() {
    let long = format!("250 {}\r\n", "x".repeat(9000));
    for stage in BEFORE_CONTENT {
        check(stage, Action::Raw(long.clone().into()), email(), PATIENT, "unreachable").await;
    }
    for nonsense in [&b"\r\n"[..], b"hello\r\n", b"99 x\r\n", b"250-a\r\n550 b\r\n", &[b'2'; 9000], &[0xff; 9000]] {
        check(Stage::Mail, Action::Raw(nonsense.to_vec()), email(), PATIENT, "unreachable").await;
        check(Stage::Dot, Action::Raw(nonsense.to_vec()), email(), PATIENT, "ambiguous").await;
    }
}

#[tokio::test]
async fn an_endless_reply_ends_the_connection() {
    for stage in BEFORE_CONTENT {
        check(stage, Action::Flood("250-and".into()), email(), PATIENT, "unreachable").await;
    }
    check(Stage::Dot, Action::Flood("250-and".into()), email(), PATIENT, "ambiguous").await;
}

#[tokio::test]
async fn replies_out_of_turn_are_not_believed() {
    check(Stage::Greeting, Action::reply("354 go"), email(), PATIENT, "unreachable").await;
    check(Stage::Mail, Action::reply("354 go"), email(), PATIENT, "unreachable").await;
    check(Stage::Rcpt, Action::reply("354 go"), email(), PATIENT, "unreachable").await;
    check(Stage::Data, Action::Raw(b"250 go\r\n".to_vec()), email(), PATIENT, "unreachable").await;
    check(Stage::Dot, Action::reply("354 more"), email(), PATIENT, "ambiguous").await;
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_is_unreachable() {
    let port = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap().port();
    let relay = SmtpRelay::builder().allow_private(true).build();
    let settings = json!({"host": "127.0.0.1", "port": port, "tls": "none"});
    assert_eq!(word(&send_with(&relay, &settings, &["a@b.co"], email()).await), "unreachable");
}
