//! Pauses, withdrawals, failures, and changes while a campaign is sent.

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::analytics::tally::Counter;
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::campaign::PauseReason;
use messaging_core::domain::mail::sending_domain::DomainStatus;
use messaging_core::domain::message::MessageStatus;
use messaging_core::domain::security::audit::AuditFilter;
use messaging_core::ids::CampaignId;
use messaging_core::ports::store::PageRequest;
use serde_json::{Value, json};

use super::{HOUR, MINUTE, Mailing, SECOND};

impl Mailing {
    /// Runs workers while attempts are held, until this many attempts have begun.
    async fn begin(&self, attempts: usize) -> tokio::task::JoinHandle<()> {
        self.transport.hold();
        let app = self.app.clone();
        let working = tokio::spawn(async move { app.run_until_idle().await.unwrap() });
        self.transport.attempts(attempts).await;
        working
    }

    async fn finish(&self, working: tokio::task::JoinHandle<()>) {
        self.transport.release();
        working.await.unwrap();
    }

    async fn contact(&self, email: &str) -> Value {
        let found = self.get(&self.caller, &self.at(&format!("contacts?email={email}"))).await;
        assert_eq!(found.summary(), "200");
        found["data"][0].clone()
    }

    /// Status and reason of the message to an address, `suppressed no_consent`.
    async fn end_of(&self, id: CampaignId, to: &str) -> String {
        let messages = self.messages(id).await;
        let message = messages.iter().find(|message| message.to == to).unwrap();
        let report = serde_json::to_value(self.report(message.id).await).unwrap();
        let last = report["events"].as_array().unwrap().last().unwrap();
        format!("{} {}", report["status"].as_str().unwrap(), last["meta"]["reason"].as_str().unwrap_or("-"))
    }
}

#[tokio::test]
async fn a_pause_stops_it_and_resuming_ends_it() {
    let mailing = Mailing::start(400, 2).await;
    let id = mailing.send(json!({})).await;
    // A window of each domain is being delivered.
    let working = mailing.begin(10).await;
    mailing.act(id, "pause", json!({})).await;
    mailing.finish(working).await;
    let told = mailing.tally(id).await;
    let begun = mailing.attempts();
    assert!((10..=60).contains(&begun), "{begun}");
    assert_eq!(told, format!("delivered {begun}, queued {}", 400 - begun));
    mailing.pass(HOUR).await;
    assert_eq!(mailing.tally(id).await, told);
    assert_eq!(mailing.view(id).await["waiting"], 400 - begun);
    mailing.add([json!({"email": "late@d0.example"})]).await;
    mailing.act(id, "schedule", json!({})).await;
    mailing.work().await;
    assert_eq!((mailing.tally(id).await.as_str(), mailing.status(id).await.as_str()), ("delivered 400", "sent"));
}

/// Messages in delivery check the campaign before they begin, and wait again.
#[tokio::test]
async fn messages_that_were_released_wait_again_when_it_is_paused() {
    let mailing = Mailing::start(30, 1).await;
    for number in 0..30 {
        mailing.transport.answer_next(&format!("p{number}@d0.example"), "450 4.2.1 greylisted");
    }
    let id = mailing.send(json!({})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "deferred 30");
    // Only a campaign that is not sent yet can be paused: this one has a message that waits.
    let other = mailing.send(json!({"settings": {"quiet_hours": {"start": "09:00", "end": "10:00"}}})).await;
    mailing.work().await;
    mailing.act(other, "pause", json!({})).await;
    mailing.pass(HOUR).await;
    assert_eq!((mailing.tally(other).await.as_str(), mailing.status(other).await.as_str()), ("queued 30", "paused"));
    mailing.act(other, "schedule", json!({"at": "2026-01-31T12:15:00Z"})).await;
    mailing.pass(HOUR).await;
    assert_eq!((mailing.tally(other).await.as_str(), mailing.status(other).await.as_str()), ("queued 30", "scheduled"));
    mailing.pass(HOUR).await;
    assert_eq!((mailing.tally(other).await.as_str(), mailing.status(other).await.as_str()), ("delivered 30", "sent"));
}

#[tokio::test]
async fn cancelling_withdraws_what_was_not_sent() {
    let mailing = Mailing::start(1500, 3).await;
    mailing.transport.answer("p0@d0.example", "450 4.2.1 later");
    let id = mailing.send(json!({})).await;
    let working = mailing.begin(10).await;
    mailing.act(id, "cancel", json!({})).await;
    assert_eq!(mailing.status(id).await, "cancelled");
    mailing.finish(working).await;
    for _ in 0..3 {
        mailing.pass(3 * SECOND).await;
    }
    let (told, begun) = (mailing.tally(id).await, mailing.attempts());
    let stats = mailing.get(&mailing.caller, &mailing.at(&format!("campaigns/{id}/stats"))).await.body;
    assert!(told.starts_with("cancelled ") && told.contains("delivered"), "{told}");
    assert!(!told.contains("queued") && !told.contains("deferred"), "{told}");
    let number = |name: &str| stats[name].as_u64().unwrap();
    assert_eq!(number("recipients"), number("cancelled") + number("sent"), "{stats}");
    mailing.pass(HOUR).await;
    assert_eq!((mailing.attempts(), mailing.tally(id).await), (begun, told));
    assert_eq!(mailing.store.waiting_tracks(mailing.workspace, id).await.unwrap(), []);
}

