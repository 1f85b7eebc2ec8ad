//! In which order things happen: re-entry, goals, timers, pauses, limits, and contacts that go.

use serde_json::{Value, json};

use super::{DAY, HOUR, Journeys, MINUTE, SECOND, ends, on_event, waits};

/// Waits for an event, two hours at most.
fn waits_for(name: &str) -> Value {
    json!({"nodes": [
        {"id": "w", "kind": "wait_event", "config": {"on": {"type": "event", "name": name},
            "timeout": {"value": 2, "unit": "hours"}}},
        {"id": "yes", "kind": "exit", "config": {"reason": "came"}},
        {"id": "no", "kind": "exit", "config": {"reason": "late"}}],
        "edges": [{"from": "w", "to": "yes", "branch": "event"}, {"from": "w", "to": "no", "branch": "timeout"}]})
}

#[tokio::test]
async fn the_rule_of_re_entry_is_never_after_the_end_or_always() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let mut ids = Vec::new();
    for rule in ["never", "after_exit", "always"] {
        ids.push(journeys.active(on_event("order"), waits(), json!({"re_entry": rule})).await);
    }
    for _ in 0..2 {
        for _ in 0..2 {
            journeys.event("order", "ann", json!({})).await;
        }
        journeys.work().await;
        journeys.pass(2 * HOUR).await;
    }
    let mut entered = Vec::new();
    for id in &ids {
        entered.push(journeys.runs(id).await.len());
    }
    assert_eq!(entered, [1, 2, 4]);
}

#[tokio::test]
async fn with_a_key_the_rule_holds_for_each_value() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let rule = json!({"re_entry": "after_exit", "re_entry_key": "event.cart"});
    let same_cart = json!({"property": "cart", "op": "eq", "value_from": "event.cart"});
    let mut graph = waits_for("bought");
    graph["nodes"][0]["config"]["on"]["where"] = json!([same_cart]);
    let id = journeys.active(on_event("filled"), graph, rule).await;
    for cart in ["a", "b", "a"] {
        journeys.event("filled", "ann", json!({"cart": cart})).await;
    }
    // A missing value counts as a separate value.
    for _ in 0..2 {
        journeys.event("filled", "ann", json!({})).await;
    }
    journeys.work().await;
    assert_eq!(journeys.told(&id).await, "waiting w, waiting w, waiting w");
    journeys.clock.advance(MINUTE);
    journeys.event("bought", "ann", json!({"cart": "b"})).await;
    journeys.work().await;
    assert_eq!(journeys.told(&id).await, "exited yes came, waiting w, waiting w");
    journeys.event("filled", "ann", json!({"cart": "b"})).await;
    journeys.event("filled", "ann", json!({"cart": "a"})).await;
    journeys.work().await;
    assert_eq!(journeys.runs(&id).await.len(), 4);
}

#[tokio::test]
async fn an_event_that_ends_a_run_may_begin_the_next() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let mut graph = waits();
    graph["goal"] = json!({"type": "event", "name": "order"});
    let id = journeys.active(on_event("order"), graph, json!({"re_entry": "after_exit"})).await;
    for expected in ["waiting w", "completed w goal, waiting w", "completed w goal, completed w goal, waiting w"] {
        journeys.clock.advance(MINUTE);
        journeys.event("order", "ann", json!({})).await;
        journeys.work().await;
        assert_eq!(journeys.told(&id).await, expected);
    }
    // The result is the same if the server processes several events at once.
    for _ in 0..3 {
        journeys.clock.advance(MINUTE);
        journeys.event("order", "ann", json!({})).await;
    }
    journeys.work().await;
    assert_eq!(journeys.runs(&id).await.len(), 6);
}

#[tokio::test]
async fn what_a_wait_leads_to_is_over_before_the_event_begins_a_new_run() {
    let journeys = Journeys::start().await;
    let ann = journeys.contact("ann", json!({})).await;
    // The change of the contact is committed before the condition is evaluated.
    let graph = json!({"nodes": [
        {"id": "w", "kind": "wait_event", "config": {"on": {"type": "event", "name": "order"},
            "timeout": {"value": 2, "unit": "hours"}}},
        {"id": "t", "kind": "add_tag", "config": {"tag": "buyer"}},
        {"id": "c", "kind": "condition", "config": {"filter": {"type": "tag", "op": "has_any", "values": ["buyer"]}}},
        {"id": "yes", "kind": "exit", "config": {"reason": "yes"}}],
        "edges": [{"from": "w", "to": "t", "branch": "event"}, {"from": "t", "to": "c"},
            {"from": "c", "to": "yes", "branch": "yes"}]});
    let id = journeys.active(on_event("order"), graph, json!({"re_entry": "after_exit"})).await;
    for expected in ["waiting w", "exited yes yes, waiting w"] {
        journeys.clock.advance(SECOND);
        journeys.event("order", "ann", json!({})).await;
        journeys.work().await;
        assert_eq!(journeys.told_of(&id, &ann).await, expected);
    }
}

