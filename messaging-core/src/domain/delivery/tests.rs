use super::*;

const TO: &str = "ann@example.com";

fn reply(code: u16, enhanced: &str) -> Response {
    Response { code: Some(code), enhanced: Some(enhanced.to_owned()), text: "text".to_owned(), host: None }
}

fn attempt() -> Attempt {
    Attempt {
        number: 2,
        channel: Channel::Email,
        now: Timestamp::from_millis(0),
        next_attempt_at: Some(Timestamp::from_millis(0)),
        expires_at: Timestamp::from_millis(1_000_000),
        held_until: Timestamp::from_millis(5),
    }
}

/// Status, kinds of events, open recipients, suppressed addresses.
#[track_caller]
fn check(attempt: Attempt, results: &[(RecipientKind, &str, AttemptResult)], expected: &str) {
    let results: Vec<_> = results
        .iter()
        .map(|(kind, address, result)| RecipientResult {
            recipient: Recipient::new(*kind, (*address).to_owned()),
            result: result.clone(),
            ambiguous: false,
            lost: 0,
        })
        .collect();
    let judgment = judge(attempt, &results);
    let status = judgment.status.map_or("-", MessageStatus::as_str);
    let events: Vec<_> = judgment.events.iter().map(|(kind, _)| format!("{kind:?}")).collect();
    let suppress: Vec<_> = judgment.suppress.iter().map(|one| (&one.address, one.reason)).collect();
    let shown = format!("{status}; {}; open {}; suppress {suppress:?}", events.join(" "), judgment.open.len());
    assert_eq!(shown, expected);
}

#[test]
fn the_message_follows_its_to_recipient() {
    use RecipientKind::{Cc, To};
    let accepted = AttemptResult::Tried(Outcome::accepted(Acceptance::Delivered, reply(250, "2.0.0")));
    let deferred = AttemptResult::Tried(Outcome::deferred(reply(450, "4.2.1")));
    let unknown = AttemptResult::Tried(Outcome::refused(reply(550, "5.1.1")));
    let policy = AttemptResult::Tried(Outcome::refused(reply(550, "5.7.1")));
    let relayed = AttemptResult::Tried(Outcome::accepted(Acceptance::Relayed, reply(250, "2.0.0")));
    let expired = Attempt { next_attempt_at: None, ..attempt() };

    check(attempt(), &[(To, TO, accepted.clone())], "delivered; Sent Delivered; open 0; suppress []");
    check(attempt(), &[(To, TO, relayed)], "sent; Sent; open 0; suppress []");
    check(attempt(), &[(To, TO, deferred.clone())], "deferred; Deferred; open 1; suppress []");
    check(expired, &[(To, TO, deferred.clone())], "bounced; Bounce; open 0; suppress []");
    // A held message says nothing about the recipient, not even at its expiry.
    let held = AttemptResult::Tried(Outcome::Held);
    check(expired, &[(To, TO, held.clone())], "deferred; Deferred; open 1; suppress []");
    check(attempt(), &[(To, TO, held)], "deferred; Deferred; open 1; suppress []");
    check(attempt(), &[(To, TO, policy)], "bounced; Bounce; open 0; suppress []");
    check(
        attempt(),
        &[(To, TO, unknown.clone())],
        r#"bounced; Bounce; open 0; suppress [("ann@example.com", Bounce)]"#,
    );
    check(
        attempt(),
        &[(To, TO, accepted.clone()), (Cc, "c@b.co", deferred.clone())],
        "delivered; Sent Delivered Deferred; open 1; suppress []",
    );
    check(attempt(), &[(Cc, "c@b.co", deferred)], "-; Deferred; open 1; suppress []");
    check(
        attempt(),
        &[(To, TO, accepted), (Cc, "c@b.co", AttemptResult::Suppressed(SuppressionReason::Manual))],
        "delivered; Sent Delivered Suppressed; open 0; suppress []",
    );
    check(
        attempt(),
        &[(To, TO, AttemptResult::Complained(reply(250, "2.0.0")))],
        r#"complained; Sent Delivered Complaint; open 0; suppress [("ann@example.com", Complaint)]"#,
    );
    check(attempt(), &[(To, TO, AttemptResult::GivenUp)], "failed; Failed; open 0; suppress []");
    let withheld = AttemptResult::Tried(Outcome::Withheld("the disk is full".to_owned()));
    check(attempt(), &[(To, TO, withheld)], "-; ; open 1; suppress []");
}

#[test]
fn what_was_withheld_is_no_attempt_and_what_was_put_off_beside_it_is() {
    let of = |address: &str, outcome| RecipientResult {
        recipient: Recipient::new(RecipientKind::Cc, address.to_owned()),
        result: AttemptResult::Tried(outcome),
        ambiguous: false,
        lost: 0,
    };
    let withheld = || of("c@b.co", Outcome::Withheld(String::new()));
    let soon = Attempt { held_until: Timestamp::from_millis(-1), ..attempt() };
    let judgment = judge(soon, &[withheld()]);
    assert_eq!((judgment.is_withheld, judgment.next_attempt_at), (true, Some(soon.held_until)));
    let judgment = judge(soon, &[withheld(), of("d@b.co", Outcome::deferred(reply(450, "4.2.1")))]);
    assert_eq!((judgment.is_withheld, judgment.next_attempt_at), (false, Some(soon.held_until)));
    assert_eq!(judgment.open.len(), 2);
}

