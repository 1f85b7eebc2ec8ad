//! Contract section 2.4, last sentence: a credential learns nothing by writing that it may not read.
//!
//! Every set of scopes calls every operation of `ops::all()`, and all outgoing requests are searched for the marked
//! address, also spelled backwards, because a template of such a writer could reverse it.

use http::Method;
use messaging_core::scope::Scope;
use messaging_engine::ops::Endpoint;
use messaging_engine::{Caller, ops};
use serde_json::{Value, json};

use super::{ADDRESS, MARK, PHONE, World, shows_mark};
use crate::bed::{self, Call, Reply};

/// Address of the webhooks and nodes of writers who see no addresses.
const ELSEWHERE: &str = "https://elsewhere.example/hook";

fn shows(text: &str) -> bool {
    let backwards: String = MARK.chars().rev().collect();
    shows_mark(text) || text.to_lowercase().contains(&backwards)
}

impl World {
    async fn call(&self, caller: &Caller, method: Method, path: &str, body: &Value) -> Reply {
        let workspace = self.hooks.product.workspace.to_string();
        let call = Call::new(caller, method, path).in_workspace(&workspace);
        bed::send(&self.hooks.product.app, if body.is_null() { call } else { call.body(body) }).await
    }

    /// Posts below the workspace as a caller, with success.
    async fn made(&self, caller: &Caller, path: &str, body: Value) -> Value {
        let reply = self.call(caller, Method::POST, &format!("{}{path}", self.base()), &body).await;
        assert!(reply.status < 300, "{path}: {} {}", reply.summary(), reply.body);
        reply.body
    }

    fn id_of(&self, group: &str) -> &str {
        let found =
            self.ids.iter().find(|(of, _)| of.ends_with(&format!("/{group}/{{id}}")) && !of.contains("analytics"));
        &found.unwrap_or_else(|| panic!("no id of {group}")).1
    }

    /// Every set of scopes that a credential may have, by its name.
    async fn callers(&self) -> Vec<(String, Caller)> {
        let product = &self.hooks.product;
        let mut callers = vec![("all but pii:read".to_owned(), self.blind.clone())];
        for role in ["viewer", "editor"] {
            callers.push((role.to_owned(), product.member(product.workspace, &format!("{role}@acme.com"), role).await));
        }
        for scope in Scope::ALL {
            callers.push((scope.to_string(), product.key(product.workspace, &[scope.as_str()]).await));
        }
        callers
    }

    /// A path of an operation. Deletions get an id that does not exist, so that the resource is there for the next
    /// caller.
    fn target(&self, endpoint: &Endpoint) -> String {
        let mut path = endpoint.path.replace("{workspace_id}", &self.hooks.product.workspace.to_string());
        let known = self.ids.iter().find(|(of, _)| endpoint.path.starts_with(of)).map(|(_, id)| id.as_str());
        for (name, value) in [
            ("{run_id}", self.run.as_str()),
            ("{version}", "1"),
            ("{channel}", "email"),
            ("{contact_id}", self.id_of("contacts")),
            ("{user_id}", "usr_00000000000000000000000000"),
            ("{delivery_id}", "dlv_00000000000000000000000000"),
            ("{message_id}", self.id_of("messages")),
        ] {
            path = path.replace(name, value);
        }
        let is_deletion = (endpoint.method)() == Method::DELETE;
        let path = path.replace("{id}", known.filter(|_| !is_deletion).unwrap_or("nothing"));
        match endpoint.id {
            "listWebhookEvents" => format!("{path}?wait=0&limit=200"),
            "explainContact" => format!("{path}?channel=email"),
            "listMessageDeliveries" => format!("{path}?message_id={}", self.id_of("messages")),
            _ => path,
        }
    }

