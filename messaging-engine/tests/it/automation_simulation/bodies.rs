//! Inputs and refusals of simulations, their view of the workspace, and that they change nothing.

use rusqlite::Connection;
use rusqlite::types::Value as Cell;
use serde_json::{Value, json};

use super::{Journeys, ann, cart, tell};
use crate::automation_work::{ends, on_event, waits};

const AT: &str = "2026-03-01T08:00:00Z";

/// A body with a contact, beginning at [`AT`].
fn body(more: Value) -> Value {
    let mut body = json!({"contact": ann(), "at": AT, "until": "2026-03-08T08:00:00Z"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

impl Journeys {
    /// The faults of a simulation, `/until required`.
    #[track_caller]
    fn faults(reply: &crate::bed::Reply) -> String {
        assert_eq!(reply.status, 422, "{:?}", reply.body);
        let fault = |one: &Value| format!("{} {}", one["pointer"].as_str().unwrap(), one["code"].as_str().unwrap());
        let errors = reply["error"]["details"]["errors"].as_array().unwrap();
        let mut faults: Vec<_> = errors.iter().map(fault).collect();
        faults.sort();
        format!("{}: {}", reply["error"]["code"].as_str().unwrap(), faults.join(", "))
    }

    async fn refused(&self, id: &str, body: Value) -> String {
        Self::faults(&self.simulation(id, body).await)
    }

    /// All rows of the database, as text.
    fn dump(&self) -> Vec<String> {
        let database = Connection::open(self.bed.directory.path().join("messaging.db")).unwrap();
        let mut tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").unwrap();
        let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let mut rows = Vec::new();
        for table in tables {
            let mut select = database.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
            let columns = select.column_count();
            let mut found = select.query([]).unwrap();
            let from = rows.len();
            while let Some(row) = found.next().unwrap() {
                let cells: Vec<Cell> = (0..columns).map(|column| row.get(column).unwrap()).collect();
                rows.push(format!("{table} {cells:?}"));
            }
            rows[from..].sort();
        }
        rows
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_body_is_told_at_its_place() {
    let product = Journeys::start().await;
    let id = cart(&product).await;
    let check = async |body: Value, expected: &str| {
        assert_eq!(product.refused(&id, body.clone()).await, format!("validation_failed: {expected}"), "{body}");
    };
    check(json!({"until": "2026-03-08T08:00:00Z", "at": AT}), " required").await;
    check(json!({"contact": ann(), "at": AT}), "/until required").await;
    let unknown = "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
    check(body(json!({"contact_id": unknown})), "/contact_id conflict").await;
    check(json!({"contact_id": unknown, "at": AT, "until": "2026-03-08T08:00:00Z"}), "/contact_id not_found").await;
    check(body(json!({"until": AT})), "/until out_of_range").await;
    check(body(json!({"until": "2031-03-01T08:00:01Z"})), "/until out_of_range").await;
    check(body(json!({"at": "tomorrow"})), "/at invalid_format").await;
    check(body(json!({"contact": {}})), "/contact required").await;
    check(
        body(json!({"contact": {"email": "no", "timezone": "Mars", "list_ids": ["lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"]}})),
        "/contact/email invalid_format, /contact/list_ids/0 not_found, /contact/timezone invalid_format",
    )
    .await;
    check(body(json!({"contact": {"email": "a@example.com", "mail": 1}})), "/contact/mail unknown_field").await;
    check(body(json!({"events": vec![json!({"name": "a"}); 1001]})), "/events too_many_items").await;
    check(
        body(json!({"events": [{}, {"name": "$a"}, {"name": "a", "at": AT}, {"message": "open"},
            {"message": "open", "node_id": "w", "at": AT},
            {"message": "open", "node_id": "s", "at": "2026-02-28T08:00:00Z"}, {"name": "a", "message": "open"},
            {"name": "a", "occurred_at": "2021-02-28T08:00:00Z"}, {"message": "open", "node_id": "s", "at": AT,
            "properties": {}}]})),
        "/events/0/name required, /events/1/name invalid_format, /events/2/at not_allowed, /events/3/at required, \
         /events/3/node_id required, /events/4/node_id not_found, /events/5/at out_of_range, \
         /events/6/message conflict, /events/7/occurred_at out_of_range, /events/8/properties not_allowed",
    )
    .await;
    let read = json!({"message": "read", "node_id": "s", "at": AT});
    check(body(json!({"events": [read]})), "/events/0/message unknown_value").await;
    check(body(json!({"graph": {"nodes": [{"id": "x", "kind": "jump"}]}})), "/graph/nodes/0/kind unknown_value").await;
    // None of these is an error of the body: activating reports them.
    let graph = json!({"nodes": [{"id": "s", "kind": "send", "config": {}}]});
    assert_eq!(
        product.refused(&id, body(json!({"graph": graph, "trigger": {}}))).await,
        "automation_invalid: /graph/nodes/0/config/template_id required, /trigger/kind required"
    );
    let reply = product.simulation("aut_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", body(json!({}))).await;
    assert_eq!(reply.summary(), "404 not_found");
    let longest = body(json!({"until": "2031-03-01T08:00:00Z"}));
    assert_eq!(product.simulated(&id, longest).await, json!({"steps": [], "ended": null}));
}

#[tokio::test]
async fn a_simulation_changes_nothing_and_sends_nothing() {
    let product = Journeys::start().await;
    let id = cart(&product).await;
    let contact = product.contact("bob", json!({})).await;
    product.event("cart", "bob", json!({"cart": "old"})).await;
    product.work().await;
    let before = product.dump();
    assert!(before.len() > 10);
    let events = json!([{"name": "cart", "occurred_at": "2026-03-01T09:00:00Z", "properties": {"cart": "a"}},
        {"message": "click", "node_id": "s", "at": "2026-03-01T12:00:00Z"},
        {"message": "unsubscribe", "node_id": "s", "at": "2026-03-01T13:00:00Z"}]);
    for who in [json!({"contact": ann()}), json!({"contact_id": contact})] {
        let mut body = json!({"at": AT, "until": "2026-03-08T08:00:00Z", "events": events});
        body.as_object_mut().unwrap().extend(who.as_object().unwrap().clone());
        let first = product.simulated(&id, body.clone()).await;
        assert!(tell(&first).contains("1 sent s"), "{first}");
        // The same request has the same answer.
        assert_eq!(product.simulated(&id, body).await, first);
    }
    product.work().await;
    assert_eq!(product.dump(), before);
    assert_eq!(product.transport.sent().len(), 0);
    let left = product.bed.directory.path().join("simulations");
    assert!(!left.exists(), "{left:?}");
}

#[tokio::test]
async fn a_year_of_weekly_mails_takes_seconds() {
    let product = Journeys::start().await;
    let template = product.template("Weekly").await;
    let graph = json!({"entry": "s", "nodes": [
        {"id": "s", "kind": "send", "config": {"template_id": template}},
        {"id": "w", "kind": "wait", "config": {"duration": {"value": 1, "unit": "weeks"}}}],
        "edges": [{"from": "s", "to": "w"}, {"from": "w", "to": "s"}]});
    let id = product.draft(json!({"kind": "contact_created"}), graph, json!({})).await;
    let answer = product.simulated(&id, body(json!({"until": "2027-03-01T08:00:00Z"}))).await;
    let sent = answer["steps"].as_array().unwrap().iter().filter(|step| step["outcome"] == "sent").count();
    assert_eq!((sent, &answer["ended"]), (53, &Value::Null));
}

#[tokio::test]
async fn what_a_contact_did_before_counts() {
    let product = Journeys::start().await;
    let graph = json!({"entry": "c", "nodes": [
        {"id": "c", "kind": "condition", "config": {"filter": {"type": "event", "name": "bought",
            "count": {"op": "gte", "value": 2}, "within": {"last": {"value": 30, "unit": "days"}}}}},
        {"id": "yes", "kind": "exit", "config": {"reason": "regular"}}],
        "edges": [{"from": "c", "to": "yes", "branch": "yes"}]});
    let id = product.draft(json!({"kind": "manual"}), graph, json!({})).await;
    let bought = |at: &str| json!({"name": "bought", "occurred_at": at});
    let ended = async |body: Value| product.simulated(&id, body).await["ended"]["reason"].clone();
    let once = json!([bought("2026-02-20T08:00:00Z"), bought("2025-02-20T08:00:00Z"), bought(AT)]);
    assert_eq!(ended(body(json!({"events": once}))).await, Value::Null);
    let twice = json!([bought("2026-02-20T08:00:00Z"), bought("2026-02-21T08:00:00Z")]);
    assert_eq!(ended(body(json!({"events": twice}))).await, "regular");
    // The attributes of a contact of the workspace are its own.
    let contact = product.contact("bob", json!({})).await;
    product.event("bought", "bob", json!({})).await;
    let of_bob = |events: Value| json!({"contact_id": contact, "until": "2026-02-08T08:00:00Z", "events": events});
    assert_eq!(ended(of_bob(json!([]))).await, Value::Null);
    assert_eq!(ended(of_bob(json!([bought("2026-01-30T08:00:00Z")]))).await, "regular");
}

#[tokio::test]
async fn a_contact_of_the_workspace_has_its_lists_tags_segments_and_suppressions() {
    let product = Journeys::start().await;
    let template = product.template("Hello").await;
    let list = product.id_of("lists", json!({"name": "News"})).await;
    let vip = json!({"type": "tag", "op": "has_any", "values": ["vip"]});
    let dynamic = product.id_of("segments", json!({"name": "VIP", "filter": vip})).await;
    let outer = json!({"type": "segment", "op": "member", "id": dynamic});
    let nested = product.id_of("segments", json!({"name": "Nested", "filter": outer})).await;
    let fixed = product.id_of("segments", json!({"name": "Then", "kind": "static", "filter": vip})).await;
    let bob = product.contact("bob", json!({"tags": ["vip"], "list_ids": [list]})).await;
    product.made(&format!("segments/{fixed}/recalculate"), json!({})).await;
    product.work().await;
    let filter = |kind: &str, id: &str| json!({"type": kind, "op": "member", "id": id});
    let all = json!({"and": [filter("list", &list), filter("segment", &dynamic), filter("segment", &nested),
        filter("segment", &fixed)]});
    let graph = json!({"entry": "c", "nodes": [{"id": "c", "kind": "condition", "config": {"filter": all}},
        {"id": "s", "kind": "send", "config": {"template_id": template}}],
        "edges": [{"from": "c", "to": "s", "branch": "yes"}, {"from": "c", "to": "s", "branch": "no"}]});
    let id = product.draft(json!({"kind": "manual"}), graph, json!({})).await;
    let of_bob = json!({"contact_id": bob, "until": "2026-03-08T08:00:00Z"});
    assert_eq!(
        tell(&product.simulated(&id, of_bob.clone()).await),
        "1 entered, 1 branched c yes, 1 sent s, 1 completed s"
    );
    let stranger = product
        .simulated(
            &id,
            body(json!({"contact": {"email": "bob@example.com",
        "consent": {"marketing_email": true}, "tags": ["vip"]}})),
        )
        .await;
    let held: Vec<_> =
        stranger["steps"][1]["detail"]["leaves"].as_array().unwrap().iter().map(|leaf| &leaf["held"]).collect();
    assert_eq!(held, [false, true, true, false]);
    product
        .made("suppressions", json!({"channel": "email", "address": "bob@example.com", "reason": "unsubscribe"}))
        .await;
    assert_eq!(
        tell(&product.simulated(&id, of_bob).await),
        "1 entered, 1 branched c yes, 1 skipped s suppressed, 1 completed s"
    );
}

#[tokio::test]
async fn contacts_enter_by_events_at_their_dates_or_once() {
    let product = Journeys::start().await;
    let id = product.draft(on_event("go"), waits(), json!({"re_entry": "always"})).await;
    let go = |at: &str, n: u8| json!({"name": "go", "occurred_at": at, "properties": {"n": n}});
    let events = json!([
        go("2026-03-02T08:00:00Z", 1),
        go("2026-03-03T08:00:00Z", 2),
        go("2026-02-03T08:00:00Z", 1),
        go("2026-04-03T08:00:00Z", 1)
    ]);
    let told = async |more: Value| tell(&product.simulated(&id, body(more)).await);
    let one = "entered, 1 waiting w, 1 continued w, 1 completed w".replace("1 ", "N ");
    let run = |n: u8| format!("{n} {}", one.replace('N', &n.to_string()));
    assert_eq!(told(json!({"events": events})).await, format!("{}, {}", run(1), run(2)));
    let only = json!({"kind": "event", "config": {"name": "go", "where": [{"property": "n", "op": "eq", "value": 2}]}});
    assert_eq!(told(json!({"events": events, "trigger": only})).await, run(1));
    assert_eq!(told(json!({"events": events, "re_entry": "never"})).await, run(1));
    // Any other trigger: once, if the contact matches its filter.
    let joined = |filter: Value| json!({"kind": "contact_created", "config": {"filter": filter}});
    let consents = json!({"type": "consent", "channel": "marketing_email", "value": true});
    assert_eq!(told(json!({"events": events, "trigger": joined(consents.clone())})).await, run(1));
    assert_eq!(told(json!({"trigger": joined(json!({"not": consents}))})).await, "");
    // Two birthdays.
    let born = json!({"kind": "date", "config": {"attribute": "born"}});
    let mut contact = ann();
    contact["attributes"] = json!({"born": "1990-03-05"});
    contact["timezone"] = json!("Europe/Berlin");
    let years = json!({"trigger": born, "contact": contact, "graph": ends(), "until": "2027-06-01T00:00:00Z"});
    let answer = product.simulated(&id, body(years)).await;
    let entered: Vec<_> =
        answer["steps"].as_array().unwrap().iter().filter(|step| step["outcome"] == "entered").collect();
    let times: Vec<_> = entered.iter().map(|step| step["at"].as_str().unwrap()).collect();
    assert_eq!(times, ["2026-03-05T08:00:00.000Z", "2027-03-05T08:00:00.000Z"]);
    assert_eq!(answer["ended"], json!({"status": "exited", "at": "2027-03-05T08:00:00.000Z", "reason": "exit"}));
}

#[tokio::test]
async fn what_is_done_with_a_message_has_its_effect() {
    let product = Journeys::start().await;
    let template = product.template("Hello").await;
    let send = |id: &str| json!({"id": id, "kind": "send", "config": {"template_id": template}});
    let graph = json!({"entry": "a", "nodes": [send("a"),
        {"id": "w", "kind": "wait_event", "config": {"on": {"type": "message", "event": "delivered"},
            "timeout": {"value": 1, "unit": "hours"}}}, send("b")],
        "edges": [{"from": "a", "to": "w"}, {"from": "w", "to": "b", "branch": "event"},
            {"from": "w", "to": "b", "branch": "timeout"}]});
    let id = product.draft(json!({"kind": "manual"}), graph, json!({})).await;
    let told = async |what: &str, at: &str| {
        let events = json!([{"message": what, "node_id": "a", "at": at}]);
        tell(&product.simulated(&id, body(json!({"events": events}))).await)
    };
    let begin = "1 entered, 1 sent a, 1 waiting w";
    let end = "1 completed b";
    assert_eq!(
        told("open", "2026-03-01T08:30:00Z").await,
        format!("{begin}, 1 continued w event, 1 sent b, {end}"),
        "delivered a second after"
    );
    let late = "2026-03-01T08:00:00.500Z";
    for what in ["bounce", "complaint", "unsubscribe"] {
        let all = told(what, late).await;
        assert!(all.ends_with(&format!("1 skipped b suppressed, {end}")), "{what}: {all}");
    }
    assert!(told("bounce", late).await.contains("1 continued w timeout"));
}

#[tokio::test]
async fn addresses_are_masked_for_those_who_may_not_see_them() {
    let product = Journeys::start().await;
    let graph = json!({"nodes": [{"id": "x", "kind": "exit", "config": {"reason": "ann@example.com left"}}]});
    let id = product.draft(json!({"kind": "manual"}), graph, json!({})).await;
    let path = product.at(&format!("automations/{id}/simulate"));
    let key = product.key(product.workspace, &["automations:read"]).await;
    let masked = product.post(&key, &path, body(json!({}))).await;
    assert_eq!(masked.summary(), "200");
    assert!(!masked.body.to_string().contains("ann@example.com"), "{:?}", masked.body);
    let key = product.key(product.workspace, &["automations:read", "pii:read"]).await;
    let clear = product.post(&key, &path, body(json!({}))).await;
    assert_eq!(clear["ended"]["reason"], "ann@example.com left");
    let key = product.key(product.workspace, &["contacts:read"]).await;
    assert_eq!(product.post(&key, &path, body(json!({}))).await.status, 403);
}

#[tokio::test]
async fn what_goes_on_for_too_long_is_refused() {
    let product = Journeys::start().await;
    let branches = json!([{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]);
    let nodes: Vec<_> =
        (0..200).map(|n| json!({"id": format!("n{n}"), "kind": "split", "config": {"branches": branches}})).collect();
    let edge = |n: usize, branch: &str| json!({"from": format!("n{n}"), "to": format!("n{}", n + 1), "branch": branch});
    let edges: Vec<_> = (0..199).flat_map(|n| [edge(n, "a"), edge(n, "b")]).collect();
    let graph = json!({"entry": "n0", "nodes": nodes, "edges": edges});
    let id = product.draft(on_event("go"), graph, json!({"re_entry": "always"})).await;
    // Each run takes 202 steps; more than 10,000 are not shown.
    let events: Vec<_> =
        (0..55).map(|n| json!({"name": "go", "occurred_at": AT, "unique_id": format!("e{n}")})).collect();
    let few = product.simulated(&id, body(json!({"events": events[..2]}))).await;
    assert_eq!(few["steps"].as_array().unwrap().len(), 404);
    let many = product.refused(&id, body(json!({"events": events}))).await;
    assert_eq!(many, "validation_failed: /until out_of_range");
}
