//! Saved views of a list: a browser keeps them for one person and one workspace, whatever stands in its storage.

use messaging_core::changes::{Expect, Write};
use messaging_core::domain::security::account::Member;
use messaging_core::ids::UserId;
use messaging_core::scope::Role;
use serde_json::{Value, json};

use super::audit::{audit, audit_narrow_and_wide};
use super::filled;
use super::page::Page;
use super::people::Person;
use crate::harness::TestServer;

/// A list with a filter.
const BOUNCED: &str = "#/messages?status=bounced";

/// The names of the views above the list, and the one that is shown.
const VIEWS: &str = "return [[...document.querySelectorAll('.views a')].map((link) => link.textContent),
    document.querySelector('.views [aria-current]')?.textContent ?? null]";

/// In JavaScript: the keys in the browser's storage under which views stand.
const KEYS: &str = "Object.keys(localStorage).filter((key) => key.startsWith('messaging.views/'))";

/// Loads a route once the person may ask for more again.
async fn load(server: &TestServer, page: &Page, route: &str) {
    server.clock.advance(std::time::Duration::from_secs(10));
    page.load(route).await;
}

/// Saves the filters that are set under a name.
async fn save(page: &Page, name: &str) {
    page.press("button", "Save view").await;
    page.fill("Name", name).await;
    page.press("button", "Save").await;
    let shown = format!("document.querySelector('.views [aria-current]')?.textContent === {}", json!(name));
    page.until(&shown).await;
}

async fn views(page: &Page) -> Value {
    page.browser.run(VIEWS, &[]).await
}

async fn until_focused(page: &Page, text: &str) {
    page.until(&format!("document.activeElement.textContent === {}", json!(text))).await;
}

/// Tries to save under a name and is refused with these words; the dialog is closed then.
async fn expect_refused(page: &Page, name: &str, words: &str) {
    page.press("button", "Save view").await;
    page.fill("Name", name).await;
    page.press("button", "Save").await;
    page.until(&format!("document.querySelector('dialog [role=alert]')?.textContent === {}", json!(words))).await;
    page.press("button", "Cancel").await;
    page.until("!document.querySelector('dialog[open]')").await;
}

