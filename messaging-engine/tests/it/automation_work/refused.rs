//! A contact whose outcome the store permanently refuses is put aside, and delays no other contact.

use messaging_core::changes::{AutomationWrite, Write};
use messaging_core::domain::automation::run::{Held, RunStatus};
use messaging_core::domain::message::EventKind;
use messaging_engine::{Caller, admin};
use serde_json::{Value, json};

use super::{HOUR, Journeys, ends, on_event, waits};
use crate::mortal::MortalStore;

const POISON: &str = "poison@example.com";

/// Contacts beside the one whose writes are refused.
const OTHERS: usize = 20;

/// Returns true for a message to `POISON`, and for a run whose event has the property `poison`.
fn is_poison(write: &Write) -> bool {
    match write {
        Write::InsertMessage(message, _) => message.to == POISON,
        Write::Automation(AutomationWrite::PutRun(put)) => {
            put.run.status == RunStatus::Waiting && put.run.event.contains_key("poison")
        }
        _ => false,
    }
}

impl Journeys {
    /// Releases everything in quarantine; nothing may be left.
    async fn release_all(&self) {
        let count = admin::list_quarantined(&self.app).await.unwrap().data.len();
        let report = admin::release_quarantined(&self.app, None).await.unwrap();
        assert_eq!((report.done.len(), report.left), (count, Vec::new()));
        assert_eq!(self.quarantined().await["count"], 0);
    }

    async fn quarantined(&self) -> Value {
        self.get(&Caller::Operator(None), "/system").await["quarantined"].clone()
    }
}

#[tokio::test]
async fn a_run_whose_message_the_store_refuses_fails_and_the_others_go_on() {
    let journeys = Journeys::start().await;
    let config = json!({"template_id": journeys.template("hello").await, "category": "transactional"});
    let mut graph = waits();
    graph["nodes"].as_array_mut().unwrap().push(json!({"id": "s", "kind": "send", "config": config}));
    graph["edges"] = json!([{"from": "w", "to": "s"}]);
    let id = journeys.active(on_event("signup"), graph, json!({})).await;
    let poison = journeys.contact("poison", json!({})).await;
    journeys.event("signup", "poison", json!({})).await;
    for n in 0..OTHERS {
        let name = format!("p{n}");
        journeys.contact(&name, json!({})).await;
        journeys.event("signup", &name, json!({})).await;
    }
    // The store refuses the run of this contact.
    journeys.contact("late", json!({})).await;
    journeys.event("signup", "late", json!({"poison": true})).await;
    let app = journeys.another_process_on(MortalStore::refusing(journeys.store.clone(), is_poison));
    app.run_until_idle().await.unwrap();
    journeys.clock.advance(2 * HOUR);
    app.run_until_idle().await.unwrap();
    assert_eq!(journeys.told_of(&id, &poison).await, "failed w node_error");
    let told = journeys.told(&id).await;
    assert_eq!(told.matches("completed s").count(), OTHERS, "{told}");
    assert_eq!(journeys.runs(&id).await.len(), OTHERS + 1);
    let run = journeys.runs(&id).await.into_iter().find(|run| run["contact_id"] == poison).unwrap();
    let path = journeys.at(&format!("automations/{id}/runs/{}", run["id"].as_str().unwrap()));
    let history = journeys.get(&journeys.caller, &path).await["history"].clone();
    let last = history.as_array().unwrap().last().unwrap().clone();
    assert!(last["detail"]["message"].as_str().unwrap().contains("refuses"), "{last}");
    let found = journeys.quarantined().await;
    assert_eq!(found["count"], 2, "{found}");
    let kinds: Vec<_> = found["newest"].as_array().unwrap().iter().map(|one| one["kind"].clone()).collect();
    assert_eq!(kinds, ["automation_run", "automation_note"]);
    assert_eq!(found["newest"][0]["subject"], run["id"]);
    assert!(found["newest"][0]["reason"].as_str().unwrap().contains("too large"), "{found}");
    // Every outcome was stored in the end: nothing is left to do.
    app.run_until_idle().await.unwrap();
    assert_eq!(journeys.quarantined().await["count"], 2);
    // The run continues where it stopped; a contact that could not enter by an event has no event left to enter by.
    let all = admin::list_quarantined(&journeys.app).await.unwrap().data;
    assert_eq!(all.iter().map(|one| one.can_be_released).collect::<Vec<_>>(), [true, false]);
    let ids: Vec<_> = all.iter().map(|one| one.id).collect();
    let report = admin::release_quarantined(&journeys.app, Some(&ids)).await.unwrap();
    assert_eq!((report.done, report.left.len(), report.left[0].id), (vec![ids[0]], 1, ids[1]));
    journeys.work().await;
    assert_eq!(journeys.told_of(&id, &poison).await, "completed s");
    let report = admin::drop_quarantined(&journeys.app, None).await.unwrap();
    assert_eq!((report.done, report.left), (vec![ids[1]], Vec::new()));
    let report = admin::drop_quarantined(&journeys.app, Some(&ids)).await.unwrap();
    assert_eq!((report.done.len(), report.left.len()), (0, 2));
    assert_eq!(journeys.quarantined().await["count"], 0);
}