    /// A graph with an address in every text that a node can write.
    fn leaking_graph(&self) -> Value {
        let address = "{{ contact.email }} {{ contact.phone }}";
        let backwards = "{{ contact.email | reverse }}";
        let body = json!({"address": address, "backwards": backwards, "first": "{{ contact.email[:5] }}"});
        let attributes = json!({"copy": address, "backwards": backwards});
        let send = json!({"template_id": self.id_of("templates"), "category": "transactional",
            "variables": {"given": backwards}});
        json!({
            "entry": "call",
            "nodes": [
                {"id": "call", "kind": "webhook", "config": {"url": ELSEWHERE, "headers": {"X-Who": address}, "body": body}},
                {"id": "text", "kind": "webhook", "config": {"url": ELSEWHERE, "body": backwards}},
                {"id": "plain", "kind": "webhook", "config": {"url": ELSEWHERE}},
                {"id": "update", "kind": "update_contact",
                    "config": {"attributes": attributes, "tags_add": ["{{ contact.phone }}"], "tags_remove": [address]}},
                {"id": "tag", "kind": "add_tag", "config": {"tag": "{{ contact.email }}"}},
                {"id": "untag", "kind": "remove_tag", "config": {"tag": "none"}},
                {"id": "list", "kind": "add_to_list", "config": {"list_id": self.id_of("lists")}},
                {"id": "unlist", "kind": "remove_from_list", "config": {"list_id": self.id_of("lists")}},
                {"id": "send", "kind": "send", "config": send},
                {"id": "asked", "kind": "condition",
                    "config": {"filter": {"type": "contact", "field": "email", "op": "exists"}}},
                {"id": "drawn", "kind": "split",
                    "config": {"branches": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]}},
                {"id": "wait", "kind": "wait", "config": {"duration": {"value": 1, "unit": "seconds"}}},
                {"id": "await", "kind": "wait_event", "config": {"on": {"type": "event", "name": "never"},
                    "timeout": {"value": 1, "unit": "seconds"}}},
                {"id": "exit", "kind": "exit", "config": {"reason": "seen"}},
            ],
            "edges": [
                {"from": "call", "to": "text"}, {"from": "text", "to": "plain"}, {"from": "plain", "to": "update"},
                {"from": "update", "to": "tag"}, {"from": "tag", "to": "untag"}, {"from": "untag", "to": "list"},
                {"from": "list", "to": "unlist"}, {"from": "unlist", "to": "send"}, {"from": "send", "to": "asked"},
                {"from": "asked", "to": "drawn", "branch": "yes"}, {"from": "drawn", "to": "wait", "branch": "a"},
                {"from": "drawn", "to": "wait", "branch": "b"}, {"from": "wait", "to": "await"},
                {"from": "await", "to": "exit", "branch": "timeout"},
            ],
        })
    }

    /// Body for an operation that does more than read; fails for an unknown operation.
    fn body_for(&self, id: &str) -> Value {
        let (contact, list, template) = (self.id_of("contacts"), self.id_of("lists"), self.id_of("templates"));
        let message = json!({"channel": "email", "contact_id": contact, "template_id": template});
        let event = json!({"name": "seen", "contact": {"email": ADDRESS}});
        match id {
            // These name a contact, or write a text in which an address could stand.
            "upsertContact" => json!({"email": ADDRESS}),
            "bulkUpsertContacts" => json!({"contacts": [{"email": ADDRESS}, {"phone": PHONE, "email": 5}]}),
            "updateContact" => json!({"tags": ["seen"]}),
            "mergeContacts" => json!({"primary_id": contact, "duplicate_id": contact}),
            "addListContacts" => json!({"contact_ids": [contact]}),
            "createSuppression" => json!({"channel": "sms", "address": PHONE, "reason": "manual"}),
            "sendEvent" => event,
            "sendEvents" => json!({"events": [event, {"name": "seen", "contact": {}}]}),
            "sendMessage" => message,
            "sendMessages" | "sendAllMessages" => json!({"messages": [message]}),
            "previewSegment" => json!({"filter": {"type": "contact", "field": "email", "op": "eq", "value": ADDRESS}}),
            "createSegment" => json!({"name": "s", "filter": {"type": "contact", "field": "phone", "op": "exists"}}),
            "createTemplate" => json!({"name": "t", "channel": "email", "subject": "{{ contact.email }}", "text": "x"}),
            "updateTemplate" => json!({"name": "t", "channel": "email"}),
            "importHtmlTemplate" => json!({"name": "t", "html": "{{ contact.email }}"}),
            "previewTemplate" | "triggerAutomation" => json!({"contact_id": contact}),
            "createCampaign" => json!({"name": "c", "channel": "email", "template_id": template, "audience":
                {"list_ids": [list]}, "subject_override": "{{ contact.email | reverse }}"}),
            "previewAudience" => json!({"channel": "email", "audience": {"list_ids": [list]}}),
            "createAutomation" => json!({"name": "a", "trigger": {"kind": "manual"}, "graph": self.leaking_graph()}),
            "simulateAutomation" => json!({"contact_id": contact, "graph": self.leaking_graph(),
                "trigger": {"kind": "manual"}, "events": [], "until": "2027-01-01T00:00:00Z"}),
            "createWebhook" | "updateWebhook" => json!({"url": ELSEWHERE, "events": ["*"]}),
            "replayWebhook" => json!({"since": "2026-01-01T00:00:00Z", "status": "all"}),
            "testChannel" => json!({"to": "you@example.com"}),
            "testCampaign" => json!({"to": [ADDRESS], "contact_id": contact}),
            "createImport" => json!({"filename": "a.csv", "size_bytes": 1, "sha256": "0".repeat(64)}),
            // These neither name a contact nor take a text that is filled with one.
            "acceptInvitation" | "activateAutomation" | "pauseAutomation" | "updateAutomation" | "exitAutomationRun" | "cancelCampaign"
            | "cancelMessage" | "createApiKey" | "createCustomField" | "createList" | "createMember"
            | "createMemberTicket" | "createSendingDomain" | "createWorkspace" | "declareWinner" | "login" | "logout"
            | "pauseCampaign" | "pauseWebhook" | "recalculateSegment" | "redeemTicket" | "replayDelivery"
            | "resumeWebhook" | "revertTemplate" | "rotateApiKey" | "rotateDkim" | "rotateWebhookSecret" | "scheduleCampaign"
            | "setChannel" | "setPassword" | "testWebhook" | "unscheduleCampaign" | "updateCampaign"
            | "updateCustomField" | "updateList" | "updateMember" | "updateSegment" | "updateSendingDomain"
            | "updateWorkspace" | "verifySendingDomain" | "restoreWorkspace" | "retryQueue" | "suspendQueue"
            | "resumeQueue" | "cancelQueue" | "createIpPool" | "updateIpPool" | "configureDns" | "updateSource"
            | "updateSourcePath" | "createForm" | "updateForm" | "duplicateCampaign" | "createImage"
            // It shows another site's page, which has nothing of the workspace.
            | "importUrlTemplate"
            // They concern the caller alone.
            | "loginWithFactor" | "beginPasskeyLogin" | "createFactor" | "confirmFactor" | "createRecoveryCodes"
            | "confirmSignOn" => json!({}),
            id => panic!("{id}: say here what of a contact it could tell a caller without pii:read"),
        }
    }

    /// Runs all jobs, and checks that no request to `ELSEWHERE` shows the mark.
    async fn check_what_leaves(&self, who: &str) -> usize {
        self.hooks.product.work().await;
        let left = self.hooks.fetch.take();
        let elsewhere: Vec<_> = left.iter().filter(|request| request.url == ELSEWHERE).collect();
        for request in &elsewhere {
            let told = format!("{:?} {}", request.headers, String::from_utf8_lossy(&request.body));
            assert!(!shows(&told), "{who}: {told}");
        }
        elsewhere.len()
    }
}

