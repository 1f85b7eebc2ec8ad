//! Contract section 2.4: a caller without `pii:read` sees no addresses, wherever they come from.
//!
//! A marked address, in every spelling, is put into every text that can come from outside. Then every GET operation is
//! called by a key with `pii:read` and by a key with every other scope.

mod writers;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use http::Method;
use messaging_core::changes::{Changes, Expect, Write};
use messaging_core::domain::audience::suppression::{Suppression, SuppressionReason, SuppressionSource};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::delivery::attempt::{AttemptOutcome, Dialog};
use messaging_core::domain::mail::link_token::{Link, ReturnPurpose, UrlKey};
use messaging_core::domain::mail::report::{Action, RecipientReport, Report};
use messaging_core::domain::message::Capture;
use messaging_core::ids::MessageId;
use messaging_core::ports::inbound::ReturnAddress;
use messaging_core::ports::transport::{Response, TransportError};
use messaging_core::scope::Scope;
use messaging_engine::services::Visitor;
use messaging_engine::{AnsweredRequest, Caller, ops};
use messaging_testing::fetched;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::bed::{self, Call};
use crate::webhook_deliveries::{Hooks, URL};

/// In the local part of every marked address.
const MARK: &str = "zqxmark";
/// The marked address as a recipient.
const ADDRESS: &str = "zqxmark@example.com";
/// The marked phone number, and the part of it that is never shown.
const PHONE: &str = "+14155559876";
const PHONE_MARK: &str = "1415555";

/// Spellings of an address by other programs.
const SPELLINGS: [&str; 16] = [
    "zqxmark@example.com",
    "<zqxmark@example.com>",
    "ZQXMARK@EXAMPLE.COM:",
    "rfc822;zqxmark@example.com",
    "\"zqxmark zqxmark\"@example.com",
    "'zqxmark@example.com'",
    "zqxmark%40example.com",
    "zqxmark%2540example.com",
    "https://a.example/?a=1&m=zqxmark@example.com&b=2",
    "https://a.example/?m=zqx.zqxmark@example.com#c",
    "https://a.example/u/%7Aqx%2Bzqxmark%40example.com/x",
    "bounce-zqxmark=example.com@list.example",
    "SRS0=HH=TT=example.com=zqxmark@forward.example",
    "zqxmark=40example.com",
    "zqxmark&#64;example.com",
    "tel:+14155559876",
];

/// Returns true if a text shows the marked address or number.
fn shows_mark(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains(MARK) || text.contains(PHONE_MARK)
}

struct World {
    hooks: Hooks,
    /// Key that sees addresses.
    clear: Caller,
    /// Key with every scope but `pii:read`.
    blind: Caller,
    /// Ids for paths, by the beginning of the operation's path.
    ids: Vec<(&'static str, String)>,
    /// A run of the automation.
    run: String,
}

impl World {
    async fn start() -> Self {
        let hooks = Hooks::start().await;
        let scopes = |hidden: &[Scope]| -> Vec<&str> {
            let all = Scope::ALL.iter().filter(|scope| scope.as_str() != "*" && !hidden.contains(scope));
            all.map(|scope| scope.as_str()).collect()
        };
        let path = format!("/workspaces/{}/api-keys", hooks.product.workspace);
        let mut keys = Vec::new();
        for scopes in [scopes(&[]), scopes(&[Scope::PiiRead])] {
            let key = hooks.post(&path, json!({"name": "reader", "scopes": scopes, "rate_limit": 100_000})).await;
            keys.push(hooks.product.app.authenticate(key["key"].as_str().unwrap()).await.unwrap());
        }
        let blind = keys.pop().unwrap();
        Self { hooks, clear: keys.pop().unwrap(), blind, ids: Vec::new(), run: String::new() }
    }

    fn base(&self) -> String {
        format!("/workspaces/{}", self.hooks.product.workspace)
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let reply = self.hooks.post(&format!("{}{path}", self.base()), body).await;
        assert!(reply.status < 300, "{path}: {}", reply.summary());
        reply.body
    }

    async fn get(&self, caller: &Caller, target: &str) -> bed::Reply {
        bed::send(&self.hooks.product.app, Call::new(caller, Method::GET, target)).await
    }

