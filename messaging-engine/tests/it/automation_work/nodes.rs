//! Nodes of automations: messages, contacts, lists, tags, calls of web addresses. Contract sections 13.2 to 13.4.

use std::sync::Arc;

use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::suppression::SuppressionReason;
use messaging_core::domain::mail::sending_domain::DomainStatus;
use messaging_core::ports::fetch::FetchError;
use messaging_core::ports::transport::{Content, Email};
use messaging_testing::MemoryFetch;
use serde_json::{Value, json};

use super::{DAY, HOUR, Journeys, MINUTE, SECOND, on_event};
use crate::support::Product;

/// Nodes one after another, with the ids `a`, `b`, `c`…
fn line(nodes: &[(&str, Value)]) -> Value {
    let id = |place: usize| char::from(b'a' + u8::try_from(place).unwrap()).to_string();
    let all = nodes.iter().enumerate();
    let nodes: Vec<_> = all.map(|(at, (kind, config))| json!({"id": id(at), "kind": kind, "config": config})).collect();
    let edges: Vec<_> = (1..nodes.len()).map(|at| json!({"from": id(at - 1), "to": id(at)})).collect();
    json!({"entry": "a", "nodes": nodes, "edges": edges})
}

impl Journeys {
    /// Journeys whose calls of web addresses go to `fetch`.
    async fn calling(fetch: Arc<MemoryFetch>) -> Self {
        Self { product: Product::calling(fetch).await }
    }

    /// An automation that an event `go` enters, every time.
    async fn going(&self, graph: Value) -> String {
        self.active(on_event("go"), graph, json!({"re_entry": "always"})).await
    }

    async fn go(&self, contact: &str, properties: Value) {
        self.event("go", contact, properties).await;
        self.work().await;
    }

    /// History of the newest run of an automation.
    async fn newest(&self, id: &str) -> String {
        let runs = self.runs(id).await;
        self.history(id, &runs[0]).await
    }

    /// History of the run of a contact.
    async fn history_of(&self, id: &str, contact: &str) -> String {
        let runs = self.runs(id).await;
        self.history(id, runs.iter().find(|run| run["contact_id"] == contact).unwrap()).await
    }

    /// The steps of the newest run.
    async fn steps(&self, id: &str) -> Vec<Value> {
        let run = self.runs(id).await[0]["id"].as_str().unwrap().to_owned();
        let found = self.get(&self.caller, &self.at(&format!("automations/{id}/runs/{run}"))).await;
        found["history"].as_array().unwrap().clone()
    }

    async fn read_contact(&self, id: &str) -> Value {
        self.get(&self.caller, &self.at(&format!("contacts/{id}"))).await.body.clone()
    }

    fn emails(&self) -> Vec<Email> {
        let email = |content: Content| match content {
            Content::Email(email) => Some(*email),
            _ => None,
        };
        self.transport.sent().into_iter().filter_map(|outgoing| email(outgoing.content)).collect()
    }

    /// The newest message of an automation.
    async fn message_of(&self, id: &str) -> Value {
        let found = self.get(&self.caller, &format!("/messages?automation_id={id}")).await;
        found["data"][0].clone()
    }
}

fn has_header(email: &Email, name: &str) -> bool {
    email.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
}

#[tokio::test]
async fn marketing_is_rendered_with_the_event_and_offers_to_unsubscribe() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({"attributes": {"first": "Ann"}})).await;
    let body = json!({"name": "t", "channel": "email", "subject": "Hello", "from_email": "shop@sandbox.test",
        "html": "<p>{{ contact.attributes.first }} {{ event.cart.id }} {{ greeting }}</p>"});
    let template = journeys.id_of("templates", body).await;
    let send = json!({"template_id": template, "subject_override": "Cart {{ event.cart.id }} of {{ first }}",
        "from_name": "{{ event.shop }} shop", "variables": {"greeting": "hi {{ contact.attributes.first }}", "n": 5}});
    let id = journeys.going(line(&[("send", send)])).await;
    journeys.go("ann", json!({"cart": {"id": "c-1"}, "shop": "Acme"})).await;
    assert_eq!(journeys.newest(&id).await, "entered, sent a, completed a");
    let emails = journeys.emails();
    let [email] = &emails[..] else { panic!("{} emails", emails.len()) };
    assert_eq!(email.subject, "Cart c-1 of Ann");
    assert_eq!(email.from.name.as_deref(), Some("Acme shop"));
    assert!(email.html.as_deref().unwrap().contains("Ann c-1 hi Ann"), "{:?}", email.html);
    assert!(email.html.as_deref().unwrap().contains("/u/"), "the author forgot the link");
    assert!(has_header(email, "List-Unsubscribe") && has_header(email, "List-Unsubscribe-Post"));
    let message = journeys.message_of(&id).await;
    assert_eq!((&message["status"], &message["automation_id"]), (&json!("delivered"), &json!(id)));
    let detail = &journeys.steps(&id).await[1]["detail"];
    assert_eq!(detail["message_id"], message["message_id"]);
}

