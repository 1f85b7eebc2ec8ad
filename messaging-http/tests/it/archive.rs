//! The archive of campaigns and the texts of pages, as browsers see them (contract section 23).

use std::sync::Arc;

use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::dkim::Algorithm;
use messaging_core::domain::security::digest::Digest;
use messaging_core::ports::Transport;
use messaging_core::ports::clock::SystemEntropy;
use messaging_core::scope::{Role, Scope};
use messaging_engine::admin;
use messaging_http::ServerOptions;
use messaging_testing::MemoryTransport;
use serde_json::{Value, json};

use crate::harness::{TestServer, any_port};
use crate::wire::Response;

const HOSTILE: &str = "</title><script>alert(1)</script>&\u{1}\"'";

/// A server with a public list, and a credential that may change it.
struct Site {
    server: TestServer,
    session: String,
    list: String,
}

impl Site {
    async fn start() -> Self {
        let sandbox: Arc<dyn Transport> = Arc::new(MemoryTransport::default());
        let (options, entropy) = (ServerOptions::new(any_port()), Arc::new(SystemEntropy::default()));
        let server = TestServer::carrying(options, entropy, vec![(Channel::Email, "sandbox", sandbox)]).await;
        let key = server.key(&[Scope::ContactsWrite]).await;
        let body = json!({"name": "News", "visibility": "public"});
        let list = server.post(&format!("/v1/workspaces/{}/lists", server.workspace), &key, &body.to_string()).await;
        let list = list.json()["id"].as_str().unwrap().to_owned();
        let session = server.session(Some(Role::Admin)).await;
        Self { server, session, list }
    }

    fn path(&self, more: &str) -> String {
        format!("/a/{}{more}", self.server.workspace)
    }

    async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        self.server.request("GET", path, headers, None).await
    }

    async fn change(&self, body: Value) -> Response {
        let bearer = format!("Bearer {}", self.session);
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let path = format!("/v1/workspaces/{}", self.server.workspace);
        let reply = self.server.request("PATCH", &path, &headers, Some(&body.to_string())).await;
        assert_eq!(reply.status, 200, "{}", reply.json());
        reply
    }

    async fn enable(&self, title: &str, indexed: bool) {
        let archive = json!({"enabled": true, "title": title, "lists": [self.list], "indexed": indexed});
        self.change(json!({"archive": archive})).await;
    }

    /// A campaign that was sent to the list, which has a reader.
    async fn sent(&self, html: Option<&str>) -> String {
        let algorithms = [Algorithm::Ed25519Sha256];
        admin::prepare_sandbox(&self.server.app, self.server.workspace, &algorithms).await.unwrap();
        let scopes = [Scope::ContactsWrite, Scope::TemplatesWrite, Scope::CampaignsWrite];
        let key = self.server.key(&scopes).await;
        let made = async |what: &str, body: Value| {
            let path = format!("/v1/workspaces/{}/{what}", self.server.workspace);
            let reply = self.server.post(&path, &key, &body.to_string()).await;
            assert!([201, 202].contains(&reply.status), "{what}: {}", reply.json());
            reply.json()["id"].as_str().unwrap_or_default().to_owned()
        };
        let ann = json!({"email": "ann@example.com", "consent": {"marketing_email": true}, "list_ids": [self.list]});
        made("contacts", ann).await;
        let template = json!({"name": "t", "channel": "email", "subject": "{{ x | default(\"Hi <b>\") }}",
            "from_email": "shop@sandbox.test", "html": html, "text": "Plain <text>"});
        let template = made("templates", template).await;
        let campaign = json!({"name": "c", "channel": "email", "template_id": template,
            "audience": {"list_ids": [self.list]}});
        let campaign = made("campaigns", campaign).await;
        made(&format!("campaigns/{campaign}/schedule"), json!({"send_now": true})).await;
        self.server.app.run_until_idle().await.unwrap();
        campaign
    }
}

fn text(response: &Response) -> String {
    String::from_utf8(response.body.clone()).unwrap()
}

#[tokio::test]
async fn where_there_is_no_archive_all_answers_are_the_same() {
    let site = Site::start().await;
    let nobody = "wsp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH";
    let expected = site.get(&site.path(""), &[]).await;
    assert_eq!(expected.status, 404);
    let mut paths = vec![site.path("/feed.xml"), site.path("/cmp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"), site.path("/x")];
    paths.extend([format!("/a/{nobody}"), format!("/a/{nobody}/feed.xml"), "/a/x".to_owned(), "/a/x/y".to_owned()]);
    for path in &paths {
        let answer = site.get(path, &[]).await;
        assert_eq!((answer.status, &answer.body), (404, &expected.body), "{path}");
        assert_eq!(answer.header("x-robots-tag"), Some("noindex, nofollow"), "{path}");
    }
    site.enable("News", false).await;
    for path in [site.path("/cmp_01JB3Q8Z5N6W7X8Y9ZABCDEFGH"), site.path("?before=x"), site.path("/x")] {
        let answer = site.get(&path, &[]).await;
        assert_eq!((answer.status, &answer.body), (404, &expected.body), "{path}");
    }
}

