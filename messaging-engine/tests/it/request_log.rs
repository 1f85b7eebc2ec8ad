//! The log of requests: the content that each setting keeps, the access to it, and that it delays no request.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use messaging_core::changes::Write;
use messaging_core::domain::security::request_log::RequestFilter;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::PageRequest;
use messaging_engine::work::sweep::sweep;
use messaging_engine::{AnsweredRequest, App, Caller};
use serde_json::{Value, json};

use crate::bed::{self, Bed, Call, Reply};
use crate::mortal::MortalStore;
use crate::support::Product;

/// A request of a key with bodies, that reads or writes and succeeds or fails.
fn request(workspace: WorkspaceId, caller: &Caller, id: &str, is_write: bool, status: u16) -> AnsweredRequest {
    let method = if is_write { Method::POST } else { Method::GET };
    let path = format!("/workspaces/{workspace}/contacts");
    let mut request = AnsweredRequest::new(workspace, id.to_owned(), method, path, "upsertContact");
    request.is_write = is_write;
    request.status = status;
    request.took = Duration::from_millis(7);
    request.request_bytes = 99;
    request.key_id = match caller {
        Caller::Key(key) => Some(key.id),
        _ => None,
    };
    request.ip = Some("192.0.2.1".parse().unwrap());
    request.idempotency_key = Some("once".to_owned());
    request.request = r#"{"email":"ann@example.com","password":"hunter22"}"#.into();
    request.response = match status {
        400.. => r#"{"error":{"code":"validation_failed","message":"/email"}}"#.into(),
        _ => r#"{"id":"con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH","key":"mk_live_ab12cd34ef56.0123456789abcdefghij"}"#.into(),
    };
    request
}

/// Logs one request of each kind; returns for each `nothing`, `summary` or `bodies`, by what the log has of it.
async fn kept(bed: &Bed, workspace: WorkspaceId, caller: &Caller, round: &str) -> Vec<&'static str> {
    let kinds = [("read", false, 200), ("bad-read", false, 404), ("write", true, 201), ("bad-write", true, 422)];
    for (name, is_write, status) in kinds {
        bed.app.log_request(request(workspace, caller, &format!("{round}-{name}"), is_write, status));
    }
    bed.app.requests_written().await;
    let mut found = Vec::new();
    for (name, ..) in kinds {
        let reply = one(bed, workspace, caller, &format!("{round}-{name}")).await;
        found.push(match reply.status {
            404 => "nothing",
            _ if reply["request"].is_null() && reply["response"].is_null() => "summary",
            _ => "bodies",
        });
    }
    found
}

async fn one(bed: &Bed, workspace: WorkspaceId, caller: &Caller, id: &str) -> Reply {
    bed.get(caller, &format!("/workspaces/{workspace}/requests/{id}")).await
}

/// Ids of a listing, newest first.
async fn ids(bed: &Bed, workspace: WorkspaceId, caller: &Caller, query: &str) -> Vec<String> {
    let reply = bed.get(caller, &format!("/workspaces/{workspace}/requests{query}")).await;
    assert_eq!(reply.summary(), "200", "{query}");
    reply["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

async fn dropped(app: &App) -> u64 {
    let page = app.metrics_page(0).await;
    let line = page.lines().find(|line| line.starts_with("messaging_request_log_dropped_total")).unwrap();
    line.split(' ').next_back().unwrap().parse().unwrap()
}

#[tokio::test]
async fn each_setting_keeps_what_it_says() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let key = bed.key(workspace, &["analytics:read", "pii:read"]).await;
    let path = format!("/workspaces/{workspace}");
    let usual = ["nothing", "bodies", "summary", "bodies"];
    assert_eq!(kept(&bed, workspace, &key, "usual").await, usual);
    for (setting, expected) in [
        ("all", ["bodies", "bodies", "bodies", "bodies"]),
        ("writes", ["nothing", "bodies", "bodies", "bodies"]),
        ("off", ["nothing", "nothing", "nothing", "nothing"]),
        ("failures", usual),
    ] {
        assert_eq!(bed.patch(&owner, &path, json!({"request_log": setting})).await.summary(), "200");
        assert_eq!(kept(&bed, workspace, &key, setting).await, expected, "{setting}");
    }
    let unknown = bed.patch(&owner, &path, json!({"request_log": "some"})).await;
    assert_eq!(unknown.summary(), "422 /request_log unknown_value");
}

#[tokio::test]
async fn a_request_is_shown_without_secrets_and_addresses() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let key = bed.key(workspace, &["analytics:read"]).await;
    bed.patch(&owner, &format!("/workspaces/{workspace}"), json!({"request_log": "all"})).await;
    bed.app.log_request(request(workspace, &key, "req-1", true, 201));
    bed.app.requests_written().await;
    let shown = one(&bed, workspace, &owner, "req-1").await;
    let Caller::Key(own) = &key else { panic!("not a key") };
    let expected = json!({
        "id": "req-1", "at": "2026-01-31T09:15:00.000Z", "method": "POST",
        "path": format!("/workspaces/{workspace}/contacts"), "operation": "upsertContact", "status": 201, "code": null,
        "duration_ms": 7, "request_bytes": 99, "key_id": own.id, "user_id": null, "ip": "192.0.2.1",
        "user_agent": null, "idempotency_key": "once", "resource_id": "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH",
        "request": {"email": "ann@example.com", "password": "•••"},
        "response": {"id": "con_01JB3Q8Z5N6W7X8Y9ZABCDEFGH", "key": "•••"},
    });
    assert_eq!(shown.body, expected);
    let masked = one(&bed, workspace, &key, "req-1").await;
    assert_eq!(masked["request"], json!({"email": "a***@example.com", "password": "•••"}));
}

