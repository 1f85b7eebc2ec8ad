//! Initial state of a run: a workspace that sends, with contacts, lists, segments and webhooks.
//!
//! It is created once, by the product itself, and copied for every run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::ids::WorkspaceId;
use messaging_core::ports::clock::{ManualClock, SeededEntropy};
use messaging_core::ports::fetch::{FetchError, FetchRequest, Fetched, UrlFault};
use messaging_core::ports::{Fetch, Store, Transport};
use messaging_engine::app::Builder;
use messaging_engine::{App, SecretKey, Settings, admin};
use messaging_store::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};

use crate::blocking::wait;
use crate::clock::BEGINNING;
use crate::front_end;
use crate::requests::{Call, DOMAINS};
use crate::world::World;

/// Number of contacts that exist from the beginning.
const CONTACTS: usize = 8;

const LISTS: usize = 3;

/// The key that encrypts all secrets of all runs.
const KEY: SecretKey = SecretKey::from_bytes([7; 32]);

/// Ids that the requests of runs may use, and the files of the database.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) workspace: WorkspaceId,
    pub(crate) contacts: Vec<String>,
    pub(crate) lists: Vec<String>,
    pub(crate) segments: Vec<String>,
    pub(crate) webhooks: Vec<String>,
    /// Drafts, which runs schedule, pause and cancel.
    pub(crate) campaigns: Vec<String>,
    /// Drafts. Runs activate the first and leave it active; the second they also pause.
    pub(crate) automations: Vec<String>,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Fixture {
    /// Returns the fixture that all runs of this process share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Fixture> = OnceLock::new();
        SHARED.get_or_init(|| Self::make().expect("the product makes what every run begins with"))
    }

    fn make() -> io::Result<Self> {
        let directory = temporary_directory()?;
        let path = directory.path().join("messaging.db");
        let store = Arc::new(SqliteStore::open(SqliteOptions::new(path)).map_err(io::Error::other)?);
        let mut fixture = wait(fill(Arc::clone(&store)))?;
        // The last connection moves the log into the database when it closes.
        drop(store);
        for entry in fs::read_dir(directory.path())? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fixture.files.push((entry.file_name().into(), fs::read(entry.path())?));
            }
        }
        Ok(fixture)
    }

    /// Copies the database into a directory, and returns its path.
    pub(crate) fn copy_into(&self, directory: &Path) -> io::Result<PathBuf> {
        for (name, content) in &self.files {
            fs::write(directory.join(name), content)?;
        }
        Ok(directory.join("messaging.db"))
    }
}

/// Creates a temporary directory, in memory if possible: no run needs a disk.
pub(crate) fn temporary_directory() -> io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
}

/// Returns the settings of a process; each process has a separate host name, like a machine.
pub(crate) fn settings(world: &World, process: usize) -> Settings {
    Settings::default()
        .hostname(format!("mx{process}.service.test"))
        .public_url("https://track.service.test")
        .sweep_every(world.plan.sweep_every)
}

/// Returns the builder of an application, the same in all processes of all runs but for the ports.
pub(crate) fn application(
    store: Arc<dyn Store>,
    transport: Option<Arc<dyn Transport>>,
    fetch: Arc<dyn Fetch>,
) -> Builder {
    let builder = App::builder(store, KEY).fetch(fetch).work_inline();
    match transport {
        Some(transport) => builder.transport(Channel::Email, "sandbox", transport),
        None => builder,
    }
}

/// Accepts every URL and calls none.
#[derive(Debug)]
struct NoCalls;

#[async_trait]
impl Fetch for NoCalls {
    fn check(&self, _url: &str) -> Result<(), UrlFault> {
        Ok(())
    }

    async fn fetch(&self, _request: FetchRequest) -> Result<Fetched, FetchError> {
        Err(FetchError::Blocked)
    }
}

async fn fill(store: Arc<SqliteStore>) -> io::Result<Fixture> {
    let clock = Arc::new(ManualClock::new(BEGINNING));
    let building = application(store, None, Arc::new(NoCalls)).clock(clock).entropy(Arc::new(SeededEntropy::new(1)));
    let app = building.build().await.map_err(io::Error::other)?;
    admin::create_user(&app, "owner@acme.com", None, None).await.map_err(io::Error::other)?;
    let workspace = admin::create_workspace(&app, "Acme", "owner@acme.com").await.map_err(io::Error::other)?.id;
    admin::prepare_sandbox(&app, workspace, &[Algorithm::Ed25519Sha256]).await.map_err(io::Error::other)?;

    let mut fixture = Fixture {
        workspace,
        contacts: Vec::new(),
        lists: Vec::new(),
        segments: Vec::new(),
        webhooks: Vec::new(),
        campaigns: Vec::new(),
        automations: Vec::new(),
        files: Vec::new(),
    };
    for number in 0..LISTS {
        let body = json!({"name": format!("List {number}")});
        fixture.lists.push(create(&app, workspace, "createList", body).await?);
    }
    for number in 0..CONTACTS {
        let body = json!({
            "external_id": format!("u-{number}"), "email": format!("p{}@d{}.test", number / DOMAINS, number % DOMAINS),
            "attributes": {"plan": if number % 2 == 0 { "free" } else { "pro" }},
            "list_ids": [fixture.lists[number % LISTS]], "tags": ["vip"], "consent": {"marketing_email": true},
        });
        fixture.contacts.push(create(&app, workspace, "upsertContact", body).await?);
    }
    for plan in ["free", "pro"] {
        let filter = json!({"type": "attribute", "key": "plan", "op": "eq", "value": plan});
        let body = json!({"name": plan, "filter": filter});
        fixture.segments.push(create(&app, workspace, "createSegment", body).await?);
    }
    for number in 0..2 {
        let body = json!({"url": webhook_url(number), "events": ["*"]});
        fixture.webhooks.push(create(&app, workspace, "createWebhook", body).await?);
    }
    add_campaigns(&app, &mut fixture).await?;
    add_automations(&app, &mut fixture).await?;
    app.run_until_idle().await.map_err(io::Error::other)?;
    Ok(fixture)
}

