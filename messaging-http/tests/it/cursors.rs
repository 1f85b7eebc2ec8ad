//! Cursors of every listing: each works where it came from and nowhere else.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use messaging_conformance::audit_logs;
use messaging_conformance::listings::World;
use messaging_core::changes::{AccountWrite, Expect, JobWrite, NewJob, Write};
use messaging_core::domain::campaign::CampaignStatus;
use messaging_core::domain::delivery::ip_pool::source::NamedSource;
use messaging_core::domain::delivery::lane::{JobClass, Lane};
use messaging_core::domain::security::account::{Member, MemberStatus, Session, User};
use messaging_core::domain::security::digest::Digest;
use messaging_core::ports::store::{Store, Stored};
use messaging_core::scope::Role;
use messaging_engine::ops::{self, Endpoint};
use schemars::SchemaGenerator;

use crate::harness::TestServer;
use crate::wire::Response;

/// Listings that have one page, whatever they hold: every cursor is foreign there.
const ONE_PAGE: [&str; 2] = ["listChannels", "listSendingDomainRecords"];

/// A workspace full of rows, and its owner's token.
struct Tenant {
    world: World,
    token: String,
    /// One with runs.
    automation: String,
}

impl Tenant {
    async fn start(server: &TestServer) -> Self {
        let store: &dyn Store = server.app.store();
        let world = World::populate(store).await;
        let now = server.app.now();
        // Two campaigns that have started, for the listings of their results.
        let sent = || {
            let mut campaign = world.campaign.clone();
            campaign.id = server.app.new_id(now);
            (campaign.status, campaign.started_at) = (CampaignStatus::Sent, Some(now));
            Write::put(Box::new(campaign), Expect::Absent)
        };
        let elsewhere = [server.other_workspace().await, server.other_workspace().await];
        let invitations = elsewhere.map(|workspace| {
            let active = Member::active(workspace, world.user, Role::Editor, now);
            Write::put(Member { status: MemberStatus::Invited, ..active }, Expect::Absent)
        });
        server.commit(invitations).await;
        // The account was not made by an invitation of another workspace, so it sees all invitations.
        let Stored { record, revision } = store.user(world.user).await.unwrap().unwrap();
        // An operator sees the queue as well.
        let free = User { created_by: None, operator: true, ..record };
        server.commit([Write::put(free, Expect::Revision(revision))]).await;
        let job = |domain: &str| NewJob {
            id: server.app.new_id(now),
            kind: "deliver_message",
            lane: Lane::new(JobClass::Transactional, world.workspace, &format!("email:{domain}")),
            due_at: now + Duration::from_hours(1),
            payload: r#"{"attempt":1}"#.into(),
        };
        server.commit(["a.example", "b.example"].map(|domain| Write::Job(JobWrite::Enqueue(job(domain))))).await;
        let named =
            |n: u8| NamedSource { ip: IpAddr::from([203, 0, 113, n]).into(), name: format!("mx{n}.example.org") };
        store.announce_sources(&[named(1), named(2)]).await.unwrap();
        let token = format!("ms_{}", world.user);
        let session = |token: &str| {
            Write::Account(AccountWrite::PutSession(Session {
                id: server.app.new_id(now),
                token_digest: Digest::of(token),
                user_id: world.user,
                created_at: now,
                expires_at: now + Duration::from_hours(12),
                password_version: 3,
                ip: None,
                user_agent: None,
            }))
        };
        let factor = || {
            let factor = messaging_conformance::sample::factor(world.user);
            Write::Account(AccountWrite::PutFactor(Box::new(factor), Expect::Absent))
        };
        server
            .commit([
                factor(),
                factor(),
                sent(),
                sent(),
                session(&token),
                session(&format!("another {}", world.user)),
                audit_logs::record(None, &audit_logs::entry(1)),
                audit_logs::record(None, &audit_logs::entry(2)),
                Write::FollowEvents(world.workspace, now + Duration::from_hours(720)),
            ])
            .await;
        let mut tenant = Self { world, token, automation: String::new() };
        let body = r#"{"name":"A","trigger":{"kind":"manual"},"graph":{"nodes":[{"id":"x","kind":"exit"}]},"re_entry":"always"}"#;
        for _ in 0..2 {
            let made = tenant.post(server, "/automations", body).await;
            made["id"].as_str().unwrap().clone_into(&mut tenant.automation);
        }
        let list = tenant.post(server, "/lists", r#"{"name":"Public","visibility":"public"}"#).await;
        for _ in 0..2 {
            let form = serde_json::json!({"name": "Footer", "list_ids": [list["id"]]});
            tenant.post(server, "/forms", &form.to_string()).await;
        }
        let place = format!("/automations/{}", tenant.automation);
        tenant.post(server, &format!("{place}/activate"), "{}").await;
        let contact = format!(r#"{{"contact_id":"{}"}}"#, tenant.world.contact.id);
        for _ in 0..2 {
            tenant.post(server, &format!("{place}/trigger"), &contact).await;
        }
        tenant
    }

    async fn post(&self, server: &TestServer, path: &str, body: &str) -> serde_json::Value {
        let headers = [("authorization", &*format!("Bearer {}", self.token)), ("content-type", "application/json")];
        let target = format!("/v1/workspaces/{}{path}", self.world.workspace);
        let response = server.request("POST", &target, &headers, Some(body)).await;
        assert!(response.status < 300, "{path}: {}", response.code());
        response.json()
    }

    /// The path of a listing, with ids of this workspace.
    fn path(&self, endpoint: &Endpoint) -> String {
        let world = &self.world;
        let mut collection = "";
        let fill = |part: &'static str| {
            let filled = match (part, collection) {
                ("{workspace_id}", _) => world.workspace.to_string(),
                ("{id}", "messages") => world.message.id.to_string(),
                ("{id}", "automations") => self.automation.clone(),
                ("{id}", "campaigns") => world.campaign.id.to_string(),
                ("{id}", "lists") => world.list.id.to_string(),
                ("{id}", "segments") => world.segment.id.to_string(),
                ("{id}", "templates") => world.template.id.to_string(),
                ("{id}", "webhooks") => world.webhook.id.to_string(),
                ("{id}", "sending-domains") => world.domain.id.to_string(),
                (parameter, of) if parameter.starts_with('{') => panic!("say which {parameter} of {of} is meant"),
                (part, _) => part.to_owned(),
            };
            collection = part;
            filled
        };
        endpoint.path.split('/').map(fill).collect::<Vec<_>>().join("/")
    }

    async fn get(&self, server: &TestServer, endpoint: &Endpoint, query: &str) -> Response {
        let headers = [
            ("authorization", &*format!("Bearer {}", self.token)),
            ("x-workspace-id", &*self.world.workspace.to_string()),
        ];
        // It is about one message in any case.
        let about = match endpoint.id {
            "listMessageDeliveries" => format!("message_id={}&", self.world.message.id),
            _ => String::new(),
        };
        server.request("GET", &format!("/v1{}?{about}{query}", self.path(endpoint)), &headers, None).await
    }

    /// The cursor after the first item; `None` for a listing of one page.
    async fn cursor(&self, server: &TestServer, endpoint: &Endpoint) -> Option<String> {
        let response = self.get(server, endpoint, "limit=1").await;
        assert_eq!(response.status, 200, "{endpoint:?}: {}", response.code());
        let page = response.json();
        let cursor = page["next_cursor"].as_str().map(ToOwned::to_owned);
        assert_eq!(cursor.is_none(), ONE_PAGE.contains(&endpoint.id), "{endpoint:?} needs more rows: {page}");
        cursor
    }
}

/// The parameters of a listing's query by name; empty for other operations.
fn parameters(endpoint: &Endpoint) -> Vec<String> {
    let schema = (endpoint.query_schema)(&mut SchemaGenerator::default());
    let properties = schema.get("properties").and_then(|properties| properties.as_object());
    properties.into_iter().flat_map(|properties| properties.keys().cloned()).collect()
}

/// The name of the cursor parameter, for operations that are listings.
fn cursor_parameter(endpoint: &Endpoint) -> Option<&'static str> {
    let names = parameters(endpoint);
    ["cursor", "after"].into_iter().find(|wanted| names.iter().any(|name| name == wanted))
}

