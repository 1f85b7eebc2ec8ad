//! Triggers: the changes and events by which a contact enters an automation, and those by which it does not.

use messaging_core::changes::{JobWrite, Write};
use messaging_engine::services::Visitor;
use serde_json::{Value, json};

use crate::imports;

use super::{DAY, HOUR, Journeys, MINUTE, ends, on_event, waits};

#[tokio::test]
async fn an_event_enters_its_contact_when_its_properties_are_those_that_are_asked_for() {
    let journeys = Journeys::start().await;
    let ann = journeys.contact("ann", json!({})).await;
    let large = json!({"kind": "event", "config": {"name": "order", "where":
        [{"property": "total", "op": "gt", "value": 50}]}});
    let id = journeys.active(large, waits(), json!({"re_entry": "always"})).await;
    journeys.event("order", "ann", json!({"total": 10})).await;
    journeys.event("visit", "ann", json!({"total": 90})).await;
    journeys.work().await;
    assert_eq!(journeys.told(&id).await, "");
    journeys.clock.advance(MINUTE);
    let at = journeys.app.now().to_string();
    journeys.event("order", "ann", json!({"total": 90})).await;
    journeys.clock.advance(MINUTE);
    journeys.work().await;
    assert_eq!(journeys.told_of(&id, &ann).await, "waiting w");
    // The contact entered when the event was accepted, and its wait began then.
    assert_eq!(journeys.runs(&id).await[0]["entered_at"], at.as_str());
    journeys.pass(HOUR - MINUTE - MINUTE / 2).await;
    assert_eq!(journeys.told(&id).await, "waiting w");
    journeys.pass(MINUTE / 2).await;
    assert_eq!(journeys.told(&id).await, "completed w");
    assert_eq!(
        journeys.history(&id, &journeys.runs(&id).await[0]).await,
        "entered, waiting w, continued w, completed w"
    );
}

#[tokio::test]
async fn what_happened_a_day_before_it_was_told_starts_nothing() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let id = journeys.active(on_event("order"), ends(), json!({"re_entry": "always"})).await;
    for (before, expected) in [(DAY + MINUTE, ""), (DAY - MINUTE, "exited x exit")] {
        let occurred_at = (journeys.app.now() - before).to_string();
        let body = json!({"name": "order", "contact": {"external_id": "ann"}, "occurred_at": occurred_at});
        assert_eq!(journeys.post(&journeys.caller, "/events", body).await.summary(), "202");
        journeys.work().await;
        assert_eq!(journeys.told(&id).await, expected);
    }
}

#[tokio::test]
async fn the_filter_of_a_trigger_is_asked_of_the_contact_and_counts_events_up_to_the_cause() {
    let journeys = Journeys::start().await;
    for name in ["ann", "bob"] {
        journeys.contact(name, json!({"tags": [name]})).await;
    }
    let first = json!({"and": [{"type": "tag", "op": "has_any", "values": ["ann"]},
        {"type": "event", "name": "order", "count": {"op": "eq", "value": 1}}]});
    let trigger = json!({"kind": "event", "config": {"name": "order", "filter": first}});
    let id = journeys.active(trigger, ends(), json!({"re_entry": "always"})).await;
    // The server processes all of them together.
    for name in ["ann", "bob", "ann"] {
        journeys.event("order", name, json!({})).await;
    }
    journeys.work().await;
    assert_eq!(journeys.told(&id).await, "exited x exit");
}

#[tokio::test]
async fn new_members_of_a_list_enter_and_those_who_are_on_it_do_not() {
    let journeys = Journeys::start().await;
    let list = journeys.id_of("lists", json!({"name": "news"})).await;
    let ann = journeys.contact("ann", json!({"list_ids": [list]})).await;
    let trigger = json!({"kind": "list_added", "config": {"list_id": list}});
    let id = journeys.active(trigger, ends(), json!({"re_entry": "always"})).await;
    journeys.contact("ann", json!({"list_ids": [list]})).await;
    journeys.work().await;
    assert_eq!(journeys.told(&id).await, "");
    let bob = journeys.contact("bob", json!({"list_ids": [list]})).await;
    journeys.work().await;
    assert_eq!(journeys.told_of(&id, &bob).await, "exited x exit");
    assert_eq!(journeys.told_of(&id, &ann).await, "");
}

#[tokio::test]
async fn contacts_enter_when_they_are_created_in_any_way_but_by_a_merge() {
    let journeys = Journeys::start().await;
    journeys.contact("before", json!({})).await;
    let trigger = json!({"kind": "contact_created", "config": {}});
    let id = journeys.active(trigger, ends(), json!({"re_entry": "always"})).await;
    let ann = journeys.contact("ann", json!({})).await;
    // A change does not make the contact enter again.
    journeys.contact("ann", json!({"tags": ["x"]})).await;
    journeys.event("visit", "by-event", json!({})).await;
    let bulk = json!({"contacts": [{"external_id": "by-bulk"}, {"external_id": "ann"}]});
    journeys.made("contacts/bulk", bulk).await;
    journeys.work().await;
    assert_eq!(journeys.runs(&id).await.len(), 3);
    let other = journeys.contact("other", json!({})).await;
    journeys.work().await;
    let merge = json!({"primary_id": ann, "duplicate_id": other});
    journeys.made("contacts/merge", merge).await;
    journeys.work().await;
    assert_eq!(journeys.runs(&id).await.len(), 4);
}