    /// Answers of every GET operation to a caller, by operation.
    async fn answers(&self, caller: &Caller) -> Vec<(&'static str, u16, String)> {
        let mut answers = Vec::new();
        for endpoint in ops::all().iter().filter(|endpoint| (endpoint.method)() == Method::GET) {
            let mut targets = Vec::new();
            let path = endpoint.path.replace("{workspace_id}", &self.hooks.product.workspace.to_string());
            let path = path.replace("{run_id}", &self.run);
            if path.contains('{') {
                let known = self.ids.iter().filter(|(of, _)| endpoint.path.starts_with(of));
                // There are several messages.
                targets.extend(known.map(|(_, id)| fill(&path, id)));
                assert!(!targets.is_empty(), "no id is known for {}", endpoint.path);
            } else {
                targets.push(path);
            }
            for target in targets {
                let query = match endpoint.id {
                    "listWebhookEvents" => "?wait=0&limit=200".to_owned(),
                    "explainContact" => "?channel=email".to_owned(),
                    "listMessageDeliveries" => {
                        let message = self.ids.iter().find(|(of, _)| of.contains("messages")).expect("a message");
                        format!("?message_id={}", message.1)
                    }
                    _ => String::new(),
                };
                let reply = self.get(caller, &format!("{target}{query}")).await;
                answers.push((endpoint.id, reply.status, reply.body.to_string()));
            }
        }
        answers
    }

    /// A message whose events, attempts and visits all quote the address.
    async fn message(&mut self, spelling: &str) {
        let product = &self.hooks.product;
        let html = format!("<p><a href=\"https://shop.example/?who={spelling}\">x</a></p>");
        let subject = format!("For {spelling}");
        let body =
            json!({"channel": "email", "to": ADDRESS, "cc": ["copy@example.com"], "subject": subject, "html": html});
        product.transport.answer_next(ADDRESS, &format!("450 4.2.1 {spelling} is busy"));
        product.transport.answer_next(ADDRESS, "250 2.0.0 ok");
        product.transport.answer_next("copy@example.com", &format!("550 5.7.1 not with {spelling}"));
        product.transport.speak_next(Dialog {
            mx: Some("mx.example.com".to_owned()),
            remote_addr: Some("192.0.2.1:25".to_owned()),
            tls: None,
            tls_failure: None,
            source: None,
            outcome: AttemptOutcome::Deferred,
            transcript: vec![format!("> RCPT TO:<{ADDRESS}>"), format!("< 450 4.2.1 {spelling} is busy")],
        });
        let id = product.send(&body).await;
        product.work().await;
        product.pass(Duration::from_mins(2)).await;
        let url = format!("https://shop.example/?who={}", spelling.replace("&#64;", "@"));
        let visitor = Visitor {
            ip: IpAddr::from([192, 0, 2, 7]),
            user_agent: Some(format!("Mozilla/5.0 (X11; {spelling}) Gecko")),
            is_head: false,
            is_prefetch: false,
        };
        product.app.record_open(product.workspace, id, &visitor).await.unwrap();
        let token = product.app.link_key().link(product.workspace, id, Link::Click(UrlKey::of(&url), None));
        // Some spellings make no URL, and so no redirect.
        if let Some(click) = product.app.click(&token).await.unwrap() {
            product.app.record_click(&click, &visitor).await.unwrap();
        }
        let response = Response { code: Some(550), text: format!("{spelling} left"), ..Response::default() };
        let bounced = RecipientReport { addresses: vec![ADDRESS.to_owned()], action: Action::Failed, response };
        let complaint = Report::Complaint { feedback_type: spelling.to_owned(), recipients: vec![ADDRESS.to_owned()] };
        for report in [complaint, Report::Delivery(vec![bounced])] {
            let to = ReturnAddress {
                workspace_id: product.workspace,
                message_id: id,
                purpose: ReturnPurpose::Bounce,
                recipient: None,
            };
            product.app.receive(&to, &report).await.unwrap();
        }
        product
            .commit(Changes::from_iter([Write::PutCapture(Box::new(Capture {
                workspace_id: product.workspace,
                message_id: id,
                channel: Channel::Email,
                to: ADDRESS.to_owned(),
                from: None,
                subject: Some(format!("For {spelling}")),
                captured_at: product.app.now(),
                source: "x".into(),
            }))]))
            .await;
        self.unsuppress().await;
        self.ids.extend([("/messages/{id}", id.to_string())]);
        if self.ids.iter().all(|(of, _)| !of.contains("sandbox")) {
            self.ids.push(("/workspaces/{workspace_id}/sandbox/messages/{message_id}", id.to_string()));
        }
    }

    /// Takes the address off the suppression list, so that the next message goes to it.
    async fn unsuppress(&self) {
        let listed = self.get(&self.clear, &format!("{}/suppressions?limit=200", self.base())).await;
        for one in listed["data"].as_array().unwrap() {
            let path = format!("{}/suppressions/{}", self.base(), one["id"].as_str().unwrap());
            let call = Call::new(self.hooks.caller(), Method::DELETE, &path);
            bed::send(&self.hooks.product.app, call).await;
        }
    }

