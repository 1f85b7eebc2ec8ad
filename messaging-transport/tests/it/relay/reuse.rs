use std::sync::Arc;

use messaging_core::ids::{Id, WorkspaceId};
use messaging_testing::{Action, ScriptedSmtpServer, Stage};

use super::*;

#[tokio::test]
async fn messages_share_a_connection() {
    for (tls, builder) in [
        ("none", ScriptedSmtpServer::builder()),
        ("starttls", ScriptedSmtpServer::builder().start_tls()),
        ("tls", ScriptedSmtpServer::builder().implicit_tls()),
    ] {
        let server = builder.start().await;
        let relay = relay(&server);
        for _ in 0..3 {
            assert_eq!(word(&send_with(&relay, &settings(&server, tls), &["a@b.co"], email()).await), "accepted");
        }
        assert_eq!((server.connections(), server.messages().len()), (1, 3));
    }
}

#[tokio::test]
async fn a_kept_connection_that_died_is_replaced_once() {
    for action in [Action::Close, Action::ReplyAndClose("421 4.4.2 idle".into()), Action::Raw(b"?\r\n".to_vec())] {
        let server = ScriptedSmtpServer::start().await;
        let relay = relay(&server);
        send(&relay, &server, &["a@b.co"]).await.unwrap();
        server.next(Stage::Mail, action.clone());
        assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), "accepted", "{action:?}");
        assert_eq!((server.connections(), server.messages().len()), (2, 2));

        server.next(Stage::Mail, action.clone());
        server.next(Stage::Mail, Action::Close);
        assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), "unreachable", "{action:?}");
        assert_eq!(server.connections(), 3);
    }
}

#[tokio::test]
async fn nothing_is_sent_twice() {
    let server = ScriptedSmtpServer::start().await;
    let relay = relay(&server);
    send(&relay, &server, &["a@b.co"]).await.unwrap();
    server.next(Stage::Dot, Action::LoseReply);
    assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), "ambiguous");
    assert_eq!((server.connections(), server.messages().len()), (1, 2));
}

#[tokio::test]
async fn a_connection_is_closed_after_so_many_messages() {
    let server = ScriptedSmtpServer::start().await;
    let relay = builder(&server).max_messages(2).build();
    for _ in 0..5 {
        send(&relay, &server, &["a@b.co"]).await.unwrap();
    }
    assert_eq!(server.connections(), 3);
    assert_eq!(server.messages().iter().map(|message| message.connection).collect::<Vec<_>>(), [1, 1, 2, 2, 3]);
}

#[tokio::test]
async fn an_idle_connection_is_not_kept_for_ever() {
    let server = ScriptedSmtpServer::start().await;
    for relay in [builder(&server).idle_time(Duration::ZERO).build(), builder(&server).max_idle(0).build()] {
        let before = server.connections();
        send(&relay, &server, &["a@b.co"]).await.unwrap();
        send(&relay, &server, &["a@b.co"]).await.unwrap();
        assert_eq!(server.connections() - before, 2);
    }
    let relay = relay(&server);
    let before = server.connections();
    send(&relay, &server, &["a@b.co"]).await.unwrap();
    relay.close().await;
    send(&relay, &server, &["a@b.co"]).await.unwrap();
    assert_eq!(server.connections() - before, 2);
}

#[tokio::test]
async fn workspaces_and_logins_do_not_share() {
    let server = ScriptedSmtpServer::builder().login(&["PLAIN"], "user", "secret").start().await;
    let relay = relay(&server);
    let login = with_login(&server, "none", "user", "secret");
    let mine = message(&login, &["a@b.co"], email());
    let mut theirs = mine.clone();
    theirs.workspace_id = WorkspaceId::from_bytes([9; 16]);
    for message in [&mine, &theirs, &mine, &theirs] {
        relay.send(message).await.unwrap();
    }
    assert_eq!(server.connections(), 2);
    let wrong = with_login(&server, "none", "user", "guess");
    assert_eq!(word(&send_with(&relay, &wrong, &["a@b.co"], email()).await), "misconfigured");
}

#[tokio::test]
async fn a_reply_too_many_does_not_answer_the_next_message() {
    let server = ScriptedSmtpServer::start().await;
    let relay = relay(&server);
    server.next(Stage::Dot, Action::reply("250 taken\n250 and another"));
    assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), "accepted");
    server.always(Stage::Mail, Action::reply("550 5.7.1 no"));
    assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), "provider");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn only_so_many_messages_are_on_their_way() {
    let server = ScriptedSmtpServer::start().await;
    let timeouts = Timeouts { queue: IMPATIENCE, ..Timeouts::all(PATIENCE) };
    let relay = Arc::new(builder(&server).timeouts(timeouts).max_concurrent(2).build());
    let gates = [server.gate(Stage::Dot), server.gate(Stage::Dot)];
    let first: Vec<_> = gates
        .iter()
        .map(|_| {
            let (relay, message) = (Arc::clone(&relay), message(&settings(&server, "none"), &["a@b.co"], email()));
            tokio::spawn(async move { relay.send(&message).await })
        })
        .collect();
    for gate in &gates {
        gate.reached().await;
    }
    assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), "unreachable");
    assert_eq!(server.connections(), 2);
    gates.iter().for_each(messaging_testing::Gate::open);
    for task in first {
        task.await.unwrap().unwrap();
    }
    assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), "accepted");
    assert_eq!(server.received(3).await.len(), 3);
    assert_eq!(server.connections(), 2);
}
