//! Audit logs: recorded changes, commands and sign-ins, and that no entry can be removed unnoticed.

mod random;

use std::time::Duration;

use http::Method;
use messaging_core::ids::WorkspaceId;
use messaging_engine::work::sweep::sweep;
use messaging_engine::{Caller, admin};
use serde_json::{Value, json};

use crate::bed::{Bed, Call, PASSWORD, Reply};
use crate::support::Product;
use crate::test_store::is_postgres;

/// The operator: all powers, and no session of a person.
const OPERATOR: Caller = Caller::Operator(None);

async fn log(bed: &Bed, owner: &Caller, workspace: WorkspaceId, query: &str) -> Vec<Value> {
    let reply = bed.get(owner, &format!("/workspaces/{workspace}/audit?limit=200{query}")).await;
    assert_eq!(reply.summary(), "200", "{query}");
    reply["data"].as_array().unwrap().clone()
}

/// The operations of entries, oldest first.
fn operations(entries: &[Value]) -> Vec<&str> {
    entries.iter().rev().map(|entry| entry["operation"].as_str().unwrap()).collect()
}

async fn system_log(bed: &Bed, query: &str) -> Vec<Value> {
    let reply = bed.get(&OPERATOR, &format!("/system/audit?limit=200{query}")).await;
    assert_eq!(reply.summary(), "200", "{query}");
    reply["data"].as_array().unwrap().clone()
}

/// A workspace whose owner changes one thing after the other.
struct Changing {
    bed: Bed,
    workspace: WorkspaceId,
    owner: Caller,
    operations: Vec<&'static str>,
}

impl Changing {
    async fn begin() -> Self {
        let (bed, workspace, owner) = Bed::with_owner().await;
        Self { bed, workspace, owner, operations: Vec::new() }
    }

    /// Makes a change that must succeed.
    async fn change(&mut self, operation: &'static str, method: Method, path: &str, body: Value) -> Reply {
        let target = format!("/workspaces/{}{path}", self.workspace);
        let call = Call::new(&self.owner, method, &target).from("192.0.2.7");
        let call = if body.is_null() { call } else { call.body(&body) };
        let reply = self.bed.call(call).await;
        assert!(reply.status < 300, "{operation}: {}", reply.summary());
        self.operations.push(operation);
        reply
    }