#[tokio::test]
async fn what_is_transactional_needs_no_consent_and_offers_nothing() {
    let journeys = Journeys::start().await;
    let ann = journeys.contact("ann", json!({"consent": {"marketing_email": false}})).await;
    let template = journeys.template("Receipt").await;
    let marketing = journeys.going(line(&[("send", json!({"template_id": template}))])).await;
    let receipt = json!({"template_id": template, "category": "transactional"});
    let transactional = journeys.going(line(&[("send", receipt)])).await;
    journeys
        .commit([journeys.suppression("ann@example.com", SuppressionReason::Unsubscribe)].into_iter().collect())
        .await;
    journeys.go("ann", json!({})).await;
    assert_eq!(journeys.newest(&marketing).await, "entered, skipped a suppressed, completed a");
    assert_eq!(journeys.newest(&transactional).await, "entered, sent a, completed a");
    let emails = journeys.emails();
    assert_eq!(emails.len(), 1);
    assert!(!has_header(&emails[0], "List-Unsubscribe"));
    // A reason that stops every kind of message.
    let bounced = json!({"channel": "email", "address": "ann@example.com", "reason": "bounce"});
    journeys.made("suppressions", bounced).await;
    journeys.go("ann", json!({})).await;
    assert_eq!(journeys.newest(&transactional).await, "entered, skipped a suppressed, completed a");
    assert_eq!(journeys.read_contact(&ann).await["suppressed_channels"], json!(["email"]));
}

#[tokio::test]
async fn a_send_that_is_not_allowed_says_why_and_the_run_goes_on() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({"consent": {"marketing_email": null}})).await;
    journeys.id_of("contacts", json!({"external_id": "bob", "consent": {"marketing_email": true}})).await;
    journeys.contact("cid", json!({})).await;
    journeys.made("suppressions", json!({"channel": "email", "address": "cid@example.com", "reason": "manual"})).await;
    journeys.contact("dan", json!({})).await;
    let template = journeys.template("News").await;
    let capped = json!({"template_id": template, "frequency_cap": {"per_day": 1}});
    let id = journeys.going(line(&[("send", capped), ("add_tag", json!({"tag": "told"}))])).await;
    let mut told = Vec::new();
    for name in ["ann", "bob", "cid", "dan", "dan"] {
        journeys.clock.advance(MINUTE);
        journeys.go(name, json!({})).await;
        told.push(journeys.newest(&id).await);
    }
    let expected =
        ["skipped a no_consent", "skipped a no_address", "skipped a suppressed", "sent a", "skipped a frequency_cap"];
    assert_eq!(told, expected.map(|what| format!("entered, {what}, changed b, completed b")));
    assert_eq!(journeys.emails().len(), 1);
}