#[tokio::test]
async fn an_event_up_to_the_due_time_comes_before_the_timer_and_one_after_it_does_not() {
    let journeys = Journeys::start().await;
    let id = journeys.active(on_event("cart"), waits_for("order"), json!({})).await;
    let names = ["early", "just", "late"];
    for name in names {
        journeys.contact(name, json!({})).await;
        journeys.event("cart", name, json!({})).await;
    }
    journeys.work().await;
    // The server comes to all of it together, an hour later.
    journeys.clock.advance(2 * HOUR - SECOND);
    journeys.event("order", "early", json!({})).await;
    journeys.clock.advance(SECOND);
    journeys.event("order", "just", json!({})).await;
    journeys.clock.advance(SECOND);
    journeys.event("order", "late", json!({})).await;
    journeys.pass(HOUR).await;
    let ends = journeys.told(&id).await;
    assert_eq!(ends, "exited no late, exited yes came, exited yes came");
}

#[tokio::test]
async fn a_wait_counts_what_is_accepted_after_the_moment_that_it_was_reached_at() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let mut graph = waits_for("order");
    graph["nodes"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": "first", "kind": "wait", "config": {"duration": {"value": 1, "unit": "hours"}}}));
    graph["edges"].as_array_mut().unwrap().push(json!({"from": "first", "to": "w"}));
    let id = journeys.active(on_event("cart"), graph, json!({})).await;
    journeys.event("cart", "ann", json!({})).await;
    journeys.work().await;
    journeys.clock.advance(HOUR / 2);
    journeys.event("order", "ann", json!({})).await;
    journeys.clock.advance(HOUR);
    // The wait for it began half an hour ago, by the clock; the server comes to that only now.
    journeys.event("order", "ann", json!({})).await;
    journeys.work().await;
    assert_eq!(journeys.told(&id).await, "exited yes came");
}

#[tokio::test]
async fn a_pause_lets_nobody_in_and_what_is_met_during_it_goes_before_timers() {
    let journeys = Journeys::start().await;
    for name in ["ann", "bob", "cat"] {
        journeys.contact(name, json!({})).await;
    }
    let mut graph = waits_for("order");
    graph["goal"] = json!({"type": "event", "name": "paid"});
    let id = journeys.active(on_event("cart"), graph, json!({})).await;
    for name in ["ann", "bob"] {
        journeys.event("cart", name, json!({})).await;
    }
    journeys.work().await;
    journeys.act(&id, "pause").await;
    journeys.event("cart", "cat", json!({})).await;
    journeys.pass(3 * HOUR).await;
    // Later than the timers, and before anybody has come to them.
    journeys.event("order", "ann", json!({})).await;
    journeys.event("paid", "bob", json!({})).await;
    journeys.pass(HOUR).await;
    assert_eq!(journeys.told(&id).await, "waiting w, waiting w");
    journeys.act(&id, "activate").await;
    journeys.work().await;
    assert_eq!(journeys.told(&id).await, "completed w goal, exited yes came");
    journeys.pass(DAY).await;
    assert_eq!(journeys.runs(&id).await.len(), 2);
}

#[tokio::test]
async fn timers_that_were_due_during_a_pause_end_with_it() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let two = json!({"nodes": [
        {"id": "a", "kind": "wait", "config": {"duration": {"value": 1, "unit": "hours"}}},
        {"id": "b", "kind": "wait", "config": {"duration": {"value": 1, "unit": "hours"}}}],
        "edges": [{"from": "a", "to": "b"}]});
    let id = journeys.active(on_event("cart"), two, json!({})).await;
    journeys.event("cart", "ann", json!({})).await;
    journeys.work().await;
    journeys.act(&id, "pause").await;
    journeys.pass(10 * HOUR).await;
    assert_eq!(journeys.told(&id).await, "waiting a");
    journeys.act(&id, "activate").await;
    journeys.work().await;
    // The second wait begins at the activation.
    assert_eq!(journeys.told(&id).await, "waiting b");
    journeys.pass(HOUR - SECOND).await;
    assert_eq!(journeys.told(&id).await, "waiting b");
    journeys.pass(SECOND).await;
    assert_eq!(journeys.told(&id).await, "completed b");
}