#[tokio::test]
async fn a_key_sees_its_own_requests_and_admins_all() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let (mine, other) = (bed.key(workspace, &["analytics:read"]).await, bed.key(workspace, &["*"]).await);
    bed.app.log_request(request(workspace, &mine, "mine", true, 422));
    bed.app.log_request(request(workspace, &other, "other", true, 422));
    bed.app.requests_written().await;
    assert_eq!(ids(&bed, workspace, &owner, "").await, ["other", "mine"]);
    assert_eq!(ids(&bed, workspace, &mine, "").await, ["mine"]);
    assert_eq!(ids(&bed, workspace, &other, "").await, ["other"]);
    let Caller::Key(key) = &other else { panic!("not a key") };
    assert_eq!(ids(&bed, workspace, &mine, &format!("?key_id={}", key.id)).await, [] as [String; 0]);
    assert_eq!(ids(&bed, workspace, &owner, &format!("?key_id={}", key.id)).await, ["other"]);
    assert_eq!(one(&bed, workspace, &mine, "other").await.summary(), "404 not_found");

    let path = format!("/workspaces/{workspace}/requests");
    let editor = bed.member(workspace, "editor@acme.com", "editor").await;
    assert_eq!(bed.get(&editor, &path).await.summary(), "403 role_forbidden");
    let sender = bed.key(workspace, &["messages:send"]).await;
    assert_eq!(bed.get(&sender, &path).await.body, json!({"error": "scope required: analytics:read"}));
}

#[tokio::test]
async fn filters_narrow() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    for (id, is_write, status) in [("a", true, 201), ("b", true, 422), ("c", false, 404)] {
        bed.app.log_request(request(workspace, &owner, id, is_write, status));
    }
    bed.app.requests_written().await;
    let contacts = format!("?path=/workspaces/{workspace}/con");
    for (query, expected) in [
        ("?status=422", vec!["b"]),
        ("?status=4xx", vec!["c", "b"]),
        ("?method=post", vec!["b", "a"]),
        ("?idempotency_key=once&status=2xx", vec!["a"]),
        ("?since=2026-01-31T09:15:00Z", vec!["c", "b", "a"]),
        ("?until=2026-01-31T09:15:00Z", vec![]),
        (contacts.as_str(), vec!["c", "b", "a"]),
        ("?path=/contacts", vec![]),
    ] {
        assert_eq!(ids(&bed, workspace, &owner, query).await, expected, "{query}");
    }
    let path = format!("/workspaces/{workspace}/requests?status=many&limit=0");
    assert_eq!(bed.get(&owner, &path).await.summary(), "422 limit out_of_range status invalid_format");
}

#[tokio::test]
async fn what_the_store_does_not_take_is_dropped_and_counted() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    let is_refused = |write: &Write| matches!(write, Write::LogRequests(requests) if requests.iter().any(|(request, _)| request.id != "kept"));
    let app = bed.another_process_on(MortalStore::refusing(Arc::clone(&bed.store), is_refused));
    assert_eq!(dropped(&app).await, 0);
    app.log_request(request(workspace, &owner, "kept", true, 422));
    app.requests_written().await;
    for id in ["one", "two"] {
        app.log_request(request(workspace, &owner, id, true, 422));
    }
    app.requests_written().await;
    assert_eq!(dropped(&app).await, 2);
    assert_eq!(ids(&bed, workspace, &owner, "").await, ["kept"]);
}

