//! Conversations with one exchanger, and the outcomes that follow.

use super::*;

const ACCEPTED: &str = "accepted 250 2.0.0, accepted 250 2.0.0";
const NO_TALK: &str = "deferred - 4.4.1, deferred - 4.4.1";
const BROKEN: &str = "deferred - 4.4.2, deferred - 4.4.2";
const LOST: &str = "ambiguous - 4.4.2, ambiguous - 4.4.2";

const BEFORE_CONTENT: [Stage; 6] =
    [Stage::Greeting, Stage::Ehlo, Stage::StartTls, Stage::Mail, Stage::Rcpt, Stage::Data];

/// Returns the outcome of a conversation that breaks at a stage. After a failed STARTTLS the message goes in plain
/// text.
fn broken_at(stage: Stage) -> &'static str {
    match stage {
        Stage::Greeting | Stage::Ehlo => NO_TALK,
        Stage::StartTls => ACCEPTED,
        Stage::Mail | Stage::Rcpt | Stage::Data | Stage::Content => BROKEN,
        Stage::Dot => LOST,
        Stage::Helo | Stage::Auth | Stage::Rset => panic!("not of a conversation that breaks"),
    }
}

/// Checks the outcome of an action at a stage, with and without PIPELINING.
async fn check(stage: Stage, action: Action, email: Email, timeouts: Timeouts, expected: &str) {
    for is_pipelined in [true, false] {
        let mut builder = ScriptedSmtpServer::builder().start_tls();
        if !is_pipelined {
            builder = builder.without_pipelining();
        }
        let bed = Bed::with(vec![builder]).await;
        bed.first().next(stage, action.clone());
        let delivery = bed.builder().timeouts(timeouts).build();
        let sent = attempt(&delivery, &message(&["a@b.test", "c@b.test"], email.clone())).await;
        assert_eq!(words(&sent), expected, "{stage:?} {is_pipelined} {sent:?}");
        assert_eq!(sent.dialogs.len(), 1, "{stage:?}");
        assert_eq!(response(&sent).host.as_deref(), Some("mx1.b.test"));
        let is_taken = expected == ACCEPTED || matches!(action, Action::LoseReply);
        assert_eq!(bed.first().messages().len(), usize::from(is_taken), "{stage:?} {is_pipelined}");
    }
}

#[tokio::test]
async fn a_message_arrives_and_the_dialog_is_kept() {
    let bed = Bed::start(1).await;
    let delivery = bed.delivery();
    let sent = attempt(&delivery, &message(&["a@b.test"], email())).await;
    assert_eq!(words(&sent), "accepted 250 2.0.0");
    assert_eq!(response(&sent).host.as_deref(), Some("mx1.b.test"));
    let size = bed.first().messages()[0].content.len();
    let [dialog] = &sent.dialogs[..] else { panic!("one dialog") };
    assert_eq!((dialog.mx.as_deref(), dialog.tls.as_ref().map(|tls| tls.version.as_str())), (Some("mx1.b.test"), None));
    assert_eq!(dialog.remote_addr, Some(format!("127.0.0.1:{}", bed.port)));
    assert_eq!(dialog.outcome, AttemptOutcome::Delivered);
    let expected = format!(
        "* connected to 127.0.0.1:25
< 220 scripted.test ESMTP
> EHLO client.test
< 250-scripted.test
< 250-SIZE
< 250-PIPELINING
< 250-8BITMIME
< 250 SMTPUTF8
> MAIL FROM:<bounce@mail.acme.com> SIZE={size}
> RCPT TO:<a@b.test>
> DATA
< 250 2.1.0 ok
< 250 2.1.5 ok
< 354 go
* {size} octets of content
< 250 2.0.0 taken"
    );
    assert_eq!(transcript(dialog, bed.port), expected);

    let again = attempt(&delivery, &message(&["c@b.test"], email())).await;
    assert_eq!(again.dialogs[0].transcript[0], format!("* still connected to 127.0.0.1:{}", bed.port));
    assert_eq!(bed.connections(), [1]);
    delivery.close().await;
    assert_eq!(send(&delivery, &["c@b.test"]).await, "accepted 250 2.0.0");
    assert_eq!(bed.connections(), [2]);
}

