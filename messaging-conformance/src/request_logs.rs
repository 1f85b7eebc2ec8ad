//! Cases for logged requests.

use std::time::Duration;

use messaging_core::changes::Write;
use messaging_core::domain::security::request_log::{LoggedBodies, LoggedRequest, RequestFilter};
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::store::Store;

use super::sample::{at, id, id_at};
use super::{all_pages, first, put};

/// More rows than a log has.
const ALL: usize = 100;

/// A request with everything set.
pub fn request(workspace_id: WorkspaceId) -> LoggedRequest {
    LoggedRequest {
        key: id(),
        workspace_id,
        id: "req_1".to_owned(),
        at: at(5),
        method: "POST".to_owned(),
        path: "/workspaces/wsp_1/templates".to_owned(),
        operation: "createTemplate".to_owned(),
        status: 422,
        code: Some("validation_failed".to_owned()),
        duration_ms: 12,
        request_bytes: 345,
        key_id: Some(id()),
        user_id: Some(id()),
        ip: Some("192.0.2.1".parse().unwrap()),
        user_agent: Some("curl/8 (Übung)".to_owned()),
        idempotency_key: Some("order-1".to_owned()),
        resource_id: Some("tpl_1".to_owned()),
    }
}

/// A request of which only what every request has is known.
fn bare(workspace_id: WorkspaceId) -> LoggedRequest {
    LoggedRequest {
        id: "req_2".to_owned(),
        at: at(9),
        method: "GET".to_owned(),
        path: "/workspaces/wsp_1/lists".to_owned(),
        operation: "listLists".to_owned(),
        status: 200,
        code: None,
        key_id: None,
        user_id: None,
        ip: None,
        user_agent: None,
        idempotency_key: None,
        resource_id: None,
        ..request(workspace_id)
    }
}