#[tokio::test]
async fn cancelling_withdraws_what_is_tried_again() {
    let mailing = Mailing::start(3, 1).await;
    mailing.transport.answer("p0@d0.example", "450 4.2.1 later");
    let id = mailing.send(json!({"settings": {"rate_limit": 20}})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "deferred 1, delivered 1, queued 1");
    mailing.act(id, "cancel", json!({})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "cancelled 2, delivered 1");
    mailing.pass(HOUR).await;
    // A contact that was not sent to in the end has its place under the cap back.
    let contact: messaging_core::ids::ContactId =
        mailing.contact("p0@d0.example").await["id"].as_str().unwrap().parse().unwrap();
    let sends =
        mailing.store.contact_sends(mailing.workspace, contact, messaging_core::domain::channel::Channel::Email);
    assert_eq!(sends.await.unwrap().map(|stored| stored.record.times).unwrap_or_default(), []);
}

#[tokio::test]
async fn whoever_unsubscribes_in_the_middle_gets_nothing_any_more() {
    let mailing = Mailing::start(6, 1).await;
    let id = mailing.send(json!({"settings": {"quiet_hours": {"start": "09:00", "end": "10:00"}}})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "queued 6");
    // One contact withdraws consent, others are on the list for different reasons; one is erased, one merged.
    mailing.add([json!({"email": "p0@d0.example", "consent": {"marketing_email": false}})]).await;
    let listed = |number: usize, reason| mailing.suppression(&format!("p{number}@d0.example"), reason);
    let listings = [listed(1, SuppressionReason::Unsubscribe), listed(2, SuppressionReason::Bounce)];
    mailing.commit(Changes::from_iter(listings)).await;
    let erased = mailing.contact("p3@d0.example").await;
    let path = mailing.at(&format!("contacts/{}", erased["id"].as_str().unwrap()));
    assert_eq!(mailing.delete(&mailing.caller, &path).await.summary(), "204");
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "cancelled 1, queued 5");
    mailing.pass(HOUR).await;
    assert_eq!(mailing.tally(id).await, "cancelled 1, delivered 2, suppressed 3");
    assert_eq!(mailing.end_of(id, "p0@d0.example").await, "suppressed no_consent");
    assert_eq!(mailing.end_of(id, "p1@d0.example").await, "suppressed unsubscribe");
    assert_eq!(mailing.end_of(id, "p2@d0.example").await, "suppressed bounce");
    assert_eq!(mailing.status(id).await, "sent");
    let stats = mailing.get(&mailing.caller, &mailing.at(&format!("campaigns/{id}/stats"))).await.body;
    assert_eq!((&stats["skipped"]["no_consent"], &stats["skipped"]["suppressed"]), (&json!(1), &json!(2)));
}

/// Contacts erased between the freeze and the making of the messages are still counted somewhere.
#[tokio::test]
async fn a_recipient_who_is_gone_before_there_is_a_message_counts_as_cancelled() {
    let mailing = Mailing::start(20, 1).await;
    let test = json!({"test_percent": 50, "wait_minutes": 1});
    let variants = json!([{"name": "a"}, {"name": "b"}]);
    let id = mailing.send(json!({"kind": "ab_test", "variants": variants, "settings": {"ab_test": test}})).await;
    mailing.work().await;
    let has_it: Vec<_> = mailing.messages(id).await.into_iter().map(|message| message.to).collect();
    let without = (0..20).map(|number| format!("p{number}@d0.example")).find(|to| !has_it.contains(to)).unwrap();
    let erased = mailing.contact(&without).await;
    let path = mailing.at(&format!("contacts/{}", erased["id"].as_str().unwrap()));
    assert_eq!(mailing.delete(&mailing.caller, &path).await.summary(), "204");
    mailing.pass(MINUTE).await;
    assert_eq!(
        (mailing.tally(id).await.as_str(), mailing.status(id).await.as_str()),
        ("cancelled 1, delivered 19", "sent")
    );
}

