//! Sending times: zones, quiet hours, caps, paces.

use std::sync::Arc;

use messaging_core::domain::message::hold::HoldReason;
use messaging_core::ids::CampaignId;
use messaging_core::ports::Transport;
use messaging_core::ports::transport::{Outgoing, Sent, TransportError};
use messaging_core::time::Timestamp;
use messaging_testing::MemoryTransport;
use serde_json::json;

use super::{HOUR, MINUTE, Mailing, SECOND};

impl Mailing {
    /// Reason and end of the hold of each message, by address: `quiet_hours 2026-01-31T10:00:00.000Z`, or its status.
    pub(super) async fn holds(&self, id: CampaignId) -> Vec<String> {
        let told = |reason: HoldReason| serde_json::to_value(reason).unwrap().as_str().unwrap().to_owned();
        let one = |message: messaging_core::domain::message::Message| match message.hold {
            Some(hold) => {
                format!("{} {}", told(hold.reason), hold.until.map_or("-".to_owned(), |until| until.to_string()))
            }
            None => message.status.as_str().to_owned(),
        };
        self.messages(id).await.into_iter().map(one).collect()
    }

    /// Adds contacts in these zones, `a@…`, `b@…` and so on.
    async fn in_zones(&self, zones: &[&str]) {
        let one = |(place, zone): (usize, &&str)| {
            let name = char::from(b'a' + u8::try_from(place).unwrap());
            json!({"email": format!("{name}@d0.example"), "timezone": zone})
        };
        self.add(zones.iter().enumerate().map(one)).await;
    }

    fn at_time(&self, time: &str) {
        self.clock.set(time.parse::<Timestamp>().unwrap());
    }
}

#[tokio::test]
async fn each_zone_has_its_time() {
    let mailing = Mailing::start(0, 1).await;
    mailing.in_zones(&["Pacific/Kiritimati", "Asia/Tokyo", "Europe/Berlin", "America/New_York"]).await;
    let id = mailing.campaign(json!({})).await;
    // 20:00 local time: 06:00 UTC in the first zone.
    mailing.act(id, "schedule", json!({"at": "2026-02-01T20:00:00+01:00", "by_timezone": true})).await;
    mailing.work().await;
    assert_eq!(mailing.status(id).await, "scheduled");
    for (hours, expected) in [(0, 1), (5, 2), (13, 3), (19, 4)] {
        mailing.at_time("2026-02-01T05:59:59Z");
        mailing.clock.set(mailing.app.now() + hours * HOUR);
        mailing.work().await;
        assert_eq!(mailing.attempts(), expected - 1, "{hours}");
        mailing.clock.set(mailing.app.now() + SECOND);
        mailing.work().await;
        assert_eq!(mailing.attempts(), expected, "{hours}");
        if hours == 0 {
            assert_eq!(
                mailing.holds(id).await,
                [
                    "delivered",
                    "by_timezone 2026-02-01T11:00:00.000Z",
                    "by_timezone 2026-02-01T19:00:00.000Z",
                    "by_timezone 2026-02-02T01:00:00.000Z"
                ]
            );
        }
    }
    assert_eq!(mailing.status(id).await, "sent");
}

/// The clocks go forward on 29 March 2026 in Berlin: 02:30 is 03:30 there.
#[tokio::test]
async fn a_time_that_there_is_not_comes_an_hour_later() {
    let mailing = Mailing::start(0, 1).await;
    mailing.in_zones(&["Europe/Berlin", "UTC"]).await;
    mailing.at_time("2026-03-28T09:00:00Z");
    let id = mailing.campaign(json!({})).await;
    mailing.act(id, "schedule", json!({"at": "2026-03-29T02:30:00Z", "by_timezone": true})).await;
    mailing.at_time("2026-03-28T12:30:00Z");
    mailing.work().await;
    assert_eq!(
        mailing.holds(id).await,
        ["by_timezone 2026-03-29T01:30:00.000Z", "by_timezone 2026-03-29T02:30:00.000Z"]
    );
    mailing.at_time("2026-03-29T01:30:00Z");
    mailing.work().await;
    assert_eq!(mailing.holds(id).await, ["delivered", "by_timezone 2026-03-29T02:30:00.000Z"]);
}

#[tokio::test]
async fn nobody_is_disturbed_at_night() {
    let mailing = Mailing::start(0, 1).await;
    mailing.in_zones(&["Asia/Tokyo", "Europe/London"]).await;
    let quiet = json!({"settings": {"quiet_hours": {"start": "18:00", "end": "08:00"}}});
    let id = mailing.send(quiet).await;
    mailing.work().await;
    // It is 18:15 in Tokyo.
    assert_eq!(mailing.holds(id).await, ["quiet_hours 2026-01-31T23:00:00.000Z", "delivered"]);
    for hours in 1..=14 {
        mailing.pass(HOUR).await;
        assert_eq!(mailing.attempts(), if hours == 14 { 2 } else { 1 }, "{hours}");
    }
}