/// Bodies of a request and its answer.
fn bodies() -> LoggedBodies {
    LoggedBodies {
        request: Some(r#"{"name":"Ä","nul":"\u0000"}"#.to_owned()),
        response: Some(r#"{"error":{}}"#.to_owned()),
    }
}

/// The write that logs a request without bodies.
pub fn log(request: &LoggedRequest) -> Write {
    Write::LogRequests(vec![(request.clone(), LoggedBodies::default())])
}

async fn listed(store: &dyn Store, workspace: WorkspaceId, filter: RequestFilter) -> Vec<LoggedRequest> {
    store.logged_requests(workspace, &filter, first(ALL)).await.unwrap().items
}

/// Requests come back whole, newest first, with their bodies where they are kept.
pub async fn requests_round_trip(store: &dyn Store) {
    let home = id();
    let (one, two) = (request(home), bare(home));
    let half = LoggedRequest { id: "req_3".to_owned(), ..bare(home) };
    let response = LoggedBodies { request: None, ..bodies() };
    put(
        store,
        [Write::LogRequests(vec![
            (one.clone(), bodies()),
            (two.clone(), LoggedBodies::default()),
            (half.clone(), response.clone()),
        ])],
    )
    .await;
    assert_eq!(listed(store, home, RequestFilter::default()).await, [half.clone(), two.clone(), one.clone()]);
    assert_eq!(store.logged_request(home, "req_1").await.unwrap(), Some((one, bodies())));
    assert_eq!(store.logged_request(home, "req_2").await.unwrap(), Some((two, LoggedBodies::default())));
    assert_eq!(store.logged_request(home, "req_3").await.unwrap(), Some((half, response)));
    assert_eq!(store.logged_request(home, "req_4").await.unwrap(), None);
    put(store, [Write::LogRequests(Vec::new())]).await;
}

/// Each filter lets through what it says.
pub async fn every_filter_narrows(store: &dyn Store) {
    let home = id();
    let (one, two) = (request(home), bare(home));
    put(store, [log(&one), log(&two)]).await;
    let of = RequestFilter::default;
    let text = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (RequestFilter { key_id: one.key_id, ..of() }, &one),
        (RequestFilter { user_id: one.user_id, ..of() }, &one),
        (RequestFilter { method: text("GET"), ..of() }, &two),
        (RequestFilter { path: text("/workspaces/wsp_1/templates"), ..of() }, &one),
        (RequestFilter { path: text("/workspaces/wsp_1/l"), ..of() }, &two),
        (RequestFilter { status: Some((422, 422)), ..of() }, &one),
        (RequestFilter { status: Some((200, 299)), ..of() }, &two),
        (RequestFilter { since: Some(at(6)), ..of() }, &two),
        (RequestFilter { until: Some(at(9)), ..of() }, &one),
        (RequestFilter { idempotency_key: text("order-1"), ..of() }, &one),
    ] {
        assert_eq!(listed(store, home, filter.clone()).await, std::slice::from_ref(expected), "{filter:?}");
    }
    for filter in [
        RequestFilter { key_id: Some(id()), ..of() },
        RequestFilter { path: text("/templates"), ..of() },
        RequestFilter { path: text("/workspaces/%"), ..of() },
        RequestFilter { status: Some((500, 599)), ..of() },
        RequestFilter { method: text("GET"), idempotency_key: text("order-1"), ..of() },
    ] {
        assert_eq!(listed(store, home, filter.clone()).await, [], "{filter:?}");
    }
}

/// A listing that goes on while requests are logged has each of those that there were at its beginning, once.
pub async fn listing_is_exact_while_rows_are_inserted(store: &dyn Store) {
    let home = id();
    let requests: Vec<_> = (0..7).map(|_| request(home)).collect();
    put(store, requests.iter().map(log).collect::<Vec<_>>()).await;
    let filter = RequestFilter::default();
    let found = all_pages(
        2,
        |page| store.logged_requests(home, &filter, page),
        async || put(store, [log(&request(home))]).await,
    )
    .await;
    assert_eq!(found, requests.into_iter().rev().collect::<Vec<_>>());
}

/// Callers choose ids, so one may come again.
pub async fn the_newest_of_an_id_is_shown(store: &dyn Store) {
    let home = id();
    let (one, two) = (request(home), LoggedRequest { status: 200, ..request(home) });
    put(store, [log(&one), log(&two)]).await;
    assert_eq!(store.logged_request(home, "req_1").await.unwrap().unwrap().0, two);
}

/// Bodies go without their requests.
pub async fn bodies_are_forgotten_apart(store: &dyn Store) {
    let home = id();
    let requests: Vec<_> = (0..3).map(|n| LoggedRequest { id: format!("req_{n}"), ..request(home) }).collect();
    let entry = |request: &LoggedRequest| (request.clone(), bodies());
    put(store, [Write::LogRequests(requests.iter().map(entry).collect()), log(&bare(home))]).await;
    let kept = async || {
        let found = all_pages(2, |page| store.logged_bodies(home, page), async || {}).await;
        for (_, resource, kept) in &found {
            assert_eq!((resource.as_deref(), kept), (Some("tpl_1"), &bodies()));
        }
        found.into_iter().map(|(key, ..)| key).collect::<Vec<_>>()
    };
    let [one, two, three] = [0, 1, 2].map(|n| requests[n].key);
    assert_eq!(kept().await, [three, two, one]);
    for _ in 0..2 {
        put(store, [Write::ForgetRequestBodies(home, vec![one, three])]).await;
    }
    assert_eq!(kept().await, [two]);
    assert_eq!(
        store.logged_request(home, "req_0").await.unwrap(),
        Some((requests[0].clone(), LoggedBodies::default()))
    );
    assert_eq!(listed(store, home, RequestFilter::default()).await.len(), 4);
}

/// Requests go that are older than a time or beyond so many of their workspace, with their bodies, a few at a time.
pub async fn old_requests_and_those_beyond_go(store: &dyn Store) {
    let (home, other): (WorkspaceId, WorkspaceId) = (id(), id());
    let dated = |workspace, millis| LoggedRequest { key: id_at(millis), ..request(workspace) };
    let minute = 60_000;
    let entries: Vec<_> = [1, 2, 3, 4, 5, 6].map(|n| (dated(home, n * minute), bodies())).into();
    put(store, [Write::LogRequests(entries.clone()), Write::LogRequests(vec![(dated(other, minute), bodies())])]).await;
    let left = async |workspace| listed(store, workspace, RequestFilter::default()).await.len();
    let bodies_left = async |workspace| store.logged_bodies(workspace, first(ALL)).await.unwrap().items.len();

    let before = at(0) + Duration::from_secs(150);
    assert_eq!(store.forget_requests(before, ALL, 2).await.unwrap(), 2);
    assert_eq!(left(home).await + left(other).await, 5);
    assert_eq!(store.forget_requests(before, ALL, 2).await.unwrap(), 1);
    assert_eq!(store.forget_requests(before, ALL, 2).await.unwrap(), 0);
    assert_eq!((left(home).await, left(other).await), (4, 0));
    assert_eq!((bodies_left(home).await, bodies_left(other).await), (4, 0));

    assert_eq!(store.forget_requests(at(0), 3, ALL).await.unwrap(), 1);
    assert_eq!(store.forget_requests(at(0), 3, ALL).await.unwrap(), 0);
    let newest: Vec<_> = entries[3..].iter().rev().map(|(request, _)| request.clone()).collect();
    assert_eq!(listed(store, home, RequestFilter::default()).await, newest);
    assert_eq!(bodies_left(home).await, 3);
}

/// Another workspace's requests are not there.
pub async fn other_workspaces_are_not_there(store: &dyn Store) {
    let (home, other) = (id(), id());
    let mine = request(home);
    put(store, [Write::LogRequests(vec![(mine.clone(), bodies())])]).await;
    assert_eq!(listed(store, other, RequestFilter::default()).await, []);
    assert_eq!(store.logged_request(other, "req_1").await.unwrap(), None);
    assert_eq!(store.logged_bodies(other, first(ALL)).await.unwrap().items, []);
    put(store, [Write::ForgetRequestBodies(other, vec![mine.key])]).await;
    assert_eq!(store.logged_request(home, "req_1").await.unwrap(), Some((mine, bodies())));
}
