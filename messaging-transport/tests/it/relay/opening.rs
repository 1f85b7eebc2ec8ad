use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use messaging_core::domain::delivery::attempt::AttemptOutcome;
use messaging_testing::{Action, ScriptedSmtpServer, Stage};
use messaging_transport::mime;

use super::*;

#[tokio::test]
async fn a_relay_in_clear_gets_nothing_of_who_asks_for_tls() {
    let server = ScriptedSmtpServer::start().await;
    let relay = relay(&server);
    let mut outgoing = message(&settings(&server, "none"), &["a@b.co", "c@d.co"], email());
    outgoing.options.require_tls = true;
    let sent = relay.send(&outgoing).await.unwrap();
    let classes: Vec<_> = sent.outcomes.iter().map(|outcome| outcome.class().unwrap()).collect();
    assert_eq!(classes, [OutcomeClass::TlsRequired; 2]);
    assert_eq!((server.connections(), sent.dialogs[0].outcome), (0, AttemptOutcome::Deferred));
}

#[tokio::test]
async fn a_message_arrives_as_built() {
    let server = ScriptedSmtpServer::start().await;
    let outcomes = send(&relay(&server), &server, &["ann@example.com", "b@exämple.de"]).await.unwrap();
    for outcome in &outcomes {
        assert_outcome(outcome, "accepted", 250, Some("2.0.0"), "2.0.0 taken");
    }
    let [received] = &server.messages()[..] else { panic!() };
    assert_eq!(received.from, "bounce@mail.acme.com");
    assert_eq!(received.recipients, ["ann@example.com", "b@xn--exmple-cua.de"]);
    assert_eq!(received.content, mime::build(&email()).unwrap());
    assert_eq!(received.parameters, [format!("SIZE={}", received.content.len())]);
    assert!(!received.is_tls && received.username.is_none());
    assert_eq!(server.commands()[0], "EHLO client.test");
}

#[tokio::test]
async fn start_tls_and_implicit_tls_protect_the_message() {
    for (tls, builder) in
        [("starttls", ScriptedSmtpServer::builder().start_tls()), ("tls", ScriptedSmtpServer::builder().implicit_tls())]
    {
        let server = builder.start().await;
        let relay = relay(&server);
        assert_eq!(word(&send_with(&relay, &settings(&server, tls), &["a@b.co"], email()).await), "accepted", "{tls}");
        let mut by_name = settings(&server, tls);
        by_name["host"] = "localhost".into();
        assert_eq!(word(&send_with(&relay, &by_name, &["a@b.co"], email()).await), "accepted", "{tls}");
        assert!(server.messages().iter().all(|message| message.is_tls));
        assert_eq!(server.messages().len(), 2);
    }
}

#[tokio::test]
async fn a_large_message_arrives_whole_under_tls() {
    let server = ScriptedSmtpServer::builder().start_tls().start().await;
    let mut email = email();
    email.text = Some(".\r\n..a\r\nb\r\n".repeat(100_000));
    let expected = mime::build(&email).unwrap();
    let result = send_with(&relay(&server), &settings(&server, "starttls"), &["a@b.co"], email).await;
    assert_eq!(word(&result), "accepted");
    assert!(server.messages()[0].content == expected);
}

#[tokio::test]
async fn a_certificate_that_does_not_fit_is_refused() {
    for (tls, builder) in
        [("starttls", ScriptedSmtpServer::builder().start_tls()), ("tls", ScriptedSmtpServer::builder().implicit_tls())]
    {
        let server = builder.named(&["other.example"]).start().await;
        let login = with_login(&server, tls, "user", "secret");
        assert_eq!(word(&send_with(&relay(&server), &login, &["a@b.co"], email()).await), "misconfigured");

        let stranger = ScriptedSmtpServer::builder().implicit_tls().start().await;
        let trusts_others = relay(&stranger);
        assert_eq!(word(&send_with(&trusts_others, &login, &["a@b.co"], email()).await), "misconfigured");
        assert!(!server.commands().iter().any(|command| command.starts_with("AUTH") || command.starts_with("MAIL")));
    }
}