    /// Creates something, changes it and deletes it.
    async fn live(&mut self, operations: [&'static str; 3], path: &str, body: Value, patch: Value) {
        let made = self.change(operations[0], Method::POST, path, body).await;
        let one = format!("{path}/{}", made["id"].as_str().unwrap());
        self.change(operations[1], Method::PATCH, &one, patch).await;
        self.change(operations[2], Method::DELETE, &one, Value::Null).await;
    }
}

#[tokio::test]
async fn each_change_has_its_entry_and_none_has_a_secret() {
    let mut world = Changing::begin().await;
    world.bed.user("ann@example.com").await;
    let key = world.change("createApiKey", Method::POST, "/api-keys", json!({"name": "k", "scopes": ["*"]})).await;
    let one = format!("/api-keys/{}", key["id"].as_str().unwrap());
    let new_key = world.change("rotateApiKey", Method::POST, &format!("{one}/rotate"), Value::Null).await;
    world.change("deleteApiKey", Method::DELETE, &one, Value::Null).await;
    let member = json!({"email": "ann@example.com", "role": "viewer"});
    let member = world.change("createMember", Method::POST, "/members", member).await;
    let one = format!("/members/{}", member["user_id"].as_str().unwrap());
    world.change("updateMember", Method::PATCH, &one, json!({"role": "editor"})).await;
    let ticket = world.change("createMemberTicket", Method::POST, &format!("{one}/ticket"), Value::Null).await;
    world.change("deleteMember", Method::DELETE, &one, Value::Null).await;
    world.change("updateWorkspace", Method::PATCH, "", json!({"timezone": "Europe/Berlin"})).await;
    let field = json!({"key": "plan", "type": "string"});
    let fields = ["createCustomField", "updateCustomField", "deleteCustomField"];
    world.live(fields, "/custom-fields", field, json!({"label": "Plan"})).await;
    let lists = ["createList", "updateList", "deleteList"];
    world.live(lists, "/lists", json!({"name": "A"}), json!({"name": "B"})).await;
    let config = json!({"host": "mx.acme.com", "port": 587, "username": "u", "password": "hunter22-of-the-relay"});
    world.change("setChannel", Method::PUT, "/channels/email", json!({"provider": "smtp", "config": config})).await;
    world.change("deleteChannel", Method::DELETE, "/channels/email", Value::Null).await;
    let hook = json!({"url": "https://acme.com/hook", "events": ["bounce"]});
    let hook = world.change("createWebhook", Method::POST, "/webhooks", hook).await;
    let one = format!("/webhooks/{}", hook["id"].as_str().unwrap());
    world.change("updateWebhook", Method::PATCH, &one, json!({"events": ["sent"]})).await;
    world.change("pauseWebhook", Method::POST, &format!("{one}/pause"), Value::Null).await;
    world.change("resumeWebhook", Method::POST, &format!("{one}/resume"), Value::Null).await;
    let rotated = world.change("rotateWebhookSecret", Method::POST, &format!("{one}/rotate-secret"), Value::Null).await;
    world.change("deleteWebhook", Method::DELETE, &one, Value::Null).await;
    let template = json!({"name": "Hi", "channel": "email", "subject": "Hi", "text": "Hello"});
    let templates = ["createTemplate", "updateTemplate", "deleteTemplate"];
    world
        .live(templates, "/templates", template, json!({"name": "Hi", "channel": "email", "subject": "Welcome"}))
        .await;
    let suppressed = json!({"channel": "email", "address": "somebody@example.com", "reason": "manual"});
    let suppressed = world.change("createSuppression", Method::POST, "/suppressions", suppressed).await;
    let one = format!("/suppressions/{}", suppressed["id"].as_str().unwrap());
    world.change("deleteSuppression", Method::DELETE, &one, Value::Null).await;
    // Changes of a contact's data are not recorded, exports and erasures are.
    let target = format!("/workspaces/{}/contacts", world.workspace);
    let contact = world.bed.post(&world.owner, &target, json!({"email": "person@example.com"})).await;
    let one = format!("/contacts/{}", contact["id"].as_str().unwrap());
    world.change("exportContact", Method::GET, &format!("{one}/export"), Value::Null).await;
    world.change("deleteContact", Method::DELETE, &one, Value::Null).await;

    let entries = log(&world.bed, &world.owner, world.workspace, "").await;
    let found = operations(&entries);
    assert_eq!(found[..2], ["admin create-workspace", "login"]);
    assert_eq!(found[2..], world.operations);
    assert!(found.len() > 28, "{}", found.len());
    let owner = bed_actor(&world.owner);
    for entry in &entries[..world.operations.len()] {
        assert_eq!(entry["actor"], owner, "{entry}");
        assert_eq!((&entry["ip"], &entry["request_id"]), (&json!("192.0.2.7"), &json!("req_test")), "{entry}");
        assert_eq!(entry["at"], "2026-01-31T09:15:00.000Z");
    }
    let text = json!(entries).to_string();
    let secrets = [
        key["key"].as_str().unwrap().split_once('.').unwrap().1,
        new_key["key"].as_str().unwrap().split_once('.').unwrap().1,
        ticket["url"].as_str().unwrap().split_once("#ticket=").unwrap().1,
        hook["secret"].as_str().unwrap(),
        rotated["secret"].as_str().unwrap(),
        "hunter22-of-the-relay",
        "somebody@example.com",
        "person@example.com",
        PASSWORD,
    ];
    for secret in secrets {
        assert!(!text.contains(secret), "{secret}");
    }
}

/// A signed-in person as an actor.
fn bed_actor(caller: &Caller) -> Value {
    let Caller::Session(session) = caller else { panic!("not a session") };
    json!({"kind": "user", "id": session.user.id, "name": session.user.email})
}

#[tokio::test]
async fn an_entry_shows_what_was_and_what_is() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let base = format!("/workspaces/{workspace}");
    let template = json!({"name": "Hi", "channel": "email", "subject": "Hi", "text": "Hello"});
    let made = bed.post(&owner, &format!("{base}/templates"), template).await;
    let one = format!("{base}/templates/{}", made["id"].as_str().unwrap());
    assert_eq!(
        bed.patch(&owner, &one, json!({"name": "Hi", "channel": "email", "subject": "Welcome"})).await.summary(),
        "200"
    );
    // A request that changes nothing is not recorded.
    assert_eq!(
        bed.patch(&owner, &one, json!({"name": "Hi", "channel": "email", "subject": "Welcome"})).await.summary(),
        "200"
    );
    let entries = log(&bed, &owner, workspace, "&operation=updateTemplate").await;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["resource"], json!({"kind": "template", "id": made["id"], "name": "Hi"}));
    let changes = entries[0]["changes"].as_array().unwrap();
    let subject = json!({"pointer": "/subject", "before": "Hi", "after": "Welcome"});
    assert!(changes.contains(&subject), "{changes:?}");

    let renamed = bed.patch(&owner, &base, json!({"name": "Acme Shop", "request_log": "off"})).await;
    assert_eq!((renamed.summary().as_str(), &renamed["request_log"]), ("200", &json!("off")));
    let entries = log(&bed, &owner, workspace, "&resource=workspace&operation=updateWorkspace").await;
    assert_eq!(
        entries[0]["changes"],
        json!([{"pointer": "/name", "before": "Acme", "after": "Acme Shop"},
            {"pointer": "/request_log", "before": "failures", "after": "off"}])
    );

    let config = json!({"host": "mx.acme.com", "port": 587, "username": "u", "password": "one"});
    let path = format!("{base}/channels/email");
    bed.put(&owner, &path, json!({"provider": "smtp", "config": config})).await;
    let other = json!({"host": "mx.acme.com", "port": 587, "username": "u", "password": "two"});
    bed.put(&owner, &path, json!({"provider": "smtp", "config": other})).await;
    let entries = log(&bed, &owner, workspace, "&operation=setChannel").await;
    let password = json!([{"pointer": "/config/password", "before": "•••", "after": "•••"}]);
    assert_eq!(entries[0]["changes"], password);
    assert_eq!(entries[0]["resource"], json!({"kind": "channel", "id": "email", "name": "email"}));
}