#[tokio::test]
async fn a_campaign_that_cannot_be_sent_fails_with_the_reason() {
    let mailing = Mailing::start(2, 1).await;
    let id = mailing.campaign(json!({})).await;
    mailing.act(id, "schedule", json!({"at": "2026-01-31T10:15:00Z"})).await;
    let page = PageRequest { after: None, limit: 10 };
    let mut domain = mailing.store.domains(mailing.workspace, page).await.unwrap().items.remove(0);
    let stored = mailing.store.domain(mailing.workspace, domain.id).await.unwrap().unwrap();
    domain.status = DomainStatus::Failed;
    mailing.commit(Changes::from_iter([Write::put(domain, Expect::Revision(stored.revision))])).await;
    mailing.pass(HOUR).await;
    let view = mailing.view(id).await;
    assert_eq!((&view["status"], &view["failure_reason"]), (&json!("failed"), &json!("sender_domain_not_verified")));
    assert_eq!((mailing.attempts(), mailing.tally(id).await.as_str()), (0, ""));
}

#[tokio::test]
async fn what_is_hours_late_waits_for_a_person() {
    let mailing = Mailing::start(2, 1).await;
    let late = mailing.campaign(json!({})).await;
    mailing.act(late, "schedule", json!({"at": "2026-01-31T10:15:00Z"})).await;
    let under_way = mailing.send(json!({"settings": {"quiet_hours": {"start": "09:00", "end": "10:00"}}})).await;
    mailing.work().await;
    // No worker runs for ten hours.
    mailing.clock.advance(10 * HOUR);
    mailing.work().await;
    for id in [late, under_way] {
        let view = mailing.view(id).await;
        assert_eq!((&view["status"], &view["pause_reason"]), (&json!("paused"), &json!("stale")));
    }
    assert_eq!(serde_json::to_value(PauseReason::Stale).unwrap(), json!("stale"));
    // The audit log says that the server did it, and why.
    let filter = AuditFilter { actor: Some("system".to_owned()), ..AuditFilter::default() };
    let page = PageRequest { after: None, limit: 10 };
    let entries = mailing.store.audit_entries(Some(mailing.workspace), &filter, page).await.unwrap().items;
    assert_eq!(entries.len(), 2);
    for entry in &entries {
        assert_eq!((entry.operation.as_str(), entry.resource.kind.as_str()), ("pauseCampaign", "campaign"));
        let changed: Vec<_> = entry.changes.iter().map(|change| (change.pointer.as_str(), &change.after)).collect();
        assert_eq!(changed, [("/pause_reason", &json!("stale")), ("/status", &json!("paused"))]);
    }
    assert_eq!(mailing.attempts(), 0);
    for id in [late, under_way] {
        mailing.act(id, "schedule", json!({})).await;
    }
    mailing.work().await;
    assert_eq!((mailing.status(late).await.as_str(), mailing.status(under_way).await.as_str()), ("sent", "sent"));
    assert_eq!(mailing.attempts(), 4);
}

/// Messages that quiet hours hold until the next day do not make the campaign look stalled.
#[tokio::test]
async fn waiting_for_the_next_day_is_no_standstill() {
    let mailing = Mailing::start(2, 1).await;
    let id = mailing.send(json!({"settings": {"quiet_hours": {"start": "09:00", "end": "07:00"}}})).await;
    mailing.work().await;
    for _ in 0..24 {
        mailing.pass(HOUR).await;
    }
    assert_eq!((mailing.status(id).await.as_str(), mailing.tally(id).await.as_str()), ("sent", "delivered 2"));
    assert_eq!(mailing.counts(id).await[0].total(Counter::Waiting), 0);
}

/// The addresses taken by an audience are removed when its campaign ends early: they are many, and nothing reads them
/// any more.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_taken_by_an_audience_go_with_a_campaign_that_ends_before_it_is_complete() {
    let mailing = Mailing::start(1, 1).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = mailing.campaign(json!({})).await;
        mailing.act(id, "schedule", json!({"at": "2026-01-31T10:15:00Z"})).await;
        // As a page of the audience leaves them.
        mailing.commit(Changes::from_iter([Write::TakeAddresses(mailing.workspace, id, vec![1, 2])])).await;
        ids.push(id);
    }
    let taken = async |id: CampaignId| {
        let mut taken = mailing.store.taken_addresses(mailing.workspace, id, vec![1, 2, 3]).await.unwrap();
        taken.sort_unstable();
        taken
    };
    let [cancelled, failed, copied] = ids[..] else { panic!("three campaigns") };
    mailing.act(cancelled, "pause", json!({})).await;
    assert_eq!(taken(cancelled).await, [1, 2]);
    mailing.act(cancelled, "cancel", json!({})).await;
    assert_eq!(taken(cancelled).await, [] as [u64; 0]);

    let page = PageRequest { after: None, limit: 10 };
    let mut domain = mailing.store.domains(mailing.workspace, page).await.unwrap().items.remove(0);
    let stored = mailing.store.domain(mailing.workspace, domain.id).await.unwrap().unwrap();
    domain.status = DomainStatus::Failed;
    mailing.commit(Changes::from_iter([Write::put(domain, Expect::Revision(stored.revision))])).await;
    mailing.act(copied, "pause", json!({})).await;
    mailing.pass(HOUR).await;
    assert_eq!((mailing.status(failed).await.as_str(), taken(failed).await), ("failed", vec![]));

    assert_eq!(taken(copied).await, [1, 2]);
    // As `admin resume --queued cancel` ends it.
    mailing.clock.advance(SECOND);
    let fence = messaging_core::domain::installation::fence::Fence::held(mailing.app.now());
    mailing.commit(Changes::from_iter([Write::PutFence(Some(fence), None)])).await;
    mailing.app.look_at_fence().await.unwrap();
    messaging_engine::admin::resume(&mailing.app, messaging_engine::admin::Queued::Cancel).await.unwrap();
    mailing.work().await;
    assert_eq!(taken(copied).await, [] as [u64; 0]);
}

