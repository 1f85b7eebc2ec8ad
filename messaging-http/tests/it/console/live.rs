//! Live events: over connections that break, in several windows, and no requests while the window is hidden.

use messaging_core::scope::Role;
use serde_json::{Value, json};

use super::filled::{self, Filling, PEOPLE};
use super::page::Page;

#[tokio::test]
async fn events_appear_by_themselves_also_after_the_network_was_away() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.load("#/live").await;
    let mut filling = Filling::of(&server).await;
    page.set_clock(&server).await;
    filling.email("one", &format!("one@{PEOPLE}"), Value::Null).await;
    filling.work().await;
    page.until_it_says(&format!("one@{PEOPLE}")).await;

    let network =
        |offline: bool| json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
    page.browser.devtools("Network.emulateNetworkConditions", network(true)).await;
    page.set_clock(&server).await;
    filling.email("two", &format!("two@{PEOPLE}"), Value::Null).await;
    filling.work().await;
    page.browser.devtools("Network.emulateNetworkConditions", network(false)).await;
    page.set_clock(&server).await;
    filling.email("three", &format!("three@{PEOPLE}"), Value::Null).await;
    filling.work().await;
    // Nothing is missed, and nothing comes twice.
    page.until_it_says(&format!("three@{PEOPLE}")).await;
    page.until_it_says(&format!("two@{PEOPLE}")).await;
    let rows = "return [...document.querySelectorAll('main tbody tr, main li')].map((row) => row.textContent)";
    let rows = page.browser.run(rows, &[]).await;
    let delivered = |name: &str| {
        let is_it = |row: &&Value| row.as_str().is_some_and(|row| row.contains(name) && row.contains("delivered"));
        rows.as_array().unwrap().iter().filter(is_it).count()
    };
    assert_eq!(["one@", "two@", "three@"].map(delivered), [1, 1, 1], "{rows}");
}

#[tokio::test]
async fn of_several_windows_one_asks_and_all_hear() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.load("#/live").await;
    let first = page.browser.window().await;
    let second = page.open_window().await;
    page.load("#/live").await;
    let mut filling = Filling::of(&server).await;
    page.set_clock(&server).await;
    filling.email("one", &format!("one@{PEOPLE}"), Value::Null).await;
    filling.work().await;
    let mut polls = Vec::new();
    for window in [&second, &first] {
        page.browser.go_to(window).await;
        page.until_it_says(&format!("one@{PEOPLE}")).await;
        polls.push(page.browser.run("return seen.polls", &[]).await);
    }
    assert_eq!(polls[0], 0, "the second window leaves the asking to the first: {polls:?}");
    // A hidden window leaves polling to a visible one.
    page.browser.run(SEEN, &[json!("hidden")]).await;
    page.browser.go_to(&second).await;
    page.set_clock(&server).await;
    filling.email("two", &format!("two@{PEOPLE}"), Value::Null).await;
    filling.work().await;
    page.until_it_says(&format!("two@{PEOPLE}")).await;
    // A closed one does too, once the other polls again.
    page.browser.go_to(&first).await;
    page.browser.run(SEEN, &[json!("visible")]).await;
    page.browser.go_to(&second).await;
    page.browser.run(SEEN, &[json!("hidden")]).await;
    page.browser.close_window().await;
    page.browser.go_to(&first).await;
    page.set_clock(&server).await;
    filling.email("three", &format!("three@{PEOPLE}"), Value::Null).await;
    filling.work().await;
    page.until_it_says(&format!("three@{PEOPLE}")).await;
}

/// Shows or hides the document.
const SEEN: &str =
    "Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => arguments[0] });
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => arguments[0] === 'hidden' });
    document.dispatchEvent(new Event('visibilitychange'))";

/// Number of requests that the document has made.
const REQUESTS: &str = "return seen.asked";

#[tokio::test]
async fn a_screen_that_is_open_asks_seldom_and_one_that_is_hidden_never() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    // Counts the requests that the screen makes by itself in a span of time.
    let count = async |span: u32| {
        let before = page.browser.run(REQUESTS, &[]).await;
        page.browser.run("return new Promise((resolve) => setTimeout(resolve, arguments[0]))", &[json!(span)]).await;
        page.browser.run(REQUESTS, &[]).await.as_u64().unwrap() - before.as_u64().unwrap()
    };
    let mut wrong = Vec::new();
    for route in ["#/", "#/live"] {
        page.load(route).await;
        let asked = count(5_000).await;
        if asked > 5 {
            wrong.push(format!("{route} asks {asked} times in five seconds"));
        }
        page.browser.run(SEEN, &[json!("hidden")]).await;
        // An open poll may end.
        let asked = count(5_000).await;
        if asked > 1 {
            wrong.push(format!("{route} asks {asked} times in five seconds while nobody sees it"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}
