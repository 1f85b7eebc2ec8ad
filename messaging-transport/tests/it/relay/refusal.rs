//! A relay that refuses us, and how long its refusal takes.

use std::time::Instant;

use messaging_testing::{Action, Gate, ScriptedSmtpServer, Stage};

use super::*;

#[tokio::test]
async fn what_a_relay_says_of_our_account_is_not_about_the_recipients() {
    let check = async |stage: Stage, reply: &str, expected: &str| {
        for builder in [ScriptedSmtpServer::builder(), ScriptedSmtpServer::builder().without_pipelining()] {
            let server = builder.start().await;
            server.always(stage, Action::reply(reply));
            let result = send(&relay(&server), &server, &["a@b.co", "c@d.co"]).await;
            assert_eq!(word(&result), expected, "{stage:?} {reply} {result:?}");
        }
    };
    check(Stage::Mail, "530 5.7.0 Authentication required", "auth auth").await;
    check(Stage::Mail, "550 5.7.1 sender refused", "provider provider").await;
    check(Stage::Mail, "552 5.3.4 too large", "refused refused").await;
    check(Stage::Rcpt, "554 5.7.1 <a@b.co>: Relay access denied", "provider provider").await;
    check(Stage::Rcpt, "550 5.1.1 no such user", "refused refused").await;
    check(Stage::Data, "550 5.4.5 Daily user sending limit exceeded", "throttled throttled").await;
    check(Stage::Dot, "554 Message rejected: Email address is not verified.", "provider provider").await;
    check(Stage::Dot, "554 5.7.1 spam", "refused refused").await;
}

#[tokio::test]
async fn a_refused_mail_ends_the_wait_for_the_rest_of_the_group() {
    for (stage, kind) in [(Stage::Mail, "provider"), (Stage::Rcpt, "refused")] {
        let server = ScriptedSmtpServer::start().await;
        let held = if stage == Stage::Mail { Stage::Rcpt } else { Stage::Data };
        server.next(stage, Action::reply("550 5.1.1 no"));
        server.next(held, Action::Wait(Gate::default()));
        let timeouts = Timeouts { rest_of_group: IMPATIENCE, ..Timeouts::all(PATIENCE) };
        let relay = builder(&server).timeouts(timeouts).build();
        let began = Instant::now();
        assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), kind);
        assert!(began.elapsed() < PATIENCE / 2, "{stage:?} {:?}", began.elapsed());
        // That connection is out of step and not used again.
        assert_eq!(word(&send(&relay, &server, &["a@b.co"]).await), "accepted");
        assert_eq!(server.connections(), 2);
    }
}