#[tokio::test]
async fn a_slow_greeting_is_waited_for() {
    let bed = Bed::start(1).await;
    let gate = bed.first().gate(Stage::Greeting);
    let delivery = bed.delivery();
    let (outcome, ()) = tokio::join!(send(&delivery, &["a@b.test"]), async {
        gate.reached().await;
        gate.open();
    });
    assert_eq!(outcome, "accepted 250 2.0.0");
}

#[tokio::test]
async fn a_peer_that_closes_cannot_have_the_message_before_its_end() {
    for stage in BEFORE_CONTENT {
        check(stage, Action::Close, email(), PATIENT, broken_at(stage)).await;
    }
    check(Stage::Content, Action::Close, large_email(), PATIENT, BROKEN).await;
}

#[tokio::test]
async fn a_lost_reply_to_the_content_is_ambiguous() {
    check(Stage::Dot, Action::Close, email(), PATIENT, LOST).await;
    check(Stage::Dot, Action::LoseReply, email(), PATIENT, LOST).await;
    let timeouts = Timeouts { dot: IMPATIENCE, ..PATIENT };
    check(Stage::Dot, Action::Raw(b"250-half of a reply\r\n250".to_vec()), email(), timeouts, LOST).await;
}

#[tokio::test]
async fn whoever_was_refused_before_the_reply_was_lost_stays_refused() {
    let bed = Bed::start(1).await;
    bed.first().answer("no@b.test", "550 5.1.1 no such user");
    bed.first().next(Stage::Dot, Action::LoseReply);
    let sent = attempt(&bed.delivery(), &message(&["a@b.test", "no@b.test"], email())).await;
    assert_eq!(words(&sent), "ambiguous - 4.4.2, refused 550 5.1.1");
    assert_eq!(ends(&sent), [("mx1.b.test", AttemptOutcome::Ambiguous)]);
}

#[tokio::test]
async fn a_silent_peer_is_left() {
    for stage in BEFORE_CONTENT {
        // A slow machine must not make the steps before the silence fail.
        let timeouts = match stage {
            Stage::Greeting => Timeouts { greeting: IMPATIENCE, ..PATIENT },
            Stage::Mail => Timeouts { mail: IMPATIENCE, ..PATIENT },
            Stage::Rcpt => Timeouts { rcpt: IMPATIENCE, ..PATIENT },
            Stage::Data => Timeouts { data: IMPATIENCE, ..PATIENT },
            _ => Timeouts { command: 5 * IMPATIENCE, ..PATIENT },
        };
        check(stage, Action::Wait(Gate::default()), email(), timeouts, broken_at(stage)).await;
    }
    let timeouts = Timeouts { dot: IMPATIENCE, ..PATIENT };
    check(Stage::Dot, Action::Wait(Gate::default()), email(), timeouts, LOST).await;
    let timeouts = Timeouts { block: IMPATIENCE, dot: IMPATIENCE, ..PATIENT };
    check(Stage::Content, Action::Wait(Gate::default()), large_email(), timeouts, BROKEN).await;
}

#[tokio::test]
async fn closing_down_is_a_deferral_at_every_stage() {
    for stage in BEFORE_CONTENT.into_iter().chain([Stage::Dot]) {
        for action in [Action::ReplyAndClose as fn(String) -> Action, Action::Reply] {
            let expected = "deferred 421 4.3.2, deferred 421 4.3.2";
            check(stage, action("421 4.3.2 shutting down".into()), email(), PATIENT, expected).await;
        }
    }
}

#[tokio::test]
async fn nonsense_and_endless_replies_end_the_connection() {
    for stage in BEFORE_CONTENT.into_iter().chain([Stage::Dot]) {
        check(stage, Action::Flood("250-and".into()), email(), PATIENT, broken_at(stage)).await;
        let too_long = format!("250 {}\r\n", "x".repeat(9000));
        check(stage, Action::Raw(too_long.into()), email(), PATIENT, broken_at(stage)).await;
        check(stage, Action::Raw(b"what\r\n".to_vec()), email(), PATIENT, broken_at(stage)).await;
    }
}

