//! A workspace in which everything has happened once, for screens that have something to show.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use messaging_core::changes::{CountSites, Document, Expect, SourceWrite, Write};
use messaging_core::domain::analytics::site_tally::SiteCounts;
use messaging_core::domain::analytics::tally::buckets::Quarter;
use messaging_core::domain::delivery::ip_pool::IpGrant;
use messaging_core::domain::delivery::ip_pool::source::{NamedSource, PathRow, SourceAddress, SourceRow};
use messaging_core::domain::delivery::path::PathState;
use messaging_core::domain::delivery::site::{SiteLimits, SiteName};
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::domain::security::account::Member;
use messaging_core::scope::{Role, Scope};
use messaging_engine::{Settings, admin};
use messaging_http::{Console, ServerOptions};
use messaging_store::TemporaryDatabases;
use messaging_testing::MemoryFetch;
use messaging_transport::{Options, defaults};
use serde_json::{Value, json};

use crate::harness::{TestServer, any_port};

/// The host of all contacts' addresses, by which a test finds addresses that a user must not see.
pub(crate) const PEOPLE: &str = "people.example";

/// User-Agent of a person's mail program.
const PERSON: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Thunderbird/115.6.0";

/// A picture of one pixel.
const DOT: &str = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";

/// The ids of the created resources, by name.
pub(crate) type Ids = BTreeMap<&'static str, String>;

/// A server whose workspaces can send into the sandbox on every channel.
pub(crate) async fn server() -> TestServer {
    server_with(options()).await
}

/// Options of a server with the console that is tested.
pub(crate) fn options() -> ServerOptions {
    let console = std::env::var_os("MESSAGING_CONSOLE_DIR").map(PathBuf::from).map(Console::Directory);
    ServerOptions { console: console.unwrap_or_default(), ..ServerOptions::new(any_port()) }
}

/// Like `server`, with these options.
pub(crate) async fn server_with(options: ServerOptions) -> TestServer {
    let sandboxes = defaults(&Options::new("mail.test")).into_iter().filter(|(_, provider, _)| *provider == "sandbox");
    let settings = Settings::default().hostname("mail.acme.example");
    // Webhooks are called as if they were on the internet, and answer with success.
    let fetch = Arc::new(MemoryFetch::default());
    let server = TestServer::built(options, |builder, directory| {
        let trials = Arc::new(TemporaryDatabases::new(directory.join("trials")));
        builder.transports(sandboxes).fetch(fetch).settings(settings).temporary_stores(trials)
    });
    let server = server.await;
    admin::prepare_sandbox(&server.app, server.workspace, &[Algorithm::Ed25519Sha256]).await.unwrap();
    server
}

/// Signs up a user with this role in the workspace of the test; an owner is an operator too. Returns the token of a
/// session.
pub(crate) async fn member(server: &TestServer, role: Role) -> String {
    if role != Role::Owner {
        return server.session(Some(role)).await;
    }
    let (token, writes) = server.new_operator(Some(role));
    server.commit(writes).await;
    token
}

/// Signs up a user in a workspace of their own, in which nothing has happened.
pub(crate) async fn newcomer(server: &TestServer) -> String {
    let workspace = server.other_workspace().await;
    let (token, mut writes) = server.new_operator(Some(Role::Owner));
    for write in &mut writes {
        if let Write::Put(Document::Member(Member { workspace_id, .. }), Expect::Absent) = write {
            *workspace_id = workspace;
        }
    }
    server.commit(writes).await;
    token
}

/// Creates resources by calls of the API.
pub(crate) struct Filling<'a> {
    server: &'a TestServer,
    key: String,
    pub(crate) ids: Ids,
}

impl<'a> Filling<'a> {
    pub(crate) async fn of(server: &'a TestServer) -> Self {
        Self { server, key: server.key(&[Scope::All]).await, ids: Ids::new() }
    }

