//! A reader whose browser runs no scripts, from a form to leaving, and back: every page is complete, wide and narrow,
//! light and dark, also in languages written from right to left.

use std::time::Duration;

use messaging_core::ports::transport::Email;
use serde_json::{Value, json};

use super::audit::audit_markup;
use super::webdriver::Browser;
use crate::reader_site::{BASE, ReaderSite};

const READER: &str = "ann@example.com";

/// A word that is wider than a small screen.
const WIDE: &str = "Donnerstagabendveranstaltungsankuendigungsnewsletter";

/// Script that finds elements with `dir=auto` that begin in Hebrew and are not written from right to left, or begin in
/// Latin letters and are not written from left to right.
const DIRECTIONS: &str = r"
    const faults = [];
    for (const element of document.querySelectorAll('[dir=auto]')) {
        const first = /\p{L}/u.exec(element instanceof HTMLInputElement ? element.value : element.textContent);
        const wanted = first && /\p{Script=Hebrew}/u.test(first[0]) ? 'rtl' : 'ltr';
        const { direction } = getComputedStyle(element);
        if (direction !== wanted) faults.push(`${direction}: ${element.outerHTML.slice(0, 120)}`);
    }
    return faults;";

/// A reader at work, and the pages that were seen.
struct Reading {
    browser: Browser,
    site: ReaderSite,
    seen: Vec<(&'static str, String)>,
}

impl Reading {
    async fn open(&self, path: &str) {
        self.browser.open(&format!("http://{}{path}", self.site.server.address)).await;
    }

    /// Keeps the page that is shown, which must have this title.
    async fn see(&mut self, what: &'static str, title: &str) {
        let (markup, shown) = self.browser.document().await;
        assert_eq!(shown, title, "{what}: {markup}");
        self.seen.push((what, markup));
    }

    async fn statuses(&self) -> Value {
        let mut found = Vec::new();
        for status in ["unconfirmed", "confirmed", "left"] {
            let members = self.site.listed(&format!("lists/{}/contacts?status={status}", self.site.list)).await;
            found.extend(members.as_array().unwrap().iter().map(|one| json!([one["email"], status])));
        }
        found.into()
    }

    /// Posts the form, with a name in Hebrew.
    async fn subscribe(&self) {
        self.open(&self.site.form).await;
        self.browser.fill("input[type=email]", READER).await;
        self.browser.fill("input[name='attributes.city']", "חיפה").await;
        self.site.server.clock.advance(Duration::from_secs(2));
    }
}

/// The path of the link with this text in a mail.
fn link(mail: &Email, text: &str) -> String {
    let html = mail.html.as_deref().unwrap();
    let before = html.split(&format!(">{text}</a>")).next().unwrap();
    let address = before.rsplit("href=\"").next().unwrap().split('"').next().unwrap();
    address.strip_prefix(BASE).unwrap_or_else(|| panic!("{address}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_needs_no_scripts_from_a_form_to_leaving_and_back() {
    let Some(browser) = Browser::without_scripts().await else { return };
    browser.open("data:text/html,<title>quiet</title><script>document.title='loud'</script>").await;
    assert_eq!(browser.document().await.1, "quiet", "the browser runs scripts");
    let list = json!({"name": format!("חדשות {WIDE}"), "description": format!("כל יום שישי {WIDE}")});
    let form = json!({"name": "הרשמה לחדשות", "fields": [{"field": "attributes.city", "label": "עיר"}],
        "theme": {"color": "#facc15", "text": "ברוכים הבאים"}});
    let site = ReaderSite::start(list, form, "ארכיון").await;
    let mut reading = Reading { browser, site, seen: Vec::new() };

    // Form, mail, confirmation.
    reading.subscribe().await;
    reading.see("form", "הרשמה לחדשות").await;
    reading.browser.click("button").await;
    reading.see("mail sent", "Check your inbox").await;
    assert_eq!(reading.statuses().await, json!([[READER, "unconfirmed"]]));
    let mail = reading.site.mails().await.remove(0);
    reading.open(&link(&mail, "Confirm")).await;
    reading.see("confirmation", "Confirm your subscription").await;
    assert_eq!(reading.statuses().await, json!([[READER, "unconfirmed"]]));
    reading.browser.click("button").await;
    reading.see("confirmed", "You are subscribed").await;
    assert_eq!(reading.statuses().await, json!([[READER, "confirmed"]]));

    // Campaign, archive.
    let html = "<html lang=\"he\" dir=\"rtl\"><head><title>גיליון</title></head><body><main><h1>שלום</h1>\
                <p><a href=\"{{ unsubscribe_url }}\">stop</a> <a href=\"{{ preferences_url }}\">choose</a> \
                <a href=\"{{ archive_url }}\">web</a></p></main></body></html>";
    reading.site.send_campaign("גיליון ראשון", html).await;
    let mail = reading.site.mails().await.remove(0);
    // Its clicks are tracked; the mail that opens is the one in the archive.
    let clicked = link(&mail, "web");
    let answer = reading.site.server.request("GET", &clicked, &[], None).await;
    let archived = answer.header("location").map_or(clicked, |to| to.strip_prefix(BASE).unwrap().to_owned());
    assert!(archived.starts_with("/a/"), "{archived}");
    reading.open(&archived).await;
    reading.see("archived mail", "גיליון").await;
    let archive = format!("/a/{}", reading.site.server.workspace);
    reading.open(&archive).await;
    reading.see("archive", "ארכיון").await;

    // Preferences: language, a bad address, leaving.
    let (choose, stop) = (link(&mail, "choose"), link(&mail, "stop"));
    reading.open(&choose).await;
    reading.see("preferences", "Your preferences").await;
    reading.browser.fill("input[name=address]", "x@y").await;
    reading.browser.click("button[value=address]").await;
    reading.see("bad address", "Your preferences").await;
    reading.open(&choose).await;
    reading.browser.click("input[name=list]").await;
    reading.browser.click("button[value=save]").await;
    reading.see("left", "Your preferences").await;
    assert_eq!(reading.statuses().await, json!([[READER, "left"]]));

    // Back, by the form and its mail; then everything ends by the link of the campaign.
    reading.site.server.clock.advance(Duration::from_mins(11));
    reading.subscribe().await;
    reading.browser.click("button").await;
    assert_eq!(reading.statuses().await, json!([[READER, "left"]]));
    let again = reading.site.mails().await.remove(0);
    reading.open(&link(&again, "Confirm")).await;
    reading.browser.click("button").await;
    assert_eq!(reading.statuses().await, json!([[READER, "confirmed"]]));
    reading.open(&stop).await;
    reading.see("unsubscribe", "Unsubscribe").await;
    reading.browser.click("input[value=all]").await;
    reading.browser.click("button").await;
    reading.see("unsubscribed", "You are unsubscribed").await;
    assert_eq!(reading.statuses().await, json!([[READER, "left"]]));
    reading.open("/c/x").await;
    reading.see("unknown link", "This link does not work").await;

    let Reading { browser, site: _site, seen } = reading;
    assert_eq!(browser.strangers(), Vec::<String>::new());
    drop(browser);
    // The audit of the pages is a script itself.
    let Some(browser) = Browser::start().await else { return };
    let mut faults = Vec::new();
    for (what, markup) in seen {
        let mut found = audit_markup(&browser, &markup).await;
        let directions = browser.run(DIRECTIONS, &[]).await;
        found.extend(directions.as_array().unwrap().iter().map(ToString::to_string));
        faults.extend(found.into_iter().map(|fault| format!("{what}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