/// The contact moves to another zone while the message waits: the zone at the time of sending counts.
#[tokio::test]
async fn the_zone_of_the_moment_counts() {
    let mailing = Mailing::start(0, 1).await;
    mailing.in_zones(&["Europe/London"]).await;
    let id = mailing.send(json!({"settings": {"quiet_hours": {"start": "09:00", "end": "10:00"}}})).await;
    mailing.work().await;
    assert_eq!(mailing.holds(id).await, ["quiet_hours 2026-01-31T10:00:00.000Z"]);
    mailing.add([json!({"email": "a@d0.example", "timezone": "Atlantic/Azores"})]).await;
    mailing.pass(45 * MINUTE).await;
    assert_eq!(mailing.holds(id).await, ["quiet_hours 2026-01-31T11:00:00.000Z"]);
    mailing.pass(HOUR).await;
    assert_eq!(mailing.holds(id).await, ["delivered"]);
}

#[tokio::test]
async fn a_cap_suppresses_or_defers() {
    let mailing = Mailing::start(2, 1).await;
    let first = mailing.send(json!({})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(first).await, "delivered 2");
    let capped = mailing.send(json!({"settings": {"frequency_cap": {"per_day": 1}}})).await;
    let patient = json!({"per_day": 1, "when_reached": "defer", "defer_hours": 48});
    let patient = mailing.send(json!({"settings": {"frequency_cap": patient}})).await;
    let hasty = json!({"per_day": 1, "when_reached": "defer", "defer_hours": 2});
    let hasty = mailing.send(json!({"settings": {"frequency_cap": hasty}})).await;
    mailing.work().await;
    assert_eq!((mailing.tally(capped).await.as_str(), mailing.status(capped).await.as_str()), ("suppressed 2", "sent"));
    assert_eq!(mailing.holds(patient).await, ["frequency_cap 2026-02-01T09:15:00.000Z"; 2]);
    assert_eq!(mailing.holds(hasty).await, ["frequency_cap 2026-01-31T11:15:00.000Z"; 2]);
    mailing.pass(2 * HOUR).await;
    assert_eq!(mailing.tally(hasty).await, "suppressed 2");
    mailing.pass(22 * HOUR - SECOND).await;
    assert_eq!(mailing.tally(patient).await, "queued 2");
    mailing.pass(SECOND).await;
    assert_eq!(
        (mailing.tally(patient).await.as_str(), mailing.status(patient).await.as_str()),
        ("delivered 2", "sent")
    );
}

#[tokio::test]
async fn the_patience_of_a_cap_ends_in_quiet_hours_too() {
    let mailing = Mailing::start(1, 1).await;
    mailing.send(json!({})).await;
    mailing.work().await;
    let cap = json!({"per_day": 1, "when_reached": "defer", "defer_hours": 10});
    let quiet = json!({"start": "19:00", "end": "08:00"});
    let id = mailing.send(json!({"settings": {"frequency_cap": cap, "quiet_hours": quiet}})).await;
    mailing.work().await;
    assert_eq!(mailing.holds(id).await, ["frequency_cap 2026-01-31T19:15:00.000Z"]);
    mailing.pass(10 * HOUR).await;
    assert_eq!((mailing.tally(id).await.as_str(), mailing.status(id).await.as_str()), ("suppressed 1", "sent"));
}

#[tokio::test]
async fn quiet_hours_let_the_patience_of_a_cap_not_begin_anew() {
    let mailing = Mailing::start(0, 1).await;
    mailing.in_zones(&["UTC"]).await;
    mailing.send(json!({})).await;
    mailing.work().await;
    let cap = json!({"per_day": 1, "when_reached": "defer", "defer_hours": 30});
    let quiet = json!({"start": "12:00", "end": "14:00"});
    let id = mailing.send(json!({"settings": {"frequency_cap": cap, "quiet_hours": quiet}})).await;
    mailing.work().await;
    assert_eq!(mailing.holds(id).await, ["frequency_cap 2026-02-01T09:15:00.000Z"]);
    // In the contact's new zone it is a quarter past twelve.
    mailing.add([json!({"email": "a@d0.example", "timezone": "Africa/Nairobi"})]).await;
    mailing.pass(24 * HOUR).await;
    assert_eq!(mailing.holds(id).await, ["frequency_cap 2026-02-01T11:00:00.000Z"]);
    // Another campaign takes the free place.
    mailing.pass(45 * MINUTE).await;
    mailing.send(json!({})).await;
    mailing.work().await;
    mailing.pass(HOUR).await;
    assert_eq!(
        mailing.holds(id).await,
        ["frequency_cap 2026-02-01T15:15:00.000Z"],
        "thirty hours after the first look"
    );
    mailing.pass(4 * HOUR + 15 * MINUTE).await;
    assert_eq!(mailing.tally(id).await, "suppressed 1");
}

/// A transport in which no attempt begins before eight of them wait, each after its last look.
#[derive(Debug)]
struct Crowd {
    inner: MemoryTransport,
    missing: tokio::sync::watch::Sender<usize>,
}

#[async_trait::async_trait]
impl Transport for Crowd {
    async fn send(&self, outgoing: &Outgoing) -> Result<Sent, TransportError> {
        self.missing.send_modify(|missing| *missing = missing.saturating_sub(1));
        self.missing.subscribe().wait_for(|missing| *missing == 0).await.expect("the sender is ours");
        self.inner.send(outgoing).await
    }
}