    /// A call below the workspace, or with a leading `/` below the root; returns the body of the answer.
    pub(crate) async fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let path = match path.strip_prefix('/') {
            Some(path) => format!("/v1/{path}"),
            None => format!("/v1/workspaces/{}/{path}", self.server.workspace),
        };
        let authorization = format!("Bearer {}", self.key);
        let headers = [("authorization", &*authorization), ("content-type", "application/json")];
        let body = (!body.is_null()).then(|| body.to_string());
        let answer = self.server.request(method, &path, &headers, body.as_deref()).await;
        assert_eq!(answer.code(), "ok", "{method} {path} {body:?}: {}", String::from_utf8_lossy(&answer.body));
        if answer.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
            answer.json()
        } else {
            Value::String(String::from_utf8_lossy(&answer.body).into_owned())
        }
    }

    /// Creates a resource, and keeps its id under this name.
    pub(crate) async fn make(&mut self, name: &'static str, path: &str, body: Value) -> String {
        let made = self.call("POST", path, &body).await;
        let id = ["id", "message_id", "import_id"].iter().find_map(|member| made[*member].as_str());
        let id = id.unwrap_or_else(|| panic!("no id in {made}")).to_owned();
        self.ids.insert(name, id.clone());
        id
    }

    /// Runs all jobs that are due.
    pub(crate) async fn work(&self) {
        self.server.app.run_until_idle().await.unwrap();
    }

    /// Advances the clock and runs all jobs that are due.
    async fn later(&self, span: Duration) {
        self.server.clock.advance(span);
        self.work().await;
    }

    /// Sends an email and keeps its id.
    pub(crate) async fn email(&mut self, name: &'static str, to: &str, more: Value) -> String {
        let mut body = json!({"channel": "email", "to": to, "subject": "Order 17", "text": "Thanks"});
        for (member, value) in more.as_object().into_iter().flatten() {
            body[member] = value.clone();
        }
        self.make(name, "/messages", body).await
    }

    /// Opens and clicks the captured email of a message, as a person and as a machine do.
    async fn read(&self, message: &str) {
        let source = self.call("GET", &format!("sandbox/messages/{message}"), &Value::Null).await;
        let source = source.as_str().unwrap().replace("=\r\n", "");
        for kind in ["/t/o/", "/t/c/"] {
            let start = source.find(kind).unwrap_or_else(|| panic!("no {kind} in {source}"));
            let token = source[start + kind.len()..].split(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
            let path = format!("{kind}{}", token.into_iter().next().unwrap());
            for agent in [PERSON, "Mozilla/5.0"] {
                let answer = self.server.request("GET", &path, &[("user-agent", agent)], None).await;
                assert!(answer.status < 400, "{path}: {}", answer.status);
            }
        }
    }
}

/// Creates one resource of each kind.
pub(crate) async fn fill(server: &TestServer) -> Ids {
    let mut filling = Filling::of(server).await;
    people(&mut filling).await;
    templates(&mut filling).await;
    messages(&mut filling).await;
    campaigns(&mut filling).await;
    automations(&mut filling).await;
    settings(&mut filling).await;
    filling.work().await;
    mailbox_providers(&mut filling).await;
    filling.ids
}