#[tokio::test]
async fn without_start_tls_nothing_is_sent() {
    let check = async |script: Option<Action>, offers: bool, expected: &str| {
        let mut builder = ScriptedSmtpServer::builder().login(&["PLAIN"], "user", "secret");
        if offers {
            builder = builder.start_tls();
        }
        let server = builder.start().await;
        if let Some(action) = script.clone() {
            server.next(Stage::StartTls, action);
        }
        let login = with_login(&server, "starttls", "user", "secret");
        let result = send_with(&relay(&server), &login, &["a@b.co"], email()).await;
        assert_eq!(word(&result), expected, "{script:?}");
        assert!(!server.commands().iter().any(|command| command.starts_with("AUTH") || command.starts_with("MAIL")));
    };
    check(None, false, "misconfigured").await;
    check(Some(Action::reply("502 5.5.1 no")), true, "misconfigured").await;
    check(Some(Action::reply("454 4.7.0 not now")), true, "unreachable").await;
    check(Some(Action::reply("421 4.3.2 closing")), true, "provider").await;
    check(Some(Action::ReplyAndClose("220 go".into())), true, "unreachable").await;
    check(Some(Action::Raw(b"220 go\r\n220 not a handshake\r\n".to_vec())), true, "unreachable").await;
}

#[tokio::test]
async fn what_was_sent_ahead_of_the_handshake_is_not_believed() {
    let server = ScriptedSmtpServer::builder().start_tls().start().await;
    let injected = b"220 go\r\n250-scripted.test\r\n250 AUTH PLAIN\r\n";
    server.next(Stage::StartTls, Action::Raw(injected.to_vec()));
    let result = send_with(&relay(&server), &settings(&server, "starttls"), &["a@b.co"], email()).await;
    assert_eq!(word(&result), "unreachable");
    let Ok([Outcome::Answered(answer)]) = result.as_deref() else { panic!("{result:?}") };
    let text = &answer.response.text;
    assert!(text.contains("ahead of the TLS handshake"), "{text}");
    assert!(server.messages().is_empty());
}

#[tokio::test]
async fn logs_in_as_the_relay_likes_it() {
    let long = "p".repeat(600);
    for (mechanisms, password, expected) in [
        (&["LOGIN", "PLAIN"][..], "secret", "AUTH PLAIN AHVzZXIAc2VjcmV0"),
        (&["PLAIN"], "sécret", "AUTH PLAIN AHVzZXIAc8OpY3JldA=="),
        (&["PLAIN"], &long, "AUTH PLAIN"),
        (&["CRAM-MD5", "LOGIN"], "secret", "AUTH LOGIN"),
    ] {
        let server = ScriptedSmtpServer::builder().start_tls().login(mechanisms, "user", password).start().await;
        let login = with_login(&server, "starttls", "user", password);
        assert_eq!(word(&send_with(&relay(&server), &login, &["a@b.co"], email()).await), "accepted");
        assert_eq!(server.messages()[0].username.as_deref(), Some("user"));
        assert!(server.commands().iter().any(|command| command == expected), "{expected}");
    }
}

#[tokio::test]
async fn plain_text_credentials_have_to_be_asked_for() {
    let server = ScriptedSmtpServer::builder().login(&["PLAIN"], "user", "secret").start().await;
    let mut login = with_login(&server, "none", "user", "secret");
    assert_eq!(word(&send_with(&relay(&server), &login, &["a@b.co"], email()).await), "accepted");
    login.as_object_mut().unwrap().remove("tls");
    assert_eq!(word(&send_with(&relay(&server), &login, &["a@b.co"], email()).await), "misconfigured");
}

