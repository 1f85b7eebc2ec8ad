//! Goals and exits that ask for suppressions, on every channel: contract sections 13.3 and 13.4.

use serde_json::{Value, json};

use super::{Journeys, MINUTE, on_event, waits};

/// A workspace with the contact Ann and an active automation, whose goal is that a contact is suppressed on a channel
/// or is not.
async fn under_way(channel: &str, is_suppressed: bool) -> (Journeys, String) {
    let journeys = Journeys::start().await;
    let attributes = json!({"push_token": ["t1", "t2"], "telegram_chat_id": 7, "viber_id": "user="});
    journeys.contact("ann", json!({"phone": "+14155550123", "attributes": attributes})).await;
    let mut graph = waits();
    graph["goal"] = json!({"type": "suppression", "channel": channel, "value": is_suppressed});
    let id = journeys.active(on_event("signup"), graph, json!({})).await;
    (journeys, id)
}

#[tokio::test]
async fn a_goal_hears_of_an_address_that_is_suppressed_whatever_the_channel() {
    for (channel, address) in [
        ("email", "ann@example.com"),
        ("sms", "+14155550123"),
        ("viber", "+14155550123"),
        ("telegram", "7"),
        ("push", "t2"),
    ] {
        let (journeys, id) = under_way(channel, true).await;
        journeys.event("signup", "ann", json!({})).await;
        journeys.work().await;
        assert_eq!(journeys.told(&id).await, "waiting w");
        journeys.made("suppressions", json!({"channel": channel, "address": address, "reason": "manual"})).await;
        journeys.pass(MINUTE).await;
        assert_eq!(journeys.told(&id).await, "completed w goal", "{channel}");
    }
}

#[tokio::test]
async fn a_goal_hears_of_an_address_that_is_off_the_list_again() {
    for (channel, address) in [("telegram", "7"), ("push", "t1")] {
        let (journeys, id) = under_way(channel, false).await;
        let listed = json!({"channel": channel, "address": address, "reason": "manual"});
        let listed: Value = journeys.made("suppressions", listed).await;
        journeys.event("signup", "ann", json!({})).await;
        journeys.work().await;
        assert_eq!(journeys.told(&id).await, "waiting w");
        let path = journeys.at(&format!("suppressions/{}", listed["id"].as_str().unwrap()));
        let gone = crate::bed::Call::new(&journeys.caller, http::Method::DELETE, &path);
        assert_eq!(crate::bed::send(&journeys.app, gone).await.summary(), "204");
        journeys.pass(MINUTE).await;
        assert_eq!(journeys.told(&id).await, "completed w goal", "{channel}");
    }
}