#[tokio::test]
async fn inside_quiet_hours_the_run_waits_at_the_node_and_is_tested_again() {
    let journeys = Journeys::start().await;
    let template = journeys.template("News").await;
    let mut ids = Vec::new();
    for (name, zone) in [("ann", "Asia/Tokyo"), ("bob", "Asia/Tokyo"), ("cid", "Asia/Tokyo"), ("dan", "Europe/Berlin")]
    {
        ids.push(journeys.contact(name, json!({"timezone": zone})).await);
    }
    let [ann, bob, cid, dan] = &ids[..] else { unreachable!() };
    let quiet = json!({"template_id": template, "quiet_hours": {"start": "18:00", "end": "20:00"}});
    let mut graph = line(&[("send", quiet)]);
    graph["goal"] = json!({"type": "event", "name": "bought"});
    let id = journeys.going(graph).await;
    // 09:15 in London is 18:15 in Tokyo.
    for name in ["ann", "bob", "cid", "dan"] {
        journeys.event("go", name, json!({})).await;
    }
    journeys.work().await;
    assert_eq!(journeys.history_of(&id, ann).await, "entered, waiting a quiet_hours");
    assert_eq!(journeys.history_of(&id, dan).await, "entered, sent a, completed a");
    assert_eq!(journeys.emails().len(), 1);
    journeys.event("bought", "bob", json!({})).await;
    journeys
        .post(
            &journeys.caller,
            &journeys.at("contacts"),
            json!({"external_id": "cid", "consent": {"marketing_email": false}}),
        )
        .await;
    journeys.pass(HOUR).await;
    assert_eq!(journeys.emails().len(), 1);
    journeys.pass(45 * MINUTE).await;
    assert_eq!(journeys.history_of(&id, ann).await, "entered, waiting a quiet_hours, sent a, completed a");
    assert_eq!(journeys.history_of(&id, bob).await, "entered, waiting a quiet_hours, completed a goal");
    let gone = "entered, waiting a quiet_hours, skipped a no_consent, completed a";
    assert_eq!(journeys.history_of(&id, cid).await, gone);
    assert_eq!(journeys.mail_to("ann").len(), 1);
}

#[tokio::test]
async fn a_cap_that_defers_holds_the_run_until_there_is_a_place() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let template = journeys.template("News").await;
    let cap = json!({"per_day": 1, "when_reached": "defer", "defer_hours": 30});
    let id = journeys.going(line(&[("send", json!({"template_id": template, "frequency_cap": cap}))])).await;
    journeys.go("ann", json!({})).await;
    journeys.clock.advance(HOUR);
    journeys.go("ann", json!({})).await;
    assert_eq!(journeys.newest(&id).await, "entered, waiting a frequency_cap");
    journeys.pass(22 * HOUR).await;
    assert_eq!(journeys.emails().len(), 1);
    journeys.pass(HOUR + SECOND).await;
    assert_eq!(journeys.newest(&id).await, "entered, waiting a frequency_cap, sent a, completed a");
    assert_eq!(journeys.emails().len(), 2);
}

#[tokio::test]
async fn the_last_look_keeps_two_sends_of_a_moment_within_the_cap() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let template = journeys.template("News").await;
    let capped = json!({"template_id": template, "frequency_cap": {"per_day": 1}});
    let id = journeys.going(line(&[("send", capped.clone()), ("send", capped)])).await;
    journeys.go("ann", json!({})).await;
    assert_eq!(journeys.newest(&id).await, "entered, sent a, sent b, completed b");
    journeys.pass(2 * DAY).await;
    let found = journeys.get(&journeys.caller, &format!("/messages?automation_id={id}")).await;
    let mut told: Vec<_> = found["data"].as_array().unwrap().iter().map(|message| message["status"].clone()).collect();
    told.sort_by_key(Value::to_string);
    assert_eq!(told, ["delivered", "suppressed"]);
}

#[tokio::test]
async fn a_template_that_cannot_be_rendered_fails_the_run_and_makes_no_message() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let body = json!({"name": "t", "channel": "email", "subject": "{{ event.title }}", "from_email": "shop@sandbox.test",
        "html": "<p>Hello</p>"});
    let template = journeys.id_of("templates", body).await;
    let id = journeys.going(line(&[("send", json!({"template_id": template})), ("exit", json!({}))])).await;
    journeys.go("ann", json!({})).await;
    assert_eq!(journeys.newest(&id).await, "entered, failed a node_error");
    assert_eq!(journeys.told(&id).await, "failed a node_error");
    assert_eq!(journeys.message_of(&id).await, Value::Null);
    journeys.go("ann", json!({"title": "News"})).await;
    assert_eq!(journeys.newest(&id).await, "entered, sent a, exited b exit");
}