#[tokio::test]
async fn contacts_of_a_file_enter_when_they_are_new_and_match_the_filter() {
    let journeys = Journeys::start().await;
    journeys.contact("before", json!({})).await;
    let filter = json!({"type": "attribute", "key": "plan", "op": "eq", "value": "pro"});
    let trigger = json!({"kind": "contact_created", "config": {"filter": filter}});
    let id = journeys.active(trigger, ends(), json!({"re_entry": "always"})).await;
    let file = "external_id,plan\nbefore,pro\nann,pro\nbob,free\ncat,pro\n".as_bytes();
    let mapping = json!({"mapping": {"plan": "attributes.plan"}});
    // The second time they exist already.
    for created in [3, 0] {
        let announced = journeys.made("contacts/import", imports::announcement(file, mapping.clone())).await;
        imports::upload(&journeys.app, &announced, file).await.unwrap();
        journeys.work().await;
        let path = journeys.at(&format!("contacts/imports/{}", announced["import_id"].as_str().unwrap()));
        assert_eq!(journeys.get(&journeys.caller, &path).await["created"], created);
        assert_eq!(journeys.told(&id).await, "exited x exit, exited x exit");
    }
}

#[tokio::test]
async fn an_open_of_a_machine_enters_nobody_and_ends_no_wait() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let trigger = json!({"kind": "message_event", "config": {"event": "open"}});
    let entering = journeys.active(trigger, ends(), json!({"re_entry": "always"})).await;
    let wait = json!({"on": {"type": "message", "event": "open"}, "timeout": {"value": 30, "unit": "days"}});
    let graph = json!({"nodes": [{"id": "w", "kind": "wait_event", "config": wait}], "edges": []});
    let waiting = journeys.active(on_event("order"), graph, json!({})).await;
    journeys.event("order", "ann", json!({})).await;
    let body = json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t"});
    let message = journeys.send(&body).await;
    journeys.pass(HOUR).await;
    let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Thunderbird/115.6.0";
    let machine = Visitor { ip: "192.0.2.7".parse().unwrap(), user_agent: None, is_head: false, is_prefetch: false };
    let person = Visitor { user_agent: Some(agent.to_owned()), ..machine.clone() };
    for (visitor, is_machine, told) in
        [(&machine, true, ["", "waiting w"]), (&person, false, ["exited x exit", "completed w"])]
    {
        journeys.app.record_open(journeys.workspace, message, visitor).await.unwrap();
        assert_eq!(journeys.last_meta(message).await["machine"], is_machine);
        journeys.work().await;
        assert_eq!([journeys.told(&entering).await, journeys.told(&waiting).await], told);
        journeys.clock.advance(HOUR);
    }
}

fn tagged(tag: &str) -> Value {
    json!({"type": "tag", "op": "has_any", "values": [tag]})
}

#[tokio::test]
async fn whoever_comes_into_a_segment_or_goes_out_of_it_enters() {
    let journeys = Journeys::start().await;
    let segment = journeys.id_of("segments", json!({"name": "vip", "kind": "dynamic", "filter": tagged("vip")})).await;
    let ann = journeys.contact("ann", json!({"tags": ["vip"]})).await;
    let bob = journeys.contact("bob", json!({})).await;
    journeys.work().await;
    let of = |kind: &str| json!({"kind": kind, "config": {"segment_id": segment}});
    let always = json!({"re_entry": "always"});
    let come = journeys.active(of("segment_enter"), ends(), always.clone()).await;
    let go = journeys.active(of("segment_exit"), ends(), always).await;
    journeys.work().await;
    assert_eq!((journeys.told(&come).await, journeys.told(&go).await), (String::new(), String::new()));
    journeys.change(&bob, json!({"tags": ["vip"]})).await;
    journeys.change(&ann, json!({"tags": []})).await;
    journeys.work().await;
    assert_eq!(
        (journeys.runs(&come).await.len(), journeys.told_of(&come, &bob).await),
        (1, "exited x exit".to_owned())
    );
    assert_eq!((journeys.runs(&go).await.len(), journeys.told_of(&go, &ann).await), (1, "exited x exit".to_owned()));
}

