use super::*;
use crate::domain::delivery::response::Response;
use crate::time::Timestamp;
use Action::{Delayed, Delivered, Expanded, Failed, Relayed};

const TO: &str = "ann@example.com";
const CC: &str = "Boss@example.com";

fn recipient(kind: RecipientKind, address: &str) -> Recipient {
    Recipient::new(kind, address.to_owned())
}

fn about(address: &str, action: Action, code: u16, enhanced: &str) -> RecipientReport {
    let response =
        Response { code: Some(code), enhanced: Some(enhanced.to_owned()), text: "text".to_owned(), host: None };
    RecipientReport { addresses: vec![address.to_owned()], action, response }
}

fn complaint(kind: &str, recipients: &[&str]) -> Report {
    Report::Complaint {
        feedback_type: kind.to_owned(),
        recipients: recipients.iter().map(ToString::to_string).collect(),
    }
}

fn event(kind: EventKind, meta: &serde_json::Value) -> MessageEvent {
    MessageEvent {
        id: "evt_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        workspace_id: "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        message_id: "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap(),
        kind,
        at: Timestamp::from_millis(0),
        meta: meta.as_object().unwrap().clone(),
    }
}

/// Status; events with recipient and class; suppressed; reached; soft.
#[track_caller]
fn check(returned: Returned<'_>, report: &Report, expected: &str) {
    let judgment = returned.judge(report);
    let events: Vec<_> = judgment
        .events
        .iter()
        .map(|(kind, meta)| {
            let text = |member: &str| meta.get(member).and_then(|value| value.as_str()).unwrap_or("");
            format!("{kind:?} {} {}", text("recipient"), text("bounce_class")).trim_end().to_owned()
        })
        .collect();
    let shown = format!(
        "{}; {}; suppress {:?}; reached {:?}; soft {:?}",
        judgment.status.map_or("-", MessageStatus::as_str),
        events.join(", "),
        judgment.suppress.iter().map(|one| (&one.address, one.reason)).collect::<Vec<_>>(),
        judgment.reached,
        judgment.soft_bounces
    );
    assert_eq!(shown, expected);
}

const NOTHING: &str = "-; ; suppress []; reached []; soft []";

#[test]
fn of_one_recipient_there_is_no_doubt() {
    let one = [recipient(RecipientKind::To, TO)];
    let message = Returned { status: MessageStatus::Delivered, recipients: &one, complete: true, past: &[] };
    let report = Report::Delivery(vec![about("forwarded@elsewhere.example", Failed, 550, "5.1.1")]);
    check(
        message,
        &report,
        r#"bounced; Bounce ann@example.com invalid_recipient; suppress [("ann@example.com", Bounce)]; reached []; soft []"#,
    );
    let nameless = RecipientReport { addresses: Vec::new(), ..about("", Failed, 552, "5.2.2") };
    check(
        message,
        &Report::Delivery(vec![nameless]),
        r#"bounced; Bounce ann@example.com mailbox_full; suppress []; reached []; soft ["ann@example.com"]"#,
    );
    check(
        message,
        &complaint("abuse", &[]),
        r#"complained; Complaint ann@example.com; suppress [("ann@example.com", Complaint)]; reached []; soft []"#,
    );
    // When the copies are deleted there may have been more recipients.
    check(Returned { complete: false, ..message }, &report, NOTHING);
    let named = Report::Delivery(vec![about("ANN@example.com", Failed, 550, "5.7.1")]);
    check(
        Returned { complete: false, ..message },
        &named,
        "bounced; Bounce ann@example.com policy; suppress []; reached []; soft []",
    );
}

#[test]
fn of_several_the_named_one_is_meant() {
    let both = [recipient(RecipientKind::To, TO), recipient(RecipientKind::Cc, CC)];
    let message = Returned { status: MessageStatus::Delivered, recipients: &both, complete: true, past: &[] };
    check(message, &Report::Delivery(vec![about("who@example.com", Failed, 550, "5.1.1")]), NOTHING);
    check(message, &complaint("abuse", &[]), NOTHING);
    check(message, &complaint("abuse", &["who@example.com"]), NOTHING);
    check(
        message,
        &Report::Delivery(vec![about("boss@EXAMPLE.com", Failed, 550, "5.1.1")]),
        r#"-; Bounce Boss@example.com invalid_recipient; suppress [("Boss@example.com", Bounce)]; reached []; soft []"#,
    );
    let second_name =
        RecipientReport { addresses: vec!["x@y.example".to_owned(), TO.to_owned()], ..about("", Failed, 550, "5.7.1") };
    check(
        message,
        &Report::Delivery(vec![second_name, about(CC, Delivered, 250, "2.1.5")]),
        "bounced; Bounce ann@example.com policy, Delivered Boss@example.com; suppress []; \
         reached [\"Boss@example.com\"]; soft []",
    );
}