/// Mail over a path that warms up and over one that is stopped.
async fn mailbox_providers(filling: &mut Filling<'_>) {
    let server = filling.server;
    let (workspace_id, now) = (server.workspace, server.app.now());
    let ip: IpAddr = "203.0.113.7".parse().unwrap();
    let source = SourceAddress::from(ip);
    let named = NamedSource { ip: source, name: "mx.acme.example".to_owned() };
    server.app.store().announce_sources(&[named]).await.unwrap();
    let path = |site: &str, is_stopped: bool| {
        let mut state = PathState::default();
        state.sent(&SiteLimits::default(), now);
        if is_stopped {
            state.stop();
        }
        let state = serde_json::to_string(&state).unwrap();
        let day = now.as_millis().div_euclid(86_400_000);
        let row = PathRow { ip: source, site: site.to_owned(), state, sent_today: 1, day, is_stopped, updated_at: now };
        Write::Source(SourceWrite::PutPath(Box::new(row), Expect::Absent))
    };
    let site = |name: &str| (SiteName::parse(name).unwrap(), Quarter::of(now), SiteCounts::from_numbers(1..=20));
    let writes = [
        Write::Source(SourceWrite::Grant(IpGrant { workspace_id, ip, granted_at: now })),
        Write::Source(SourceWrite::PutSource(SourceRow::new(source, now), Expect::Absent)),
        path("gmail", false),
        path("example.org", true),
        Write::CountSites(Box::new(CountSites { workspace_id, counts: vec![site("gmail"), site("example.org")] })),
    ];
    server.commit(writes).await;
    filling.make("pool", "ip-pools", json!({"name": "marketing", "ips": ["203.0.113.7"]})).await;
}

async fn people(filling: &mut Filling<'_>) {
    filling.make("field", "custom-fields", json!({"key": "age", "type": "number", "label": "Age"})).await;
    let list = filling.make("list", "lists", json!({"name": "Newsletter"})).await;
    let contacts: Vec<_> = ["bob", "carol", "dave", "erin", "frank", "grace"]
        .into_iter()
        .map(|name| {
            json!({"email": format!("{name}@{PEOPLE}"), "attributes": {"first_name": name, "age": 31}, "tags": ["vip"],
                   "list_ids": [list], "consent": {"marketing_email": true}})
        })
        .collect();
    filling.call("POST", "contacts/bulk", &json!({"contacts": contacts})).await;
    let ann = json!({"external_id": "u-42", "email": format!("ann@{PEOPLE}"), "phone": "+14155550123",
        "attributes": {"first_name": "Ann", "plan": "pro", "age": 31}, "tags": ["vip", "beta"], "locale": "en-US",
        "timezone": "America/New_York", "list_ids": [list], "consent": {"marketing_email": true, "sms": null}});
    filling.make("contact", "contacts", ann).await;
    let order = json!({"name": "order_placed", "contact": {"external_id": "u-42"}, "properties": {"total": 49.9}});
    filling.call("POST", "/events", &order).await;
    let buyers = json!({"name": "Buyers", "filter": {"and": [
        {"type": "event", "name": "order_placed", "within": {"last": {"value": 90, "unit": "days"}}},
        {"or": [{"type": "tag", "op": "has_any", "values": ["vip"]}, {"type": "attribute", "key": "age", "op": "gte", "value": 18}]},
    ]}});
    filling.make("segment", "segments", buyers).await;
    let gone = json!({"channel": "email", "address": format!("gone@{PEOPLE}"), "reason": "manual"});
    filling.make("suppression", "suppressions", gone).await;
    filling.work().await;
}

/// MJML with a block of each kind.
const MJML: &str = r#"<mjml>
  <mj-head><mj-attributes><mj-all font-family="Helvetica, sans-serif" /></mj-attributes></mj-head>
  <mj-body width="600px">
    <mj-section>
      <mj-column>
        <mj-text><h1>Hi {{ contact.attributes.first_name | default("there") }}</h1></mj-text>
        <mj-text><p>Thanks for <b>order</b> {{ order.id }}. <a href="https://shop.example/orders">Your orders</a></p></mj-text>
        <mj-image alt="A tent" />
        <mj-divider />
        <mj-spacer height="20px" />
      </mj-column>
    </mj-section>
    {% if order.paid %}
    <mj-section>
      <mj-column><mj-button href="https://shop.example/">Look</mj-button></mj-column>
      <mj-column><mj-social><mj-social-element href="https://shop.example/">Shop</mj-social-element></mj-social></mj-column>
    </mj-section>
    {% endif %}
    <mj-raw><!-- the end --></mj-raw>
    <mj-section><mj-column><mj-text><a href="{{ unsubscribe_url }}">Unsubscribe</a></mj-text></mj-column></mj-section>
  </mj-body>
