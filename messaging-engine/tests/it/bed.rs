//! The test bed: an application over a fresh database, and a front end without a network.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use http::Method;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::site::SiteRules;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::clock::{ManualClock, SeededEntropy};
use messaging_core::ports::fetch::Fetch;
use messaging_core::ports::resolver::{NoResolver, Resolver};
use messaging_core::ports::{Store, Transport};
use messaging_core::time::Timestamp;
use messaging_engine::app::App;
use messaging_engine::caller::Caller;
use messaging_engine::ops::{self, Endpoint, Request};
use messaging_engine::{Error, SecretKey, admin};
use messaging_store::TemporaryDatabases;
use messaging_testing::MemoryFetch;
use serde_json::Value;
use tempfile::TempDir;

use crate::test_store;

/// The secret key of every test's database.
pub(crate) const KEY: SecretKey = SecretKey::from_bytes([3; 32]);

/// The password of every test user.
pub(crate) const PASSWORD: &str = "correct horse";

/// Public URL: the beginning of the addresses in mail and answers.
pub(crate) const PUBLIC_URL: &str = "https://track.service.test";

/// Time at which every test begins, a Saturday morning: 2026-01-31T09:15:00Z.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_769_850_900_000);

pub(crate) struct Bed {
    pub(crate) app: App,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
    /// Temporary directory that holds the database.
    pub(crate) directory: TempDir,
    transports: Vec<(Channel, &'static str, Arc<dyn Transport>)>,
}

impl Bed {
    pub(crate) fn start() -> Self {
        Self::asking(Arc::new(NoResolver))
    }

    /// A bed that looks up names with `resolver`.
    pub(crate) fn asking(resolver: Arc<dyn Resolver>) -> Self {
        Self::build(resolver, Arc::new(MemoryFetch::default()), Vec::new())
    }

    /// A bed that calls web addresses with `fetch`.
    pub(crate) fn fetching(fetch: Arc<dyn Fetch>) -> Self {
        Self::build(Arc::new(NoResolver), fetch, Vec::new())
    }

    /// A bed where `provider` carries email with `transport`.
    pub(crate) fn carrying(provider: &'static str, transport: Arc<dyn Transport>) -> Self {
        let transports = vec![(Channel::Email, provider, transport)];
        Self::build(Arc::new(NoResolver), Arc::new(MemoryFetch::default()), transports)
    }