/// Eight campaigns whose messages to one person have all been looked at before the first begins, on several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cap_holds_for_eight_senders_that_have_all_looked_before_one_begins() {
    for _ in 0..4 {
        let crowd = Crowd { inner: MemoryTransport::default(), missing: tokio::sync::watch::Sender::new(8) };
        let mailing = Mailing::on(crate::support::Product::carried_by(Arc::new(crowd)).await, 1, 1).await;
        let mut ids = Vec::new();
        for _ in 0..8 {
            ids.push(mailing.send(json!({"settings": {"frequency_cap": {"per_day": 2}}})).await);
        }
        mailing.work().await;
        let mut ends = Vec::new();
        for id in ids {
            ends.push(mailing.tally(id).await);
        }
        ends.sort();
        assert_eq!(ends[..2], ["delivered 1"; 2]);
        assert_eq!(ends[2..], ["suppressed 1"; 6]);
    }
}

/// A message that is tried again keeps its place under the cap.
#[tokio::test]
async fn a_retry_takes_no_second_place() {
    let mailing = Mailing::start(1, 1).await;
    mailing.transport.answer_next("p0@d0.example", "450 4.2.1 later");
    let id = mailing.send(json!({"settings": {"frequency_cap": {"per_day": 1}}})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "deferred 1");
    mailing.pass(MINUTE).await;
    assert_eq!(mailing.tally(id).await, "delivered 1");
    let other = mailing.send(json!({"settings": {"frequency_cap": {"per_day": 2}}})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(other).await, "delivered 1");
}

/// Eight campaigns at once, to the same people: of those that check at the same moment one passes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cap_holds_for_campaigns_that_are_sent_at_the_same_time() {
    let mailing = Arc::new(Mailing::start(25, 5).await);
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(mailing.send(json!({"settings": {"frequency_cap": {"per_day": 2}}})).await);
    }
    mailing.work().await;
    let mut sent = std::collections::BTreeMap::<String, usize>::new();
    for id in ids {
        mailing.tally(id).await;
        for message in mailing.messages(id).await {
            let status = message.status.as_str();
            assert!(["delivered", "suppressed", "queued"].contains(&status), "{status}");
            *sent.entry(message.to).or_default() += usize::from(status == "delivered");
        }
    }
    assert_eq!(sent.len(), 25);
    assert!(sent.values().all(|count| *count == 2), "{sent:?}");
}

#[tokio::test]
async fn a_rate_limit_is_never_passed() {
    let mailing = Mailing::start(35, 7).await;
    let id = mailing.send(json!({"settings": {"rate_limit": 100}})).await;
    let mut begun = Vec::new();
    for _ in 0..60 {
        mailing.work().await;
        begun.push(mailing.attempts());
        mailing.clock.advance(SECOND / 2);
    }
    for (second, window) in begun.windows(12).enumerate() {
        assert!(window[11] - window[0] <= 10, "{second}: {begun:?}");
    }
    assert_eq!((begun[0], begun[12], begun[24], begun[36]), (10, 20, 30, 35));
    assert_eq!((mailing.tally(id).await.as_str(), mailing.status(id).await.as_str()), ("delivered 35", "sent"));
}

/// A process does not know the messages that another one sent just before it started: it assumes that the rate limit is
/// used up.
#[tokio::test]
async fn a_rate_limit_holds_over_a_restart() {
    let mailing = Mailing::start(20, 1).await;
    mailing.send(json!({"settings": {"rate_limit": 100}})).await;
    mailing.work().await;
    assert_eq!(mailing.attempts(), 10);
    let next = mailing.another_process();
    for (seconds, expected) in [(6, 10), (5, 10), (1, 20)] {
        mailing.clock.advance(seconds * SECOND);
        next.run_until_idle().await.unwrap();
        assert_eq!(mailing.attempts(), expected);
    }
}

/// A message waits in the database for days before it is sent: its time to live begins when it is released.
#[tokio::test]
async fn the_time_to_expire_runs_from_the_release() {
    let mailing = Mailing::on(crate::support::Product::with(MemoryTransport::default()).await, 1, 1).await;
    let id = mailing.campaign(json!({})).await;
    mailing.act(id, "schedule", json!({"send_now": true})).await;
    mailing.act(id, "pause", json!({})).await;
    mailing.act(id, "schedule", json!({})).await;
    mailing.transport.answer_next("p0@d0.example", "450 4.2.1 later");
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "deferred 1");
    let quiet = mailing.send(json!({"settings": {"quiet_hours": {"start": "09:00", "end": "08:00"}}})).await;
    mailing.work().await;
    mailing.act(quiet, "pause", json!({})).await;
    mailing.pass(95 * HOUR - 15 * MINUTE).await;
    mailing.transport.answer_next("p0@d0.example", "450 4.2.1 later");
    mailing.act(quiet, "schedule", json!({})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(quiet).await, "deferred 1");
    mailing.pass(MINUTE).await;
    assert_eq!(mailing.tally(quiet).await, "delivered 1");
}