#[tokio::test]
async fn a_login_that_fails_is_not_an_answer_about_recipients() {
    let check = async |mechanisms: &[&str], password: &str, script: Option<&str>, expected: &str| {
        let server = ScriptedSmtpServer::builder().login(mechanisms, "user", "secret").start().await;
        if let Some(reply) = script {
            server.next(Stage::Auth, Action::reply(reply));
        }
        let login = with_login(&server, "none", "user", password);
        let result = send_with(&relay(&server), &login, &["a@b.co"], email()).await;
        assert_eq!(word(&result), expected, "{script:?}");
        if let Err(error) = result {
            assert!(!error.to_string().contains(password), "{error}");
        }
        assert!(!server.commands().iter().any(|command| command.starts_with("MAIL")));
    };
    check(&["PLAIN"], "wrong", None, "misconfigured").await;
    check(&["LOGIN"], "wrong", None, "misconfigured").await;
    check(&["CRAM-MD5"], "secret", None, "misconfigured").await;
    check(&[], "secret", None, "misconfigured").await;
    check(&["PLAIN"], "secret", Some("454 4.7.0 later"), "unreachable").await;
    check(&["PLAIN"], "secret", Some("421 4.7.0 later"), "provider").await;
    check(&["PLAIN"], "secret", Some("334 more"), "misconfigured").await;
}

#[tokio::test]
async fn a_relay_that_knows_helo_only_is_fine() {
    let server = ScriptedSmtpServer::builder().without_ehlo().start().await;
    assert_eq!(word(&send(&relay(&server), &server, &["a@b.co"]).await), "accepted");
    assert!(server.commands().contains(&"HELO client.test".to_owned()));
    assert!(server.messages()[0].parameters.is_empty());
    assert_eq!(server.pipelined(), 0);
}

#[tokio::test]
async fn a_name_that_could_end_the_command_is_cleaned() {
    let server = ScriptedSmtpServer::start().await;
    let relay = builder(&server).ehlo_name("a.b\r\nMAIL FROM:<x>").build();
    assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), "accepted");
    assert_eq!(server.commands()[0], "EHLO a.bMAILFROM:x");
}

#[tokio::test]
async fn settings_that_cannot_work_are_an_error() {
    let relay = SmtpRelay::new("client.test".into());
    for settings in [json!({}), json!({"host": "a b", "port": 25}), json!({"host": "localhost"})] {
        assert_eq!(word(&send_with(&relay, &settings, &["a@b.co"], email()).await), "misconfigured");
    }
}

#[tokio::test]
async fn the_dialog_is_kept_without_its_secrets() {
    let long = "p".repeat(600);
    for (mechanisms, password, expected) in [
        (&["PLAIN"][..], "secret", &["> AUTH PLAIN ***", "< 235 2.7.0 welcome"][..]),
        (&["PLAIN"], &long, &["> AUTH PLAIN", "< 334", "> ***", "< 235 2.7.0 welcome"]),
        (
            &["LOGIN"],
            "secret",
            &["> AUTH LOGIN", "< 334 VXNlcm5hbWU6", "> ***", "< 334 UGFzc3dvcmQ6", "> ***", "< 235 2.7.0 welcome"],
        ),
    ] {
        let server = ScriptedSmtpServer::builder().start_tls().login(mechanisms, "user", password).start().await;
        let login = with_login(&server, "starttls", "user", password);
        let sent = relay(&server).send(&message(&login, &["a@b.co"], email())).await.unwrap();
        let [dialog] = &sent.dialogs[..] else { panic!("one dialog") };
        let lines: Vec<_> = dialog.transcript.iter().map(String::as_str).collect();
        assert!(lines.windows(expected.len()).any(|window| window == expected), "{lines:?}");
        for secret in
            [STANDARD.encode(password), STANDARD.encode("user"), STANDARD.encode(format!("\0user\0{password}"))]
        {
            assert!(lines.iter().all(|line| !line.contains(&secret[..8])), "{lines:?}");
        }
        assert_eq!(
            (dialog.mx.as_deref(), dialog.tls.as_ref().map(|tls| tls.version.as_str())),
            (Some("127.0.0.1"), Some("TLSv1.3"))
        );
        assert_eq!(dialog.outcome, AttemptOutcome::Delivered);
    }
    let server = ScriptedSmtpServer::builder().start_tls().login(&["PLAIN"], "user", "secret").start().await;
    let login = with_login(&server, "starttls", "user", "wrong");
    let sent = relay(&server).send(&message(&login, &["a@b.co"], email())).await.unwrap();
    assert_eq!(sent.dialogs[0].outcome, AttemptOutcome::Deferred);
    assert!(sent.dialogs[0].transcript.contains(&"< 535 5.7.8 no".to_owned()));
}