</mjml>"#;

async fn templates(filling: &mut Filling<'_>) {
    let html = "<style>p { color: #333 }</style><p style=\"margin: 0\">Hi {{ contact.attributes.first_name | default('there') }}, \
                thanks for order {{ order.id }}.</p><p><a href=\"https://shop.example/orders\">Your orders</a></p>\
                <p><a href=\"{{ unsubscribe_url }}\">Unsubscribe</a></p>";
    let body = json!({"name": "Order", "channel": "email", "subject": "Order {{ order.id }}", "html": html});
    let id = filling.make("template", "templates", body).await;
    let changed = json!({"name": "Order", "channel": "email", "subject": "Your order {{ order.id }}"});
    filling.call("PATCH", &format!("templates/{id}"), &changed).await;
    let blocks = json!({"name": "Blocks", "channel": "email", "subject": "In blocks", "mjml": MJML});
    filling.make("block_template", "templates", blocks).await;
    filling
        .make(
            "text_template",
            "templates",
            json!({"name": "Code", "channel": "sms", "text": "Your code is {{ code }}"}),
        )
        .await;
}

async fn messages(filling: &mut Filling<'_>) {
    filling.call("PUT", "channels/sms", &json!({"provider": "sandbox"})).await;
    let hook = json!({"url": "https://shop.example/hooks", "events": ["*"]});
    let hook = filling.make("webhook", "webhooks", hook).await;
    let html =
        "<p>Thanks for <a href=\"https://shop.example/orders/17\">order 17</a>.</p><img src=\"cid:logo\" alt=\"Acme\">";
    let one = json!({"html": html, "from_name": "Acme", "headers": {"X-Order": "17"}, "metadata": {"order_id": 17},
    "tags": ["order"], "options": {"track_opens": true, "track_clicks": true},
    "attachments": [
        {"filename": "receipt.txt", "content_type": "text/plain", "content_b64": "VGhhbmtz"},
        {"filename": "logo.gif", "content_type": "image/gif", "content_id": "logo", "content_b64": DOT},
    ]});
    let message = filling.email("message", &format!("ann@{PEOPLE}"), one).await;
    for fate in ["bounce", "softbounce", "deferred", "complaint", "blocked"] {
        filling.email(fate, &format!("{fate}@simulator.invalid"), Value::Null).await;
    }
    filling.email("suppressed", &format!("gone@{PEOPLE}"), Value::Null).await;
    filling.make("sms", "/messages", json!({"channel": "sms", "to": "+9990000001", "text": "Your code is 123"})).await;
    let tomorrow = filling.server.app.now() + Duration::from_hours(24);
    filling.email("scheduled", &format!("bob@{PEOPLE}"), json!({"send_at": tomorrow})).await;
    let cancelled = filling.email("cancelled", &format!("bob@{PEOPLE}"), json!({"send_at": tomorrow})).await;
    filling.call("POST", &format!("/messages/{cancelled}/cancel"), &Value::Null).await;
    filling.work().await;
    filling.make("delivery", &format!("webhooks/{hook}/test"), json!({"event_type": "delivered"})).await;
    filling.later(Duration::from_mins(1)).await;
    filling.read(&message).await;
    filling.work().await;
}