#[tokio::test]
async fn an_edit_moves_nobody_who_is_on_the_way() {
    let journeys = Journeys::start().await;
    let (ann, bob) = (journeys.contact("ann", json!({})).await, journeys.contact("bob", json!({})).await);
    let id = journeys.active(on_event("cart"), waits_for("order"), json!({})).await;
    journeys.event("cart", "ann", json!({})).await;
    journeys.work().await;
    journeys.edit(&id, json!({"graph": waits()})).await;
    journeys.event("cart", "bob", json!({})).await;
    journeys.work().await;
    journeys.clock.advance(MINUTE);
    journeys.event("order", "ann", json!({})).await;
    journeys.pass(HOUR).await;
    assert_eq!(journeys.told_of(&id, &ann).await, "exited yes came");
    assert_eq!(journeys.told_of(&id, &bob).await, "completed w");
}

#[tokio::test]
async fn the_hundred_and_first_entry_of_a_day_is_refused_and_listed_once() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let id = journeys.active(on_event("order"), ends(), json!({"re_entry": "always"})).await;
    for _ in 0..105 {
        journeys.event("order", "ann", json!({})).await;
    }
    journeys.work().await;
    let runs = journeys.runs(&id).await;
    let refused: Vec<_> = runs.iter().filter(|run| run["status"] == "failed").collect();
    assert_eq!((runs.len(), refused.len()), (101, 1));
    assert_eq!(
        (&refused[0]["exit_reason"], &refused[0]["ended_at"]),
        (&json!("daily_limit"), &refused[0]["entered_at"])
    );
    let stats = journeys.get(&journeys.caller, &journeys.at(&format!("automations/{id}/stats"))).await;
    assert_eq!((&stats["entered"], &stats["failed"]), (&json!(100), &json!(0)));
    journeys.pass(DAY).await;
    journeys.event("order", "ann", json!({})).await;
    journeys.work().await;
    assert_eq!(journeys.runs(&id).await.len(), 102);
}

#[tokio::test]
async fn the_ninth_automation_in_a_row_is_refused() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let mut lists = Vec::new();
    for number in 0..11 {
        lists.push(journeys.id_of("lists", json!({"name": format!("l{number}")})).await);
    }
    let mut ids = Vec::new();
    for pair in lists.windows(2) {
        let trigger = json!({"kind": "list_added", "config": {"list_id": pair[0]}});
        let graph =
            json!({"nodes": [{"id": "add", "kind": "add_to_list", "config": {"list_id": pair[1]}}], "edges": []});
        ids.push(journeys.active(trigger, graph, json!({})).await);
    }
    journeys.contact("ann", json!({"list_ids": [lists[0]]})).await;
    journeys.work().await;
    let mut told = Vec::new();
    for id in &ids {
        told.push(journeys.told(id).await);
    }
    let mut expected = vec!["completed add".to_owned(); 8];
    expected.extend(["failed depth".to_owned(), String::new()]);
    assert_eq!(told, expected);
}

#[tokio::test]
async fn the_older_run_of_a_merged_contact_goes_on_and_those_of_an_erased_one_are_gone() {
    let journeys = Journeys::start().await;
    let id = journeys.active(on_event("cart"), waits_for("order"), json!({})).await;
    let mut contacts = Vec::new();
    for name in ["ann", "bob", "cat"] {
        contacts.push(journeys.contact(name, json!({})).await);
        journeys.event("cart", name, json!({})).await;
        journeys.clock.advance(SECOND);
    }
    journeys.work().await;
    // The duplicate entered later.
    journeys.made("contacts/merge", json!({"primary_id": contacts[0], "duplicate_id": contacts[1]})).await;
    let path = journeys.at(&format!("contacts/{}", contacts[2]));
    let erased = journeys.delete(&journeys.caller, &path).await;
    assert!((200..300).contains(&erased.status), "{erased:?}");
    journeys.work().await;
    assert_eq!(journeys.told(&id).await, "waiting w, exited w merged");
    journeys.clock.advance(MINUTE);
    journeys.event("order", "ann", json!({})).await;
    journeys.work().await;
    assert_eq!(journeys.told_of(&id, &contacts[0]).await, "exited yes came, exited w merged");
    // The merged contact has entered already.
    journeys.event("cart", "ann", json!({})).await;
    journeys.pass(DAY).await;
    assert_eq!(journeys.runs(&id).await.len(), 2);
}

