//! Choice of the exchanger, and the outcome of a message that none accepts.

use messaging_testing::DnsFailure;

use super::*;

#[tokio::test]
async fn the_preferred_exchanger_is_asked_first() {
    let bed = Bed::start(3).await;
    assert_eq!(send(&bed.delivery(), &["a@b.test"]).await, "accepted 250 2.0.0");
    assert_eq!(bed.connections(), [1, 0, 0]);
    bed.dns.mx("c.test", &[(30, "mx1.b.test"), (5, "mx3.b.test"), (30, "mx2.b.test")]);
    assert_eq!(send(&bed.delivery(), &["a@c.test"]).await, "accepted 250 2.0.0");
    assert_eq!(bed.connections(), [1, 0, 1]);
}

#[tokio::test]
async fn without_exchangers_the_domain_itself_is_one() {
    let bed = Bed::start(1).await;
    bed.dns.addresses("bare.test", &[address(1)]);
    let sent = attempt(&bed.delivery(), &message(&["a@bare.test"], email())).await;
    assert_eq!(words(&sent), "accepted 250 2.0.0");
    assert_eq!(response(&sent).host.as_deref(), Some("bare.test"));
}

#[tokio::test]
async fn what_the_dns_says_decides() {
    let bed = Bed::start(1).await;
    bed.dns.mx("null.test", &[(0, ".")]);
    bed.dns.mx("loop.test", &[(10, "client.test"), (20, "mx1.b.test")]);
    bed.dns.mx("addressless.test", &[(10, "gone.b.test")]);
    bed.dns.txt("empty.test", &["no mail here"]);
    bed.dns.fail("servfail.test", DnsFailure::ServFail);
    bed.dns.mx("lame.test", &[(10, "lame.b.test")]);
    bed.dns.fail("lame.b.test", DnsFailure::Refused);
    let delivery = bed.delivery();
    for (domain, expected, end) in [
        ("nowhere.test", "refused - 5.1.2", AttemptOutcome::Bounced),
        ("null.test", "refused 556 5.1.10", AttemptOutcome::Bounced),
        ("loop.test", "refused - 5.4.6", AttemptOutcome::Bounced),
        ("addressless.test", "refused - 5.4.4", AttemptOutcome::Bounced),
        ("empty.test", "refused - 5.4.4", AttemptOutcome::Bounced),
        ("servfail.test", "deferred - 4.4.3", AttemptOutcome::Deferred),
        ("lame.test", "deferred - 4.4.3", AttemptOutcome::Deferred),
    ] {
        let sent = attempt(&delivery, &message(&[&format!("a@{domain}")], email())).await;
        assert_eq!(words(&sent), expected, "{domain} {sent:?}");
        assert_eq!(sent.dialogs.len(), 1);
        assert_eq!((sent.dialogs[0].outcome, sent.dialogs[0].transcript.len()), (end, 1), "{domain}");
    }
    assert_eq!(bed.connections(), [0]);
}

/// Checks that the first exchanger does this, and the second accepts everything.
async fn check(stage: Stage, action: Action, expected: &str, connections: [usize; 2]) {
    let bed = Bed::start(2).await;
    bed.first().next(stage, action.clone());
    let sent = attempt(&bed.delivery(), &message(&["a@b.test"], email())).await;
    assert_eq!(words(&sent), expected, "{stage:?} {action:?}");
    assert_eq!(bed.connections(), connections, "{stage:?} {action:?}");
    let hosts = ["mx1.b.test", "mx2.b.test"];
    assert_eq!(response(&sent).host.as_deref(), Some(hosts[connections[1]]));
    assert_eq!(sent.dialogs.len(), connections.iter().sum::<usize>());
}

#[tokio::test]
async fn trouble_before_the_message_is_named_is_for_the_next_exchanger() {
    let accepted = "accepted 250 2.0.0";
    for reply in ["421 4.3.2 busy", "450 4.7.1 later", "554 5.7.1 no"] {
        check(Stage::Greeting, Action::reply(reply), accepted, [1, 1]).await;
        check(Stage::Greeting, Action::ReplyAndClose(reply.into()), accepted, [1, 1]).await;
    }
    check(Stage::Ehlo, Action::reply("451 4.7.1 later"), accepted, [1, 1]).await;
    check(Stage::Mail, Action::ReplyAndClose("421 4.3.2 busy".into()), accepted, [1, 1]).await;
    for stage in [Stage::Greeting, Stage::Ehlo, Stage::Mail, Stage::Rcpt, Stage::Data] {
        check(stage, Action::Close, accepted, [1, 1]).await;
    }
}

#[tokio::test]
async fn an_answer_for_the_message_is_the_last_word() {
    for stage in [Stage::Mail, Stage::Rcpt, Stage::Data, Stage::Dot] {
        check(stage, Action::reply("550 5.7.1 no"), "refused 550 5.7.1", [1, 0]).await;
        check(stage, Action::reply("450 4.7.1 later"), "deferred 450 4.7.1", [1, 0]).await;
    }
    check(Stage::Dot, Action::Close, "ambiguous - 4.4.2", [1, 0]).await;
}