    pub(crate) fn build(
        resolver: Arc<dyn Resolver>,
        fetch: Arc<dyn Fetch>,
        transports: Vec<(Channel, &'static str, Arc<dyn Transport>)>,
    ) -> Self {
        Self::build_on(resolver, fetch, transports, false)
    }

    /// A bed whose database does not sync to disk if it is `temporary`: for tests of very many commits.
    pub(crate) fn build_on(
        resolver: Arc<dyn Resolver>,
        fetch: Arc<dyn Fetch>,
        transports: Vec<(Channel, &'static str, Arc<dyn Transport>)>,
        temporary: bool,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = test_store::open(directory.path(), temporary);
        let clock = Arc::new(ManualClock::new(START));
        let building = App::builder(Arc::clone(&store), KEY)
            .clock(Arc::clone(&clock) as _)
            .entropy(Arc::new(SeededEntropy::new(17)))
            .resolver(resolver)
            .fetch(fetch)
            .transports(transports.clone())
            .temporary_stores(Arc::new(TemporaryDatabases::new(directory.path().join("simulations"))))
            .settings(
                messaging_engine::Settings::default()
                    .hostname("mx.service.test")
                    .public_url(PUBLIC_URL)
                    .message_retry_jitter(0),
            )
            .build();
        let app = wait_for(building).unwrap();
        Self { app, clock, store, directory, transports }
    }

    /// Another application on the same database, as in another process. It shares transports and nothing else.
    pub(crate) fn another_process(&self) -> App {
        self.another_process_fetching(Arc::new(MemoryFetch::default()))
    }

    /// Like `another_process`, and calls web addresses with `fetch`.
    pub(crate) fn another_process_fetching(&self, fetch: Arc<dyn Fetch>) -> App {
        let building = App::builder(Arc::clone(&self.store), KEY).clock(Arc::clone(&self.clock) as _);
        wait_for(building.fetch(fetch).transports(self.transports.clone()).build()).unwrap()
    }

    /// Like `another_process`, with other settings.
    pub(crate) fn another_process_told(&self, settings: messaging_engine::Settings) -> App {
        let building = App::builder(Arc::clone(&self.store), KEY).clock(Arc::clone(&self.clock) as _);
        wait_for(building.settings(settings).transports(self.transports.clone()).build()).unwrap()
    }

    /// Like `another_process`, with these rules of sites.
    pub(crate) fn another_process_by(&self, rules: Arc<SiteRules>) -> App {
        let building = App::builder(Arc::clone(&self.store), KEY).clock(Arc::clone(&self.clock) as _);
        wait_for(building.site_rules(rules).transports(self.transports.clone()).build()).unwrap()
    }

    /// Another application on the same database through `store`. It shares transports and nothing else.
    pub(crate) fn another_process_on(&self, store: impl Store) -> App {
        let building = App::builder(Arc::new(store) as Arc<dyn Store>, KEY).clock(Arc::clone(&self.clock) as _);
        wait_for(building.transports(self.transports.clone()).build()).unwrap()
    }

    /// Like `another_process_on`, and calls web addresses with `fetch`.
    pub(crate) fn another_process_fetching_on(&self, store: impl Store, fetch: Arc<dyn Fetch>) -> App {
        let building = App::builder(Arc::new(store) as Arc<dyn Store>, KEY).clock(Arc::clone(&self.clock) as _);
        wait_for(building.fetch(fetch).transports(self.transports.clone()).build()).unwrap()
    }

    /// A bed with the workspace "Acme" and its owner, signed in.
    pub(crate) async fn with_owner() -> (Self, WorkspaceId, Caller) {
        Self::start().and_owner().await
    }

    /// The bed with the workspace "Acme" and its owner, signed in.
    pub(crate) async fn and_owner(self) -> (Self, WorkspaceId, Caller) {
        let bed = self;
        bed.user("owner@acme.com").await;
        let workspace = admin::create_workspace(&bed.app, "Acme", "owner@acme.com").await.unwrap().id;
        let owner = bed.sign_in("owner@acme.com").await;
        (bed, workspace, owner)
    }

    pub(crate) async fn user(&self, email: &str) {
        admin::create_user(&self.app, email, Some(PASSWORD.to_owned()), None).await.unwrap();
    }

    /// A new user with a role in the workspace, signed in.
    pub(crate) async fn member(&self, workspace: WorkspaceId, email: &str, role: &str) -> Caller {
        self.user(email).await;
        let body = serde_json::json!({"email": email, "role": role});
        let path = format!("/workspaces/{workspace}/members");
        let reply = self.post(&Caller::Operator(Some(workspace)), &path, body).await;
        assert_eq!(reply.summary(), "201");
        let member = self.sign_in(email).await;
        self.accept(&member, workspace).await;
        member
    }

    /// Accepts the invitation to a workspace.
    pub(crate) async fn accept(&self, person: &Caller, workspace: WorkspaceId) {
        let path = format!("/auth/invitations/{workspace}/accept");
        assert_eq!(self.call(Call::new(person, Method::POST, &path)).await.summary(), "200");
    }

    pub(crate) async fn sign_in(&self, email: &str) -> Caller {
        self.sign_in_with(email, PASSWORD).await
    }

    pub(crate) async fn sign_in_with(&self, email: &str, password: &str) -> Caller {
        let body = serde_json::json!({"email": email, "password": password});
        let reply = self.post(&Caller::Anonymous, "/auth/login", body).await;
        assert_eq!(reply.summary(), "200");
        self.app.authenticate(reply["token"].as_str().unwrap()).await.unwrap()
    }

    /// A key with the scopes, as a caller.
    pub(crate) async fn key(&self, workspace: WorkspaceId, scopes: &[&str]) -> Caller {
        let body = serde_json::json!({"name": "test", "scopes": scopes});
        let path = format!("/workspaces/{workspace}/api-keys");
        let reply = self.post(&Caller::Operator(Some(workspace)), &path, body).await;
        assert_eq!(reply.summary(), "201");
        self.app.authenticate(reply["key"].as_str().unwrap()).await.unwrap()
    }

    pub(crate) async fn get(&self, caller: &Caller, target: &str) -> Reply {
        self.call(Call::new(caller, Method::GET, target)).await
    }

    pub(crate) async fn post(&self, caller: &Caller, target: &str, body: Value) -> Reply {
        self.call(Call::new(caller, Method::POST, target).body(&body)).await
    }

    pub(crate) async fn put(&self, caller: &Caller, target: &str, body: Value) -> Reply {
        self.call(Call::new(caller, Method::PUT, target).body(&body)).await
    }

    pub(crate) async fn patch(&self, caller: &Caller, target: &str, body: Value) -> Reply {
        self.call(Call::new(caller, Method::PATCH, target).body(&body)).await
    }

    pub(crate) async fn delete(&self, caller: &Caller, target: &str) -> Reply {
        self.call(Call::new(caller, Method::DELETE, target)).await
    }

    pub(crate) async fn call(&self, call: Call<'_>) -> Reply {
        send(&self.app, call).await
    }
}

/// Waits for a future on another thread, so that a bed can be made where no future can be awaited.
fn wait_for<F: Future<Output: Send> + Send>(future: F) -> F::Output {
    std::thread::scope(|scope| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        scope.spawn(move || runtime.block_on(future)).join().unwrap()
    })
}

/// Routes, admits and calls: the part of a front end that the tests need.
pub(crate) async fn send(app: &App, call: Call<'_>) -> Reply {
    let (path, query) = call.target.split_once('?').unwrap_or((call.target, ""));
    let (endpoint, path_parameters) = route(&call.method, path);
    let admitted = app.admit(call.caller.clone(), endpoint, &path_parameters, call.in_header).await;
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(error) => return Reply::refused(&error),
    };
    let request = Request {
        path,
        path_parameters,
        query,
        body: call.body.into(),
        idempotency_key: call.idempotency_key.map(str::as_bytes),
        client_ip: call.client,
        lenient: call.lenient,
        quota: None,
        user_agent: None,
        request_id: Some("req_test"),
        wants_csv: call.wants_csv,
    };
    match admitted.run(request).await {
        Ok(answer) => {
            let promised = [Some(endpoint.success), endpoint.other_success];
            assert!(promised.contains(&Some(answer.status)), "{endpoint:?} {}", answer.status);
            let is_json = answer.content_type.is_some_and(|kind| kind.starts_with("application/json"));
            let body = match &answer.body {
                empty if empty.is_empty() => Value::Null,
                json if is_json => serde_json::from_slice(json).unwrap(),
                other => String::from_utf8(other.to_vec()).unwrap().into(),
            };
            Reply { status: answer.status.as_u16(), body, replayed: answer.replayed, retry_after: None }
        }
        Err(error) => Reply::refused(&error),
    }
}

/// A request.
pub(crate) struct Call<'a> {
    caller: &'a Caller,
    method: Method,
    target: &'a str,
    body: Vec<u8>,
    idempotency_key: Option<&'a str>,
    in_header: Option<&'a str>,
    client: Option<IpAddr>,
    lenient: bool,
    wants_csv: bool,
}