#[tokio::test]
async fn a_send_without_a_verified_sender_fails_its_run_and_keeps_nobody_waiting() {
    let journeys = Journeys::start().await;
    for name in ["ann", "bob"] {
        journeys.contact(name, json!({})).await;
    }
    let template = journeys.template("News").await;
    let send = journeys.going(line(&[("send", json!({"template_id": template}))])).await;
    let is_vip = json!({"filter": {"type": "event", "name": "vip"}});
    let mut rescue = line(&[("condition", is_vip), ("exit", json!({})), ("send", json!({"template_id": template}))]);
    rescue["edges"] = json!([{"from": "a", "to": "b", "branch": "yes"}, {"from": "a", "to": "c", "branch": "no"}]);
    let mixed = journeys.going(rescue).await;
    let found = journeys.store.domain_by_name(journeys.workspace, "sandbox.test").await.unwrap().unwrap();
    let (mut domain, revision) = (found.record, found.revision);
    domain.status = DomainStatus::Failed;
    journeys.commit(Changes::from_iter([Write::put(domain, Expect::Revision(revision))])).await;
    // Values of the domain cached by this process expire.
    journeys.clock.advance(std::time::Duration::from_secs(2));
    // Two contacts of one page: one whose message cannot be made, and one who needs none.
    journeys.event("vip", "bob", json!({})).await;
    for name in ["ann", "bob"] {
        journeys.event("go", name, json!({})).await;
    }
    journeys.work().await;
    assert_eq!(journeys.told(&send).await, "failed a node_error, failed a node_error");
    assert_eq!(journeys.told(&mixed).await, "exited b exit, failed c node_error");
    let detail = &journeys.steps(&send).await[1]["detail"]["message"];
    assert!(detail.as_str().unwrap().contains("sandbox.test"), "{detail}");
    assert_eq!(journeys.emails().len(), 0);
}

#[tokio::test]
async fn contacts_are_changed_by_their_own_rules() {
    let journeys = Journeys::start().await;
    let ann = journeys.contact("ann", json!({"tags": ["new", "old"], "attributes": {"gone": 1}})).await;
    journeys.made("custom-fields", json!({"key": "age", "type": "number"})).await;
    let list = journeys.id_of("lists", json!({"name": "l"})).await;
    let other = journeys.id_of("lists", json!({"name": "o"})).await;
    journeys.change(&ann, json!({"list_ids": [other]})).await;
    let update = json!({"attributes": {"cart": "{{ event.cart }}", "gone": null, "age": 31, "deep": {"a": "{{ event.cart }}!"}},
        "locale": "de", "timezone": "europe/berlin", "tags_add": ["cart-{{ event.cart }}", "new"], "tags_remove": ["old"]});
    let id = journeys
        .going(line(&[
            ("update_contact", update),
            ("add_to_list", json!({"list_id": list})),
            ("remove_from_list", json!({"list_id": other})),
            ("add_tag", json!({"tag": "t-{{ contact.attributes.cart }}"})),
            ("remove_tag", json!({"tag": "new"})),
        ]))
        .await;
    journeys.go("ann", json!({"cart": "c1"})).await;
    assert_eq!(
        journeys.newest(&id).await,
        "entered, changed a, changed b, changed c, changed d, changed e, completed e"
    );
    let contact = journeys.read_contact(&ann).await;
    assert_eq!(contact["attributes"], json!({"cart": "c1", "age": 31, "deep": {"a": "c1!"}}));
    assert_eq!(contact["tags"], json!(["cart-c1", "t-c1"]));
    assert_eq!((&contact["locale"], &contact["timezone"]), (&json!("de"), &json!("Europe/Berlin")));
    assert_eq!(contact["list_ids"], json!([list]));
    // A repetition changes nothing, and is no error.
    journeys.go("ann", json!({"cart": "c1"})).await;
    assert_eq!(journeys.told_of(&id, &ann).await, "completed e, completed e");

    // A text for a number.
    let wrong = json!({"attributes": {"age": "{{ event.age }}"}});
    let id = journeys.going(line(&[("update_contact", wrong), ("exit", json!({}))])).await;
    journeys.go("ann", json!({"age": "old", "cart": "c1"})).await;
    assert_eq!(journeys.newest(&id).await, "entered, failed a node_error");
    assert_eq!(journeys.read_contact(&ann).await["attributes"]["age"], json!(31));
    assert!(journeys.steps(&id).await[1]["detail"]["message"].as_str().unwrap().contains("/attributes/age"));
}

#[tokio::test]
async fn a_condition_sees_what_the_nodes_before_it_changed() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({})).await;
    let is_vip = json!({"filter": {"type": "tag", "op": "has_any", "values": ["vip"]}});
    let mut graph = line(&[("condition", is_vip.clone()), ("add_tag", json!({"tag": "vip"})), ("condition", is_vip)]);
    graph["edges"][0]["branch"] = json!("no");
    let id = journeys.going(graph).await;
    journeys.go("ann", json!({})).await;
    assert_eq!(journeys.newest(&id).await, "entered, branched a no, changed b, branched c yes, completed c");
    let steps = journeys.steps(&id).await;
    assert_eq!(steps[1]["detail"], json!({"leaves": [{"pointer": "/filter", "held": false}]}));
    assert_eq!(steps[1]["at"], steps[4]["at"]);
}

