//! Conditions are evaluated as of the moment that moves a run on, however late the server processes it. Contract
//! section 13.4, "Time" and "Entry".

use serde_json::{Value, json};

use super::{HOUR, Journeys, MINUTE, SECOND, ends, on_event};

/// A graph that waits for an hour, then evaluates a condition.
fn asks_after_an_hour(filter: &Value) -> Value {
    json!({"nodes": [
        {"id": "w", "kind": "wait", "config": {"duration": {"value": 1, "unit": "hours"}}},
        {"id": "c", "kind": "condition", "config": {"filter": filter}},
        {"id": "yes", "kind": "exit", "config": {"reason": "yes"}},
        {"id": "no", "kind": "exit", "config": {"reason": "no"}}],
        "edges": [{"from": "w", "to": "c"}, {"from": "c", "to": "yes", "branch": "yes"},
            {"from": "c", "to": "no", "branch": "no"}]})
}

fn last(value: u32, unit: &str) -> Value {
    json!({"last": {"value": value, "unit": unit}})
}

#[tokio::test]
async fn a_condition_after_a_wait_is_asked_as_of_the_moment_that_the_wait_was_over() {
    let journeys = Journeys::start().await;
    let attributes = json!({"attributes": {"trial_ends": "2026-01-31T11:15:00Z"}});
    let ann = journeys.contact("ann", attributes).await;
    let filters = [
        (json!({"type": "event", "name": "visit", "within": last(2, "hours")}), "yes"),
        (json!({"type": "event", "name": "visit", "within": last(30, "minutes")}), "no"),
        // An event that was accepted after the wait had ended had not happened yet.
        (json!({"type": "event", "name": "late"}), "no"),
        (json!({"type": "event", "name": "at_the_end"}), "yes"),
        (
            json!({"type": "attribute", "key": "trial_ends", "op": "next", "value": {"value": 1, "unit": "hours"}}),
            "yes",
        ),
        (json!({"type": "attribute", "key": "trial_ends", "op": "last", "value": {"value": 1, "unit": "days"}}), "no"),
    ];
    let mut ids = Vec::new();
    for (filter, _) in &filters {
        ids.push(journeys.active(on_event("go"), asks_after_an_hour(filter), json!({})).await);
    }
    journeys.event("visit", "ann", json!({})).await;
    journeys.event("go", "ann", json!({})).await;
    journeys.work().await;
    journeys.clock.advance(HOUR);
    journeys.event("at_the_end", "ann", json!({})).await;
    journeys.clock.advance(SECOND);
    journeys.event("late", "ann", json!({})).await;
    // The server comes to it five hours later.
    journeys.pass(5 * HOUR).await;
    for (id, (filter, expected)) in ids.iter().zip(&filters) {
        assert_eq!(journeys.told_of(id, &ann).await, format!("exited {expected} {expected}"), "{filter}");
    }
}

#[tokio::test]
async fn runs_of_one_page_are_asked_each_as_of_its_own_moment() {
    let journeys = Journeys::start().await;
    let visited = json!({"type": "event", "name": "visit", "within": last(2, "hours")});
    let id = journeys.active(on_event("go"), asks_after_an_hour(&visited), json!({})).await;
    // Some contacts belong to the same share of the work: each visited at the beginning, and they enter at three
    // moments within an hour.
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let mut contacts = Vec::new();
    for name in names {
        contacts.push(journeys.contact(name, json!({})).await);
        journeys.event("visit", name, json!({})).await;
    }
    for name in names {
        journeys.event("go", name, json!({})).await;
        journeys.work().await;
        journeys.clock.advance(HOUR / 2 - MINUTE);
        // So that no wait ends before all have entered.
        if name == "b" {
            break;
        }
    }
    journeys.clock.advance(4 * MINUTE);
    for name in &names[2..] {
        journeys.event("go", name, json!({})).await;
    }
    journeys.pass(6 * HOUR).await;
    let mut told = Vec::new();
    for contact in &contacts {
        told.push(journeys.told_of(&id, contact).await);
    }
    // The visit was 60, 89 and 122 minutes ago when the waits were over.
    let (yes, no) = ("exited yes yes", "exited no no");
    assert_eq!(told, [yes, yes, no, no, no, no, no, no]);
}

#[tokio::test]
async fn who_may_enter_is_asked_as_of_the_cause() {
    let journeys = Journeys::start().await;
    let ann = journeys.contact("ann", json!({})).await;
    let recent = json!({"type": "event", "name": "visit", "within": last(2, "hours")});
    let trigger = json!({"kind": "event", "config": {"name": "order", "filter": recent}});
    let id = journeys.active(trigger, ends(), json!({"re_entry": "always"})).await;
    journeys.event("visit", "ann", json!({})).await;
    for (before, entered) in [(HOUR, 1), (2 * HOUR, 1)] {
        journeys.clock.advance(before);
        journeys.event("order", "ann", json!({})).await;
        journeys.pass(5 * HOUR).await;
        assert_eq!(journeys.runs(&id).await.len(), entered);
    }
    assert_eq!(journeys.told_of(&id, &ann).await, "exited x exit");
}

#[tokio::test]
async fn an_event_that_is_waited_for_is_compared_as_of_its_acceptance() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let fresh = json!({"property": "at", "op": "last", "value": {"value": 1, "unit": "hours"}});
    let graph = json!({"nodes": [
        {"id": "w", "kind": "wait_event", "config": {"on": {"type": "event", "name": "paid", "where": [fresh]},
            "timeout": {"value": 2, "unit": "days"}}},
        {"id": "yes", "kind": "exit", "config": {"reason": "came"}}],
        "edges": [{"from": "w", "to": "yes", "branch": "event"}]});
    let id = journeys.active(on_event("go"), graph, json!({})).await;
    journeys.event("go", "ann", json!({})).await;
    journeys.work().await;
    journeys.clock.advance(HOUR);
    let at = (journeys.app.now() - 10 * MINUTE).to_string();
    journeys.event("paid", "ann", json!({"at": at})).await;
    journeys.pass(3 * HOUR).await;
    assert_eq!(journeys.told(&id).await, "exited yes came");
}

#[tokio::test]
async fn the_daily_limit_counts_the_day_before_each_cause() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let id = journeys.active(on_event("order"), ends(), json!({"re_entry": "always"})).await;
    for _ in 0..105 {
        journeys.event("order", "ann", json!({})).await;
    }
    // The server was away meanwhile.
    journeys.pass(25 * HOUR).await;
    let stats = journeys.get(&journeys.caller, &journeys.at(&format!("automations/{id}/stats"))).await;
    assert_eq!((&stats["entered"], journeys.runs(&id).await.len()), (&json!(100), 101));
}