#[tokio::test]
async fn a_url_with_a_secret_is_crossed_out() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/webhooks");
    let body = json!({"url": "https://acme.com/hook?token=hunter22", "events": ["bounce"]});
    let made = bed.post(&owner, &path, body).await;
    assert_eq!(made.summary(), "201");
    let one = format!("{path}/{}", made["id"].as_str().unwrap());
    let changed = json!({"url": "https://acme.com/hook?token=hunter23"});
    assert_eq!(bed.patch(&owner, &one, changed).await.summary(), "200");
    let entries = log(&bed, &owner, workspace, "&resource=webhook").await;
    assert_eq!(operations(&entries), ["createWebhook", "updateWebhook"]);
    assert_eq!(entries[0]["resource"]["name"], "•••");
    let url = json!({"pointer": "/url", "before": "•••", "after": "•••"});
    assert!(entries[0]["changes"].as_array().unwrap().contains(&url), "{}", entries[0]);
    assert!(!json!(entries).to_string().contains("hunter2"), "{entries:?}");
}

#[tokio::test]
async fn what_is_refused_leaves_no_entry_and_a_repetition_none_more() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let lists = format!("/workspaces/{workspace}/lists");
    let before = log(&bed, &owner, workspace, "").await.len();
    assert_eq!(bed.post(&owner, &lists, json!({})).await.summary(), "422 /name required");
    let viewer = bed.key(workspace, &["contacts:read"]).await;
    assert_eq!(bed.post(&viewer, &lists, json!({"name": "A"})).await.status, 403);
    let missing = format!("{lists}/lst_01JB3Q8Z5N6W7X8Y9ZABCDEFGH");
    assert_eq!(bed.delete(&owner, &missing).await.summary(), "404 not_found");
    // The key that was made for it.
    assert_eq!(log(&bed, &owner, workspace, "").await.len(), before + 1);

    for _ in 0..2 {
        let call = Call::new(&owner, Method::POST, &lists).body(&json!({"name": "A"})).key("once");
        assert_eq!(bed.call(call).await.status, 201);
    }
    assert_eq!(log(&bed, &owner, workspace, "&operation=createList").await.len(), 1);
}

