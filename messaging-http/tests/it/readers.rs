//! Pages for readers, as browsers see them (contract section 23).

use std::time::Duration;

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::audience::subscription::{Proof, Subscription, SubscriptionAct, SubscriptionStatus};
use messaging_core::domain::audience::suppression::{Suppression, SuppressionReason, SuppressionSource};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::security::proof_of_work::is_proved;
use messaging_core::scope::Scope;
use messaging_engine::Settings;
use messaging_http::ServerOptions;
use serde_json::{Value, json};

use crate::harness::{TestServer, any_port};
use crate::wire::Response;

/// A server with a public list and a form.
struct Site {
    server: TestServer,
    form: Value,
    path: String,
}

impl Site {
    async fn start(opt_in: &str, members: Value) -> Self {
        Self::asking(0, opt_in, members).await
    }

    /// A site whose forms need a proof of work of this many bits.
    async fn asking(pow_bits: u32, opt_in: &str, members: Value) -> Self {
        let settings = Settings::default().pow_bits(pow_bits);
        let server = TestServer::built(ServerOptions::new(any_port()), |builder, _| builder.settings(settings)).await;
        let key = server.key(&[Scope::ContactsWrite, Scope::ContactsRead]).await;
        let base = format!("/v1/workspaces/{}", server.workspace);
        let list = json!({"name": "News & <more>", "visibility": "public", "opt_in": opt_in});
        let list = server.post(&format!("{base}/lists"), &key, &list.to_string()).await;
        assert_eq!(list.status, 201);
        let mut body = json!({"name": "Join <us>", "list_ids": [list.json()["id"]]});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let form = server.post(&format!("{base}/forms"), &key, &body.to_string()).await;
        assert_eq!(form.status, 201, "{}", form.json());
        let form = form.json();
        let url = form["url"].as_str().unwrap();
        let path = url[url.find("/f/").unwrap()..].to_owned();
        Self { server, form, path }
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        self.server.request("GET", path, headers, None).await
    }

    async fn post(&self, headers: &[(&str, &str)], body: &str) -> Response {
        self.server.request("POST", &self.path, headers, Some(body)).await
    }

    /// The token of a fresh page, old enough to be posted.
    async fn started(&self) -> String {
        let page = text(&self.get(&self.path, &[]).await);
        let rest = page.split("name=\"started\" value=\"").nth(1).unwrap();
        self.server.clock.advance(Duration::from_secs(2));
        rest.split('"').next().unwrap().to_owned()
    }

    async fn count(&self) -> Value {
        let key = self.server.key(&[Scope::ContactsRead]).await;
        let list = self.form["list_ids"][0].as_str().unwrap();
        self.server.get(&format!("/v1/workspaces/{}/lists/{list}", self.server.workspace), &key).await.json()["contact_count"]
            .clone()
    }
}

