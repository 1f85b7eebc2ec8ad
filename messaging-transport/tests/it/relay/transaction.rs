use messaging_core::ports::transport::SmsContent;
use messaging_testing::{Action, ScriptedSmtpServer, ScriptedSmtpServerBuilder, Stage};
use messaging_transport::mime;

use super::*;
use crate::support::address;

/// A relay with PIPELINING and one without.
fn both() -> [ScriptedSmtpServerBuilder; 2] {
    [ScriptedSmtpServer::builder(), ScriptedSmtpServer::builder().without_pipelining()]
}

#[tokio::test]
async fn commands_are_pipelined_where_that_is_offered() {
    for (builder, is_offered) in both().into_iter().zip([true, false]) {
        let server = builder.start().await;
        let result = send(&relay(&server), &server, &["a@b.co", "c@d.co", "e@f.co"]).await;
        assert_eq!(word(&result), "accepted accepted accepted");
        // One write brings MAIL, three RCPT and DATA; it may be read in pieces, but hardly one by one.
        assert_eq!(server.pipelined() > 0, is_offered);
    }
}

#[tokio::test]
async fn each_recipient_has_an_outcome() {
    for builder in both() {
        let server = builder.start().await;
        server.answer("no@b.co", "550 5.1.1 no such user");
        server.answer("later@b.co", "452-4.2.2 full\n452 4.2.2 really");
        server.answer("closed@b.co", "550 closed");
        let recipients = ["yes@b.co", "no@b.co", "later@b.co", "closed@b.co", "too@b.co"];
        let outcomes = send(&relay(&server), &server, &recipients).await.unwrap();
        assert_outcome(&outcomes[0], "accepted", 250, Some("2.0.0"), "2.0.0 taken");
        assert_outcome(&outcomes[1], "refused", 550, Some("5.1.1"), "5.1.1 no such user");
        assert_outcome(&outcomes[2], "deferred", 452, Some("4.2.2"), "4.2.2 full 4.2.2 really");
        assert_outcome(&outcomes[3], "refused", 550, None, "closed");
        assert_outcome(&outcomes[4], "accepted", 250, Some("2.0.0"), "2.0.0 taken");
        assert_eq!(server.messages()[0].recipients, ["yes@b.co", "too@b.co"]);
    }
}

#[tokio::test]
async fn a_refused_message_is_refused_for_all_who_are_open() {
    for stage in [Stage::Mail, Stage::Data, Stage::Dot] {
        for (reply, kind, code) in [("554 5.7.1 spam", "refused", 554), ("451 4.3.0 later", "deferred", 451)] {
            for builder in both() {
                let server = builder.start().await;
                let relay = relay(&server);
                server.answer("no@b.co", "550 5.1.1 no");
                server.next(stage, Action::reply(reply));
                let outcomes = send(&relay, &server, &["a@b.co", "no@b.co"]).await.unwrap();
                // What is said to MAIL is about us.
                let kind = if stage == Stage::Mail { "provider" } else { kind };
                assert_outcome(&outcomes[0], kind, code, Some(&reply[4..9]), &reply[4..]);
                let expected = if stage == Stage::Mail { code } else { 550 };
                assert_eq!(summary(&outcomes[1]).1.code, Some(expected), "{stage:?}");
                assert!(server.messages().is_empty());
                // The connection is in order for the next message.
                assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), "accepted", "{stage:?} {reply}");
                assert_eq!(server.connections(), 1, "{stage:?} {reply}");
            }
        }
    }
}

#[tokio::test]
async fn with_every_recipient_refused_there_is_no_content() {
    for builder in both() {
        let server = builder.start().await;
        let relay = relay(&server);
        server.always(Stage::Rcpt, Action::reply("550 5.1.1 no"));
        assert_eq!(word(&send(&relay, &server, &["a@b.co", "c@d.co"]).await), "refused refused");
        assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), "refused");
        assert_eq!(server.connections(), 1);
        assert!(server.messages().is_empty());
        assert!(server.commands().contains(&"RSET".to_owned()));
    }
}