#[tokio::test]
async fn sign_ins_and_their_refusals_are_told_to_workspace_and_operator() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let nobody = Caller::Anonymous;
    for (email, password) in [("owner@acme.com", "wrong"), ("nobody@acme.com", "hunter22")] {
        let body = json!({"email": email, "password": password});
        let call = Call::new(&nobody, Method::POST, "/auth/login").body(&body).from("192.0.2.9");
        assert_eq!(bed.call(call).await.summary(), "401 invalid_credentials");
    }
    let refused = log(&bed, &owner, workspace, "&operation=loginRefused").await;
    assert_eq!(refused.len(), 1);
    assert_eq!((&refused[0]["actor"], &refused[0]["ip"]), (&bed_actor(&owner), &json!("192.0.2.9")));

    let all = system_log(&bed, "&operation=loginRefused").await;
    assert_eq!(all.len(), 2);
    // The text that was typed as an email may be a password.
    assert_eq!(all[0]["actor"], json!({"kind": "user", "id": null, "name": null}));
    assert!(!json!(all).to_string().contains("nobody@acme.com"));
    assert_eq!(operations(&system_log(&bed, "&operation=login").await), ["login"]);

    let change = json!({"current": PASSWORD, "password": "a horse of another colour"});
    assert_eq!(bed.post(&owner, "/auth/password", change).await.summary(), "204");
    let set = log(&bed, &owner, workspace, "&operation=setPassword").await;
    assert_eq!(set[0]["changes"], json!([{"pointer": "/password", "before": "•••", "after": "•••"}]));
}

#[tokio::test]
async fn commands_and_the_queue_are_in_the_log_of_the_installation() {
    let (bed, workspace, _) = Bed::with_owner().await;
    admin::set_installation_name(&bed.app, "mx.example.org").await.unwrap();
    admin::set_operator(&bed.app, "owner@acme.com", true).await.unwrap();
    bed.key(workspace, &["contacts:read"]).await;
    let part = json!({"workspace_id": workspace});
    assert_eq!(bed.post(&OPERATOR, "/system/queue/suspend", part.clone()).await.summary(), "200");
    assert_eq!(bed.post(&OPERATOR, "/system/queue/resume", part).await.summary(), "200");
    admin::login_link(&bed.app, "owner@acme.com").await.unwrap();

    let entries = system_log(&bed, "").await;
    let found = operations(&entries);
    let expected = [
        "admin create-user",
        "admin create-workspace",
        "login",
        "admin set-name",
        "admin set-operator",
        "createApiKey",
        "suspendQueue",
        "resumeQueue",
        "admin login-link",
    ];
    assert_eq!(found, expected);
    let command = json!({"kind": "command", "id": null, "name": null});
    assert!(entries.iter().filter(|entry| entry["operation"] != "login").all(|entry| entry["actor"] == command));
    let operator = system_log(&bed, "&operation=admin%20set-operator").await;
    assert_eq!(operator[0]["changes"], json!([{"pointer": "/operator", "before": false, "after": true}]));
    let suspended = system_log(&bed, "&resource=queue&operation=suspendQueue").await;
    let named = json!([{"pointer": "/workspace_id", "before": null, "after": workspace}]);
    assert_eq!(suspended[0]["changes"], named);
}