    /// Messages that could not be sent at all.
    async fn failures(&mut self) {
        let product = &self.hooks.product;
        for spelling in SPELLINGS {
            product.transport.fail_next(TransportError::Content(format!("{spelling} cannot be encoded")));
            let id: MessageId = product.send_to(ADDRESS).await;
            product.work().await;
            assert!(product.story(id).await.starts_with("failed"));
            self.ids.push(("/messages/{id}", id.to_string()));
        }
    }

    /// A contact, in every resource that lists contacts.
    async fn contact(&mut self) {
        let contact = self.post("/contacts", json!({"email": ADDRESS, "phone": PHONE})).await;
        let list = self.post("/lists", json!({"name": "News"})).await;
        let members = json!({"contact_ids": [contact["id"]]});
        self.post(&format!("/lists/{}/contacts", list["id"].as_str().unwrap()), members).await;
        let segment = self.post("/segments", json!({"name": "All", "kind": "dynamic", "filter": {}})).await;
        self.hooks.product.work().await;
        let template = json!({"name": "t", "channel": "email", "subject": "s", "text": "{{ contact.email }}"});
        let template = self.post("/templates", template).await;
        let field = self.post("/custom-fields", json!({"key": "plan", "type": "string"})).await;
        assert!(field["id"].is_string());
        let domains = self.get(&self.clear, &format!("{}/sending-domains", self.base())).await;
        let product = &self.hooks.product;
        messaging_engine::admin::grant_ip(&product.app, product.workspace, "203.0.113.7").await.unwrap();
        let pool = self.post("/ip-pools", json!({"name": "p", "ips": ["203.0.113.7"]})).await;
        let public = self.post("/lists", json!({"name": "public", "visibility": "public"})).await;
        let form = self.post("/forms", json!({"name": "f", "list_ids": [public["id"]]})).await;
        let audience = json!({"list_ids": [list["id"]]});
        let campaign = json!({"name": "n", "channel": "email", "template_id": template["id"], "audience": audience});
        let campaign = self.post("/campaigns", campaign).await;
        // The contact gave no consent: it is listed, and gets nothing.
        let schedule = format!("/campaigns/{}/schedule", campaign["id"].as_str().unwrap());
        self.post(&schedule, json!({"send_now": true})).await;
        let graph = json!({"nodes": [{"id": "x", "kind": "exit", "config": {"reason": format!("told {ADDRESS}")}}]});
        let automation = json!({"name": "n", "trigger": {"kind": "manual"}, "graph": graph});
        let automation = self.post("/automations", automation).await;
        let place = format!("/automations/{}", automation["id"].as_str().unwrap());
        self.post(&format!("{place}/activate"), Value::Null).await;
        let run = self.post(&format!("{place}/trigger"), json!({"contact_id": contact["id"]})).await;
        run["id"].as_str().unwrap().clone_into(&mut self.run);
        self.hooks.product.work().await;
        // The current graph is shown to everybody.
        let path = format!("{}{place}", self.base());
        let change = json!({"graph": {"nodes": [{"id": "x", "kind": "exit"}]}}).to_string();
        let call = Call::new(&self.clear, Method::PATCH, &path).text(&change);
        assert_eq!(bed::send(&self.hooks.product.app, call).await.summary(), "200");
        for (of, resource) in [
            ("/workspaces/{workspace_id}/automations/{id}", &automation),
            ("/workspaces/{workspace_id}/analytics/campaigns/{id}", &campaign),
            ("/workspaces/{workspace_id}/campaigns/{id}", &campaign),
            ("/workspaces/{workspace_id}/contacts/{id}", &contact),
            ("/workspaces/{workspace_id}/lists/{id}", &list),
            ("/workspaces/{workspace_id}/segments/{id}", &segment),
            ("/workspaces/{workspace_id}/templates/{id}", &template),
            ("/workspaces/{workspace_id}/sending-domains/{id}", &domains["data"][0]),
            ("/workspaces/{workspace_id}/ip-pools/{id}", &pool),
            ("/workspaces/{workspace_id}/forms/{id}", &form),
        ] {
            self.ids.push((of, resource["id"].as_str().unwrap().to_owned()));
        }
        self.ids.push(("/workspaces/{workspace_id}/webhooks/{id}", self.hooks.path.rsplit('/').next().unwrap().into()));
    }