#[tokio::test]
async fn a_run_that_ends_before_its_first_node_has_entered_all_the_same() {
    let journeys = Journeys::start().await;
    let id = journeys.active(on_event("cart"), waits_for("order"), json!({})).await;
    let mut contacts = Vec::new();
    for name in ["ann", "bob", "cat"] {
        let contact = journeys.contact(name, json!({})).await;
        journeys.made(&format!("automations/{id}/trigger"), json!({"contact_id": contact})).await;
        journeys.clock.advance(SECOND);
        contacts.push(contact);
    }
    journeys.made("contacts/merge", json!({"primary_id": contacts[0], "duplicate_id": contacts[1]})).await;
    let of_cat = journeys.runs(&id).await.into_iter().find(|run| run["contact_id"] == contacts[2]).unwrap();
    let exit = format!("automations/{id}/runs/{}/exit", of_cat["id"].as_str().unwrap());
    journeys.made(&exit, json!({})).await;
    journeys.work().await;
    let mut told = Vec::new();
    for run in journeys.runs(&id).await {
        told.push(journeys.history(&id, &run).await);
    }
    told.sort();
    assert_eq!(told, ["entered, exited manual", "entered, exited merged", "entered, waiting w"]);
}

#[tokio::test]
async fn the_older_run_goes_on_whoever_has_it_and_those_of_other_keys_as_well() {
    let journeys = Journeys::start().await;
    let once = journeys.active(on_event("cart"), waits_for("order"), json!({})).await;
    let keyed = json!({"re_entry": "after_exit", "re_entry_key": "event.cart"});
    let keyed = journeys.active(on_event("cart"), waits_for("order"), keyed).await;
    let ann = journeys.contact("ann", json!({})).await;
    let bob = journeys.contact("bob", json!({})).await;
    for (name, cart) in [("bob", 1), ("ann", 1), ("ann", 2)] {
        journeys.event("cart", name, json!({"cart": cart})).await;
        journeys.work().await;
        journeys.clock.advance(SECOND);
    }
    journeys.made("contacts/merge", json!({"primary_id": ann, "duplicate_id": bob})).await;
    journeys.work().await;
    assert_eq!(journeys.told_of(&once, &ann).await, "waiting w, exited w merged");
    assert_eq!(journeys.told_of(&keyed, &ann).await, "waiting w, exited w merged, waiting w");
}

#[tokio::test]
async fn nobody_goes_on_in_a_deleted_automation_and_its_rows_are_swept() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let template = journeys.template("later").await;
    let graph = json!({"nodes": [
        {"id": "w", "kind": "wait", "config": {"duration": {"value": 1, "unit": "hours"}}},
        {"id": "s", "kind": "send", "config": {"template_id": template, "category": "transactional"}}],
        "edges": [{"from": "w", "to": "s"}]});
    let id = journeys.active(on_event("cart"), graph, json!({})).await;
    journeys.event("cart", "ann", json!({})).await;
    journeys.work().await;
    let path = journeys.at(&format!("automations/{id}"));
    assert_eq!(journeys.delete(&journeys.caller, &path).await.summary(), "409 invalid_state");
    journeys.act(&id, "pause").await;
    assert_eq!(journeys.delete(&journeys.caller, &path).await.summary(), "204");
    journeys.event("cart", "ann", json!({})).await;
    journeys.pass(2 * HOUR).await;
    assert_eq!(journeys.mail_to("ann"), [""; 0]);
    messaging_engine::work::sweep::sweep(&journeys.app).await.unwrap();
    assert_eq!(journeys.store.forget_automation_rows(journeys.app.now(), 100).await.unwrap(), 0);
    // Its jobs have ended with it.
    for shard in 0..4 {
        let lane = format!("t/{}/automation:{id}:{shard}", journeys.workspace);
        let later = journeys.app.now() + 1000 * HOUR;
        assert_eq!(journeys.store.lane_lengths(&[lane.as_str().into()], later, 10).await.unwrap(), [0]);
    }
}
