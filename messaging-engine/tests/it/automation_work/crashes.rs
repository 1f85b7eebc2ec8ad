//! A process that ends before or after any of its commits: no contact enters twice, nothing is sent twice, and no run
//! stands still.

use std::collections::HashSet;

use serde_json::json;

use super::{DAY, HOUR, Journeys, ends, on_event};
use crate::mortal::MortalStore;

/// More commits than the work needs.
const MANY: usize = 200;

/// Members of a segment: more than a page.
const MEMBERS: usize = 300;

/// Two contacts enter, get a message, wait for a day, are changed, and get another message.
async fn prepare() -> (Journeys, String) {
    let journeys = Journeys::start().await;
    let (first, second) = (journeys.template("first").await, journeys.template("second").await);
    let graph = json!({"nodes": [
        {"id": "one", "kind": "send", "config": {"template_id": first, "category": "transactional"}},
        {"id": "w", "kind": "wait", "config": {"duration": {"value": 1, "unit": "days"}}},
        {"id": "tag", "kind": "add_tag", "config": {"tag": "welcome"}},
        {"id": "c", "kind": "condition", "config": {"filter": {"type": "tag", "op": "has_any", "values": ["welcome"]}}},
        {"id": "two", "kind": "send", "config": {"template_id": second}}],
        "edges": [{"from": "one", "to": "w"}, {"from": "w", "to": "tag"}, {"from": "tag", "to": "c"},
            {"from": "c", "to": "two", "branch": "yes"}]});
    let id = journeys.active(on_event("signup"), graph, json!({"re_entry": "always"})).await;
    for name in ["ann", "bob"] {
        journeys.contact(name, json!({})).await;
        journeys.event("signup", name, json!({})).await;
    }
    (journeys, id)
}

/// Works over a store that ends the process at a commit; returns true if it did.
async fn work_and_die(journeys: &Journeys, at: usize, is_kept: bool) -> bool {
    let mortal = MortalStore::new(journeys.store.clone(), at, is_kept);
    let app = journeys.another_process_on(mortal.clone());
    let clock = journeys.clock.clone();
    let working = tokio::spawn(async move {
        app.run_until_idle().await.unwrap();
        clock.advance(DAY);
        app.run_until_idle().await.unwrap();
    });
    tokio::select! {
        () = mortal.died() => {}
        () = async { while !working.is_finished() { tokio::task::yield_now().await } } => {}
    }
    working.abort();
    let _ = working.await;
    mortal.is_dead()
}

#[tokio::test]
async fn a_crash_at_any_commit_leaves_one_run_for_an_event_and_one_message_for_a_node() {
    for is_kept in [false, true] {
        for at in 0..MANY {
            let (journeys, id) = prepare().await;
            let has_died = work_and_die(&journeys, at, is_kept).await;
            // After a restart claims no longer count; the wait ends, and interrupted work continues.
            for _ in 0..3 {
                journeys.pass(HOUR + DAY).await;
            }
            let context = format!("commit {at}, kept: {is_kept}");
            assert_eq!(journeys.told(&id).await, "completed two, completed two", "{context}");
            let messages = journeys.get(&journeys.caller, &format!("/messages?automation_id={id}")).await;
            let mut told: Vec<_> = messages["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|message| format!("{} {}", message["to"].as_str().unwrap(), message["status"].as_str().unwrap()))
                .collect();
            told.sort();
            let all = ["ann@example.com", "ann@example.com", "bob@example.com", "bob@example.com"];
            assert_eq!(told, all.map(|to| format!("{to} delivered")), "{context}");
            for run in journeys.runs(&id).await {
                let expected =
                    "entered, sent one, waiting w, continued w, changed tag, branched c yes, sent two, completed two";
                assert_eq!(journeys.history(&id, &run).await, expected, "{context}");
            }
            if !has_died {
                assert!(at > 4, "only {at} commits were made");
                break;
            }
        }
    }
}

#[tokio::test]
async fn members_at_the_activation_enter_once_although_a_pause_and_a_crash_interrupt_it() {
    let journeys = Journeys::start().await;
    let filter = json!({"type": "tag", "op": "has_any", "values": ["vip"]});
    let segment = journeys.id_of("segments", json!({"name": "vip", "kind": "dynamic", "filter": filter})).await;
    let contacts: Vec<_> = (0..MEMBERS).map(|n| json!({"external_id": format!("p{n}"), "tags": ["vip"]})).collect();
    journeys.made("contacts/bulk", json!({"contacts": contacts})).await;
    journeys.work().await;
    let trigger = json!({"kind": "segment_enter", "config": {"segment_id": segment, "include_existing": true}});
    let mut has_been_interrupted = false;
    for is_kept in [false, true] {
        for at in 0..MANY {
            let context = format!("commit {at}, kept: {is_kept}");
            let id = journeys.draft(trigger.clone(), ends(), json!({"re_entry": "always"})).await;
            journeys.act(&id, "activate").await;
            let mortal = MortalStore::new(journeys.store.clone(), at, is_kept);
            let app = journeys.another_process_on(mortal.clone());
            let working = tokio::spawn(async move { app.run_until_idle().await });
            tokio::select! {
                () = mortal.died() => {}
                () = async { while !working.is_finished() { tokio::task::yield_now().await } } => {}
            }
            working.abort();
            let _ = working.await;
            journeys.act(&id, "pause").await;
            let entered = journeys.runs(&id).await.len();
            has_been_interrupted |= mortal.is_dead() && (1..MEMBERS).contains(&entered);
            journeys.pass(2 * HOUR).await;
            assert_eq!(journeys.runs(&id).await.len(), entered, "{context}: nobody enters during a pause");
            journeys.act(&id, "activate").await;
            for _ in 0..2 {
                journeys.pass(2 * HOUR).await;
            }
            let runs = journeys.runs(&id).await;
            let contacts: HashSet<_> = runs.iter().map(|run| run["contact_id"].as_str().unwrap()).collect();
            assert_eq!((runs.len(), contacts.len()), (MEMBERS, MEMBERS), "{context}");
            if !mortal.is_dead() {
                break;
            }
        }
    }
    assert!(has_been_interrupted, "no crash came between two pages");
}