#[tokio::test]
async fn nine_automations_that_cause_one_another_stop_at_the_ninth() {
    let journeys = Journeys::start().await;
    let ann = journeys.contact("ann", json!({})).await;
    let mut lists = Vec::new();
    for n in 0..10 {
        lists.push(journeys.id_of("lists", json!({"name": format!("l{n}")})).await);
    }
    let mut ids = Vec::new();
    for pair in lists.windows(2) {
        let trigger = json!({"kind": "list_added", "config": {"list_id": pair[0]}});
        let graph = line(&[("add_to_list", json!({"list_id": pair[1]}))]);
        ids.push(journeys.active(trigger, graph, json!({})).await);
    }
    journeys.change(&ann, json!({"list_ids": [lists[0]]})).await;
    journeys.work().await;
    let mut told = Vec::new();
    for id in &ids {
        told.push(journeys.told(id).await);
    }
    assert_eq!(told[..8], ["completed a"; 8].map(str::to_owned));
    assert_eq!(told[8], "failed depth");
    assert_eq!(journeys.newest(&ids[8]).await, "refused depth");
}

#[tokio::test]
async fn a_web_address_is_called_three_times_with_one_key() {
    let fetch = Arc::new(MemoryFetch::default());
    let journeys = Journeys::calling(Arc::clone(&fetch)).await;
    let ann = journeys.contact("ann", json!({})).await;
    let call = json!({"url": "https://acme.com/hook", "method": "PUT", "headers": {"X-Cart": "{{ event.cart }}"},
        "body": {"who": "{{ contact.email }}", "n": [1, "{{ event.cart }}"]}});
    let mut graph =
        line(&[("webhook", call), ("exit", json!({"reason": "told"})), ("exit", json!({"reason": "broken"}))]);
    graph["edges"] = json!([{"from": "a", "to": "b"}, {"from": "a", "to": "c", "branch": "error"}]);
    let id = journeys.going(graph).await;
    fetch.next(500);
    fetch.next_with(Err(FetchError::Blocked));
    journeys.go("ann", json!({"cart": "c1"})).await;
    assert_eq!(journeys.told(&id).await, "waiting a");
    journeys.pass(4 * SECOND).await;
    assert_eq!(fetch.take().len(), 1);
    journeys.pass(SECOND).await;
    journeys.pass(29 * SECOND).await;
    let again = fetch.take();
    assert_eq!(again.len(), 1);
    journeys.pass(SECOND).await;
    assert_eq!(journeys.newest(&id).await, "entered, called a next, exited b told");
    assert_eq!(journeys.steps(&id).await[1]["detail"], json!({"status": 200}));
    let last = fetch.take();
    let [request] = &last[..] else { panic!("{} calls", last.len()) };
    assert_eq!(request.headers, again[0].headers);
    let run = journeys.runs(&id).await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(request.headers["idempotency-key"], format!("{run}:a:1"));
    assert_eq!((request.method.as_str(), &request.headers["x-cart"]), ("PUT", &"c1".parse().unwrap()));
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body, json!({"who": "ann@example.com", "n": [1, "c1"]}));
    assert_eq!(request.redirects, 0);

    // Three calls that fail, and the request that is sent if the node does not describe one.
    fetch.always("https://acme.com/bare", Err(FetchError::Blocked));
    let bare = json!({"url": "https://acme.com/bare", "method": "POST"});
    let mut graph = line(&[("webhook", bare), ("exit", json!({"reason": "broken"}))]);
    graph["edges"] = json!([{"from": "a", "to": "b", "branch": "error"}]);
    let id = journeys.active(on_event("bare"), graph, json!({})).await;
    journeys.event("bare", "ann", json!({"cart": "c2"})).await;
    journeys.work().await;
    journeys.pass(5 * SECOND).await;
    journeys.pass(30 * SECOND).await;
    assert_eq!(journeys.newest(&id).await, "entered, called a error, exited b broken");
    assert_eq!(journeys.steps(&id).await[1]["detail"], json!({"error": "blocked_address"}));
    let calls = fetch.take();
    assert_eq!(calls.len(), 3);
    let body: Value = serde_json::from_slice(&calls[2].body).unwrap();
    assert_eq!((&body["automation_id"], &body["contact_id"]), (&json!(id), &json!(ann)));
    assert_eq!(body["event"], json!({"cart": "c2"}));
}