#[tokio::test]
async fn a_refusal_at_the_door_counts_when_all_refuse() {
    let refusal = || Action::ReplyAndClose("554 5.7.1 no service".into());
    let bed = Bed::start(2).await;
    bed.servers.iter().for_each(|server| server.next(Stage::Greeting, refusal()));
    let sent = attempt(&bed.delivery(), &message(&["a@b.test"], email())).await;
    assert_eq!(words(&sent), "refused 554 5.7.1");
    assert_eq!(ends(&sent), [("mx1.b.test", AttemptOutcome::Bounced), ("mx2.b.test", AttemptOutcome::Bounced)]);

    // Nobody listens at the third; another time somebody may.
    bed.exchangers("b.test", &[1, 2, 3]);
    bed.servers.iter().for_each(|server| server.next(Stage::Greeting, refusal()));
    let sent = attempt(&bed.delivery(), &message(&["a@b.test"], email())).await;
    assert_eq!(words(&sent), "deferred - 4.4.1");
    assert_eq!(sent.dialogs[2].remote_addr, None);
    assert!(sent.dialogs[2].transcript[0].contains("no connection"), "{sent:?}");
}

#[tokio::test]
async fn whoever_was_refused_is_not_asked_again_elsewhere() {
    let bed = Bed::start(2).await;
    bed.first().answer("no@b.test", "550 5.1.1 no such user");
    bed.first().next(Stage::Data, Action::Close);
    let outcome = send(&bed.delivery(), &["no@b.test", "yes@b.test"]).await;
    assert_eq!(outcome, "refused 550 5.1.1, accepted 250 2.0.0");
    assert_eq!(bed.servers[1].messages()[0].recipients, ["yes@b.test"]);
    assert!(!bed.servers[1].commands().iter().any(|command| command.contains("no@b.test")));
}

#[tokio::test]
async fn another_address_of_an_exchanger_is_tried() {
    let bed = Bed::start(1).await;
    bed.dns.addresses("mx1.b.test", &[address(9), address(1), "::1".parse().unwrap()]);
    let sent = attempt(&bed.delivery(), &message(&["a@b.test"], email())).await;
    assert_eq!(words(&sent), "accepted 250 2.0.0");
    assert_eq!(sent.dialogs.last().unwrap().remote_addr, Some(format!("127.0.0.1:{}", bed.port)));
}

#[tokio::test]
async fn a_message_goes_to_each_domain_once() {
    let bed = Bed::start(2).await;
    bed.exchangers("one.test", &[1]);
    bed.exchangers("two.test", &[2]);
    bed.first().next(Stage::Dot, Action::reply("451 4.3.0 later"));
    let recipients = ["a@one.test", "b@TWO.test", "c@gone.test", "d@one.test", "e@two.test"];
    let sent = attempt(&bed.delivery(), &message(&recipients, email())).await;
    assert_eq!(
        words(&sent),
        "deferred 451 4.3.0, accepted 250 2.0.0, refused - 5.1.2, deferred 451 4.3.0, accepted 250 2.0.0"
    );
    assert_eq!(bed.connections(), [1, 1]);
    assert_eq!(bed.servers[1].messages()[0].recipients, ["b@two.test", "e@two.test"]);
    let expected = [
        ("mx1.b.test", AttemptOutcome::Deferred),
        ("mx2.b.test", AttemptOutcome::Delivered),
        ("-", AttemptOutcome::Bounced),
    ];
    assert_eq!(ends(&sent), expected);
}

#[tokio::test]
async fn an_override_takes_the_place_of_every_exchanger() {
    let bed = Bed::with(vec![ScriptedSmtpServer::builder().start_tls()]).await;
    for host in ["127.0.0.1", "localhost"] {
        let fixed = format!("{host}:{}", bed.port).parse().unwrap();
        let delivery = bed.builder().port(1).mx_override(Some(fixed)).build();
        let sent = attempt(&delivery, &message(&["a@b.test", "c@nowhere.test"], email())).await;
        assert_eq!(words(&sent), "accepted 250 2.0.0, accepted 250 2.0.0");
        assert_eq!(response(&sent).host.as_deref(), Some(host));
        // A resolver may name ::1 first for localhost, where nobody listens.
        let dialog = sent.dialogs.last().unwrap();
        assert_eq!(dialog.tls.as_ref().map(|tls| tls.version.as_str()), Some("TLSv1.3"), "{dialog:?}");
    }
    assert!(bed.dns.queries().is_empty());
}

#[tokio::test]
async fn what_is_not_an_email_is_refused() {
    let bed = Bed::start(1).await;
    let delivery = bed.delivery();
    for bad in ["a@b.test>\r\nRCPT TO:<c@b.test", "a", "", "a b@c.de"] {
        delivery.send(&message(&[bad], email())).await.unwrap_err();
    }
    let mut unbuildable = email();
    unbuildable.headers.push(("Bcc".into(), "x@y.co".into()));
    delivery.send(&message(&["a@b.test"], unbuildable)).await.unwrap_err();
    assert_eq!(send(&delivery, &[]).await, "");
    assert_eq!(bed.connections(), [0]);
}