/// Contacts are merged and erased while some of them have the message, some have one that waits, and some have none
/// yet.
#[tokio::test]
async fn merges_and_erasures_in_the_middle_leave_counters_true_and_nobody_gets_it_twice() {
    let mailing = Mailing::start(40, 3).await;
    let test = json!({"test_percent": 50, "wait_minutes": 60});
    let variants = json!([{"name": "a"}, {"name": "b"}]);
    // Half get it first; six of these may begin in six seconds.
    let settings = json!({"ab_test": test, "rate_limit": 60});
    let id = mailing.send(json!({"kind": "ab_test", "variants": variants, "settings": settings})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "delivered 6, queued 14");
    let messages = mailing.messages(id).await;
    let of = |status| -> Vec<&str> {
        let found = messages.iter().filter(move |message| message.status == status);
        found.map(|message| message.to.as_str()).collect()
    };
    let (has_it, waits) = (of(MessageStatus::Delivered), of(MessageStatus::Queued));
    let all: Vec<_> = (0..40).map(|number| format!("p{number}@d{}.example", number % 3)).collect();
    let without: Vec<_> =
        all.iter().map(String::as_str).filter(|to| !has_it.contains(to) && !waits.contains(to)).collect();
    assert_eq!(without.len(), 20);
    let contact = async |email: &str| mailing.contact(email).await["id"].as_str().unwrap().to_owned();
    let mut gone = Vec::new();
    for (primary, duplicate) in [
        (has_it[0], has_it[1]),
        (has_it[2], waits[0]),
        (waits[1], has_it[3]),
        (waits[2], waits[3]),
        (waits[4], without[0]),
        (without[1], waits[5]),
        (without[2], has_it[4]),
        (without[3], without[4]),
    ] {
        let body = json!({"primary_id": contact(primary).await, "duplicate_id": contact(duplicate).await});
        let merged = mailing.post(&mailing.caller, &mailing.at("contacts/merge"), body).await;
        assert_eq!(merged.summary(), "200", "{primary} {duplicate}");
        gone.push(duplicate);
    }
    for erased in [has_it[5], waits[6], waits[7], without[5], without[6]] {
        let path = mailing.at(&format!("contacts/{}", contact(erased).await));
        assert_eq!(mailing.delete(&mailing.caller, &path).await.summary(), "204");
    }
    // As long as the limit requires, and a little more.
    for _ in 0..5 {
        mailing.pass(SECOND * 6).await;
        mailing.tally(id).await;
    }
    mailing.pass(HOUR).await;
    // As long as the limit requires, and a little more.
    for _ in 0..5 {
        mailing.pass(SECOND * 6).await;
        mailing.tally(id).await;
    }
    let (tally, view) = (mailing.tally(id).await, mailing.view(id).await);
    assert_eq!(view["status"], "sent", "{tally} {view} {:?}", mailing.holds(id).await);
    let mut sent: Vec<_> =
        mailing.transport.sent().into_iter().map(|outgoing| outgoing.recipients[0].clone()).collect();
    sent.sort();
    let attempts = sent.len();
    sent.dedup();
    assert_eq!(sent.len(), attempts, "somebody got it twice");
    for erased in [waits[6], waits[7], without[5], without[6]] {
        assert!(!sent.iter().any(|to| to == erased), "{erased}");
    }
    let untouched = all.iter().filter(|to| {
        !gone.contains(&to.as_str()) && ![waits[6], waits[7], without[5], without[6]].contains(&to.as_str())
    });
    for to in untouched {
        assert!(sent.contains(to), "{to} was left out");
    }
    // The counters match the rows, over everything in the database.
    let verified = messaging_engine::admin::verify(&mailing.app).await.unwrap();
    assert!(verified.differences.is_empty(), "{verified:?}");
}