#[test]
fn who_was_erased_during_an_attempt_is_not_tried_again_and_the_message_ends() {
    for (status, expected) in
        [(MessageStatus::Sending, "cancelled; Deferred Cancelled"), (MessageStatus::Cancelled, "deferred; Deferred")]
    {
        let result = AttemptResult::Tried(Outcome::deferred(reply(450, "4.2.1")));
        let recipient = Recipient::new(RecipientKind::To, TO.to_owned());
        let mut judgment = judge(attempt(), &[RecipientResult { recipient, result, ambiguous: false, lost: 0 }]);
        judgment.forget_recipients(status);
        let events: Vec<_> = judgment.events.iter().map(|(kind, _)| format!("{kind:?}")).collect();
        assert_eq!(format!("{}; {}", judgment.status.unwrap().as_str(), events.join(" ")), expected);
        assert!(judgment.open.is_empty() && judgment.events.iter().all(|(_, meta)| !meta.contains_key("recipient")));
    }
}

#[test]
fn an_end_without_a_copy_says_when_an_earlier_attempt_may_have_made_one() {
    for (ambiguous, expected) in [(false, None), (true, Some(&Value::Bool(true)))] {
        let suppressed = || SuppressionReason::Manual;
        for result in [AttemptResult::Suppressed(suppressed()), AttemptResult::Tried(Outcome::Suppressed(suppressed()))]
        {
            let recipient = Recipient::new(RecipientKind::To, TO.to_owned());
            let judgment = judge(attempt(), &[RecipientResult { recipient, result, ambiguous, lost: 0 }]);
            assert_eq!(judgment.events[0].1.get("ambiguous"), expected);
        }
    }
}

#[test]
fn the_third_copy_without_an_answer_is_the_last_one_off_email() {
    let lost = |channel, before| {
        let recipient = Recipient::new(RecipientKind::To, TO.to_owned());
        let result = AttemptResult::Tried(Outcome::ambiguous(Response::of_text("lost")));
        let result = RecipientResult { recipient, result, ambiguous: before > 0, lost: before };
        judge(Attempt { channel, ..attempt() }, &[result]).status
    };
    let statuses = |channel| [0, 1, 2, 3].map(|before| lost(channel, before).unwrap().as_str());
    assert_eq!(statuses(Channel::Sms), ["deferred", "deferred", "sent", "sent"]);
    assert_eq!(statuses(Channel::Email), ["deferred"; 4]);
}

#[test]
fn what_was_held_is_no_attempt_either() {
    let of = |address: &str, outcome| RecipientResult {
        recipient: Recipient::new(RecipientKind::Cc, address.to_owned()),
        result: AttemptResult::Tried(outcome),
        ambiguous: false,
        lost: 0,
    };
    let held = || of("c@b.co", Outcome::Held);
    assert!(judge(attempt(), &[held(), of("d@b.co", Outcome::Withheld(String::new()))]).is_withheld);
    assert!(!judge(attempt(), &[held(), of("d@b.co", Outcome::deferred(reply(450, "4.2.1")))]).is_withheld);
    assert!(
        !judge(attempt(), &[of("d@b.co", Outcome::accepted(Acceptance::Delivered, reply(250, "2.0.0")))]).is_withheld
    );
}

#[test]
fn what_cannot_be_sent_names_copies_and_says_whether_one_may_have_arrived() {
    let failed = |kind, address: &str, ambiguous| RecipientResult {
        recipient: Recipient::new(kind, address.to_owned()),
        result: AttemptResult::Failed { reason: "render_error", message: "no".to_owned() },
        ambiguous,
        lost: 0,
    };
    let judgment = judge(attempt(), &[failed(RecipientKind::To, TO, true), failed(RecipientKind::Cc, "c@b.co", false)]);
    assert_eq!(judgment.status, Some(MessageStatus::Failed));
    let metas: Vec<_> = judgment.events.into_iter().map(|(_, meta)| Value::Object(meta)).collect();
    let expected = [
        json!({"reason": "render_error", "message": "no", "ambiguous": true}),
        json!({"recipient": "c@b.co", "reason": "render_error", "message": "no"}),
    ];
    assert_eq!(metas, expected);
}

#[test]
fn a_provider_that_fails_is_no_bounce_unless_something_else_stood_in_the_way_too() {
    use RecipientKind::{Cc, To};
    let failed = || AttemptResult::Tried(Outcome::provider_failed(reply(535, "5.7.8")));
    let deferred = AttemptResult::Tried(Outcome::deferred(reply(450, "4.2.1")));
    let expired = Attempt { next_attempt_at: None, ..attempt() };
    check(attempt(), &[(To, TO, failed())], "deferred; Deferred; open 1; suppress []");
    check(expired, &[(To, TO, failed())], "failed; Failed; open 0; suppress []");
    check(expired, &[(Cc, "c@b.co", failed())], "-; Failed; open 0; suppress []");
    for (first, expected) in [(failed(), EventKind::Failed), (deferred, EventKind::Bounce)] {
        let of = |recipient, result| [RecipientResult { recipient, result, ambiguous: false, lost: 0 }];
        let open = judge(attempt(), &of(Recipient::new(To, TO.to_owned()), first)).open;
        let again = judge(attempt(), &of(open[0].clone(), failed())).open;
        let end = judge(expired, &of(again[0].clone(), failed()));
        assert_eq!(end.events[0].0, expected);
        assert_eq!(end.soft_bounces.is_empty(), expected == EventKind::Failed);
    }
}