impl<'a> Call<'a> {
    pub(crate) fn new(caller: &'a Caller, method: Method, target: &'a str) -> Self {
        Self {
            caller,
            method,
            target,
            body: Vec::new(),
            idempotency_key: None,
            in_header: None,
            client: None,
            lenient: false,
            wants_csv: false,
        }
    }

    pub(crate) fn body(self, body: &Value) -> Self {
        self.text(&body.to_string())
    }

    pub(crate) fn text(self, body: &str) -> Self {
        Self { body: body.as_bytes().to_vec(), ..self }
    }

    /// With a body that is a file.
    pub(crate) fn bytes(self, body: Vec<u8>) -> Self {
        Self { body, ..self }
    }

    pub(crate) fn key(self, key: &'a str) -> Self {
        Self { idempotency_key: Some(key), ..self }
    }

    /// As with the header `Prefer: handling=lenient`.
    pub(crate) fn leniently(self) -> Self {
        Self { lenient: true, ..self }
    }

    /// As with the header `Accept: text/csv`.
    pub(crate) fn accepting_csv(self) -> Self {
        Self { wants_csv: true, ..self }
    }

    /// With the header `X-Workspace-Id`.
    pub(crate) fn in_workspace(self, workspace: &'a str) -> Self {
        Self { in_header: Some(workspace), ..self }
    }