#[tokio::test]
async fn filters_narrow_and_csv_has_a_line_for_each_entry() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let Caller::Session(session) = &owner else { panic!("not a session") };
    let lists = format!("/workspaces/{workspace}/lists");
    bed.clock.advance(Duration::from_mins(1));
    let list = bed.post(&owner, &lists, json!({"name": "=A, B"})).await;
    let id = list["id"].as_str().unwrap();
    let only = ["createList"];
    for query in [
        format!("&actor={}&operation=createList", session.user.id),
        "&actor=user&resource=list".to_owned(),
        format!("&resource={id}"),
        "&since=2026-01-31T09:15:30Z".to_owned(),
        "&since=2026-01-31T09:16:00Z&until=2026-01-31T09:16:00.001Z".to_owned(),
    ] {
        assert_eq!(operations(&log(&bed, &owner, workspace, &query).await), only, "{query}");
    }
    for query in ["&actor=key", "&until=2026-01-01T00:00:00Z", "&operation=createlist"] {
        assert_eq!(log(&bed, &owner, workspace, query).await, [] as [Value; 0], "{query}");
    }
    let path = format!("/workspaces/{workspace}/audit");
    let crossed = format!("{path}?since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z");
    assert_eq!(bed.get(&owner, &crossed).await.summary(), "422 until out_of_range");

    let csv = bed.call(Call::new(&owner, Method::GET, &format!("{path}?resource=list&limit=1")).accepting_csv()).await;
    let text = csv.body.as_str().unwrap();
    let lines: Vec<_> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("id,at,actor_kind,"), "{text}");
    assert!(lines[1].contains(id) && lines[1].contains("\"'=A, B\""), "{text}");
}

#[tokio::test]
async fn the_log_is_for_owner_and_admins() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let path = format!("/workspaces/{workspace}/audit");
    let admin = bed.member(workspace, "admin@acme.com", "admin").await;
    let editor = bed.member(workspace, "editor@acme.com", "editor").await;
    let key = bed.key(workspace, &["*"]).await;
    assert_eq!(bed.get(&admin, &path).await.summary(), "200");
    assert_eq!(bed.get(&editor, &path).await.summary(), "403 role_forbidden");
    assert_eq!(bed.get(&key, &path).await.summary(), "403 session_required");
    assert_eq!(bed.get(&owner, "/system/audit").await.summary(), "403 role_forbidden");

    // Nor is anybody else told by a webhook.
    let hooks = format!("/workspaces/{workspace}/webhooks");
    let body = json!({"url": "https://acme.com/hook", "events": ["audit.recorded"]});
    let writer = bed.key(workspace, &["webhooks:write"]).await;
    assert_eq!(bed.post(&writer, &hooks, body.clone()).await.body, json!({"error": "scope required: *"}));
    assert_eq!(bed.post(&admin, &hooks, body).await.summary(), "201");
    let body = json!({"url": "https://acme.com/all", "events": ["*"]});
    assert_eq!(bed.post(&writer, &hooks, body).await.summary(), "201");
}

#[tokio::test]
async fn verification_follows_the_chain_and_retention_leaves_it_whole() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let lists = format!("/workspaces/{workspace}/lists");
    for name in ["A", "B", "C"] {
        bed.post(&owner, &lists, json!({"name": name})).await;
    }
    let report = admin::verify(&bed.app).await.unwrap();
    assert_eq!(report.differences, []);
    // Five entries of the workspace, three of the installation, and the end of each chain.
    let chains = [(Some(workspace), 5), (None, 3)];
    for (log, last) in chains {
        assert_eq!(bed.store.audit_chain(log).await.unwrap().unwrap().last, last, "{log:?}");
    }

    // The first day's entries go after 400 days, the others stay.
    bed.clock.advance(Duration::from_hours(24));
    bed.sign_in("owner@acme.com").await;
    bed.clock.advance(Duration::from_hours(24 * 399) + Duration::from_hours(1));
    sweep(&bed.app).await.unwrap();
    for (log, last) in chains {
        let chain = bed.store.audit_chain(log).await.unwrap().unwrap();
        assert_eq!((chain.anchor, chain.last), (last, last + 1), "{log:?}");
    }
    assert_eq!(admin::verify(&bed.app).await.unwrap().differences, []);
    let owner = bed.sign_in("owner@acme.com").await;
    assert_eq!(operations(&log(&bed, &owner, workspace, "").await), ["login", "login"]);
}