#[tokio::test]
async fn a_relay_that_wants_content_for_nobody_gets_a_lone_dot() {
    let server = ScriptedSmtpServer::start().await;
    let relay = relay(&server);
    server.answer("no@b.co", "550 5.1.1 no");
    server.next(Stage::Data, Action::reply("354 go on"));
    assert_eq!(word(&send(&relay, &server, &["no@b.co"]).await), "refused");
    assert!(server.messages().is_empty());
    assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), "accepted");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn leading_dots_survive() {
    let server = ScriptedSmtpServer::start().await;
    let mut email = email();
    email.text = Some(".\n..\n.a\r\r\n.\r\n\n.".into());
    let expected = mime::build(&email).unwrap();
    send_with(&relay(&server), &settings(&server, "none"), &["a@b.co"], email).await.unwrap();
    assert_eq!(server.messages()[0].content, expected);
    assert_eq!(server.messages().len(), 1);
}

#[tokio::test]
async fn a_message_above_the_relays_size_is_not_offered() {
    let server = ScriptedSmtpServer::builder().size(1000).start().await;
    let relay = relay(&server);
    let mut email = email();
    email.text = Some("x".repeat(600) + "\r\n");
    assert_eq!(word(&send_with(&relay, &settings(&server, "none"), &["a@b.co"], email.clone()).await), "accepted");
    email.text = Some(("x".repeat(600) + "\r\n").repeat(2));
    let outcomes = send_with(&relay, &settings(&server, "none"), &["a@b.co", "c@d.co"], email).await.unwrap();
    for outcome in &outcomes {
        let text = "5.3.4 not sent, decided here and not by the peer: the message is larger than the peer accepts";
        assert_outcome(outcome, "refused", 552, Some("5.3.4"), text);
    }
    assert_eq!(server.commands().iter().filter(|command| command.starts_with("MAIL")).count(), 1);
}

#[tokio::test]
async fn addresses_outside_ascii_need_smtputf8() {
    let recipients = ["a@b.co", "ü@b.co"];
    let server = ScriptedSmtpServer::start().await;
    assert_eq!(word(&send(&relay(&server), &server, &recipients).await), "accepted accepted");
    assert_eq!(server.messages()[0].recipients, recipients);
    assert_eq!(server.messages()[0].parameters[1], "SMTPUTF8");

    let server = ScriptedSmtpServer::builder().without_utf8().start().await;
    let relay = relay(&server);
    let outcomes = send(&relay, &server, &recipients).await.unwrap();
    assert_eq!(word(&Ok(outcomes.clone())), "accepted refused");
    assert_eq!(summary(&outcomes[1]).1.enhanced.as_deref(), Some("5.6.7"));
    assert_eq!(server.messages()[0].recipients, ["a@b.co"]);
    assert_eq!(word(&send(&relay, &server, &["ü@b.co"]).await), "refused");
    let mut email = email();
    email.cc = vec![address("ü@b.co")];
    let result = send_with(&relay, &settings(&server, "none"), &["a@b.co"], email).await;
    assert_eq!(word(&result), "refused");
    assert_eq!(server.messages().len(), 1);
}

#[tokio::test]
async fn what_is_not_an_email_is_refused() {
    let server = ScriptedSmtpServer::start().await;
    let relay = relay(&server);
    let mut message = message(&settings(&server, "none"), &["a@b.co"], email());
    message.content = Content::Sms(SmsContent { text: "x".into() });
    assert!(matches!(relay.send(&message).await, Err(TransportError::Content(_))));
    for bad in ["a@b.co>\r\nRCPT TO:<c@d.co", "a", "", "a b@c.de"] {
        assert_eq!(word(&send(&relay, &server, &["a@b.co", bad]).await), "content");
    }
    let mut email = email();
    email.headers.push(("Bcc".into(), "x@y.co".into()));
    assert_eq!(word(&send_with(&relay, &settings(&server, "none"), &["a@b.co"], email).await), "content");
    assert_eq!(word(&send(&relay, &server, &[]).await), "");
    assert_eq!(server.connections(), 0);
}
