//! Journeys of a person who has no mouse: Tab, Enter and the keys of a text.

use messaging_core::scope::{Role, Scope};
use serde_json::{Value, json};

use super::filled::{self, Filling};
use super::page::Page;
use super::people::{PASSWORD, Person};
use super::webdriver::keys;

#[tokio::test]
async fn signing_in_sending_and_reading_why_needs_no_mouse() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ann = Person::join(&server, "ann@example.com", Role::Owner).await;
    page.load("#/").await;
    page.tab_to("textbox", "Email").await;
    page.browser.type_keys(&ann.email).await;
    page.tab_to("textbox", "Password").await;
    page.browser.type_keys(PASSWORD).await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.settle(Some("Home")).await;

    page.tab_to("link", "Send").await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.settle(Some("Send")).await;
    for (label, text) in [("To", "bounce@simulator.invalid"), ("Subject", "Order 17"), ("Text", "Thanks")] {
        page.tab_to("textbox", label).await;
        page.browser.type_keys(text).await;
    }
    page.tab_to("button", "Send").await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.settle(None).await;
    server.app.run_until_idle().await.unwrap();

    page.load("#/messages").await;
    page.tab_to("link", "bounce@simulator.invalid").await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.settle(None).await;
    let key = server.key(&[Scope::All]).await;
    let listed = server.get("/v1/messages", &key).await.json();
    assert_eq!((&listed["data"][0]["status"], listed["data"].as_array().unwrap().len()), (&json!("bounced"), 1));
    let why = listed["data"][0]["explanation"]["text"].as_str().unwrap();
    let text = page.text().await;
    assert!(text.contains(why), "{why:?} is not in {text}");
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn a_campaign_is_paused_without_a_mouse() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Editor).await).await;
    page.tab_to("link", "Campaigns").await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.settle(Some("Campaigns")).await;
    page.tab_to("link", "Which subject").await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.settle(None).await;
    page.tab_to("button", "Pause").await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.until_it_says("paused").await;
    let campaign = format!("campaigns/{}", ids["running_campaign"]);
    let campaign = Filling::of(&server).await.call("GET", &campaign, &Value::Null).await;
    assert_eq!((&campaign["status"], &campaign["pause_reason"]), (&json!("paused"), &json!("user")));
}

#[tokio::test]
async fn single_keys_and_the_palette_lead_on_but_not_out_of_a_text() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    let dialogs = "[...document.querySelectorAll('dialog[open] h2')].map((heading) => heading.textContent)";
    let press = async |key: char| page.browser.type_keys(&key.to_string()).await;
    // The effect of a key is drawn a moment later.
    let until_open = async |headings: &str| page.until(&format!("{dialogs}.join() === {}", json!(headings))).await;
    press('?').await;
    until_open("Keyboard").await;
    press(keys::ESCAPE).await;
    until_open("").await;
    press('.').await;
    page.until_it_says("analytics").await;
    until_open("Show as").await;
    press(keys::ESCAPE).await;
    until_open("").await;

    page.browser.chord(keys::CONTROL, 'k').await;
    page.until_it_says("Send a message").await;
    page.browser.type_keys("new list").await;
    press(keys::ESCAPE).await;
    page.until("!document.querySelector('dialog[open]')").await;
    page.browser.chord(keys::CONTROL, 'k').await;
    page.until_it_says("Send a message").await;
    page.browser.type_keys("suppr").await;
    press(keys::ENTER).await;
    page.settle(Some("Suppressions")).await;

    // In a text they are letters.
    page.load("#/send").await;
    page.focus("textbox", "Subject").await;
    page.browser.type_keys("Really? Yes.").await;
    page.settle(None).await;
    assert_eq!(page.browser.run(&format!("return {dialogs}"), &[]).await, json!([]));
    assert!(page.dom().await.contains("Really? Yes."));
    assert_eq!(page.faults().await, [""; 0]);
}