fn text(response: &Response) -> String {
    String::from_utf8(response.body.clone()).unwrap()
}

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn the_page_of_a_form_is_plain_and_in_the_reader_s_language() {
    let theme = json!({"color": "#facc15", "logo_url": "https://cdn.example/logo.png", "text": "Hello"});
    let site = Site::start("double", json!({"theme": theme, "redirect_url": "https://acme.example/thanks"})).await;
    let page = site.get(&site.path, &[("accept-language", "ja, de-AT;q=0.8, en;q=0.5")]).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let html = text(&page);
    assert!(html.contains("<html lang=\"de\">") && html.contains("E-Mail-Adresse"), "{html}");
    assert!(html.contains("Join &lt;us&gt;") && html.contains("News &amp; &lt;more&gt;"), "{html}");
    assert!(!html.contains("<script") && html.contains("color:#000"), "{html}");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("img-src https://cdn.example;"), "{policy}");
    assert!(policy.contains("form-action 'self' https://acme.example;"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    for bad in ["/f/x", "/c/x", "/p/x"] {
        assert_eq!(site.get(bad, &[]).await.status, 404, "{bad}");
        assert_eq!(site.server.request("POST", bad, &[FORM], Some("a=b")).await.status, 404, "{bad}");
    }
}

#[tokio::test]
async fn a_form_is_posted_by_a_page() {
    let site = Site::start("single", json!({})).await;
    // Without one of our pages the button must be pressed once more.
    let again = site.post(&[FORM], "email=ann%40example.com").await;
    assert_eq!(again.status, 200);
    assert!(text(&again).contains("once more") && text(&again).contains("value=\"ann@example.com\""));
    let started = site.started().await;
    let invalid = site.post(&[FORM], &format!("email=ann&started={started}")).await;
    assert_eq!(invalid.status, 422);
    assert!(text(&invalid).contains("aria-invalid=\"true\""), "{}", text(&invalid));
    let done = site.post(&[FORM], &format!("email=ann%40example.com&started={started}")).await;
    assert_eq!(done.status, 200);
    assert!(text(&done).contains("You are subscribed"), "{}", text(&done));
    assert_eq!(site.count().await, 1);
    let known = site.post(&[FORM], &format!("email=ann%40example.com&started={started}")).await;
    assert_eq!((known.status, known.body), (done.status, done.body));
}

#[tokio::test]
async fn a_form_is_posted_by_a_script_of_an_allowed_site() {
    let site = Site::start("double", json!({"allowed_origins": ["https://www.acme.example"]})).await;
    let ours = ("origin", "https://www.acme.example");
    let theirs = ("origin", "https://evil.example");
    let asked = site.server.request("OPTIONS", &site.path, &[ours], None).await;
    assert_eq!((asked.status, asked.header("access-control-allow-origin")), (204, Some(ours.1)));
    assert_eq!(asked.header("access-control-allow-headers"), Some("content-type"));
    let asked = site.server.request("OPTIONS", &site.path, &[theirs], None).await;
    assert_eq!(asked.header("access-control-allow-origin"), None);

    let taken = site.post(&[JSON, ours], r#"{"email": "ann@example.com"}"#).await;
    assert_eq!((taken.status, taken.json()), (200, json!({"status": "confirmation_sent"})));
    assert_eq!(taken.header("access-control-allow-origin"), Some(ours.1));
    let refused = site.post(&[JSON, ours], r#"{"email": "ann"}"#).await;
    assert_eq!((refused.status, refused.code().as_str()), (422, "validation_failed"));
    assert_eq!(refused.json()["error"]["details"]["errors"][0]["pointer"], "/email");
    assert_eq!(refused.header("access-control-allow-origin"), Some(ours.1));
    let broken = site.post(&[JSON], "[1]").await;
    assert_eq!((broken.status, broken.code().as_str()), (400, "invalid_json"));
    for n in 0..8 {
        assert_eq!(site.post(&[JSON], &json!({"email": format!("a{n}@example.com")}).to_string()).await.status, 200);
    }
    let limited = site.post(&[JSON], r#"{"email": "z@example.com"}"#).await;
    assert_eq!((limited.status, limited.code().as_str()), (429, "rate_limited"));
    assert!(limited.header("retry-after").is_some());
}

/// Kinds of contacts behind a posted address.
const KINDS: [&str; 7] = ["new", "known", "member", "asked", "left", "unsubscribed", "bounced"];

impl Site {
    /// Makes the contacts and suppressions of [`KINDS`].
    async fn with_kinds(&self) {
        let (workspace, now) = (self.server.workspace, self.server.app.now());
        let key = self.server.key(&[Scope::ContactsWrite]).await;
        let list = self.form["list_ids"][0].clone();
        for (name, lists) in
            [("known", json!([])), ("member", json!([list])), ("asked", json!([])), ("left", json!([]))]
        {
            let body = json!({"email": format!("{name}@example.com"), "list_ids": lists});
            let made = self.server.post(&format!("/v1/workspaces/{workspace}/contacts"), &key, &body.to_string()).await;
            assert_eq!(made.status, 201);
            let status = match name {
                "asked" => SubscriptionStatus::Unconfirmed,
                "left" => SubscriptionStatus::Left,
                _ => continue,
            };
            let contact = made.json()["id"].as_str().unwrap().parse().unwrap();
            let ids = (workspace, list.as_str().unwrap().parse().unwrap(), contact);
            let record = Subscription::new(ids, status, Proof::of_reader(SubscriptionAct::Form, now, None, None));
            self.server.commit([Write::PutSubscription(Box::new(record), Expect::Absent)]).await;
        }
        for (name, reason) in [("unsubscribed", SuppressionReason::Unsubscribe), ("bounced", SuppressionReason::Bounce)]
        {
            let record = Suppression {
                id: self.server.app.new_id(now),
                workspace_id: workspace,
                channel: Channel::Email,
                address: format!("{name}@example.com"),
                reason,
                detail: None,
                source: SuppressionSource::Recipient,
                created_at: now,
            };
            self.server.commit([Write::PutSuppression(record, Expect::Absent)]).await;
        }
    }
}

/// An answer without the headers that differ by request.
fn told(response: &Response) -> (u16, Vec<(String, String)>, String) {
    let is_told = |(name, _): &&(String, String)| !["date", "x-request-id"].contains(&name.as_str());
    let headers = response.headers.iter().filter(is_told).cloned().collect();
    (response.status, headers, text(response))
}

#[tokio::test]
async fn an_answer_tells_nobody_who_is_known() {
    let redirect = json!({"redirect_url": "https://acme.example/thanks"});
    for (opt_in, members) in
        [("single", json!({})), ("double", json!({})), ("single", redirect.clone()), ("double", redirect)]
    {
        for content in [FORM, JSON] {
            let site = Site::start(opt_in, members.clone()).await;
            site.with_kinds().await;
            let started = site.started().await;
            let mut answers = Vec::new();
            for name in KINDS {
                let body = if content == FORM {
                    format!("email={name}%40example.com&started={started}")
                } else {
                    json!({"email": format!("{name}@example.com")}).to_string()
                };
                answers.push(told(&site.post(&[content], &body).await));
            }
            assert!([200, 303].contains(&answers[0].0), "{:?}", answers[0]);
            for (name, answer) in KINDS.iter().zip(&answers) {
                assert_eq!(answer, &answers[0], "{name} {opt_in}");
            }
        }
    }
}

#[tokio::test]
async fn a_form_may_lead_elsewhere() {
    let site = Site::start("double", json!({"redirect_url": "https://acme.example/thanks"})).await;
    let started = site.started().await;
    let done = site.post(&[FORM], &format!("email=ann%40example.com&started={started}")).await;
    assert_eq!((done.status, done.header("location")), (303, Some("https://acme.example/thanks")));
}

/// A number that is a proof of work for a page.
fn proof(started: &str, bits: u32) -> String {
    (0..1_000_000_u32).map(|n| n.to_string()).find(|n| is_proved(started, n, bits)).unwrap()
}

#[tokio::test]
async fn a_form_may_ask_for_a_proof_of_work() {
    let site = Site::asking(8, "single", json!({})).await;
    let page = site.get(&site.path, &[]).await;
    let html = text(&page);
    assert!(html.contains("<script src=\"proof.js\" defer></script>") && html.contains("data-bits=\"8\""), "{html}");
    assert!(html.contains("<noscript>") && html.contains("only works with JavaScript"), "{html}");
    assert!(page.header("content-security-policy").unwrap().contains("script-src 'self';"));
    let script = site.get("/f/proof.js", &[]).await;
    assert_eq!((script.status, script.header("content-type")), (200, Some("text/javascript; charset=utf-8")));
    let tag = script.header("etag").unwrap().to_owned();
    assert_eq!(site.get("/f/proof.js", &[("if-none-match", tag.as_str())]).await.status, 304);

    let started = site.started().await;
    let good = proof(&started, 8);
    let bad = (0..1000).map(|n: u32| n.to_string()).find(|n| !is_proved(&started, n, 8)).unwrap();
    for missing in [String::new(), "&proof=".to_owned(), format!("&proof={bad}"), "&proof=x".to_owned()] {
        let again = site.post(&[FORM], &format!("email=ann%40example.com&started={started}{missing}")).await;
        assert!(text(&again).contains("once more"), "{}", text(&again));
    }
    assert_eq!(site.count().await, 0);
    let body = format!("email=ann%40example.com&started={started}&proof={good}");
    assert!(text(&site.post(&[FORM], &body).await).contains("You are subscribed"));
    assert_eq!(site.count().await, 1);
    // The proof is not valid for another address.
    let again = site.post(&[FORM], &body.replace("ann", "bob")).await;
    assert!(text(&again).contains("once more"), "{}", text(&again));
    assert_eq!(site.count().await, 1);
}

#[tokio::test]
async fn a_script_asks_what_it_has_to_prove() {
    let site = Site::asking(8, "double", json!({"allowed_origins": ["https://www.acme.example"]})).await;
    let ours = ("origin", "https://www.acme.example");
    let refused = site.post(&[JSON, ours], r#"{"email": "ann@example.com"}"#).await;
    assert_eq!(refused.json()["error"]["details"]["errors"][0]["pointer"], "/proof");
    let asked = site.get(&site.path, &[("accept", "application/json"), ours]).await;
    assert_eq!((asked.status, asked.header("access-control-allow-origin")), (200, Some(ours.1)));
    assert_eq!((asked.json()["pow_bits"].clone(), asked.header("cache-control")), (json!(8), Some("no-store")));
    let started = asked.json()["started"].as_str().unwrap().to_owned();
    site.server.clock.advance(Duration::from_secs(2));
    let body = json!({"email": "ann@example.com", "started": started, "proof": proof(&started, 8)});
    let taken = site.post(&[JSON, ours], &body.to_string()).await;
    assert_eq!((taken.status, taken.json()), (200, json!({"status": "confirmation_sent"})));
    assert_eq!(site.post(&[JSON, ours], &body.to_string()).await.status, 422);
}