async fn campaigns(filling: &mut Filling<'_>) {
    let campaign = |name: &str, ids: &Ids, more: Value| {
        let mut body = json!({"name": name, "channel": "email", "template_id": ids["template"],
            "audience": {"list_ids": [ids["list"]]}, "subject_override": "Spring sale"});
        for (member, value) in more.as_object().into_iter().flatten() {
            body[member] = value.clone();
        }
        body
    };
    let now = json!({"send_now": true});
    let sent = campaign("Spring sale", &filling.ids, Value::Null);
    let sent = filling.make("sent_campaign", "campaigns", sent).await;
    filling.call("POST", &format!("campaigns/{sent}/schedule"), &now).await;
    let test = campaign(
        "Which subject",
        &filling.ids,
        json!({"kind": "ab_test", "subject_override": null,
        "variants": [{"name": "A", "subject": "Spring is here"}, {"name": "B", "subject": "Ten percent off"}],
        "settings": {"ab_test": {"test_percent": 50, "wait_minutes": 60, "winner_metric": "open_rate"}}}),
    );
    let test = filling.make("running_campaign", "campaigns", test).await;
    filling.call("POST", &format!("campaigns/{test}/schedule"), &now).await;
    let later = campaign("Autumn", &filling.ids, Value::Null);
    let later = filling.make("scheduled_campaign", "campaigns", later).await;
    let tomorrow = filling.server.app.now() + Duration::from_hours(24);
    filling.call("POST", &format!("campaigns/{later}/schedule"), &json!({"at": tomorrow})).await;
    let draft = campaign("Summer", &filling.ids, Value::Null);
    filling.make("draft_campaign", "campaigns", draft).await;
    filling.work().await;
}

async fn automations(filling: &mut Filling<'_>) {
    let (template, list) = (filling.ids["template"].clone(), filling.ids["list"].clone());
    let graph = json!({"entry": "wait",
    "nodes": [
        {"id": "wait", "kind": "wait_event", "name": "Paid?", "config":
            {"on": {"type": "event", "name": "order_paid"}, "timeout": {"value": 2, "unit": "hours"}}},
        {"id": "who", "kind": "condition", "config": {"filter": {"type": "tag", "op": "has_any", "values": ["vip"]}}},
        {"id": "ask", "kind": "send", "config": {"template_id": template, "category": "transactional"}},
        {"id": "draw", "kind": "split", "config": {"branches": [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]}},
        {"id": "tag", "kind": "add_tag", "config": {"tag": "asked"}},
        {"id": "join", "kind": "add_to_list", "config": {"list_id": list}},
        {"id": "end", "kind": "exit", "config": {"reason": "paid"}},
    ],
    "edges": [
        {"from": "wait", "to": "end", "branch": "event"}, {"from": "wait", "to": "who", "branch": "timeout"},
        {"from": "who", "to": "ask", "branch": "yes"}, {"from": "who", "to": "draw", "branch": "no"},
        {"from": "draw", "to": "tag", "branch": "a"}, {"from": "draw", "to": "join", "branch": "b"},
    ]});
    let body = json!({"name": "Cart", "trigger": {"kind": "event", "config": {"name": "cart_updated"}}, "graph": graph,
        "re_entry": "always"});
    let id = filling.make("automation", "automations", body).await;
    filling.call("POST", &format!("automations/{id}/activate"), &Value::Null).await;
    let contact = filling.ids["contact"].clone();
    filling.make("run", &format!("automations/{id}/trigger"), json!({"contact_id": contact})).await;
    filling.work().await;
    filling.make("draft_automation", "automations", json!({"name": "Welcome", "trigger": {}, "graph": {}})).await;
}

async fn settings(filling: &mut Filling<'_>) {
    filling
        .make("domain", "sending-domains", json!({"domain": "mail.acme.example", "tracking_subdomain": "links"}))
        .await;
    let file = format!("email,age\nhenry@{PEOPLE},40\nnobody,x\n");
    let path = crate::uploads::announce(filling.server, file.as_bytes()).await;
    let put = filling.server.request("PUT", &path, &[("content-type", "text/csv")], Some(&file)).await;
    assert_eq!(put.status, 202, "{}", String::from_utf8_lossy(&put.body));
    filling.work().await;
    let imports = filling.call("GET", "contacts/imports", &Value::Null).await;
    filling.ids.insert("import", imports["data"][0]["import_id"].as_str().unwrap().to_owned());
}