#[tokio::test]
async fn an_archive_is_a_plain_page_that_caches_may_keep() {
    let site = Site::start().await;
    site.enable(HOSTILE, false).await;
    let page = site.get(&site.path(""), &[("accept-language", "de")]).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let html = text(&page);
    assert!(html.contains("<html lang=\"de\">") && html.contains("Noch wurde nichts"), "{html}");
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script"), "{html}");
    assert!(html.contains("type=\"application/atom+xml\""), "{html}");
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'; style-src"));
    assert_eq!(
        (page.header("cache-control"), page.header("vary")),
        (Some("public, max-age=300"), Some("Accept-Language"))
    );
    assert_eq!((page.header("x-robots-tag"), page.header("set-cookie")), (Some("noindex"), None));
    let tag = page.header("etag").unwrap().to_owned();
    let again = site.get(&site.path(""), &[("accept-language", "de"), ("if-none-match", tag.as_str())]).await;
    assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(tag.as_str())));
    assert_eq!(site.get(&site.path(""), &[("if-none-match", tag.as_str())]).await.status, 200);
    site.enable("News", true).await;
    assert_eq!(site.get(&site.path(""), &[]).await.header("x-robots-tag"), None);
    assert_eq!(site.get(&site.path("/feed.xml"), &[]).await.header("x-robots-tag"), None);
}

#[tokio::test]
async fn a_mail_is_shown_in_a_sandbox() {
    let site = Site::start().await;
    site.enable("News", false).await;
    let html = "<html><body><script>alert(1)</script><a href=\"https://acme.example\">x</a> {{ contact.email }}\
                <a href=\"{{ unsubscribe_url }}\">stop</a></body></html>";
    let campaign = site.sent(Some(html)).await;
    let mail = site.get(&site.path(&format!("/{campaign}")), &[]).await;
    assert_eq!((mail.status, mail.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = mail.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("script-src"), "{policy}");
    let sandbox = policy.split(';').find_map(|part| part.trim().strip_prefix("sandbox")).unwrap();
    assert!(!sandbox.contains("allow-scripts") && !sandbox.contains("allow-same-origin"), "{policy}");
    assert_eq!(mail.header("x-content-type-options"), Some("nosniff"));
    let shown = text(&mail);
    assert!(shown.contains("href=\"https://acme.example\""), "{shown}");
    for personal in ["/u/", "/p/", "/t/o/", "/t/c/", "ann@", "con_", "msg_"] {
        assert!(!shown.contains(personal), "{personal}: {shown}");
    }
    assert_eq!(mail.header("etag").unwrap(), format!("\"{}\"", Digest::of(&shown).to_text()));
    assert_eq!(mail.header("last-modified"), Some("Sat, 31 Jan 2026 09:15:00 GMT"));

    let page = text(&site.get(&site.path(""), &[]).await);
    assert!(page.contains("Hi &lt;b&gt;") && page.contains(&campaign) && page.contains("2026-01-31"), "{page}");
    let feed = site.get(&site.path("/feed.xml"), &[]).await;
    assert_eq!(feed.header("content-type"), Some("application/atom+xml; charset=utf-8"));
    assert!(text(&feed).contains("<title>Hi &lt;b&gt;</title>"), "{}", text(&feed));
    assert_eq!(feed.header("last-modified"), Some("Sat, 31 Jan 2026 09:15:00 GMT"));
}

#[tokio::test]
async fn a_mail_without_html_is_a_page_of_text() {
    let site = Site::start().await;
    site.enable("News", false).await;
    let campaign = site.sent(None).await;
    let mail = site.get(&site.path(&format!("/{campaign}")), &[]).await;
    let page = text(&mail);
    assert!(page.contains("Plain &lt;text&gt;") && page.contains(">Hi &lt;b&gt;</h1>"), "{page}");
}

#[tokio::test]
async fn texts_of_the_workspace_stand_on_pages_as_text() {
    let site = Site::start().await;
    let texts = json!({"de": {"archive_empty": "Bald <b>mehr</b>."}, "en": {"form_button": "Go & \"on\""}});
    site.change(json!({"page_texts": texts})).await;
    site.enable("News", false).await;
    let page = text(&site.get(&site.path(""), &[("accept-language", "de")]).await);
    assert!(page.contains("Bald &lt;b&gt;mehr&lt;/b&gt;.") && !page.contains("<b>"), "{page}");
    let page = text(&site.get(&site.path(""), &[("accept-language", "fr")]).await);
    assert!(page.contains("Rien n&#39;a encore"), "{page}");
    let key = site.server.key(&[Scope::ContactsWrite]).await;
    let form = json!({"name": "Join", "list_ids": [site.list]}).to_string();
    let form = site.server.post(&format!("/v1/workspaces/{}/forms", site.server.workspace), &key, &form).await.json();
    let url = form["url"].as_str().unwrap();
    let page = text(&site.get(&url[url.find("/f/").unwrap()..], &[]).await);
    assert!(page.contains(">Go &amp; &quot;on&quot;</button>"), "{page}");
}