#[tokio::test]
async fn a_goal_ends_a_run_whose_call_is_under_way_and_the_call_changes_nothing_more() {
    let fetch = Arc::new(MemoryFetch::default());
    let journeys = Journeys::calling(Arc::clone(&fetch)).await;
    journeys.contact("ann", json!({})).await;
    let mut graph =
        line(&[("webhook", json!({"url": "https://acme.com/hook", "method": "POST"})), ("exit", json!({}))]);
    graph["goal"] = json!({"type": "event", "name": "bought"});
    let id = journeys.going(graph).await;
    fetch.next(503);
    journeys.go("ann", json!({})).await;
    journeys.event("bought", "ann", json!({})).await;
    journeys.work().await;
    journeys.pass(MINUTE).await;
    assert_eq!(journeys.newest(&id).await, "entered, completed a goal");
    assert_eq!(fetch.take().len(), 1, "nobody waits for the other tries");
}

#[tokio::test]
async fn waits_go_by_the_clock_of_the_contact() {
    let journeys = Journeys::start().await;
    journeys.contact("ann", json!({"timezone": "Asia/Tokyo", "attributes": {"renews": "2026-02-02"}})).await;
    let id = journeys.going(line(&[
        ("wait", json!({"until": {"time": "08:00", "weekdays": [7]}})),
        ("wait", json!({"until_attribute": {"key": "renews", "offset": {"value": 1, "unit": "hours"}, "direction": "after"}})),
        ("wait", json!({"duration": {"value": 90, "unit": "seconds"}})),
        ("wait", json!({"until_attribute": {"key": "none"}})),
    ])).await;
    journeys.go("ann", json!({})).await;
    journeys.pass(3 * DAY).await;
    let untils: Vec<_> = journeys.steps(&id).await.iter().map(|step| step["detail"]["until"].clone()).collect();
    assert_eq!(untils[1], json!("2026-01-31T23:00:00.000Z"));
    assert_eq!(untils[3], json!("2026-02-01T16:00:00.000Z"));
    // Though the server processed it days later.
    assert_eq!(untils[5], json!("2026-02-01T16:01:30.000Z"));
    assert_eq!(
        journeys.newest(&id).await,
        "entered, waiting a, continued a, waiting b, continued b, waiting c, continued c, continued d missing, completed d"
    );
}

#[tokio::test]
async fn counts_of_nodes_and_branches_are_those_of_the_history() {
    let journeys = Journeys::start().await;
    let mut graph = line(&[
        ("split", json!({"branches": [{"name": "l", "weight": 1}, {"name": "r", "weight": 1}]})),
        ("add_tag", json!({"tag": "l"})),
        ("add_tag", json!({"tag": "r"})),
    ]);
    graph["edges"] = json!([{"from": "a", "to": "b", "branch": "l"}, {"from": "a", "to": "c", "branch": "r"}]);
    let id = journeys.going(graph).await;
    for n in 0..12 {
        journeys.contact(&format!("c{n}"), json!({})).await;
        journeys.event("go", &format!("c{n}"), json!({})).await;
    }
    journeys.work().await;
    let (mut left, mut draws) = (0, Vec::new());
    for run in journeys.runs(&id).await {
        let path = journeys.at(&format!("automations/{id}/runs/{}", run["id"].as_str().unwrap()));
        let step = journeys.get(&journeys.caller, &path).await["history"][1].clone();
        let drawn = step["detail"]["draw"].as_f64().unwrap();
        assert_eq!(step["branch"], json!(if drawn < 0.5 { "l" } else { "r" }));
        left += u64::from(drawn < 0.5);
        draws.push(drawn);
    }
    let stats = journeys.get(&journeys.caller, &journeys.at(&format!("automations/{id}/stats"))).await;
    let node = |name: &str| stats["nodes"].as_array().unwrap().iter().find(|node| node["id"] == name).unwrap().clone();
    assert_eq!((draws.len(), &node("a")["entered"]), (12, &json!(12)));
    assert_eq!(node("a")["branches"]["l"].as_u64().unwrap_or(0), left);
    assert_eq!(node("b")["entered"].as_u64().unwrap_or(0), left);
    assert_eq!((&stats["completed"], &stats["entered"]), (&json!(12), &json!(12)));
}