#[tokio::test]
async fn long_winded_replies_count() {
    let long = "x".repeat(4096);
    check(Stage::Greeting, Action::Reply(format!("220 {long}")), email(), PATIENT, ACCEPTED).await;
    check(Stage::Mail, Action::Reply(format!("250 {long}")), email(), PATIENT, ACCEPTED).await;
    check(Stage::Dot, Action::Reply(format!("250-2.0.0 {long}\n250 2.0.0 ok")), email(), PATIENT, ACCEPTED).await;
    let refused = "refused 554 5.7.1, refused 554 5.7.1";
    check(Stage::Data, Action::Reply(format!("554 5.7.1 {long}")), email(), PATIENT, refused).await;
}

#[tokio::test]
async fn replies_to_the_message_are_for_everyone_who_is_open() {
    for stage in [Stage::Mail, Stage::Data, Stage::Dot] {
        check(stage, Action::reply("554 5.7.1 spam"), email(), PATIENT, "refused 554 5.7.1, refused 554 5.7.1").await;
        check(stage, Action::reply("451 4.3.0 later"), email(), PATIENT, "deferred 451 4.3.0, deferred 451 4.3.0")
            .await;
    }
}

#[tokio::test]
async fn each_recipient_has_an_outcome() {
    for builder in [ScriptedSmtpServer::builder(), ScriptedSmtpServer::builder().without_pipelining()] {
        let bed = Bed::with(vec![builder]).await;
        bed.first().answer("no@b.test", "550 5.1.1 no such user");
        bed.first().answer("later@b.test", "452-4.2.2 full\n452 4.2.2 really");
        let outcome = send(&bed.delivery(), &["yes@b.test", "no@b.test", "later@b.test", "too@b.test"]).await;
        assert_eq!(outcome, "accepted 250 2.0.0, refused 550 5.1.1, deferred 452 4.2.2, accepted 250 2.0.0");
        let messages = bed.first().messages();
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].recipients, ["yes@b.test", "too@b.test"]);
    }
}

#[tokio::test]
async fn with_everyone_refused_there_is_no_content() {
    let bed = Bed::start(1).await;
    bed.first().next(Stage::Rcpt, Action::reply("550 5.1.1 no"));
    bed.first().next(Stage::Data, Action::reply("354 go on"));
    let delivery = bed.delivery();
    let sent = attempt(&delivery, &message(&["a@b.test"], email())).await;
    assert_eq!(words(&sent), "refused 550 5.1.1");
    assert_eq!(ends(&sent), [("mx1.b.test", AttemptOutcome::Bounced)]);
    assert_eq!(send(&delivery, &["a@b.test"]).await, "accepted 250 2.0.0");
    assert_eq!((bed.connections(), bed.first().messages().len()), (vec![1], 1));
}

#[tokio::test]
async fn a_greylisted_message_is_taken_another_time() {
    let bed = Bed::start(1).await;
    bed.first().next(Stage::Rcpt, Action::reply("450 4.7.1 greylisted, come back later"));
    let delivery = bed.delivery();
    let sent = attempt(&delivery, &message(&["a@b.test"], email())).await;
    assert_eq!(words(&sent), "deferred 450 4.7.1");
    assert_eq!(ends(&sent), [("mx1.b.test", AttemptOutcome::Deferred)]);
    assert_eq!(send(&delivery, &["a@b.test"]).await, "accepted 250 2.0.0");
}

#[tokio::test]
async fn whoever_knows_no_ehlo_gets_helo() {
    let bed = Bed::with(vec![ScriptedSmtpServer::builder().without_ehlo()]).await;
    assert_eq!(send(&bed.delivery(), &["a@b.test"]).await, "accepted 250 2.0.0");
    assert!(bed.first().messages()[0].parameters.is_empty());
    let bed = Bed::with(vec![ScriptedSmtpServer::builder().without_ehlo()]).await;
    bed.first().next(Stage::Helo, Action::reply("550 5.7.1 not you"));
    assert_eq!(send(&bed.delivery(), &["a@b.test"]).await, "refused 550 5.7.1");
}