#[tokio::test]
async fn no_scopes_without_pii_read_have_a_marked_address_leave() {
    let mut world = World::start().await;
    world.message(ADDRESS).await;
    world.contact().await;
    world.import().await;
    let (mut in_clear, mut calls) = (0, 0);
    for (who, caller) in world.callers().await {
        let is_clear = ["editor", "pii:read", "*"].contains(&who.as_str());
        for endpoint in ops::all() {
            let method = (endpoint.method)();
            // A caller with `pii:read` may pass addresses on.
            if (is_clear && endpoint.id == "updateWebhook") || endpoint.id == "logout" {
                continue;
            }
            let takes_body = method != Method::GET && method != Method::DELETE;
            let body = if takes_body { world.body_for(endpoint.id) } else { Value::Null };
            let reply = world.call(&caller, method, &world.target(endpoint), &body).await;
            let told = reply.body.to_string();
            calls += usize::from(reply.status < 300);
            if is_clear {
                in_clear += usize::from(shows(&told));
            } else {
                assert!(!shows(&told), "{who} {}: {told}", endpoint.id);
            }
        }
        if !is_clear {
            world.check_what_leaves(&who).await;
        }
        world.hooks.fetch.take();
    }
    // Callers with `pii:read` see the mark, and most calls are accepted.
    assert!(in_clear > 10 && calls > 150, "{in_clear} {calls}");
}