/// A filter of a listing with a valid value, if it has one.
fn filter(endpoint: &Endpoint) -> Option<String> {
    let takes_no_part = ["limit", "cursor", "after", "since", "wait", "message_id"];
    let name = parameters(endpoint).into_iter().find(|name| !takes_no_part.contains(&name.as_str()))?;
    let value = match name.as_str() {
        "automation_id" => "aut_01HF7YAT00ZFWB5337P6Y4R2P3",
        "email" | "address" => "grete@example.org",
        "channel" => "email",
        "campaign_id" => "cmp_01HF7YAT00ZFWB5337P6Y4R2P3",
        "contact_id" => "con_01HF7YAT00ZFWB5337P6Y4R2P3",
        "status" if ["listCampaigns", "listAutomations"].contains(&endpoint.id) => "draft",
        "status" if endpoint.id == "listAutomationRuns" => "waiting",
        "status" if endpoint.id == "listListContacts" => "confirmed",
        "actor" | "operation" | "resource" | "method" | "path" | "idempotency_key" => "x",
        "key_id" => "key_01HF7YAT00ZFWB5337P6Y4R2P3",
        "user_id" => "usr_01HF7YAT00ZFWB5337P6Y4R2P3",
        "status" | "outcome" => "delivered",
        name => panic!("give the filter {name} a valid value"),
    };
    Some(format!("{name}={value}"))
}

