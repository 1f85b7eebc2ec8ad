//! A database that is far away: what counts is how often a request waits for it.

use std::time::{Duration, Instant};

use http::Method;
use messaging_core::domain::dkim::Algorithm;
use messaging_engine::{Caller, admin};
use messaging_store::conformance::cluster::Database;
use messaging_store::conformance::proxy::{Proxy, url};
use messaging_store::{PostgresOptions, PostgresStore, PostgresUrl};
use serde_json::json;

use crate::bed::{self, Call};
use crate::support::Product;

/// How long bytes travel one way.
const WAY: Duration = Duration::from_millis(50);

/// Connections meet their statements first.
const FIRST: usize = 4;
const REQUESTS: usize = 9;

/// Who the recipient is, and the commit: what else has to be known is remembered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepting_a_message_takes_two_round_trips() {
    let Some(database) = Database::create().await else { return };
    let proxy = Proxy::start(&database, WAY);
    let url = PostgresUrl::parse(&url(&database, &[&proxy])).unwrap();
    let store = PostgresStore::open(PostgresOptions::new(url)).await.unwrap();
    let product = Product::start().await;
    let app = product.another_process_on(store);
    admin::create_user(&app, "owner@acme.com", None, None).await.unwrap();
    let workspace = admin::create_workspace(&app, "Acme", "owner@acme.com").await.unwrap().id;
    admin::prepare_sandbox(&app, workspace, &[Algorithm::Ed25519Sha256]).await.unwrap();
    let input = serde_json::from_value(json!({"name": "app", "scopes": ["messages:send"]})).unwrap();
    let key = admin::create_key(&app, workspace, &input).await.unwrap();
    let contacts = format!("/workspaces/{workspace}/contacts");
    let owner = Caller::Operator(Some(workspace));
    let contact = json!({"email": "ann@example.com"});
    let created = bed::send(&app, Call::new(&owner, Method::POST, &contacts).body(&contact)).await;
    assert_eq!(created.summary(), "201");

    let body = json!({"channel": "email", "to": "ann@example.com", "subject": "s", "text": "t"});
    let mut times = Vec::new();
    for _ in 0..FIRST + REQUESTS {
        // Requests that come now and then.
        product.clock.advance(Duration::from_secs(2));
        let began = Instant::now();
        let caller = app.authenticate(key.key.as_ref().unwrap().expose()).await.unwrap();
        let reply = bed::send(&app, Call::new(&caller, Method::POST, "/messages").body(&body)).await;
        times.push(began.elapsed());
        assert_eq!(reply.summary(), "202");
    }
    times.drain(..FIRST);
    times.sort_unstable();
    assert!(times[REQUESTS / 2] < WAY * 2 * 3, "less than three round trips: {times:?}");
    app.store().close().await;
}
