//! Links in messages, as mail programs and people follow them (contract section 18).

use messaging_core::changes::{Changes, Write};
use messaging_core::domain::channel::Channel;
use messaging_core::domain::mail::link_token::{Link, LinkKey, UrlKey};
use messaging_core::domain::mail::tracking::{Links, track};
use messaging_core::domain::message::{Message, MessageContent, MessageStatus};
use messaging_core::ids::MessageId;
use messaging_core::ports::store::Priority;
use messaging_core::scope::Scope;
use messaging_http::ServerOptions;
use serde_json::{Value, json};

use crate::harness::{TestServer, any_port};
use crate::wire::Response;

const PERSON: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Thunderbird/115.6.0";
const HTML: &str = r#"<p><a href="https://acme.com/sale?a=1&amp;b=ü">Sale</a></p></body>"#;

/// A server with a delivered message, its links rewritten.
struct Mailed {
    server: TestServer,
    message: MessageId,
    html: String,
}

impl Mailed {
    async fn start() -> Self {
        Self::with(ServerOptions::new(any_port())).await
    }

    async fn with(options: ServerOptions) -> Self {
        let server = TestServer::with(options).await;
        let now = server.app.now();
        let message = Message {
            status: MessageStatus::Delivered,
            from_email: Some("shop@acme.com".to_owned()),
            ..Message::queued(
                server.app.new_id(now),
                server.workspace,
                Channel::Email,
                "Ann@example.com".to_owned(),
                now,
            )
        };
        let id = message.id;
        let content = MessageContent { request: "{}".into() };
        server.commit([Write::InsertMessage(Box::new(message), content)]).await;
        let mut this = Self { server, message: id, html: String::new() };
        let tracked = track(HTML, &this.links(&this.server.app.link_key()));
        let writes = this.server.app.store_urls(this.server.workspace, tracked.urls);
        this.server.app.store().commit(Changes::from_iter(writes), Priority::Foreground).await.unwrap();
        this.html = tracked.html;
        this
    }

    fn links<'a>(&'a self, key: &'a LinkKey) -> Links<'a> {
        Links {
            key,
            base: "https://links.acme.com",
            workspace: self.server.workspace,
            message: self.message,
            open: true,
            click: true,
        }
    }

    /// The path of the first link of this kind in the message.
    fn path(&self, kind: &str) -> String {
        let rest = self.html.split(&format!("https://links.acme.com{kind}")).nth(1).unwrap();
        format!("{kind}{}", rest.split('"').next().unwrap())
    }

    fn unsubscribe_path(&self) -> String {
        self.links(&self.server.app.link_key())
            .unsubscribe_url()
            .strip_prefix("https://links.acme.com")
            .unwrap()
            .to_owned()
    }

    async fn visit(&self, method: &str, path: &str, body: Option<&str>) -> Response {
        self.server.request(method, path, &[("user-agent", PERSON)], body).await
    }

    /// The events of the message: kind and meta.
    async fn events(&self) -> Vec<Value> {
        let events = self.server.app.store().message_events(self.server.workspace, self.message, 100).await.unwrap();
        events.into_iter().map(|event| json!([event.kind, event.meta])).collect()
    }
}

/// The token changed in one place after another.
fn tampered(path: &str) -> impl Iterator<Item = String> {
    let token = path.rfind('/').unwrap() + 1;
    (token..path.len()).step_by(9).map(move |at| {
        let mut changed = path.to_owned().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(changed).unwrap()
    })
}

#[tokio::test]
async fn the_pixel_is_a_picture_and_records_an_open() {
    let mailed = Mailed::start().await;
    let path = mailed.path("/t/o/");
    let response = mailed.visit("GET", &path, None).await;
    assert_eq!((response.status, response.header("content-type")), (200, Some("image/gif")));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    // A picture of one point: signature, width, height, end.
    assert_eq!((&response.body[..10], response.body.last()), (&b"GIF89a\x01\0\x01\0"[..], Some(&b';')));
    let seen = |machine: bool| json!(["open", {"ip": "127.0.0.1", "user_agent": PERSON, "machine": machine}]);
    assert_eq!(mailed.events().await, [seen(false)]);

    let head = mailed.visit("HEAD", &path, None).await;
    let length = response.body.len().to_string();
    assert_eq!((head.status, head.header("content-length")), (200, Some(&*length)));
    assert_eq!(mailed.events().await, [seen(false), seen(true)]);
}