#[tokio::test]
async fn what_the_peer_cannot_take_is_refused_here_and_says_so() {
    let bed = Bed::with(vec![ScriptedSmtpServer::builder().size(100), ScriptedSmtpServer::builder()]).await;
    let sent = attempt(&bed.delivery(), &message(&["a@b.test"], email())).await;
    assert_eq!(words(&sent), "refused 552 5.3.4");
    assert!(response(&sent).text.contains("decided here"), "{sent:?}");
    assert_eq!(ends(&sent), [("mx1.b.test", AttemptOutcome::Bounced)]);
    assert!(!bed.first().commands().iter().any(|command| command.starts_with("MAIL")));

    let bed = Bed::with(vec![ScriptedSmtpServer::builder().without_utf8()]).await;
    let sent = attempt(&bed.delivery(), &message(&["ü@b.test", "a@b.test"], email())).await;
    assert_eq!(words(&sent), "refused 553 5.6.7, accepted 250 2.0.0");
    assert!(response(&sent).text.contains("decided here"), "{sent:?}");
    let mut from = email();
    from.from.address = crate::support::address("ü@mail.acme.com");
    let sent = attempt(&bed.delivery(), &message(&["a@b.test"], from)).await;
    assert_eq!(words(&sent), "refused 550 5.6.7");
}

#[tokio::test]
async fn smtputf8_and_8bitmime_only_where_they_are_needed() {
    let bed = Bed::start(1).await;
    bed.exchangers("xn--bcher-kva.test", &[1]);
    let delivery = bed.delivery();
    let mut foreign = email();
    foreign.from.name = Some("Zoë".into());
    foreign.cc = vec![crate::support::address("ü@b.test")];
    for (recipient, email, expected) in [
        ("a@b.test", email(), &[][..]),
        ("a@bücher.test", email(), &[]),
        ("ü@bücher.test", email(), &["SMTPUTF8"]),
        ("a@b.test", foreign, &["SMTPUTF8", "BODY=8BITMIME"]),
    ] {
        assert_eq!(words(&attempt(&delivery, &message(&[recipient], email)).await), "accepted 250 2.0.0");
        let messages = bed.first().messages();
        let last = messages.last().unwrap();
        assert_eq!(last.parameters[1..], *expected, "{recipient}");
        assert!(last.recipients[0].ends_with("@b.test") || last.recipients[0].ends_with("@xn--bcher-kva.test"));
    }
}

#[tokio::test]
async fn dots_survive() {
    let bed = Bed::start(1).await;
    let mut dotted = email();
    dotted.text = Some(".\r\n..\r\n.a\r\n.\r\n.".into());
    attempt(&bed.delivery(), &message(&["a@b.test"], dotted.clone())).await;
    assert_eq!(bed.first().messages()[0].content, messaging_transport::mime::build(&dotted).unwrap());
}

#[tokio::test]
async fn a_kept_connection_that_died_is_replaced() {
    for action in [Action::Close, Action::ReplyAndClose("421 4.4.2 idle".into()), Action::Raw(b"?\r\n".to_vec())] {
        let bed = Bed::start(1).await;
        let delivery = bed.delivery();
        send(&delivery, &["a@b.test"]).await;
        bed.first().next(Stage::Mail, action.clone());
        let sent = attempt(&delivery, &message(&["a@b.test"], email())).await;
        assert_eq!(words(&sent), "accepted 250 2.0.0", "{action:?}");
        assert_eq!(ends(&sent), [("mx1.b.test", AttemptOutcome::Delivered)]);
        assert_eq!((bed.connections(), bed.first().messages().len()), (vec![2], 2));
    }
}

#[tokio::test]
async fn nothing_is_sent_twice() {
    let bed = Bed::start(2).await;
    let delivery = bed.delivery();
    send(&delivery, &["a@b.test"]).await;
    bed.first().next(Stage::Dot, Action::LoseReply);
    assert_eq!(send(&delivery, &["a@b.test"]).await, "ambiguous - 4.4.2");
    assert_eq!((bed.connections(), bed.first().messages().len()), (vec![1, 0], 2));
}
