//! A contact whose outcome the store refuses for good is put aside, and keeps nobody else waiting.

use messaging_core::changes::Write;
use messaging_core::domain::automation::run::RunStatus;
use messaging_core::domain::message::EventKind;
use messaging_engine::Caller;
use serde_json::{Value, json};

use super::{HOUR, Journeys, on_event, waits};
use crate::mortal::MortalStore;

const POISON: &str = "poison@example.com";

/// Contacts beside the one.
const OTHERS: usize = 20;

/// A message to the one, or a run of it that enters with the event that says so.
fn is_poison(write: &Write) -> bool {
    match write {
        Write::InsertMessage(message, _) => message.to == POISON,
        Write::PutRun(put) => put.run.status == RunStatus::Waiting && put.run.event.contains_key("poison"),
        _ => false,
    }
}

impl Journeys {
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
    // Nobody enters by this one.
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
    // Every outcome was kept after all: nothing is left to do.
    app.run_until_idle().await.unwrap();
    assert_eq!(journeys.quarantined().await["count"], 2);
}

/// What follows from a bounce cannot be kept: the message has its end all the same, and its lane goes on.
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

/// Not even the outcome itself can be kept: the job is put aside, and nothing is sent twice.
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
}
