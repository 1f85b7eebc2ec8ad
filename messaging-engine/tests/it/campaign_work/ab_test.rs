//! A/B tests.

use std::collections::BTreeMap;

use messaging_core::changes::{Changes, moves};
use messaging_core::domain::message::{EventKind, Message};
use messaging_core::domain::tally::Counter;
use serde_json::json;

use super::{HOUR, MINUTE, Mailing};

fn variants(weights: &[f64]) -> serde_json::Value {
    let one = |(place, weight): (usize, &f64)| json!({"name": format!("v{place}"), "weight": weight, "subject": format!("s{place}")});
    weights.iter().enumerate().map(one).collect()
}

/// How many messages each variant has.
fn sizes(messages: &[Message]) -> Vec<usize> {
    let mut sizes = BTreeMap::<u8, usize>::new();
    for message in messages {
        *sizes.entry(message.variant.unwrap()).or_default() += 1;
    }
    sizes.into_values().collect()
}

impl Mailing {
    /// Somebody opens each of these messages.
    async fn open<'a>(&self, messages: impl Iterator<Item = &'a Message>) {
        for message in messages {
            let now = self.app.now();
            let seen = message.milestones.showing(EventKind::Open, false);
            let after = Message { milestones: seen, revision: message.revision + 1, ..message.clone() };
            let writes = moves(message, &after, Some((EventKind::Open, false)), now);
            self.commit(writes.into_iter().collect::<Changes>()).await;
        }
    }
}

#[tokio::test]
async fn without_a_test_group_all_are_split_by_the_weights() {
    let mailing = Mailing::start(1003, 4).await;
    let id = mailing.send(json!({"kind": "ab_test", "variants": variants(&[1.0, 2.0, 0.5])})).await;
    mailing.work().await;
    assert_eq!((mailing.tally(id).await.as_str(), mailing.status(id).await.as_str()), ("delivered 1003", "sent"));
    assert_eq!(sizes(&mailing.messages(id).await), [287, 573, 143]);
}

#[tokio::test]
async fn a_test_leads_to_the_winner() {
    let mailing = Mailing::start(600, 4).await;
    let id = mailing
        .send(json!({"kind": "ab_test", "variants": variants(&[1.0, 1.0]),
            "settings": {"ab_test": {"test_percent": 20, "wait_minutes": 60}}}))
        .await;
    mailing.work().await;
    let view = mailing.view(id).await;
    assert_eq!(
        (&view["status"], &view["phase"], &view["waiting"]),
        (&json!("sending"), &json!("waiting_winner"), &json!(480))
    );
    let tested = mailing.messages(id).await;
    assert_eq!(sizes(&tested), [60, 60]);
    // The second variant is opened more often.
    let opens = |message: &&Message| message.variant == Some(1);
    mailing.open(tested.iter().filter(opens).take(30)).await;
    mailing.open(tested.iter().filter(|message| !opens(message)).take(3)).await;
    mailing.pass(HOUR - MINUTE).await;
    assert_eq!(mailing.tally(id).await, "delivered 120");
    mailing.pass(MINUTE).await;
    assert_eq!(mailing.tally(id).await, "delivered 600");
    let view = mailing.view(id).await;
    assert_eq!(
        (&view["status"], &view["phase"], &view["winner_variant"]),
        (&json!("sent"), &json!(null), &json!("v1"))
    );
    assert_eq!(sizes(&mailing.messages(id).await), [60, 540]);
    // What is spread is spread over all of the list, not its beginning.
    let late = tested.iter().filter(|message| message.to.starts_with("p5")).count();
    assert!((5..50).contains(&late), "{late}");
}

#[tokio::test]
async fn a_person_chooses_also_while_it_is_paused() {
    let mailing = Mailing::start(50, 1).await;
    let test = json!({"test_percent": 50, "wait_minutes": 1, "winner_metric": "manual"});
    let id = mailing
        .send(json!({"kind": "ab_test", "variants": variants(&[1.0, 1.0]), "settings": {"ab_test": test}}))
        .await;
    mailing.work().await;
    mailing.pass(2 * MINUTE).await;
    assert_eq!(mailing.view(id).await["phase"], "waiting_winner");
    mailing.act(id, "pause", json!({})).await;
    mailing.act(id, "winner", json!({"variant": "v1"})).await;
    mailing.work().await;
    assert_eq!(mailing.tally(id).await, "delivered 25");
    mailing.act(id, "schedule", json!({})).await;
    mailing.work().await;
    assert_eq!((mailing.tally(id).await.as_str(), mailing.status(id).await.as_str()), ("delivered 50", "sent"));
}

#[tokio::test]
async fn a_pause_does_not_stop_the_wait_for_a_winner() {
    let mailing = Mailing::start(50, 1).await;
    let test = json!({"test_percent": 50, "wait_minutes": 30});
    let id = mailing
        .send(json!({"kind": "ab_test", "variants": variants(&[1.0, 1.0]), "settings": {"ab_test": test}}))
        .await;
    mailing.work().await;
    mailing.act(id, "pause", json!({})).await;
    mailing.work().await;
    mailing.pass(30 * MINUTE).await;
    let view = mailing.view(id).await;
    assert_eq!(
        (&view["status"], &view["phase"], &view["winner_variant"]),
        (&json!("paused"), &json!("winner"), &json!("v0"))
    );
    assert_eq!(mailing.tally(id).await, "delivered 25");
}

#[tokio::test]
async fn a_test_group_of_everybody_is_no_test() {
    let mailing = Mailing::start(3, 1).await;
    let test = json!({"test_percent": 90, "wait_minutes": 30});
    let id = mailing
        .send(json!({"kind": "ab_test", "variants": variants(&[100.0, 1.0, 1.0]), "settings": {"ab_test": test}}))
        .await;
    mailing.work().await;
    let view = mailing.view(id).await;
    assert_eq!((&view["status"], &view["phase"]), (&json!("sent"), &json!(null)));
    assert_eq!(sizes(&mailing.messages(id).await), [1, 1, 1]);
    assert_eq!(mailing.counts(id).await.iter().map(|counts| counts.total(Counter::Delivered)).sum::<u64>(), 3);
}
