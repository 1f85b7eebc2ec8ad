//! Five jobs as a new user does them, screen by screen and by what stands on the screens alone.
//!
//! `docs/screens/jobs.md` shows a picture of each step. With `MESSAGING_SCREENS` naming a directory, the pictures are
//! written there.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use messaging_core::scope::{Role, Scope};
use serde_json::{Value, json};

use super::filled::{self, Filling, PEOPLE};
use super::page::Page;
use super::people::Person;
use super::webdriver::keys;
use crate::harness::TestServer;

/// The page that shows the pictures.
const SHOWN: &str = include_str!("../../../../docs/screens/jobs.md");

/// Width and height of the pictures in pixels.
const SIZE: (u32, u32) = (1000, 660);

/// A job under way.
struct Job<'a> {
    server: &'a TestServer,
    page: &'a Page,
    name: &'static str,
    pictures: Vec<String>,
}

impl<'a> Job<'a> {
    /// Signs somebody new in, who sees Home.
    async fn begin(server: &'a TestServer, page: &'a Page, name: &'static str) -> Self {
        let person = Person::join(server, "you@example.com", Role::Owner).await;
        let (width, height) = SIZE;
        page.narrow(width, height).await;
        page.sign_in(&person.token(server).await).await;
        Self { server, page, name, pictures: Vec::new() }
    }

    /// Clicks what is called so.
    async fn click(&self, role: &str, name: &str) {
        // Time goes on for the server as well.
        self.page.set_clock(self.server).await;
        self.page.click(role, name).await;
    }

    /// Clicks what has no name of its own.
    async fn click_at(&self, selector: &str) {
        let scroll = "document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })";
        self.page.browser.run(scroll, &[json!(selector)]).await;
        self.page.browser.click(selector).await;
        self.page.settle(None).await;
    }

    /// Chooses what is called so in a select.
    async fn choose(&self, selector: &str, text: &str) {
        let choose = "const select = document.querySelector(arguments[0]);
            select.value = [...select.options].find((option) => option.textContent === arguments[1]).value;
            select.dispatchEvent(new Event('change', { bubbles: true }))";
        self.page.browser.run(choose, &[json!(selector), json!(text)]).await;
        self.page.settle(None).await;
    }

    /// Lets everything happen that is due.
    async fn work(&self) {
        self.page.settle(None).await;
        self.server.app.run_until_idle().await.unwrap();
    }

    /// Takes a picture of the top of the screen, or from what a selector finds on.
    async fn picture(&mut self, from: Option<&str>) {
        let scroll = "if (arguments[0]) document.querySelector(arguments[0]).scrollIntoView();
            else scrollTo(0, 0)";
        self.page.browser.run(scroll, &[json!(from)]).await;
        self.page.settle(None).await;
        let file = format!("job-{}-{}.webp", self.name, self.pictures.len() + 1);
        if let Some(folder) = std::env::var_os("MESSAGING_SCREENS") {
            // What was said about an earlier click would hide a part of the screen.
            self.page.until("!document.querySelector('.toast')").await;
            let form = json!({"format": "webp", "quality": 70});
            let taken = self.page.browser.devtools("Page.captureScreenshot", form).await;
            let bytes = STANDARD.decode(taken["data"].as_str().unwrap()).expect("base64");
            std::fs::write(Path::new(&folder).join(&file), bytes).unwrap();
        }
        self.pictures.push(file);
    }

    /// Fails if the console did something wrong, or the page of jobs shows other pictures.
    async fn end(self) {
        assert_eq!(self.page.faults().await, [""; 0]);
        let prefix = format!("job-{}-", self.name);
        let shown: Vec<_> = SHOWN.split(['(', ')']).filter(|part| part.starts_with(&prefix)).collect();
        assert_eq!(shown, self.pictures);
    }
}

#[tokio::test]
async fn the_first_mail() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let mut job = Job::begin(&server, &page, "first-mail").await;
    page.until_it_says("First steps").await;
    job.picture(None).await;
    job.click("link", "A filled form is ready").await;
    page.settle(Some("Send")).await;
    job.picture(None).await;
    job.click("button", "Send").await;
    page.settle(Some("Message")).await;
    job.work().await;
    page.until("document.querySelector('.answer.good')").await;
    job.picture(None).await;
    job.click("link", "Sandbox").await;
    job.click("link", "ann@example.com").await;
    page.until_it_says("Hello").await;
    job.picture(None).await;
    job.click("link", "Home").await;
    page.until("document.querySelectorAll('.steps .done').length === 2").await;
    job.end().await;
}