/// The store refuses the suppression after a bounce: the message still ends as bounced, and its lane continues.
#[tokio::test]
async fn an_outcome_that_the_store_refuses_is_kept_without_what_follows_from_it() {
    let journeys = Journeys::start().await;
    journeys.transport.answer_next(POISON, "550 5.1.1 no such user");
    let gone = journeys.send_to(POISON).await;
    let other = journeys.send_to("ann@example.com").await;
    let refuses = |write: &Write| matches!(write, Write::PutSuppression(..));
    let app = journeys.another_process_on(MortalStore::refusing(journeys.store.clone(), refuses));
    app.run_until_idle().await.unwrap();
    assert!(journeys.story(gone).await.starts_with("bounced"), "{}", journeys.story(gone).await);
    assert!(journeys.story(other).await.starts_with("delivered"));
    assert_eq!(journeys.transport.sent().len(), 2);
    let found = journeys.quarantined().await;
    assert_eq!((&found["count"], &found["newest"][0]["kind"]), (&json!(1), &json!("message_outcome")));
    assert_eq!(found["newest"][0]["subject"], gone.to_string());
    assert!(app.metrics_page(0).await.contains("messaging_quarantined_total 1"));
}

/// Not even the outcome itself can be stored: the job is put aside, and nothing is sent twice.
#[tokio::test]
async fn a_job_whose_outcome_the_store_refuses_altogether_is_put_aside() {
    let journeys = Journeys::start().await;
    let refused = journeys.send_to(POISON).await;
    let is_end = |write: &Write| matches!(write, Write::AppendEvent(event) if event.kind == EventKind::Delivered);
    let app = journeys.another_process_on(MortalStore::refusing(journeys.store.clone(), is_end));
    app.run_until_idle().await.unwrap();
    journeys.clock.advance(10 * HOUR);
    app.run_until_idle().await.unwrap();
    assert_eq!(journeys.transport.sent().len(), 1);
    let found = journeys.quarantined().await;
    assert_eq!((&found["count"], &found["newest"][0]["kind"]), (&json!(1), &json!("deliver_message")));
    assert_eq!(found["newest"][0]["subject"], refused.to_string());
    journeys.release_all().await;
    journeys.work().await;
    assert!(journeys.story(refused).await.contains("delivered"), "{}", journeys.story(refused).await);
}

/// The store refuses the entry of one contact by its date: the others of its page enter in time.
#[tokio::test]
async fn a_contact_whose_moment_the_store_refuses_is_passed_by() {
    let journeys = Journeys::start().await;
    let date = |day: &str| json!({"attributes": {"born": day}});
    for n in 0..OTHERS {
        journeys.contact(&format!("p{n}"), date("1990-02-01")).await;
    }
    // The contact whose time is an hour before all others.
    let poison = json!({"attributes": {"born": "1990-02-01"}, "timezone": "Europe/Berlin"});
    let poison = journeys.contact("poison", poison).await;
    let trigger = json!({"kind": "date", "config": {"attribute": "born"}});
    let id = journeys.draft(trigger, ends(), json!({})).await;
    journeys.act(&id, "activate").await;
    let is_poison = |write: &Write| match write {
        Write::Automation(AutomationWrite::PutDateFires(put)) => {
            put.fires.iter().any(|fire| fire.due_at.to_string().contains("T08:00"))
        }
        _ => false,
    };
    let app = journeys.another_process_on(MortalStore::refusing(journeys.store.clone(), is_poison));
    for _ in 0..48 {
        app.run_until_idle().await.unwrap();
        journeys.clock.advance(HOUR);
    }
    app.run_until_idle().await.unwrap();
    assert_eq!(journeys.runs(&id).await.len(), OTHERS);
    let found = journeys.quarantined().await;
    assert_eq!((&found["count"], &found["newest"][0]["kind"]), (&json!(1), &json!("automation_moments")));
    assert_eq!(found["newest"][0]["subject"], poison);
    journeys.release_all().await;
}

/// The result of a call cannot be stored: the run that waits for it fails, and does not wait for ever.
#[tokio::test]
async fn a_run_whose_call_the_store_refuses_fails() {
    let journeys = Journeys::start().await;
    let config = json!({"url": "https://acme.com/hook", "method": "POST"});
    let graph = json!({"nodes": [{"id": "c", "kind": "webhook", "config": config}], "edges": []});
    let id = journeys.active(on_event("signup"), graph, json!({})).await;
    let ann = journeys.contact("ann", json!({})).await;
    journeys.event("signup", "ann", json!({})).await;
    let is_end = |write: &Write| match write {
        Write::Automation(AutomationWrite::PutRun(put)) => matches!(put.run.held, Some(Held::Called(_))),
        _ => false,
    };
    let app = journeys.another_process_on(MortalStore::refusing(journeys.store.clone(), is_end));
    for _ in 0..4 {
        app.run_until_idle().await.unwrap();
        journeys.clock.advance(HOUR);
    }
    assert_eq!(journeys.told_of(&id, &ann).await, "failed c node_error");
    let found = journeys.quarantined().await;
    assert_eq!((&found["count"], &found["newest"][0]["kind"]), (&json!(1), &json!("automation_run")));
    assert_eq!(found["newest"][0]["subject"], journeys.runs(&id).await[0]["id"]);
    // On a store that accepts the result, the call is made again, and the run continues.
    journeys.release_all().await;
    journeys.work().await;
    assert_eq!(journeys.told_of(&id, &ann).await, "completed c");
}