#[tokio::test]
async fn nodes_of_a_writer_without_pii_read_fill_addresses_masked_but_in_messages() {
    let mut world = World::start().await;
    world.contact().await;
    let (clear, blind) = (world.clear.clone(), world.blind.clone());
    let subject = "S {{ given }} {{ contact.email | reverse }}";
    let template = json!({"name": "l", "channel": "email", "subject": subject, "text": "{{ contact.email }}"});
    let template = world.made(&blind, "/templates", template).await["id"].as_str().unwrap().to_owned();
    let place = world.ids.iter().position(|(of, _)| of.ends_with("/templates/{id}")).unwrap();
    world.ids[place].1 = template;
    let graph = world.leaking_graph();
    let contact = world.id_of("contacts").to_owned();
    let body =
        |graph: &Value| json!({"name": "a", "trigger": {"kind": "manual"}, "graph": graph, "re_entry": "always"});
    let automation = world.made(&blind, "/automations", body(&graph)).await;
    let place = format!("/automations/{}", automation["id"].as_str().unwrap());
    world.made(&clear, &format!("{place}/activate"), json!({})).await;
    let run = async |world: &World| {
        world.hooks.product.transport.take();
        world.made(&clear, &format!("{place}/trigger"), json!({"contact_id": contact})).await;
        for _ in 0..8 {
            world.hooks.product.pass(std::time::Duration::from_secs(2)).await;
        }
    };
    run(&world).await;
    // The mail is for its recipient, and names the recipient.
    let sent = world.hooks.product.transport.take();
    assert!(sent.iter().any(|mail| shows(&format!("{mail:?}"))), "{sent:?}");
    assert_eq!(world.check_what_leaves("node").await, 3);
    let get = async |caller: &Caller, path: &str| {
        let reply = world.call(caller, Method::GET, path, &Value::Null).await;
        assert_eq!(reply.status, 200, "{path}");
        reply.body
    };
    let path = format!("{}/contacts/{contact}", world.base());
    let changed = get(&clear, &path).await;
    assert!(!shows(&json!([changed["attributes"], changed["tags"]]).to_string()), "{changed}");
    assert_eq!(changed["attributes"]["copy"], "z***@example.com +*******9876");
    for path in ["/messages".to_owned(), format!("{}{place}/runs", world.base())] {
        let told = get(&blind, &path).await.to_string();
        assert!(!shows(&told), "{path}: {told}");
    }

    // A new name does not change the design; a change of the design by a caller who sees addresses is that caller's
    // version.
    let patch = async |caller: &Caller, body: Value| {
        let reply = world.call(caller, Method::PATCH, &format!("{}{place}", world.base()), &body).await;
        assert_eq!(reply.status, 200, "{}", reply.summary());
    };
    patch(&clear, json!({"name": "b"})).await;
    run(&world).await;
    assert_eq!(world.check_what_leaves("renamed").await, 3);
    patch(&clear, json!({"re_entry": "after_exit"})).await;
    run(&world).await;
    let told = world.hooks.fetch.take();
    let told = told.iter().filter(|request| request.url == ELSEWHERE);
    assert_eq!(told.filter(|request| shows(&String::from_utf8_lossy(&request.body))).count(), 2);
    assert!(shows(&get(&clear, &path).await["attributes"].to_string()));
    // And back again.
    patch(&blind, json!({"re_entry": "always"})).await;
    run(&world).await;
    assert_eq!(world.check_what_leaves("taken over").await, 3);
}

#[tokio::test]
async fn a_new_url_of_a_webhook_by_a_writer_without_pii_read_is_told_no_addresses() {
    let world = World::start().await;
    let path = world.hooks.path.clone();
    let patch = async |caller: &Caller, body: Value| {
        let reply = world.call(caller, Method::PATCH, &path, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.summary());
        reply["pii"].clone()
    };
    // Unchanged URLs, and other events, lead nowhere else.
    let webhook = world.get(&world.blind, &path).await.body;
    assert_eq!(patch(&world.blind, webhook).await, true);
    assert_eq!(patch(&world.blind, json!({"events": ["*"]})).await, true);
    assert_eq!(patch(&world.clear, json!({"url": "https://acme.com/other"})).await, true);
    assert_eq!(patch(&world.blind, json!({"url": ELSEWHERE})).await, false);
    world.hooks.product.send_to(ADDRESS).await;
    assert!(world.check_what_leaves("webhook").await > 0);
    // A caller who sees addresses does not set `pii` again, but can create another webhook.
    assert_eq!(patch(&world.clear, json!({"url": "https://acme.com/hook"})).await, false);
}

