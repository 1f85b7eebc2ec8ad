use super::*;
use crate::domain::webhook::EventType;
use crate::domain::webhook::delivery::Subject;
use crate::ids::{DeliveryId, EventId, Id as _, MessageId, WebhookId, WorkspaceId};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const SCHEDULE: [Duration; 2] = [Duration::from_secs(5), Duration::from_mins(5)];

fn delivery() -> Delivery {
    let at = NOW;
    Delivery::new(
        DeliveryId::from_bytes([1; 16]),
        (WorkspaceId::from_bytes([2; 16]), WebhookId::from_bytes([3; 16])),
        (EventId::from_bytes([4; 16]), EventType::Bounce),
        Subject::Event { message_id: MessageId::from_bytes([5; 16]), at },
        at,
    )
}

fn status(status: u16) -> Answer {
    let status = StatusCode::from_u16(status).unwrap();
    Answer::Status { status, body: "said".to_owned(), retry_after: None }
}

fn put_off(status: u16, seconds: u64) -> Answer {
    let status = StatusCode::from_u16(status).unwrap();
    Answer::Status { status, body: String::new(), retry_after: Some(Duration::from_secs(seconds)) }
}

fn attempt(answer: Answer) -> Attempt<'static> {
    Attempt { answer, ended_at: NOW, took: Duration::from_millis(41), schedule: &SCHEDULE, jitter: 0 }
}

/// `pending +5s http_status 500 Fails`
#[track_caller]
fn check(before: Delivery, answer: Answer, expected: &str) {
    let attempts = before.attempts;
    let (after, consequence) = judge(before, attempt(answer));
    assert_eq!((after.attempts, after.duration_ms), (attempts + 1, Some(41)));
    let next = after.next_attempt_at.map(|next| format!("+{}s ", next.since(NOW).as_secs())).unwrap_or_default();
    let error = after.error.map(|error| format!("{error:?} ")).unwrap_or_default();
    let status = after.response_status.map(|status| format!("{status} ")).unwrap_or_default();
    assert_eq!(format!("{} {next}{error}{status}{consequence:?}", after.status.as_str()), expected);
    assert_eq!(after.delivered_at.is_some(), after.status == DeliveryStatus::Delivered);
}

#[test]
fn only_2xx_is_delivered() {
    for good in [200, 201, 202, 204, 299] {
        check(delivery(), status(good), &format!("delivered {good} Works"));
    }
    for bad in [301, 302, 304, 307, 400, 401, 404, 429, 500, 503] {
        check(delivery(), status(bad), &format!("pending +5s HttpStatus {bad} Fails"));
    }
    check(delivery(), Answer::Nothing(DeliveryError::Timeout), "pending +5s Timeout Fails");
    check(delivery(), Answer::Nothing(DeliveryError::BlockedAddress), "pending +5s BlockedAddress Fails");
}

#[test]
fn the_schedule_is_walked_to_its_end() {
    let tried = |attempts| Delivery { attempts, ..delivery() };
    check(tried(0), status(500), "pending +5s HttpStatus 500 Fails");
    check(tried(1), status(500), "pending +300s HttpStatus 500 Fails");
    check(tried(2), status(500), "failed HttpStatus 500 Fails");
    check(tried(2), put_off(503, 60), "failed HttpStatus 503 Fails");
    check(tried(2), status(200), "delivered 200 Works");
}

#[test]
fn a_receiver_may_ask_for_more_time() {
    check(delivery(), put_off(429, 60), "pending +60s HttpStatus 429 Fails");
    check(delivery(), put_off(503, 3), "pending +5s HttpStatus 503 Fails");
    check(delivery(), put_off(503, 1_000_000), "pending +86400s HttpStatus 503 Fails");
    check(delivery(), put_off(500, 60), "pending +5s HttpStatus 500 Fails");
}

#[test]
fn a_receiver_that_is_gone_is_left_alone() {
    check(delivery(), status(410), "failed HttpStatus 410 Gone");
}

#[test]
fn a_test_is_attempted_once() {
    let test = Delivery { subject: Subject::Test(None), ..delivery() };
    check(test.clone(), status(500), "failed HttpStatus 500 Fails");
    check(test, status(200), "delivered 200 Works");
}

#[test]
fn waits_differ_by_a_tenth() {
    for (jitter, millis) in [(-100, 4500), (0, 5000), (100, 5500), (-5000, 4500)] {
        let (after, _) = judge(delivery(), Attempt { jitter, ..attempt(status(500)) });
        assert_eq!(after.next_attempt_at.unwrap().since(NOW), Duration::from_millis(millis));
    }
}