#[test]
fn every_action_against_every_status() {
    let one = [recipient(RecipientKind::To, TO)];
    let status = |from, report: &Report| {
        let judgment = Returned { status: from, recipients: &one, complete: true, past: &[] }.judge(report);
        judgment.status.map_or("-", MessageStatus::as_str)
    };
    let reports = [Failed, Delayed, Delivered, Relayed, Expanded]
        .map(|action| Report::Delivery(vec![about(TO, action, 550, "5.1.1")]));
    let grid: String = MessageStatus::ALL
        .iter()
        .map(|from| {
            let moves: Vec<_> =
                reports.iter().chain([&complaint("abuse", &[])]).map(|report| status(*from, report)).collect();
            format!("{}: {}\n", from.as_str(), moves.join(" "))
        })
        .collect();
    insta::assert_snapshot!(grid, @r"
    queued: - - - - - -
    sending: bounced - delivered delivered delivered -
    sent: bounced - delivered delivered delivered complained
    delivered: bounced - - - - complained
    deferred: bounced - - - - -
    bounced: - - - - - -
    complained: - - - - - -
    failed: - - - - - -
    suppressed: - - - - - -
    cancelled: - - - - - -
    ");
}

#[test]
fn a_report_has_its_effect_once() {
    #[track_caller]
    fn check_after(past: &[MessageEvent], report: &Report, expected: &str) {
        let one = [recipient(RecipientKind::To, TO)];
        let message = Returned { status: MessageStatus::Sent, recipients: &one, complete: true, past };
        check(message, report, expected);
    }
    let of_kind = |kind| [event(kind, &json!({"recipient": "ann@EXAMPLE.com"}))];
    let deliver = |action| Report::Delivery(vec![about(TO, action, 550, "5.1.1")]);
    check_after(&of_kind(EventKind::Bounce), &deliver(Failed), NOTHING);
    check_after(&of_kind(EventKind::Delivered), &deliver(Relayed), NOTHING);
    check_after(&of_kind(EventKind::Deferred), &deliver(Delayed), NOTHING);
    check_after(&of_kind(EventKind::Complaint), &complaint("fraud", &[TO]), NOTHING);
    // Our own attempts are another matter.
    let own = [event(EventKind::Deferred, &json!({"recipient": TO, "attempt": 1}))];
    check_after(&own, &deliver(Delayed), "-; Deferred ann@example.com; suppress []; reached []; soft []");
    // Twice in one report.
    let twice = Report::Delivery(vec![about(TO, Failed, 550, "5.7.1"), about(TO, Failed, 550, "5.7.1")]);
    check_after(&[], &twice, "bounced; Bounce ann@example.com policy; suppress []; reached []; soft []");
}

#[test]
fn a_delivery_is_told_before_a_bounce_of_the_same_report() {
    let one = [recipient(RecipientKind::To, TO)];
    let message = Returned { status: MessageStatus::Sent, recipients: &one, complete: true, past: &[] };
    let report = Report::Delivery(vec![about(TO, Relayed, 250, "2.0.0"), about(TO, Failed, 550, "5.7.1")]);
    check(
        message,
        &report,
        "bounced; Delivered ann@example.com, Bounce ann@example.com policy; suppress []; \
         reached [\"ann@example.com\"]; soft []",
    );
}

#[test]
fn not_every_feedback_is_a_complaint() {
    let one = [recipient(RecipientKind::To, TO)];
    let message = Returned { status: MessageStatus::Delivered, recipients: &one, complete: true, past: &[] };
    check(message, &complaint("not-spam", &[TO]), NOTHING);
    check(message, &complaint("Auth-Failure", &[TO]), NOTHING);
    check(message, &Report::Other, NOTHING);
}