#[tokio::test]
async fn what_has_no_room_is_dropped_and_counted_and_nobody_waits() {
    const MANY: u64 = 6000;
    let (bed, workspace, owner) = Bed::with_owner().await;
    let store = MortalStore::pausing_at(Arc::clone(&bed.store), |write| matches!(write, Write::LogRequests(_)));
    let app = bed.another_process_on(store.clone());
    for n in 0..MANY {
        app.log_request(request(workspace, &owner, &format!("req-{n}"), true, 201));
    }
    // Only now the writer comes to its first commit, which hangs for as long as it likes.
    store.died().await;
    store.go_on();
    app.requests_written().await;
    let lost = dropped(&app).await;
    assert!(lost >= 1000, "{lost}");
    let page = PageRequest { after: None, limit: 10_000 };
    let found = bed.store.logged_requests(workspace, &RequestFilter::default(), page).await.unwrap().items.len();
    assert_eq!(found as u64 + lost, MANY);
}

#[tokio::test]
async fn requests_are_answered_while_the_store_takes_no_log() {
    const LOGGED: u64 = 6000;
    let (bed, workspace, owner) = Bed::with_owner().await;
    let store = MortalStore::holding(Arc::clone(&bed.store), |write| matches!(write, Write::LogRequests(_)));
    let app = bed.another_process_on(store.clone());
    app.log_request(request(workspace, &owner, "first", true, 422));
    store.holds_back().await;
    let lists = format!("/workspaces/{workspace}/lists");
    let mut lost = 0;
    for n in 0..LOGGED {
        app.log_request(request(workspace, &owner, &format!("req-{n}"), true, 422));
        if n % 500 == 0 {
            let body = json!({"name": format!("List {n}")});
            let made = bed::send(&app, Call::new(&owner, Method::POST, &lists).body(&body)).await;
            assert_eq!(made.summary(), "201", "after {n}");
            // The number of dropped requests keeps growing while nothing is written.
            let now = dropped(&app).await;
            assert!(now >= lost, "{now} after {lost}");
            lost = now;
        }
    }
    let lost = dropped(&app).await;
    assert!((1000..LOGGED).contains(&lost), "{lost}");
    assert_eq!(ids(&bed, workspace, &owner, "").await, [] as [String; 0]);
    store.let_go();
    app.requests_written().await;
    assert_eq!(dropped(&app).await, lost, "what waited is written");
    let page = PageRequest { after: None, limit: 10_000 };
    let found = bed.store.logged_requests(workspace, &RequestFilter::default(), page).await.unwrap().items.len();
    assert_eq!(found as u64 + lost, LOGGED + 1);
}

#[tokio::test]
async fn requests_are_kept_for_a_week() {
    let (bed, workspace, owner) = Bed::with_owner().await;
    bed.app.log_request(request(workspace, &owner, "old", true, 422));
    bed.app.requests_written().await;
    bed.clock.advance(Duration::from_hours(24));
    bed.app.log_request(request(workspace, &owner, "new", true, 422));
    bed.app.requests_written().await;
    bed.clock.advance(Duration::from_hours(6 * 24 + 1));
    sweep(&bed.app).await.unwrap();
    assert_eq!(ids(&bed, workspace, &Caller::Operator(Some(workspace)), "").await, ["new"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_contact_is_in_no_body() {
    let product = Product::start().await;
    let workspace = product.workspace;
    let operator = Caller::Operator(Some(workspace));
    let contacts = format!("/workspaces/{workspace}/contacts");
    let contact = product.post(&operator, &contacts, json!({"email": "ann@example.com"})).await;
    let mut by_id = request(workspace, &operator, "by-id", true, 422);
    by_id.resource_id = Some(contact["id"].as_str().unwrap().to_owned());
    by_id.request = r#"{"first_name":"Ann"}"#.into();
    let mut other = request(workspace, &operator, "other", true, 422);
    other.request = r#"{"email":"bob@example.com"}"#.into();
    let mut by_member = request(workspace, &operator, "by-member", true, 422);
    by_member.request = json!({"contact_id": contact["id"], "text": "Dear Ann"}).to_string().into();
    for request in [request(workspace, &operator, "by-address", true, 422), by_id, by_member, other] {
        product.app.log_request(request);
    }
    product.app.requests_written().await;
    let one_contact = format!("{contacts}/{}", contact["id"].as_str().unwrap());
    assert_eq!(product.delete(&operator, &one_contact).await.status, 204);
    for _ in 0..3 {
        product.clock.advance(Duration::from_mins(1));
        product.work().await;
    }
    for (id, expected) in [("by-id", false), ("by-address", false), ("by-member", false), ("other", true)] {
        let shown = one(&product, workspace, &operator, id).await;
        assert_eq!(shown.summary(), "200", "{id}");
        assert_eq!(shown["request"] != Value::Null, expected, "{id}");
    }
}
