//! Trying automations out: contract section 13.4, "Simulate".

mod bodies;
mod equal;

use serde_json::{Value, json};

use crate::automation_work::{Journeys, on_event};
use crate::bed::Reply;

/// `1 entered, 1 waiting w, 1 continued w timeout`: the steps of an answer.
pub(super) fn tell(answer: &Value) -> String {
    let step = |step: &Value| {
        let parts = ["outcome", "node_id", "branch", "reason"].map(|part| step[part].as_str());
        format!("{} {}", step["run"], parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
    };
    answer["steps"].as_array().unwrap().iter().map(step).collect::<Vec<_>>().join(", ")
}

impl Journeys {
    pub(super) async fn simulation(&self, id: &str, body: Value) -> Reply {
        self.post(&self.caller, &self.at(&format!("automations/{id}/simulate")), body).await
    }

    /// The answer of a simulation that succeeds.
    pub(super) async fn simulated(&self, id: &str, body: Value) -> Value {
        let reply = self.simulation(id, body).await;
        assert_eq!(reply.summary(), "200", "{:?}", reply.body);
        reply.body
    }
}

fn ann() -> Value {
    json!({"external_id": "ann", "email": "ann@example.com", "consent": {"marketing_email": true}})
}

/// Creates an automation that sends a reminder unless the contact buys; returns its id.
async fn cart(product: &Journeys) -> String {
    let template = product.template("Cart").await;
    let graph = json!({
        "nodes": [
            {"id": "w", "kind": "wait_event", "config": {"on": {"type": "event", "name": "bought",
                "where": [{"property": "cart", "op": "eq", "value_from": "event.cart"}]},
                "timeout": {"value": 2, "unit": "hours"}}},
            {"id": "s", "kind": "send", "config": {"template_id": template}},
            {"id": "opened", "kind": "wait_event", "config": {"on": {"type": "message", "event": "open"},
                "timeout": {"value": 1, "unit": "days"}}},
            {"id": "hook", "kind": "webhook", "config": {"url": "https://hooks.example.com/x"}},
            {"id": "bought", "kind": "exit", "config": {"reason": "bought"}}],
        "edges": [{"from": "w", "to": "bought", "branch": "event"}, {"from": "w", "to": "s", "branch": "timeout"},
            {"from": "s", "to": "opened"}, {"from": "opened", "to": "hook", "branch": "event"}]});
    product.draft(on_event("cart"), graph, json!({"re_entry": "always", "re_entry_key": "event.cart"})).await
}

#[tokio::test]
async fn a_simulation_tells_what_a_run_would_do() {
    let product = Journeys::start().await;
    let id = cart(&product).await;
    let cart = |cart: &str, at: &str| json!({"name": "cart", "occurred_at": at, "properties": {"cart": cart}});
    let answer = product
        .simulated(
            &id,
            json!({"contact": ann(), "at": "2026-03-01T08:00:00Z", "until": "2026-03-04T00:00:00Z", "events": [
                {"name": "bought", "occurred_at": "2026-03-01T11:30:00Z", "properties": {"cart": "b"}},
                cart("a", "2026-03-01T10:00:00Z"), cart("b", "2026-03-01T11:00:00Z"),
                cart("history", "2026-02-01T11:00:00Z"),
                {"message": "open", "node_id": "s", "at": "2026-03-01T13:00:00Z"}]}),
        )
        .await;
    assert_eq!(
        tell(&answer),
        "1 entered, 1 waiting w, 2 entered, 2 waiting w, 2 continued w event, 2 exited bought bought, \
         1 continued w timeout, 1 sent s, 1 waiting opened, 1 continued opened event, 1 called hook next, \
         1 completed hook"
    );
    // The last run to enter is the second.
    assert_eq!(answer["ended"], json!({"status": "exited", "at": "2026-03-01T11:30:00.000Z", "reason": "bought"}));
    let sent = &answer["steps"][7];
    assert_eq!(sent["at"], "2026-03-01T12:00:00.000Z");
    assert_eq!(sent["detail"], json!({"message_id": "msg_00000000000000000000000001"}));
    assert_eq!(answer["steps"][4]["detail"], json!({"event_id": "evt_00000000000000000000000001"}));
}