#[tokio::test]
async fn a_row_that_was_changed_in_the_database_is_found() {
    if is_postgres() {
        return;
    }
    let (bed, workspace, owner) = Bed::with_owner().await;
    bed.post(&owner, &format!("/workspaces/{workspace}/lists"), json!({"name": "A"})).await;
    assert_eq!(admin::verify(&bed.app).await.unwrap().differences, []);
    let file = bed.directory.path().join("messaging.db");
    let database = rusqlite::Connection::open(file).unwrap();
    let changed = database
        .execute(
            "UPDATE audit_log SET doc = replace(doc, 'createList', 'deleteList') WHERE operation = 'createList'",
            [],
        )
        .unwrap();
    assert_eq!(changed, 1);
    let differences = admin::verify(&bed.app).await.unwrap().differences;
    assert_eq!(differences.len(), 1, "{differences:?}");
    let difference = &differences[0];
    assert!(
        difference.what.contains(&workspace.to_string()) && difference.what.contains("audit log"),
        "{difference:?}"
    );
    assert_eq!((difference.stored, difference.counted), (0, 1));
}

#[tokio::test]
async fn a_webhook_is_told_of_entries() {
    let product = Product::start().await;
    let workspace = product.workspace;
    let operator = Caller::Operator(Some(workspace));
    let hooks = format!("/workspaces/{workspace}/webhooks");
    for (url, topic) in [("https://hooks.test/audit", "audit.recorded"), ("https://hooks.test/all", "*")] {
        let body = json!({"url": url, "events": [topic]});
        assert_eq!(product.post(&operator, &hooks, body).await.summary(), "201");
    }
    let lists = format!("/workspaces/{workspace}/lists");
    let list = product.post(&operator, &lists, json!({"name": "A"})).await;
    let deliveries = async |nth: usize| {
        let page = product.get(&operator, &hooks).await;
        let hook = page["data"][nth]["id"].as_str().unwrap().to_owned();
        let page = product.get(&operator, &format!("{hooks}/{hook}/deliveries")).await;
        page["data"].as_array().unwrap().iter().map(|one| one["event_type"].clone()).collect::<Vec<_>>()
    };
    // The newest webhook comes first. The other one was told of the making of this one, and of the list.
    assert_eq!(deliveries(0).await, [] as [Value; 0]);
    assert_eq!(deliveries(1).await, ["audit.recorded", "audit.recorded"]);
    assert!(list["id"].is_string());
}

#[tokio::test]
async fn a_paused_webhook_that_is_told_of_entries_can_be_resumed_and_deleted() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let hooks = format!("/workspaces/{workspace}/webhooks");
    let body = json!({"url": "https://acme.com/hook", "events": ["audit.recorded"], "status": "paused"});
    let made = bed.post(&owner, &hooks, body).await;
    assert_eq!((made.summary().as_str(), &made["status"]), ("201", &json!("paused")));
    let hook = format!("{hooks}/{}", made["id"].as_str().unwrap());
    for act in ["resume", "pause", "resume", "pause"] {
        assert_eq!(bed.post(&owner, &format!("{hook}/{act}"), json!({})).await.summary(), "202", "{act}");
    }
    assert_eq!(bed.delete(&owner, &hook).await.summary(), "204");
}
