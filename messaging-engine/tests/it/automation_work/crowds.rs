//! Automations with many contacts or callers at the same time.

use serde_json::json;

use super::{HOUR, Journeys, ends, on_event, waits};
use crate::bed::{Call, send};

/// Callers that let the same contact in at once.
const WRITERS: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_callers_and_an_event_let_a_contact_in_once_where_the_rule_says_so() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    for (rule, rounds) in [("never", 1), ("after_exit", 3)] {
        let id = journeys.active(on_event("order"), waits(), json!({"re_entry": rule})).await;
        let path = journeys.at(&format!("automations/{id}/trigger"));
        for round in 1..=rounds {
            journeys.event("order", "ann", json!({})).await;
            let callers = (0..WRITERS).map(|_| {
                let (app, caller, path) = (journeys.app.clone(), journeys.caller.clone(), path.clone());
                tokio::spawn(async move {
                    let call = Call::new(&caller, http::Method::POST, &path).body(&json!({"external_id": "ann"}));
                    send(&app, call).await.status
                })
            });
            let callers: Vec<_> = callers.collect();
            journeys.work().await;
            let mut let_in = 0;
            for caller in callers {
                match caller.await.unwrap() {
                    202 => let_in += 1,
                    409 => {}
                    status => panic!("{status}"),
                }
            }
            journeys.work().await;
            assert!(let_in <= 1, "{let_in} callers were told that they let somebody in");
            assert_eq!(journeys.runs(&id).await.len(), round, "{rule}");
            journeys.pass(HOUR).await;
        }
    }
}

/// Different keys are different entries, and yet there are a hundred of them a day at most.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_callers_under_different_keys_let_nobody_in_more_than_a_hundred_times_a_day() {
    const BEFORE: usize = 96;
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let keyed = json!({"re_entry": "after_exit", "re_entry_key": "event.cart"});
    let id = journeys.active(on_event("order"), ends(), keyed).await;
    let carts = (0..BEFORE)
        .map(|cart| json!({"name": "order", "contact": {"external_id": "ann"}, "properties": {"cart": cart}}));
    let bulk = json!({"events": carts.collect::<Vec<_>>()});
    assert_eq!(journeys.post(&journeys.caller, "/events/bulk", bulk).await["accepted"], BEFORE);
    journeys.work().await;
    assert_eq!(journeys.runs(&id).await.len(), BEFORE);
    let path = journeys.at(&format!("automations/{id}/trigger"));
    // Each in a separate process: within one they would wait for each other.
    let callers = (0..WRITERS).map(|number| {
        let (app, caller, path) = (journeys.another_process(), journeys.caller.clone(), path.clone());
        tokio::spawn(async move {
            let body = json!({"external_id": "ann", "variables": {"cart": format!("by-hand-{number}")}});
            send(&app, Call::new(&caller, http::Method::POST, &path).body(&body)).await
        })
    });
    let callers: Vec<_> = callers.collect();
    let mut refused = Vec::new();
    for caller in callers {
        let reply = caller.await.unwrap();
        assert_eq!(reply.summary(), "202", "{:?}", reply.body);
        if reply["status"] == "failed" {
            assert_eq!(reply["exit_reason"], "daily_limit");
            refused.push(reply["id"].clone());
        }
    }
    journeys.work().await;
    assert_eq!(refused.len(), BEFORE + WRITERS - 100);
    // For a contact, a reason and a day there is one row, for all callers.
    assert!(refused.iter().all(|id| *id == refused[0]), "{refused:?}");
    assert_eq!(journeys.runs(&id).await.len(), 101);
    let stats = journeys.get(&journeys.caller, &journeys.at(&format!("automations/{id}/stats"))).await;
    assert_eq!((&stats["entered"], &stats["failed"]), (&json!(100), &json!(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_writers_of_a_contact_make_its_day_come_once() {
    let journeys = Journeys::start().await;
    let ann = journeys.contact("ann", json!({"attributes": {"born": "1990-02-01"}})).await;
    let trigger = json!({"kind": "date", "config": {"attribute": "born"}});
    let id = journeys.active(trigger, ends(), json!({"re_entry": "always"})).await;
    for round in 0..4 {
        let path = journeys.at(&format!("contacts/{ann}"));
        let writers = (0..WRITERS).map(|writer| {
            let (app, caller, path) = (journeys.app.clone(), journeys.caller.clone(), path.clone());
            tokio::spawn(async move {
                let attributes = json!({"attributes": {"born": "1990-02-01", "n": round * WRITERS + writer}});
                let call = Call::new(&caller, http::Method::PATCH, &path).body(&attributes);
                send(&app, call).await.status
            })
        });
        let writers: Vec<_> = writers.collect();
        journeys.pass(6 * HOUR).await;
        for writer in writers {
            assert_eq!(writer.await.unwrap(), 200);
        }
        journeys.work().await;
    }
    journeys.pass(6 * HOUR).await;
    assert_eq!(journeys.told(&id).await, "exited x exit");
}

/// A page that meets a change of one of its contacts is decided again, in halves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_enters_once_each_while_its_contacts_change() {
    const CROWD: usize = 200;
    let journeys = Journeys::start().await;
    let names: Vec<_> = (0..CROWD).map(|number| format!("p{number}")).collect();
    let contacts: Vec<_> = names.iter().map(|name| json!({"external_id": name})).collect();
    journeys.made("contacts/bulk", json!({"contacts": contacts})).await;
    let graph = json!({"nodes": [{"id": "t", "kind": "add_tag", "config": {"tag": "seen"}}], "edges": []});
    let id = journeys.active(on_event("order"), graph, json!({"re_entry": "always"})).await;
    let events = |name: &String| json!({"name": "order", "contact": {"external_id": name}});
    let bulk: Vec<_> = names.iter().chain(&names).map(events).collect();
    assert_eq!(journeys.post(&journeys.caller, "/events/bulk", json!({"events": bulk})).await["accepted"], 2 * CROWD);
    let changing = {
        let (app, caller, path) = (journeys.app.clone(), journeys.caller.clone(), journeys.at("contacts/bulk"));
        tokio::spawn(async move {
            for round in 0..4 {
                let contact = |number| json!({"external_id": format!("p{number}"), "attributes": {"round": round}});
                let body = json!({"contacts": (0..CROWD).map(contact).collect::<Vec<_>>()});
                assert_eq!(send(&app, Call::new(&caller, http::Method::POST, &path).body(&body)).await.status, 200);
            }
        })
    };
    journeys.work().await;
    changing.await.unwrap();
    // Entries that conflicted too often with the changes are tried again a second later.
    journeys.pass(HOUR).await;
    let runs = journeys.runs(&id).await;
    assert_eq!(runs.len(), 2 * CROWD);
    assert!(runs.iter().all(|run| run["status"] == "completed"));
    let mut of: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    for run in &runs {
        *of.entry(run["contact_id"].as_str().unwrap()).or_default() += 1;
    }
    assert!(of.values().all(|count| *count == 2));
}