/// A file of readers as a spreadsheet saves it.
fn readers() -> String {
    let names = ["Ann", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo", "Ida", "Jan", "Kim", "Leo"]
        .into_iter()
        .enumerate();
    let rows = names.map(|(number, name)| {
        let agreed = if number % 5 == 4 { "no" } else { "yes" };
        format!("{}@{PEOPLE},{name},{agreed}\n", name.to_lowercase())
    });
    format!("email,first_name,newsletter\n{}", rows.collect::<Vec<_>>().concat())
}

#[tokio::test]
async fn a_newsletter_to_an_imported_list() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let mut job = Job::begin(&server, &page, "newsletter").await;
    job.click("link", "Lists").await;
    job.click("link", "New list").await;
    page.fill("Name", "Readers").await;
    job.click("button", "Save").await;
    page.settle(Some("Readers")).await;
    job.click("link", "Import a file onto this list").await;
    let file = server.directory.path().join("readers.csv");
    std::fs::write(&file, readers()).unwrap();
    page.browser.fill("#file", file.to_str().unwrap()).await;
    page.until_it_says("What the columns are").await;
    job.picture(Some("#columns")).await;
    job.click("button", "Import").await;
    page.until("/Reading the rows|every row is in/.test(document.body.innerText)").await;
    job.work().await;
    page.until_it_says("every row is in").await;
    job.picture(None).await;

    job.click("link", "New campaign").await;
    page.until_it_says("There is no template for").await;
    job.click("link", "Write one").await;
    job.click_at("input[value=newsletter]").await;
    job.picture(Some("#new-template")).await;
    job.click("button", "Create").await;
    page.settle(Some("Newsletter")).await;
    job.click("link", "Use in a campaign").await;
    page.settle(Some("Campaigns")).await;
    page.fill("Name", "News of October").await;
    job.click("button", "Create draft").await;
    page.settle(Some("News of October")).await;
    job.click_at("#audience .checklist input").await;
    page.until_it_says("Get it").await;
    job.picture(None).await;
    job.click("button", "Send now").await;
    page.until("document.querySelector('dialog[open] .danger')").await;
    job.click_at("dialog .danger").await;
    job.work().await;
    page.until("document.querySelector('main header .badge')?.textContent.trim().endsWith('sent')").await;
    page.until_it_says("Funnel").await;
    job.picture(None).await;
    job.end().await;
}

#[tokio::test]
async fn why_ann_did_not_get_it() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ann = format!("ann@{PEOPLE}");
    let mut filling = Filling::of(&server).await;
    let named =
        |name: &str| json!({"email": format!("{}@{PEOPLE}", name.to_lowercase()), "attributes": {"first_name": name}});
    let contacts: Vec<_> = ["Ann", "Ben", "Cleo"].map(named).into();
    filling.call("POST", "contacts/bulk", &json!({"contacts": contacts})).await;
    let bounced = json!({"channel": "email", "address": ann, "reason": "bounce"});
    filling.make("suppression", "suppressions", bounced).await;
    for name in ["ann", "ben", "cleo"] {
        filling.email("message", &format!("{name}@{PEOPLE}"), Value::Null).await;
    }
    filling.work().await;

    let mut job = Job::begin(&server, &page, "why-not").await;
    job.click("link", "Messages").await;
    page.focus("searchbox", "Search").await;
    page.browser.type_keys(&format!("{ann}{}", keys::ENTER)).await;
    page.until("location.hash.includes('?q=ann') && document.querySelectorAll('main tbody tr').length === 1").await;
    job.picture(None).await;
    job.click("link", &ann).await;
    page.settle(Some("Message")).await;
    page.until("document.querySelector('.answer')?.textContent.includes('suppress')").await;
    job.picture(None).await;
    // The contact is named in what is known about the message.
    job.click("link", &ann).await;
    page.settle(Some(&ann)).await;
    page.until_it_says("Would not be sent").await;
    job.picture(Some("#suppressions")).await;
    job.end().await;
}

#[tokio::test]
async fn an_automation_for_forgotten_carts() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let mut job = Job::begin(&server, &page, "cart").await;
    job.click("link", "Automations").await;
    job.picture(None).await;
    job.click("button", "Begin with Forgotten cart").await;
    page.settle(Some("Forgotten cart")).await;
    job.click("button", "Edit Start").await;
    let unfold = "[...document.querySelectorAll('#step-start summary')]
        .find(({ textContent }) => textContent === 'How your program sends it').click()";
    page.browser.run(unfold, &[]).await;
    page.until_it_says("cart_id").await;
    job.picture(Some("#step-start")).await;

    job.click_at("#step-remind > .card button[aria-expanded]").await;
    job.click("link", "Create one").await;
    job.click_at("input[value=cart]").await;
    job.click("button", "Create").await;
    page.until_it_says("Use in a campaign").await;
    job.click("link", "‹ Automation").await;
    for step in ["last", "remind"] {
        job.click_at(&format!("#step-{step} > .card button[aria-expanded]")).await;
        job.choose(&format!("#step-{step} select[name='config.template_id']"), "Forgotten cart").await;
    }
    page.until(
        "[...document.querySelectorAll('main header button')]
            .some(({ textContent }) => textContent === 'Save and activate')",
    )
    .await;
    job.picture(Some("#step-remind")).await;
    job.click("link", "Try out").await;
    job.click("button", "Simulate").await;
    page.until("document.querySelector('[aria-labelledby=result] .notice.good')").await;
    job.picture(None).await;
    job.click("button", "Save and activate").await;
    page.until("document.querySelector('dialog[open] .danger')").await;
    job.click_at("dialog .danger").await;
    page.until("document.querySelector('main header .badge')?.textContent.trim().endsWith('active')").await;
    job.click("link", "Steps").await;
    job.picture(None).await;
    job.end().await;
}

#[tokio::test]
async fn a_key_is_rotated() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let key = server.key_with(&[Scope::MessagesSend], |key| "shop".clone_into(&mut key.name)).await;
    let message = json!({"channel": "email", "to": format!("ann@{PEOPLE}"), "subject": "Order 17", "text": "Thanks"});
    assert_eq!(server.post("/v1/messages", &key, &message.to_string()).await.code(), "ok");
    let mut job = Job::begin(&server, &page, "key").await;
    job.click("link", "Keys").await;
    job.picture(None).await;
    job.click("button", "Rotate shop").await;
    job.picture(None).await;
    job.click("button", "Rotate").await;
    page.until_it_says("Copy the key shop now").await;
    job.picture(None).await;
    job.click("button", "I have copied it").await;
    page.until_it_says("replaced").await;
    job.picture(None).await;
    job.end().await;
}