/// Texts that are no cursor: nothing, the lowest and the highest of several lengths, numbers.
fn made_up() -> Vec<String> {
    let mut octets: Vec<Vec<u8>> = vec![Vec::new()];
    for length in [8, 16, 24, 32, 48] {
        octets.extend([0x00, 0x7F, 0xFF].map(|octet| vec![octet; length]));
    }
    let mut texts: Vec<String> = octets.into_iter().map(|octets| URL_SAFE_NO_PAD.encode(octets)).collect();
    texts
        .extend(["0", "1", "4611686018427387904", "9223372036854775807", "-1", "x", "%F0%9F%90%88"].map(str::to_owned));
    texts
}

/// A cursor with one character changed or missing, or one more.
fn altered(cursor: &str) -> Vec<String> {
    let mut texts: Vec<String> = [0, 1, cursor.len() / 2, cursor.len() - 2, cursor.len() - 1]
        .into_iter()
        .map(|at| {
            let other = if cursor.as_bytes()[at] == b'A' { "B" } else { "A" };
            format!("{}{other}{}", &cursor[..at], &cursor[at + 1..])
        })
        .collect();
    texts.extend([cursor[1..].to_owned(), cursor[..cursor.len() - 1].to_owned(), format!("{cursor}A")]);
    texts
}

#[tokio::test]
async fn a_cursor_of_any_listing_works_only_where_it_came_from() {
    let server = TestServer::start().await;
    let (mine, other) = (Box::pin(Tenant::start(&server)).await, Box::pin(Tenant::start(&server)).await);
    let listings: Vec<_> = ops::all()
        .iter()
        .filter_map(|endpoint| cursor_parameter(endpoint).map(|parameter| (endpoint, parameter)))
        .collect();
    assert!(listings.len() >= 22, "{listings:?}");
    let mut cursors = BTreeMap::new();
    for (endpoint, _) in &listings {
        cursors.insert(endpoint.id, mine.cursor(&server, endpoint).await);
    }
    for (endpoint, parameter) in listings {
        // A session is allowed 600 requests a minute.
        server.clock.advance(Duration::from_mins(1));
        let ask = async |query: String| {
            let response = mine.get(&server, endpoint, &format!("{query}&wait=0")).await;
            (response.status, response.code())
        };
        let refused = async |what: &str, query: String| {
            let expected = (400, "invalid_cursor".to_owned());
            assert_eq!(ask(query.clone()).await, expected, "{endpoint:?}, {what}: {query}");
        };
        for text in made_up() {
            refused("made up", format!("{parameter}={text}")).await;
        }
        for (id, elsewhere) in &cursors {
            if let Some(cursor) = elsewhere.as_ref().filter(|_| *id != endpoint.id) {
                refused(&format!("of {id}"), format!("{parameter}={cursor}")).await;
            }
        }
        let Some(own) = &cursors[endpoint.id] else { continue };
        for query in [format!("{parameter}={own}"), format!("limit=2&{parameter}={own}")] {
            assert_eq!(ask(query).await.0, 200, "{endpoint:?}");
        }
        if let Some(filter) = filter(endpoint) {
            assert_eq!(ask(filter.clone()).await.0, 200, "{endpoint:?}, {filter}");
            refused("under another filter", format!("{filter}&{parameter}={own}")).await;
        }
        for text in altered(own) {
            refused("altered", format!("{parameter}={text}")).await;
        }
        let foreign = other.cursor(&server, endpoint).await.unwrap();
        refused("of another workspace", format!("{parameter}={foreign}")).await;
    }
}
