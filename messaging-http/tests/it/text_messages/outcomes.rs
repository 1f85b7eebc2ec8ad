//! Every class of answer and of report, of every provider.

use std::time::Duration;

use messaging_testing::fakes::{FakeHttp, FakeProvider, FakeSmpp, FakeVonage};
use serde_json::{Value, json};

use super::Texts;

/// Expected results of a message to a number with these last digits.
struct Row {
    digits: u8,
    /// The number of reports that the provider sends to the server about the message.
    calls: usize,
    fate: &'static str,
    listed: &'static str,
    /// The kind of an event, and members of its `meta`.
    meta: (&'static str, Value),
}

const fn row(digits: u8, calls: usize, fate: &'static str, listed: &'static str, meta: (&'static str, Value)) -> Row {
    Row { digits, calls, fate, listed, meta }
}

const DELIVERED: &str = "delivered: delivered queued sent";
const READ: &str = "delivered: delivered open queued sent";
const BOUNCED: &str = "bounced: bounce queued";
const BOUNCED_LATER: &str = "bounced: bounce queued sent";
const FAILED: &str = "failed: failed queued";
const FAILED_LATER: &str = "failed: failed queued sent";
const DEFERRED: &str = "deferred: deferred queued";
const SENT: &str = "sent: queued sent";
const BOUNCE: &str = "bounce system";
const OPTED_OUT: &str = "unsubscribe recipient";

impl Texts {
    async fn check(&self, number: &str, id: &str, row: &Row) {
        let Row { digits, fate, listed, meta: (kind, expected), .. } = row;
        assert_eq!(self.fate(id).await, *fate, "{digits}: {}", self.report(id).await);
        assert_eq!(self.listed(number).await, *listed, "{digits}");
        let meta = self.meta(id, kind).await;
        for (name, value) in expected.as_object().into_iter().flatten() {
            assert_eq!(&meta[name], value, "{digits}: {kind} {meta}");
        }
        assert_eq!(self.channel().await["status"], "active", "{digits}: that is about one message");
    }

    async fn check_all(&self, fake: &FakeProvider, rows: &[Row]) {
        let mut calls = 0;
        for (number, row) in rows.iter().enumerate() {
            let to = format!("+99900{number:03}{:02}", row.digits);
            let id = self.send(&to).await;
            calls += row.calls;
            fake.calls_answered(calls).await;
            self.check(&to, &id, row).await;
        }
    }
}

fn bounce(class: &str, code: &str) -> (&'static str, Value) {
    let kind = if class == "invalid_recipient" || class == "blocked" { "hard" } else { "soft" };
    ("bounce", json!({"bounce_type": kind, "bounce_class": class, "provider_code": code}))
}

fn failed(code: &str) -> (&'static str, Value) {
    ("failed", json!({"reason": "provider_error", "provider_code": code}))
}

fn deferred(code: &str) -> (&'static str, Value) {
    ("deferred", json!({"attempt": 1, "provider_code": code}))
}

fn anything() -> (&'static str, Value) {
    ("queued", json!({}))
}

#[tokio::test]
async fn what_twilio_answers_and_reports_decides_about_message_and_number() {
    let (texts, fake) = Texts::by_twilio().await;
    let opted_out = || ("suppressed", json!({"reason": "unsubscribe"}));
    let rows = [
        row(1, 2, DELIVERED, "", ("delivered", json!({"response": "delivered"}))),
        row(2, 0, BOUNCED, BOUNCE, bounce("invalid_recipient", "21211")),
        row(3, 0, BOUNCED, "", bounce("unreachable", "30003")),
        row(4, 0, DEFERRED, "", deferred("20500")),
        row(5, 0, BOUNCED, "", bounce("policy", "30007")),
        row(6, 0, FAILED, "", failed("21612")),
        row(7, 3, READ, "", ("open", json!({"source": "read_receipt"}))),
        row(8, 0, "suppressed: queued suppressed", OPTED_OUT, opted_out()),
        row(12, 0, SENT, "", anything()),
        row(34, 0, DEFERRED, "", ("deferred", json!({"ambiguous": true}))),
        row(37, 0, FAILED, "", ("failed", json!({"reason": "provider_error"}))),
        row(40, 3, READ, "", anything()),
        row(41, 6, READ, "", anything()),
        row(42, 3, READ, "", anything()),
        row(52, 1, BOUNCED_LATER, BOUNCE, bounce("invalid_recipient", "30006")),
        row(53, 1, BOUNCED_LATER, "", bounce("unreachable", "30003")),
        row(54, 1, FAILED_LATER, "", failed("20500")),
        row(55, 1, BOUNCED_LATER, "", bounce("policy", "30007")),
        row(56, 1, FAILED_LATER, "", failed("21612")),
        row(58, 1, "suppressed: queued sent suppressed", OPTED_OUT, opted_out()),
        row(59, 1, FAILED_LATER, "", failed("20003")),
        row(61, 2, DELIVERED, "", anything()),
    ];
    texts.check_all(&fake, &rows).await;
}

#[tokio::test]
async fn a_report_settles_what_was_not_answered() {
    let (texts, fake) = Texts::by_twilio().await;
    let id = texts.send("+9990000033").await;
    fake.calls_answered(2).await;
    texts.pass(Duration::from_hours(25)).await;
    let report = texts.report(&id).await;
    assert_eq!(report["status"], "delivered", "{report}");
    assert_eq!(fake.requests().len(), 1, "it is not sent again");
}

#[tokio::test]
async fn what_vonage_answers_and_reports_decides_about_message_and_number() {
    let api = FakeVonage::with_example_key("app", "secret");
    let (texts, fake) = Texts::by("vonage", api.clone(), |url| api.settings(url)).await;
    let rows = [
        row(1, 2, DELIVERED, "", anything()),
        row(2, 0, BOUNCED, BOUNCE, bounce("invalid_recipient", "1040")),
        row(4, 0, DEFERRED, "", deferred("internal-error")),
        row(6, 0, FAILED, "", failed("1022")),
        row(7, 3, READ, "", anything()),
        row(10, 0, BOUNCED, "bounce system blocked", bounce("blocked", "1050")),
        row(52, 1, BOUNCED_LATER, BOUNCE, bounce("invalid_recipient", "1040")),
        // An outage of the provider.
        row(54, 1, FAILED_LATER, "", ("failed", json!({"reason": "provider_error"}))),
        row(60, 1, BOUNCED_LATER, "bounce system blocked", bounce("blocked", "1050")),
        row(61, 2, DELIVERED, "", anything()),
    ];
    texts.check_all(&fake, &rows).await;
}

#[tokio::test]
async fn what_a_gateway_of_ones_own_answers_and_reports_decides_about_message_and_number() {
    let api = FakeHttp::new(Some("token"));
    let (texts, fake) = Texts::by("http", api.clone(), |url| api.settings(url)).await;
    let soft = || ("bounce", json!({"bounce_type": "soft", "bounce_class": "unknown"}));
    let rows = [
        row(1, 1, DELIVERED, "", anything()),
        row(2, 0, BOUNCED, BOUNCE, ("bounce", json!({"bounce_class": "invalid_recipient"}))),
        row(4, 0, DEFERRED, "", ("deferred", json!({"attempt": 1}))),
        row(6, 0, FAILED, "", ("failed", json!({"reason": "provider_error"}))),
        row(7, 2, READ, "", anything()),
        row(38, 0, DEFERRED, "", anything()),
        row(53, 1, BOUNCED_LATER, "", soft()),
        row(56, 1, FAILED_LATER, "", ("failed", json!({"reason": "provider_error"}))),
    ];
    texts.check_all(&fake, &rows).await;
}

#[tokio::test]
async fn what_a_message_center_answers_and_reports_decides_about_message_and_number() {
    let texts = Texts::start().await;
    let center = FakeSmpp::start("us", "secret").await.unwrap();
    texts.set("smpp", &center.settings()).await;
    let rows = [
        row(1, 1, DELIVERED, "", anything()),
        row(2, 0, BOUNCED, BOUNCE, ("bounce", json!({"bounce_class": "invalid_recipient"}))),
        row(3, 0, BOUNCED, "", ("bounce", json!({"bounce_type": "soft"}))),
        row(4, 0, DEFERRED, "", ("deferred", json!({"attempt": 1}))),
        row(6, 0, FAILED, "", ("failed", json!({"reason": "provider_error"}))),
        row(42, 1, DELIVERED, "", anything()),
        row(52, 1, BOUNCED_LATER, "", ("bounce", json!({"bounce_type": "soft"}))),
        row(53, 1, BOUNCED_LATER, "", ("bounce", json!({"bounce_type": "soft"}))),
        row(55, 1, BOUNCED_LATER, "", ("bounce", json!({"bounce_class": "policy"}))),
    ];
    let mut receipts = 0;
    for (number, row) in rows.iter().enumerate() {
        let to = format!("+99900{number:03}{:02}", row.digits);
        let id = texts.send(&to).await;
        receipts += row.calls;
        center.answers(receipts).await;
        if row.calls > 0 {
            // A receipt that overtook the answer looks for its message again.
            texts.pass(Duration::from_mins(1)).await;
        }
        texts.check(&to, &id, row).await;
    }
    center.write("+9990000001", "STOP").await;
    center.answers(receipts + 1).await;
    assert_eq!(texts.listed("+9990000001").await, OPTED_OUT);
}

#[tokio::test]
async fn five_soft_bounces_in_a_row_suppress_a_number_and_what_is_not_its_fault_does_not() {
    let (texts, fake) = Texts::by_twilio().await;
    let mut calls = 0;
    // Unreachable at once and by report; filtered, of a failing provider, refused.
    for (digits, reported, listed) in [
        (3, 0, "bounce system soft_bounce_limit"),
        (53, 1, "bounce system soft_bounce_limit"),
        (5, 0, ""),
        (54, 1, ""),
        (6, 0, ""),
    ] {
        let to = format!("+99900000{digits:02}");
        for _ in 0..5 {
            assert_eq!(texts.listed(&to).await, "", "{digits}");
            texts.send(&to).await;
            calls += reported;
            fake.calls_answered(calls).await;
        }
        assert_eq!(texts.listed(&to).await, listed, "{digits}");
        let next = texts.send(&to).await;
        calls += if listed.is_empty() { reported } else { 0 };
        fake.calls_answered(calls).await;
        let status = texts.report(&next).await["status"].clone();
        assert_eq!(status == "suppressed", !listed.is_empty(), "{digits}: {status}");
    }
}

#[tokio::test]
async fn what_expires_because_of_the_provider_is_no_bounce() {
    let (texts, fake) = Texts::by_twilio().await;
    let id = texts.send("+9990000004").await;
    for _ in 0..30 {
        texts.pass(Duration::from_hours(1)).await;
    }
    let report = texts.report(&id).await;
    assert_eq!(report["status"], "failed", "{report}");
    assert_eq!(texts.meta(&id, "failed").await["reason"], "provider_error");
    assert_eq!(texts.listed("+9990000004").await, "");
    let requests = fake.requests().len();
    texts.pass(Duration::from_hours(24)).await;
    assert_eq!(fake.requests().len(), requests, "it is over");
}