    /// A file whose columns and cells quote the address.
    async fn import(&mut self) {
        let product = &self.hooks.product;
        let columns: Vec<_> = SPELLINGS.iter().map(|one| format!("\"{}\"", one.replace('"', "\"\""))).collect();
        let mapping: serde_json::Map<_, _> =
            SPELLINGS.iter().map(|one| ((*one).to_owned(), json!("consent.sms"))).collect();
        let cells = vec![ADDRESS; SPELLINGS.len()].join(",");
        let file = format!("email,{}\r\nnobody,{cells}\r\n", columns.join(","));
        let sum: String = digest(&SHA256, file.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let body = json!({"filename": "a.csv", "size_bytes": file.len(), "sha256": sum, "mapping": mapping});
        let import = self.post("/contacts/import", body).await;
        let token = import["upload_url"].as_str().unwrap().rsplit('/').next().unwrap();
        let mut uploading = product.app.receive_upload(token, None).await.unwrap();
        uploading.add(file.as_bytes()).await.unwrap();
        uploading.finish().await.unwrap();
        product.work().await;
        let id = import["import_id"].as_str().unwrap().to_owned();
        self.ids.push(("/workspaces/{workspace_id}/contacts/imports/{id}", id));
    }

    /// A refused request of each key, whose body and answer quote the address.
    async fn requests(&mut self) {
        let product = &self.hooks.product;
        let body = json!({"to": ADDRESS, "texts": SPELLINGS}).to_string();
        for (id, caller) in [("req-clear", &self.clear), ("req-blind", &self.blind)] {
            let Caller::Key(key) = caller else { panic!("not a key") };
            let path = "/messages".to_owned();
            let mut request = AnsweredRequest::new(product.workspace, id.to_owned(), Method::POST, path, "sendMessage");
            request.is_write = true;
            request.status = 422;
            request.key_id = Some(key.id);
            request.request = body.clone().into();
            request.response = body.clone().into();
            product.app.log_request(request);
            self.ids.push(("/workspaces/{workspace_id}/requests/{id}", id.to_owned()));
        }
        product.app.requests_written().await;
    }

    async fn suppressions(&self) {
        let product = &self.hooks.product;
        for (n, spelling) in SPELLINGS.iter().enumerate() {
            product
                .commit(Changes::from_iter([Write::PutSuppression(
                    Suppression {
                        id: product.app.new_id(product.app.now()),
                        workspace_id: product.workspace,
                        channel: Channel::Email,
                        address: format!("{MARK}{n}@example.com"),
                        reason: SuppressionReason::Manual,
                        detail: Some(format!("reported by {spelling}")),
                        source: SuppressionSource::Api,
                        created_at: product.app.now(),
                    },
                    Expect::Absent,
                )]))
                .await;
        }
        self.post("/suppressions", json!({"channel": "sms", "address": PHONE, "reason": "manual"})).await;
    }
}

fn fill(path: &str, id: &str) -> String {
    let (before, rest) = path.split_once('{').unwrap();
    let (_, after) = rest.split_once('}').unwrap();
    // The second parameter, such as the version of a template.
    format!("{before}{id}{}", after.replace("{version}", "1"))
}

#[tokio::test]
async fn a_marked_address_is_in_no_answer_without_pii_read() {
    let mut world = World::start().await;
    let app = world.hooks.product.app.clone();
    // A webhook of a key that sees no addresses; both receivers repeat an address in their answers.
    let path = format!("{}/webhooks", world.base());
    let masked_url = "https://acme.com/masked";
    let call = Call::new(&world.blind, Method::POST, &path).body(&json!({"url": masked_url, "events": ["*"]}));
    assert_eq!(bed::send(&app, call).await["pii"], false);
    let echo = SPELLINGS.join(" ").replace("@example.com", "@echo.example");
    world.hooks.fetch.always(URL, Ok(fetched(200, &[], &echo)));

    for spelling in SPELLINGS {
        world.message(spelling).await;
    }
    world.failures().await;
    world.contact().await;
    world.import().await;
    world.suppressions().await;
    world.requests().await;
    world.hooks.product.pass(Duration::from_mins(1)).await;

    let mut shown_in_clear = BTreeSet::new();
    for (id, status, answer) in world.answers(&world.clear).await {
        if status == 200 && shows_mark(&answer) {
            shown_in_clear.insert(id);
        }
    }
    // Shows that the marks are where they were put: otherwise the test would pass without masking.
    let expected = [
        "exportContact",
        "getAutomationRun",
        "getContact",
        "getMessage",
        "getMessageContent",
        "getRequest",
        "listAutomationRuns",
        "listCampaignRecipients",
        "listContacts",
        "listDeliveries",
        "listImportErrors",
        "listListContacts",
        "listMessageAttempts",
        "listMessageDeliveries",
        "listMessages",
        "listSandboxMessages",
        "listSegmentContacts",
        "listSuppressions",
        "listWebhookEvents",
    ];
    assert_eq!(shown_in_clear, BTreeSet::from(expected));

    for (id, status, answer) in world.answers(&world.blind).await {
        assert!(!shows_mark(&answer), "{id} {status}: {answer}");
        let needs_more = ["exportContact", "getMessageContent", "getSandboxMessage"].contains(&id);
        assert_eq!(status == 403 && answer.contains("pii:read"), needs_more, "{id} {status}: {answer}");
    }
    // The same through operations that are no GET but only read.
    let template = world.ids.iter().find(|(of, _)| of.contains("templates")).unwrap().1.clone();
    let contact = world.ids.iter().find(|(of, _)| of.contains("contacts/{id}")).unwrap().1.clone();
    for (path, body) in [
        (format!("{}/segments/preview", world.base()), json!({"filter": {}})),
        (format!("{}/templates/{template}/preview", world.base()), json!({"contact_id": contact})),
    ] {
        for (caller, is_clear) in [(&world.clear, true), (&world.blind, false)] {
            let reply = bed::send(&app, Call::new(caller, Method::POST, &path).body(&body)).await;
            assert_eq!((reply.status, shows_mark(&reply.body.to_string())), (200, is_clear), "{path}");
        }
    }
    // Each receiver got the same events.
    let told = world.hooks.fetch.take();
    let bodies = |url: &str| -> Vec<String> {
        let to = told.iter().filter(|request| request.url == url);
        to.map(|request| String::from_utf8(request.body.to_vec()).unwrap()).collect()
    };
    let (clear, masked) = (bodies(URL), bodies(masked_url));
    assert!(clear.len() > 100 && clear.len() == masked.len(), "{} {}", clear.len(), masked.len());
    assert!(clear.iter().filter(|body| shows_mark(body)).count() > 100);
    for body in masked {
        assert!(!shows_mark(&body), "{body}");
    }
}

#[tokio::test]
async fn a_masked_resource_sent_back_changes_nobody() {
    let world = World::start().await;
    let app = world.hooks.product.app.clone();
    let contact = world.post("/contacts", json!({"external_id": "u-1", "email": ADDRESS, "phone": PHONE})).await;
    let path = format!("{}/contacts/{}", world.base(), contact["id"].as_str().unwrap());
    let masked = world.get(&world.blind, &path).await.body;
    let refused = async |method: Method, path: String, body: Value, expected: &str| {
        let reply = bed::send(&app, Call::new(&world.blind, method, &path).body(&body)).await;
        assert_eq!(reply.summary(), expected, "{path} {body}");
    };
    let both = json!({"email": masked["email"], "phone": masked["phone"]});
    let same = json!({"external_id": "u-1", "email": masked["email"], "phone": masked["phone"]});
    refused(Method::PATCH, path.clone(), both.clone(), "422 /email not_allowed /phone not_allowed").await;
    refused(
        Method::POST,
        format!("{}/contacts", world.base()),
        same.clone(),
        "422 /email not_allowed /phone not_allowed",
    )
    .await;
    for channel in ["email", "sms"] {
        let address = if channel == "email" { &masked["email"] } else { &masked["phone"] };
        let suppression = json!({"channel": channel, "address": address, "reason": "manual"});
        refused(Method::POST, format!("{}/suppressions", world.base()), suppression, "422 /address not_allowed").await;
    }
    let message = json!({"channel": "email", "to": masked["email"], "cc": [masked["email"]], "bcc": [masked["email"]],
        "subject": "s", "text": "t"});
    refused(Method::POST, "/messages".to_owned(), message, "422 /bcc/0 not_allowed /cc/0 not_allowed /to not_allowed")
        .await;
    let event = json!({"name": "x", "contact": {"email": masked["email"]}});
    refused(Method::POST, "/events".to_owned(), event.clone(), "422 /contact/email not_allowed").await;

    // Items of many are refused one by one.
    let bulk = world.post("/contacts/bulk", json!({"contacts": [same, both]})).await;
    assert_eq!((&bulk["created"], &bulk["updated"], &bulk["failed"]), (&json!(0), &json!(0), &json!(2)));
    let report = world.hooks.post("/events/bulk", json!({"events": [event]})).await;
    assert_eq!((&report["accepted"], &report["rejected"]), (&json!(0), &json!(1)));
    let page = world.get(&world.clear, &format!("{}/contacts", world.base())).await;
    assert_eq!(page["data"], json!([contact]), "nobody was changed, nobody created");
}