#[tokio::test]
async fn filters_of_a_reader_without_pii_read_compare_addresses_as_a_whole() {
    let mut world = World::start().await;
    world.contact().await;
    let product = &world.hooks.product;
    let viewer = product.member(product.workspace, "viewer@acme.com", "viewer").await;
    let base = world.base();
    let automation = format!("{base}/automations/{}", world.id_of("automations"));
    let segment = format!("{base}/segments/{}", world.id_of("segments"));
    let leaf = |field: &str, op: &str, value: &str| match op {
        "exists" | "not_exists" => json!({"type": "contact", "field": field, "op": op}),
        "in" | "not_in" => json!({"type": "contact", "field": field, "op": op, "value": [value]}),
        _ => json!({"type": "contact", "field": field, "op": op, "value": value}),
    };
    let calls = |filter: &Value| {
        let condition = json!({"id": "c", "kind": "condition", "config": {"filter": filter}});
        let by_node = json!({"nodes": [condition]});
        let by_goal = json!({"nodes": [{"id": "x", "kind": "exit"}], "goal": filter});
        let by_exit = json!({"nodes": [{"id": "x", "kind": "exit"}], "exit_conditions": [filter]});
        let trigger = json!({"kind": "manual", "config": {"filter": filter}});
        let try_out = json!({"contact": {"external_id": "u"}, "events": [], "until": "2027-01-01T00:00:00Z"});
        let tried = |member: &str, value: &Value| {
            let mut body = try_out.clone();
            body[member] = value.clone();
            (Method::POST, format!("{automation}/simulate"), body)
        };
        vec![
            (Method::POST, format!("{base}/segments/preview"), json!({"filter": filter})),
            tried("graph", &by_node),
            tried("trigger", &trigger),
            (Method::POST, format!("{base}/segments"), json!({"name": "s", "filter": {"not": filter}})),
            (Method::PATCH, segment.clone(), json!({"filter": {"and": [filter]}})),
            (Method::POST, format!("{base}/automations"), json!({"name": "a", "trigger": trigger, "graph": {}})),
            (Method::PATCH, automation.clone(), json!({"graph": by_goal})),
            (Method::PATCH, automation.clone(), json!({"graph": by_exit})),
        ]
    };
    for field in ["email", "phone"] {
        for op in ["neq", "not_in", "contains", "not_contains", "starts_with", "ends_with", "not_exists"] {
            for (n, (method, path, body)) in calls(&leaf(field, op, "zqx")).into_iter().enumerate() {
                let reply = world.call(&world.blind, method.clone(), &path, &body).await;
                assert_eq!(reply.summary(), "403 scope required: pii:read", "{path} {body}");
                // The first three only read.
                if n < 3 {
                    let reply = world.call(&viewer, method, &path, &body).await;
                    assert_eq!(reply.summary(), "403 role_forbidden", "{path}");
                    assert!(reply["error"]["message"].as_str().unwrap().contains("pii:read"));
                }
            }
        }
        for op in ["eq", "in", "exists"] {
            for (method, path, body) in calls(&leaf(field, op, ADDRESS)) {
                let reply = world.call(&world.blind, method, &path, &body).await;
                assert!(reply.status < 300, "{path} {body}: {}", reply.summary());
            }
        }
    }
    // Other fields reveal nothing hidden, and callers who see addresses may ask for any.
    for (caller, field) in [(&world.blind, "external_id"), (&world.clear, "email")] {
        for (method, path, body) in calls(&leaf(field, "starts_with", "zqx")) {
            let reply = world.call(caller, method, &path, &body).await;
            assert!(reply.status < 300, "{path} {body}: {}", reply.summary());
        }
    }
    // A query of another caller can be sent back, and other members changed.
    for path in [&segment, &automation] {
        let mut read = world.get(&world.blind, path).await.body;
        assert!(read.to_string().contains("starts_with"), "{read}");
        read["name"] = json!("renamed");
        let reply = world.call(&world.blind, Method::PATCH, path, &read).await;
        assert_eq!((reply.status, &reply["name"]), (200, &json!("renamed")), "{}", reply.summary());
    }
}