/// Adds a plain campaign; one with a frequency cap and a rate limit, so that its messages wait; and two A/B tests.
async fn add_campaigns(app: &App, fixture: &mut Fixture) -> io::Result<()> {
    let workspace = fixture.workspace;
    let template = json!({"name": "t", "channel": "email", "subject": "s", "text": "stop: {{ unsubscribe_url }}"});
    let template = create(app, workspace, "createTemplate", template).await?;
    let variants = json!([{"name": "a", "weight": 1, "subject": "one"}, {"name": "b", "weight": 2, "subject": "two"}]);
    let cap = json!({"per_day": 1, "when_reached": "defer", "defer_hours": 2});
    let plans = [
        json!({}),
        json!({"settings": {"rate_limit": 10, "frequency_cap": cap}}),
        json!({"kind": "ab_test", "variants": variants}),
        json!({"kind": "ab_test", "variants": variants,
            "settings": {"ab_test": {"test_percent": 40, "wait_minutes": 3}}}),
    ];
    for (number, plan) in plans.into_iter().enumerate() {
        let lists = [&fixture.lists[number % LISTS], &fixture.lists[(number + 1) % LISTS]];
        let audience = json!({"list_ids": lists, "segment_ids": [fixture.segments[number % 2]]});
        let mut body = json!({"name": "c", "channel": "email", "template_id": template, "audience": audience});
        for (name, value) in plan.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        fixture.campaigns.push(create(app, workspace, "createCampaign", body).await?);
    }
    Ok(())
}

/// Adds an automation that greets, waits, tags, calls and thanks, and one that waits for an event. No run of them
/// reaches a node twice.
async fn add_automations(app: &App, fixture: &mut Fixture) -> io::Result<()> {
    let workspace = fixture.workspace;
    let template = json!({"name": "a", "channel": "email", "subject": "s", "text": "stop: {{ unsubscribe_url }}"});
    let template = create(app, workspace, "createTemplate", template).await?;
    let node = |id: &str, kind: &str, config: Value| json!({"id": id, "kind": kind, "config": config});
    let minutes = |value: u32| json!({"value": value, "unit": "minutes"});
    let seen = json!({"type": "tag", "op": "has_any", "values": ["seen"]});
    let signup = json!({"type": "event", "name": "signup"});
    let steady = json!({"nodes": [
        node("greet", "send", json!({"template_id": template, "category": "transactional"})),
        node("wait", "wait", json!({"duration": minutes(3)})),
        node("tag", "add_tag", json!({"tag": "seen"})),
        node("if", "condition", json!({"filter": seen})),
        node("call", "webhook", json!({"url": NODE_URL})),
        node("thank", "send", json!({"template_id": template}))],
        "edges": [{"from": "greet", "to": "wait"}, {"from": "wait", "to": "tag"}, {"from": "tag", "to": "if"},
            {"from": "if", "to": "call", "branch": "yes"}, {"from": "call", "to": "thank"}]});
    let paused = json!({"nodes": [
        node("for", "wait_event", json!({"on": signup, "timeout": minutes(5)})),
        node("tell", "send", json!({"template_id": template, "category": "transactional"})),
        node("untag", "remove_tag", json!({"tag": "seen"}))],
        "edges": [{"from": "for", "to": "tell", "branch": "event"}, {"from": "for", "to": "untag", "branch": "timeout"},
            {"from": "tell", "to": "untag"}]});
    for (name, event, graph) in [("steady", "signup", steady), ("paused", "visit", paused)] {
        let trigger = json!({"kind": "event", "config": {"name": event}});
        let body = json!({"name": name, "re_entry": "always", "trigger": trigger, "graph": graph});
        fixture.automations.push(create(app, workspace, "createAutomation", body).await?);
    }
    Ok(())
}

/// URL that the webhook node of an automation calls.
pub(crate) const NODE_URL: &str = "https://node.test/call";

/// Returns the URL of a webhook.
pub(crate) fn webhook_url(number: usize) -> String {
    format!("https://hook{number}.test/events")
}

async fn create(app: &App, workspace: WorkspaceId, operation: &'static str, body: Value) -> io::Result<String> {
    let answer =
        front_end::call(app, workspace, &Call::new(operation, &[], body), None).await.map_err(io::Error::other)?;
    answer.json()["id"].as_str().map(ToOwned::to_owned).ok_or_else(|| io::Error::other("an answer without an id"))
}