#[tokio::test]
async fn members_at_the_activation_and_after_an_edited_filter_enter_only_where_that_is_asked_for() {
    let journeys = Journeys::start().await;
    let segment = journeys.id_of("segments", json!({"name": "vip", "kind": "dynamic", "filter": tagged("vip")})).await;
    for number in 0..300 {
        let tag = if number < 280 { "vip" } else { "gold" };
        journeys.contact(&format!("p{number}"), json!({"tags": [tag]})).await;
    }
    journeys.work().await;
    let of = |existing: bool| json!({"kind": "segment_enter", "config": {"segment_id": segment, "include_existing": existing}});
    let some = journeys.active(of(true), ends(), json!({"re_entry": "always"})).await;
    let none = journeys.active(of(false), ends(), json!({"re_entry": "always"})).await;
    journeys.work().await;
    assert_eq!((journeys.runs(&some).await.len(), journeys.runs(&none).await.len()), (280, 0));
    // Resuming after a pause is not an activation from draft.
    for action in ["pause", "activate"] {
        journeys.act(&some, action).await;
        journeys.work().await;
    }
    assert_eq!(journeys.runs(&some).await.len(), 280);
    let path = journeys.at(&format!("segments/{segment}"));
    let filter = json!({"filter": {"type": "tag", "op": "has_any", "values": ["vip", "gold"]}});
    assert_eq!(journeys.patch(&journeys.caller, &path, filter).await.summary(), "200");
    journeys.work().await;
    assert_eq!((journeys.runs(&some).await.len(), journeys.runs(&none).await.len()), (300, 0));
}

#[tokio::test]
async fn what_becomes_of_a_message_enters_its_recipient() {
    let journeys = Journeys::start().await;
    let ann = journeys.contact("ann", json!({})).await;
    journeys.contact("bob", json!({})).await;
    let template = journeys.template("hello").await;
    let trigger = json!({"kind": "message_event", "config": {"event": "delivered", "template_id": template}});
    let id = journeys.active(trigger, ends(), json!({})).await;
    journeys.send(&json!({"channel": "email", "to": "bob@example.com", "subject": "s", "text": "t"})).await;
    journeys.send(&json!({"channel": "email", "to": "ann@example.com", "template_id": template})).await;
    journeys.work().await;
    assert_eq!((journeys.runs(&id).await.len(), journeys.told_of(&id, &ann).await), (1, "exited x exit".to_owned()));
}

#[tokio::test]
async fn whoever_joins_a_segment_while_its_members_are_let_in_enters_once() {
    let journeys = Journeys::start().await;
    let mut contacts = Vec::new();
    for number in 0..40 {
        contacts.push(journeys.contact(&format!("p{number}"), json!({"tags": ["vip"]})).await);
    }
    journeys.work().await;
    for rule in ["always", "after_exit"] {
        // The segment is calculated for the first time after the activation: all contacts are found both by that and
        // among its members.
        let segment = json!({"name": rule, "kind": "dynamic", "filter": tagged("vip")});
        let segment = journeys.id_of("segments", segment).await;
        let trigger = json!({"kind": "segment_enter", "config": {"segment_id": segment, "include_existing": true}});
        let id = journeys.draft(trigger, ends(), json!({"re_entry": rule})).await;
        journeys.act(&id, "activate").await;
        // The outbox is not read until the members have been looked through.
        let jobs = journeys.store.jobs_of(&["run_automation"], 100).await.unwrap();
        let jobs = jobs.into_iter().filter(|job| job.place.lane.to_string().contains(&id));
        journeys.commit(jobs.map(|job| Write::Job(JobWrite::Remove(job.place))).collect()).await;
        journeys.pass(MINUTE).await;
        for action in ["pause", "activate"] {
            journeys.act(&id, action).await;
            journeys.pass(MINUTE).await;
        }
        assert_eq!(journeys.runs(&id).await.len(), 40, "{rule}");
        // Joining again later is another entry.
        for tags in [json!([]), json!(["vip"])] {
            journeys.change(&contacts[0], json!({"tags": tags})).await;
            journeys.pass(MINUTE).await;
        }
        assert_eq!(journeys.runs(&id).await.len(), 41, "{rule}");
    }
}

#[tokio::test]
async fn a_call_enters_whom_filter_and_re_entry_let_in() {
    let journeys = Journeys::start().await;
    let ann = journeys.contact("ann", json!({"tags": ["in"]})).await;
    journeys.contact("bob", json!({})).await;
    let trigger = json!({"kind": "event", "config": {"name": "never", "filter": tagged("in")}});
    let id = journeys.draft(trigger, waits(), json!({"re_entry": "after_exit"})).await;
    assert_eq!(journeys.call_in(&id, "ann").await.summary(), "409 invalid_state");
    journeys.act(&id, "activate").await;
    let reply = journeys.call_in(&id, "ann").await;
    assert_eq!((reply.summary().as_str(), &reply["contact_id"]), ("202", &json!(ann)));
    assert_eq!(journeys.call_in(&id, "bob").await.summary(), "422 /contact_id not_allowed");
    assert_eq!(journeys.call_in(&id, "ann").await.summary(), "409 re_entry_not_allowed");
    journeys.work().await;
    assert_eq!(journeys.told(&id).await, "waiting w");
    journeys.pass(HOUR).await;
    assert_eq!(journeys.call_in(&id, "ann").await.summary(), "202");
}