    pub(crate) fn from(self, client: &str) -> Self {
        Self { client: Some(client.parse().unwrap()), ..self }
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) replayed: bool,
    pub(crate) retry_after: Option<u64>,
}

impl Reply {
    fn refused(error: &Error) -> Self {
        Self {
            status: error.status().as_u16(),
            body: error.to_body("req_test"),
            replayed: false,
            retry_after: error.retry_after(),
        }
    }

    /// `201`, `404 not_found`, `422 /name required /scopes/0 unknown_value`,
    /// faults in alphabetical order.
    pub(crate) fn summary(&self) -> String {
        let mut text = self.status.to_string();
        if self.replayed {
            text.push_str(" replayed");
        }
        let error = &self.body["error"];
        if let Some(sentence) = error.as_str() {
            let _ = write!(text, " {sentence}");
        }
        match error["code"].as_str() {
            Some("validation_failed") => {
                // Their order is not promised.
                let mut faults: Vec<_> = error["details"]["errors"].as_array().unwrap().iter().map(fault).collect();
                faults.sort();
                let _ = write!(text, " {}", faults.join(" "));
            }
            Some(code) => {
                let _ = write!(text, " {code}");
            }
            None => {}
        }
        text
    }
}

impl std::ops::Index<&str> for Reply {
    type Output = Value;
    fn index(&self, member: &str) -> &Value {
        &self.body[member]
    }
}

/// `/name required`
pub(crate) fn fault(error: &Value) -> String {
    let place = error["pointer"].as_str().or_else(|| error["parameter"].as_str()).unwrap();
    format!("{place} {}", error["code"].as_str().unwrap())
}

fn route(method: &Method, path: &str) -> (&'static Endpoint, Vec<(String, String)>) {
    let matches = |endpoint: &Endpoint| {
        let (wanted, given): (Vec<_>, Vec<_>) = (endpoint.path.split('/').collect(), path.split('/').collect());
        if (endpoint.method)() != method || wanted.len() != given.len() {
            return None;
        }
        let mut parameters = Vec::new();
        for (wanted, given) in wanted.into_iter().zip(given) {
            match wanted.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                Some(name) => parameters.push((name.to_owned(), given.to_owned())),
                None if wanted == given => {}
                None => return None,
            }
        }
        Some(parameters)
    };
    // A path without parameters takes precedence over one with a parameter in the same place.
    ops::all()
        .iter()
        .filter_map(|endpoint| matches(endpoint).map(|parameters| (endpoint, parameters)))
        .min_by_key(|(_, parameters)| parameters.len())
        .unwrap_or_else(|| panic!("no operation is {method} {path}"))
}