#[tokio::test]
async fn a_view_is_saved_found_again_renamed_and_deleted() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    load(&server, &page, "#/messages").await;
    assert!(page.browser.run("return !document.querySelector('.views, .save-view')", &[]).await == true);
    load(&server, &page, BOUNCED).await;
    page.press("button", "Save view").await;
    assert_eq!(audit_narrow_and_wide(&page).await, [""; 0]);
    page.press("button", "Cancel").await;
    page.until("!document.querySelector('dialog[open]')").await;
    save(&page, "Bounces").await;
    until_focused(&page, "Bounces").await;
    assert_eq!(audit(&page, true).await, [""; 0]);
    // Another list has views of its own, whose rarer filters are seen once they are opened.
    load(&server, &page, "#/contacts?updated_since=2026-01-31&tag=vip").await;
    assert_eq!(views(&page).await, json!([[], null]));
    save(&page, "Changed").await;

    load(&server, &page, "#/contacts").await;
    page.press("link", "Changed").await;
    page.until("location.hash === '#/contacts?tag=vip&updated_since=2026-01-31'").await;
    assert!(page.has("button", "Fewer filters").await, "{}", page.text().await);
    load(&server, &page, "#/messages?to=ann&cursor=x&status=").await;
    page.press("link", "Bounces").await;
    page.until(&format!("location.hash === {}", json!(BOUNCED))).await;
    page.until_it_says("bounce@simulator.invalid").await;

    page.press("button", "Rename Bounces").await;
    page.fill("Name", "  Returned mail ").await;
    page.press("button", "Save").await;
    until_focused(&page, "Returned mail").await;
    assert_eq!(views(&page).await, json!([["Returned mail"], "Returned mail"]));
    page.press("button", "Delete Returned mail").await;
    page.until_it_says("Delete this view?").await;
    page.press("button", "Delete").await;
    until_focused(&page, "Save view").await;
    load(&server, &page, BOUNCED).await;
    assert_eq!(views(&page).await, json!([[], null]));
    assert_eq!(page.browser.run(&format!("return {KEYS}.length"), &[]).await, 1, "those of contacts");
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn views_are_used_by_pointer_on_wide_and_narrow_pages() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Editor).await).await;
    for width in [360, 1440] {
        page.narrow(width, 900).await;
        load(&server, &page, BOUNCED).await;
        page.browser.click(".save-view").await;
        page.settle(None).await;
        page.browser.fill("dialog input", &"Bounced ".repeat(7)).await;
        page.browser.click("dialog [type=submit]").await;
        page.until("document.querySelector('.views [aria-current]') && !document.querySelector('dialog')").await;
        let wide = "return document.documentElement.scrollWidth > innerWidth";
        assert_eq!(page.browser.run(wide, &[]).await, false, "{width}");
        load(&server, &page, "#/messages").await;
        page.browser.click(".views a").await;
        page.until(&format!("location.hash === {}", json!(BOUNCED))).await;
        page.settle(None).await;
        page.browser.click(".views button:last-child").await;
        page.settle(None).await;
        page.browser.click("dialog .danger").await;
        page.until("!document.querySelector('.views, dialog')").await;
    }
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn nobody_else_sees_a_view_and_signing_out_leaves_it() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let [ann, bob] = ["ann@example.com", "bob@example.com"];
    let ann = Person::join(&server, ann, Role::Owner).await.token(&server).await;
    let bob = Person::join(&server, bob, Role::Owner).await.token(&server).await;
    let id: UserId = server.get("/v1/auth/me", &ann).await.json()["user"]["id"].as_str().unwrap().parse().unwrap();
    let other = server.other_workspace().await;
    server.commit([Write::put(Member::active(other, id, Role::Owner, server.app.now()), Expect::Absent)]).await;

    page.sign_in(&ann).await;
    load(&server, &page, BOUNCED).await;
    save(&page, "Ann's").await;
    // The same person in another workspace.
    let choose = "const choice = document.querySelector('.workspace select');
        choice.value = [...choice.options].find(({ selected }) => !selected).value;
        choice.dispatchEvent(new Event('change', { bubbles: true }))";
    page.browser.run(choose, &[]).await;
    page.settle(Some("Messages")).await;
    page.until("document.querySelector('.save-view') && !document.querySelector('.views')").await;
    page.browser.run(choose, &[]).await;
    page.until("document.querySelector('.views')").await;
    page.sign_out().await;

    page.sign_in(&bob).await;
    load(&server, &page, BOUNCED).await;
    assert!(page.has("button", "Save view").await);
    assert_eq!(views(&page).await, json!([[], null]));
    assert!(!page.dom().await.contains("Ann's"));
    save(&page, "Bob's").await;
    page.sign_out().await;

    let ann = Person { email: "ann@example.com".to_owned() }.token(&server).await;
    page.sign_in(&ann).await;
    load(&server, &page, BOUNCED).await;
    assert_eq!(views(&page).await, json!([["Ann's"], "Ann's"]));
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_saved_is_refused_in_clear_words() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    load(&server, &page, BOUNCED).await;
    let full = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }";
    page.browser.run(full, &[]).await;
    let words = "The view cannot be kept: its filters are too long, or the storage of this browser is full.";
    expect_refused(&page, "No room", words).await;
    // Another document has the function of the browser.
    load(&server, &page, BOUNCED).await;
    assert_eq!(views(&page).await, json!([[], null]));
    save(&page, &"n".repeat(60)).await;
    load(&server, &page, "#/messages?status=failed").await;
    expect_refused(&page, "   ", "Type a name.").await;
    // The control takes 60 characters, which are the name that is there.
    expect_refused(&page, &"n".repeat(61), "Another view has this name.").await;
    let fill = format!(
        "const [key] = {KEYS};
        const views = Array.from({{ length: 50 }}, (_, at) => ({{ name: `View ${{at}}`, filters: {{ to: `${{at}}@example.com` }} }}));
        localStorage.setItem(key, JSON.stringify(views))"
    );
    page.browser.run(&fill, &[]).await;
    load(&server, &page, "#/messages?status=failed").await;
    expect_refused(&page, "One more", "A list has at most 50 views. Delete one first.").await;
    let kept = page.browser.run(&format!("return JSON.parse(localStorage.getItem({KEYS}[0])).length"), &[]).await;
    assert_eq!(kept, 50);
    assert_eq!(views(&page).await[0].as_array().unwrap().len(), 50);
    // One of them makes room when it goes.
    page.press("link", "View 49").await;
    page.press("button", "Delete View 49").await;
    page.press("button", "Delete").await;
    page.until("document.querySelectorAll('.views a').length === 49").await;
    save(&page, "One more").await;
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn damaged_storage_is_ignored() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    load(&server, &page, BOUNCED).await;
    save(&page, "Bounces").await;
    for damaged in
        ["", "{", "null", "{\"name\":\"x\"}", "[null,7,{\"name\":\"x\"},{\"name\":\"y\",\"filters\":{\"to\":7}}]"]
    {
        let set = format!("localStorage.setItem({KEYS}[0], arguments[0])");
        page.browser.run(&set, &[json!(damaged)]).await;
        load(&server, &page, BOUNCED).await;
        assert_eq!(views(&page).await, json!([[], null]), "{damaged}");
        assert_eq!((page.alert().await, page.faults().await), (String::new(), Vec::new()), "{damaged}");
    }
    save(&page, "Anew").await;
    load(&server, &page, "#/messages").await;
    assert_eq!(views(&page).await, json!([["Anew"], null]));
}
