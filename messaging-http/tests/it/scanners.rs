//! Link scanners: programs that fetch every link in a mail or on a page, before or beside its reader. That changes
//! nothing (contract section 23): every change is a POST.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::reader_site::{BASE, ReaderSite};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// Queries that scanners append, and fields of forms: in a query they have no effect.
const QUERIES: [&str; 3] = [
    "",
    "?utm_source=scan",
    "?confirm=yes&action=erase&list=all&address=x%40example.com&List-Unsubscribe=One-Click&email=x%40example.com",
];

impl ReaderSite {
    /// The addresses in the mails sent since the last call, each once.
    async fn mailed(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for email in self.mails().await {
            let headers = email.headers.into_iter().map(|(_, value)| value);
            for text in headers.chain(email.html).chain(email.text) {
                found.extend(paths(&text));
            }
        }
        found
    }

    /// Everything that a reader can change: members, contacts, suppressions and messages.
    async fn state(&self) -> Value {
        let mut parts = Vec::new();
        for status in ["unconfirmed", "confirmed", "left"] {
            parts.push(format!("lists/{}/contacts?status={status}", self.list));
        }
        parts.extend(["contacts?limit=200", "suppressions?limit=200", "lists"].map(str::to_owned));
        let mut state = Vec::new();
        for part in parts {
            state.push(self.listed(&part).await);
        }
        let messages = self.server.get("/v1/messages?limit=200", &self.key).await.json();
        let messages = messages["data"].as_array().unwrap().iter().map(|one| json!([one["message_id"], one["to"]]));
        state.push(messages.collect());
        Value::Array(state)
    }
}

/// The paths of the server's own addresses in a text, without queries.
fn paths(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
    let absolute = text.split(BASE).skip(1);
    let relative = ["href=\"", "src=\"", "action=\""].into_iter().flat_map(|mark| text.split(mark).skip(1));
    let starts = absolute.chain(relative).filter(|rest| rest.starts_with('/'));
    starts
        .map(|rest| rest.chars().take_while(|c| is_part(*c)).collect::<String>())
        .filter(|path| path.len() > 2)
        .collect()
}

#[tokio::test]
async fn whoever_fetches_the_links_of_mails_and_pages_changes_nothing() {
    let site = ReaderSite::start(json!({"name": "News"}), json!({"name": "Join"}), "News").await;
    let json_post = [("content-type", "application/json")];
    let posted = site.server.request("POST", &site.form, &json_post, Some(r#"{"email": "ann@example.com"}"#)).await;
    assert_eq!(posted.status, 200);
    let asked = site.mailed().await;
    let confirmation = asked.iter().find(|path| path.starts_with("/c/")).unwrap().clone();

    let bob = json!({"email": "bob@example.com", "consent": {"marketing_email": true}, "list_ids": [site.list]});
    site.made("contacts", bob).await;
    let html = "<p><a href=\"https://shop.example/\">Shop</a> <a href=\"{{ unsubscribe_url }}\">stop</a> \
                <a href=\"{{ preferences_url }}\">choose</a> <a href=\"{{ archive_url }}\">web</a></p>";
    site.send_campaign("Sale", html).await;
    let mailed = site.mailed().await;
    let one = |kind: &str| mailed.iter().find(|path| path.starts_with(kind)).unwrap_or_else(|| panic!("no {kind}"));
    let (unsubscribe, preferences) = (one("/u/").clone(), one("/p/").clone());
    // Changes that are confirmed by a separate mail.
    for body in ["action=erase", "action=address&address=new%40example.com"] {
        assert_eq!(site.server.request("POST", &preferences, &[FORM], Some(body)).await.status, 200);
        site.server.clock.advance(Duration::from_secs(1));
    }
    let mut known: BTreeSet<String> = asked.into_iter().chain(mailed.clone()).chain(site.mailed().await).collect();
    assert_eq!(known.iter().filter(|path| path.starts_with("/c/")).count(), 3, "{known:?}");
    for kind in ["/u/", "/p/", "/t/c/", "/t/o/"] {
        assert!(known.iter().any(|path| path.starts_with(kind)), "no {kind}: {known:?}");
    }
    known.extend([site.form.clone(), format!("/a/{}", site.server.workspace), "/f/proof.js".to_owned()]);
    let before = site.state().await;

    // As a scanner does: links found on a page are fetched, too.
    let (mut waiting, mut fetched): (Vec<String>, BTreeSet<String>) = (known.into_iter().collect(), BTreeSet::new());
    while let Some(path) = waiting.pop() {
        if !fetched.insert(path.clone()) {
            continue;
        }
        assert!(fetched.len() < 100, "pages lead to ever more pages: {fetched:?}");
        for query in QUERIES {
            for method in ["HEAD", "OPTIONS", "GET"] {
                let headers =
                    [("user-agent", "LinkScanner/1.0"), ("origin", "https://scanner.example"), ("purpose", "prefetch")];
                let answer = site.server.request(method, &format!("{path}{query}"), &headers, None).await;
                assert!(answer.status < 500, "{method} {path}{query}: {}", answer.status);
                if method == "GET" {
                    waiting.extend(paths(&String::from_utf8_lossy(&answer.body)));
                }
            }
        }
        assert_eq!(site.state().await, before, "{path}");
    }
    assert!(fetched.len() >= 9, "{fetched:?}");
    assert_eq!(site.mailed().await, BTreeSet::new());
    assert_eq!(site.state().await, before);

    // A person presses the buttons.
    let mut before = before;
    for path in [&confirmation, &unsubscribe] {
        let pressed = site.server.request("POST", path, &[FORM], Some("confirm=yes")).await;
        assert_eq!(pressed.status, 200, "{path}");
        let now = site.state().await;
        assert_ne!(now, before, "{path}");
        before = now;
    }
}
