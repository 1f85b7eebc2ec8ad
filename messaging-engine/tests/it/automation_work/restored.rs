//! Automations of a database that came from a copy: none of them runs until a person activates it. Contract section 22.

use messaging_core::changes::{Changes, Write};
use messaging_core::domain::installation::fence::Fence;
use messaging_engine::Caller;
use messaging_engine::admin::{self, Queued};
use serde_json::json;

use super::{HOUR, Journeys, SECOND, on_event, waits};

impl Journeys {
    /// Makes a copy of the installation, as a server finds it that starts on it.
    async fn restore(&self) {
        self.clock.advance(SECOND);
        let fence = Fence::held(self.app.now());
        self.commit(Changes::from_iter([Write::PutFence(Some(fence), None)])).await;
        self.app.look_at_fence().await.unwrap();
        self.app.prepare_to_work().await.unwrap();
    }

    async fn hours_pass(&self, hours: u32) {
        for _ in 0..hours {
            self.pass(HOUR).await;
        }
    }

    /// `paused restored`
    async fn state(&self, id: &str) -> String {
        let view = self.get(&self.caller, &self.at(&format!("automations/{id}"))).await;
        format!("{} {}", view["status"].as_str().unwrap(), view["pause_reason"].as_str().unwrap_or("-"))
    }

    /// Starts an automation that sends an hour after its event, with a run of the first contact in progress.
    async fn under_way(&self) -> String {
        for name in ["ann", "bob"] {
            self.contact(name, json!({})).await;
        }
        let config = json!({"template_id": self.template("hello").await, "category": "transactional"});
        let mut graph = waits();
        graph["nodes"].as_array_mut().unwrap().push(json!({"id": "s", "kind": "send", "config": config}));
        graph["edges"] = json!([{"from": "w", "to": "s"}]);
        let id = self.active(on_event("signup"), graph, json!({"re_entry": "always"})).await;
        self.event("signup", "ann", json!({})).await;
        self.work().await;
        assert_eq!(self.told(&id).await, "waiting w");
        id
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_works_on_no_automation_until_it_is_activated() {
    let journeys = Journeys::start().await;
    let id = journeys.under_way().await;
    journeys.restore().await;
    assert_eq!(journeys.state(&id).await, "paused restored");
    let operator = Caller::Operator(Some(journeys.workspace));
    let audit = journeys.get(&operator, &journeys.at("audit?actor=system")).await;
    assert_eq!(audit["data"].as_array().unwrap().len(), 1);
    let entry = &audit["data"][0];
    assert_eq!((&entry["operation"], &entry["resource"]["id"]), (&json!("pauseAutomation"), &json!(id)));
    // A timer that is due, and an event that is accepted meanwhile, which a pause keeps from entering anybody.
    journeys.event("signup", "bob", json!({})).await;
    journeys.hours_pass(5).await;
    admin::resume(&journeys.app, Queued::Send).await.unwrap();
    journeys.hours_pass(3).await;
    assert_eq!((journeys.told(&id).await.as_str(), journeys.transport.sent().len()), ("waiting w", 0));
    assert_eq!(journeys.state(&id).await, "paused restored");

    journeys.act(&id, "activate").await;
    journeys.event("signup", "bob", json!({})).await;
    journeys.hours_pass(3).await;
    assert_eq!(journeys.state(&id).await, "active -");
    assert_eq!(journeys.told(&id).await, "completed s, completed s");
    assert_eq!([journeys.mail_to("ann").len(), journeys.mail_to("bob").len()], [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_cancel_no_run_from_before_goes_on() {
    let journeys = Journeys::start().await;
    let id = journeys.under_way().await;
    // An automation that was paused before the copy was taken stays paused, and its runs end as well.
    let paused = journeys.active(on_event("signup"), waits(), json!({})).await;
    journeys.event("signup", "bob", json!({})).await;
    journeys.work().await;
    journeys.act(&paused, "pause").await;
    journeys.restore().await;
    // An automation that a person activates on the copy.
    let wanted = journeys.active(on_event("later"), waits(), json!({})).await;
    let called = journeys.call_in(&wanted, "ann").await;
    assert_eq!(called.summary(), "202", "{:?}", called.body);
    admin::resume(&journeys.app, Queued::Cancel).await.unwrap();
    journeys.work().await;
    assert!(journeys.app.fence().is_none());
    for id in [&id, &paused] {
        journeys.act(id, "activate").await;
    }
    journeys.hours_pass(5).await;
    assert_eq!(journeys.told(&id).await, "exited w restored, exited w restored");
    assert_eq!(journeys.told(&paused).await, "exited w restored");
    assert_eq!(journeys.told(&wanted).await, "completed w");
    assert_eq!(journeys.transport.sent().len(), 0);
    let run = journeys.runs(&id).await.remove(0);
    assert!(journeys.history(&id, &run).await.ends_with("exited w restored"));
    // Contacts that enter from now on get the message.
    journeys.event("signup", "ann", json!({})).await;
    journeys.hours_pass(2).await;
    assert_eq!(journeys.mail_to("ann").len(), 1);
}