#[tokio::test]
async fn a_pixel_that_is_none_of_ours_looks_the_same_and_records_nothing() {
    let mailed = Mailed::start().await;
    let good = mailed.visit("GET", &mailed.path("/t/o/"), None).await;
    let click_token = mailed.path("/t/c/").replace("/t/c/", "/t/o/");
    for path in tampered(&mailed.path("/t/o/")).chain([click_token, "/t/o/x".to_owned(), "/t/o/%00%ff".to_owned()]) {
        let response = mailed.visit("GET", &path, None).await;
        assert_eq!((response.status, &response.body), (200, &good.body), "{path}");
    }
    assert_eq!(mailed.events().await.len(), 1);
}

#[tokio::test]
async fn a_link_leads_to_its_target_and_records_a_click() {
    let mailed = Mailed::start().await;
    let path = mailed.path("/t/c/");
    let response = mailed.visit("GET", &path, None).await;
    assert_eq!((response.status, response.header("location")), (302, Some("https://acme.com/sale?a=1&b=%C3%BC")));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert_eq!(response.header("referrer-policy"), Some("no-referrer"));
    let meta =
        json!({"url": "https://acme.com/sale?a=1&b=ü", "ip": "127.0.0.1", "user_agent": PERSON, "machine": false});
    assert_eq!(mailed.events().await, [json!(["click", meta])]);

    let head = mailed.visit("HEAD", &path, None).await;
    assert_eq!((head.status, head.header("location")), (302, response.header("location")));
    assert_eq!(mailed.events().await[1][1]["machine"], true);
}

#[tokio::test]
async fn a_link_that_is_none_of_ours_leads_nowhere() {
    let mailed = Mailed::start().await;
    let elsewhere = Link::Click(UrlKey::of("https://evil.example"), None);
    let unknown = mailed.server.app.link_key().link(mailed.server.workspace, mailed.message, elsewhere);
    let open_token = mailed.path("/t/o/").replace("/t/o/", "/t/c/");
    for path in tampered(&mailed.path("/t/c/")).chain([
        open_token,
        format!("/t/c/{unknown}"),
        "/t/c/https%3A%2F%2Fevil.example".to_owned(),
    ]) {
        let response = mailed.visit("GET", &path, None).await;
        assert_eq!((response.status, response.header("location")), (404, None), "{path}");
        assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
    }
    assert_eq!(mailed.events().await, [] as [Value; 0]);
}

#[tokio::test]
async fn the_unsubscribe_page_asks_and_changes_nothing() {
    let mailed = Mailed::start().await;
    let path = mailed.unsubscribe_path();
    for method in ["GET", "HEAD", "GET"] {
        let response = mailed.visit(method, &path, None).await;
        assert_eq!((response.status, response.header("content-type")), (200, Some("text/html; charset=utf-8")));
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none';") && policy.contains("form-action 'self'"), "{policy}");
        assert_eq!(response.header("x-robots-tag"), Some("noindex, nofollow"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
        let page = String::from_utf8(response.body).unwrap();
        assert_eq!(page.contains("<form method=\"post\"><button"), method == "GET", "{page}");
        // Nothing is loaded, and the page does not name the recipient.
        assert!(!page.contains("http") && !page.contains("src=") && !page.contains("ann"), "{page}");
    }
    assert_eq!(mailed.events().await, [] as [Value; 0]);
}

#[tokio::test]
async fn one_click_unsubscribes_and_may_be_repeated() {
    let mailed = Mailed::start().await;
    let path = mailed.unsubscribe_path();
    for _ in 0..3 {
        let response = mailed.visit("POST", &path, Some("List-Unsubscribe=One-Click")).await;
        assert_eq!((response.status, response.header("content-type")), (200, Some("text/html; charset=utf-8")));
        assert!(String::from_utf8(response.body).unwrap().contains("You are unsubscribed"));
    }
    assert_eq!(mailed.events().await, [json!(["unsubscribe", {"method": "one_click"}])]);
    let key = mailed.server.key(&[Scope::ContactsRead, Scope::PiiRead]).await;
    let list = mailed.server.get(&format!("/v1/workspaces/{}/suppressions", mailed.server.workspace), &key).await;
    let data = list.json()["data"].clone();
    assert_eq!(
        (&data[0]["address"], &data[0]["reason"], &data[0]["source"], data.as_array().unwrap().len()),
        (&json!("ann@example.com"), &json!("unsubscribe"), &json!("recipient"), 1)
    );
}

#[tokio::test]
async fn the_button_and_an_empty_form_unsubscribe_too() {
    for form in [Some("confirm=yes"), Some(""), None] {
        let mailed = Mailed::start().await;
        let headers = [("content-type", "application/x-www-form-urlencoded"), ("origin", "https://elsewhere.example")];
        let response = mailed.server.request("POST", &mailed.unsubscribe_path(), &headers, form).await;
        assert_eq!(response.status, 200, "{form:?}");
        assert_eq!(mailed.events().await, [json!(["unsubscribe", {"method": "link"}])], "{form:?}");
    }
}

#[tokio::test]
async fn nobody_is_unsubscribed_by_another_link_or_a_long_form() {
    let mailed = Mailed::start().await;
    let path = mailed.unsubscribe_path();
    let open_token = mailed.path("/t/o/").replace("/t/o/", "/u/");
    let nobody: MessageId = "msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH".parse().unwrap();
    let no_message = mailed.server.app.link_key().link(mailed.server.workspace, nobody, Link::Unsubscribe);
    for path in tampered(&path).chain([open_token, format!("/u/{no_message}")]) {
        let response = mailed.visit("POST", &path, Some("List-Unsubscribe=One-Click")).await;
        assert_eq!(
            (response.status, response.header("content-type")),
            (404, Some("text/html; charset=utf-8")),
            "{path}"
        );
    }
    for path in tampered(&path) {
        assert_eq!(mailed.visit("GET", &path, None).await.status, 404, "{path}");
    }
    let long = "x".repeat((16 << 10) + 1);
    assert_eq!(mailed.visit("POST", &path, Some(&long)).await.status, 413);
    assert_eq!(mailed.events().await, [] as [Value; 0]);
}

#[tokio::test]
async fn other_methods_learn_which_are_allowed() {
    let mailed = Mailed::start().await;
    for (method, path, allow) in [
        ("POST", mailed.path("/t/o/"), "GET, HEAD"),
        ("DELETE", mailed.path("/t/c/"), "GET, HEAD"),
        ("PUT", mailed.unsubscribe_path(), "GET, HEAD, POST"),
    ] {
        let response = mailed.visit(method, &path, None).await;
        assert_eq!((response.status, response.header("allow")), (405, Some(allow)), "{method} {path}");
    }
    assert_eq!(mailed.events().await, [] as [Value; 0]);
}

#[tokio::test]
async fn visitors_behind_a_trusted_proxy_are_seen() {
    let mut options = ServerOptions::new(any_port());
    options.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let mailed = Mailed::with(options).await;
    let headers = [("user-agent", PERSON), ("x-forwarded-for", "203.0.113.9, 192.0.2.7"), ("sec-purpose", "prefetch")];
    mailed.server.request("GET", &mailed.path("/t/o/"), &headers, None).await;
    let events = mailed.events().await;
    assert_eq!((&events[0][1]["ip"], &events[0][1]["machine"]), (&json!("192.0.2.7"), &json!(true)));
}

#[tokio::test]
async fn the_pixel_answers_also_when_nothing_can_be_recorded() {
    let mailed = Mailed::start().await;
    mailed.server.app.store().close().await;
    assert_eq!(mailed.visit("GET", &mailed.path("/t/o/"), None).await.status, 200);
    // Where a link leads is in the database too.
    let click = mailed.visit("GET", &mailed.path("/t/c/"), None).await;
    let unsubscribe = mailed.visit("POST", &mailed.unsubscribe_path(), None).await;
    for response in [click, unsubscribe] {
        assert_eq!(response.status, 503);
        assert!(response.header("retry-after").is_some());
    }
}
