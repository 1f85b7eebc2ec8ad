//! The console shows what it knows, by the time zone of the workspace, and says what it does not know.

use messaging_core::scope::Role;
use serde_json::{Value, json};

use super::filled::{self, Filling, PEOPLE};
use super::page::Page;
use super::people::Person;
use crate::harness::TestServer;

/// Text shown for a workspace whose email the sandbox captures.
const CAPTURED: &str = "The sandbox captures the email of this workspace";

/// Gives the workspace and the browser time zones whose days differ from each other and from UTC; returns that of the
/// workspace.
async fn move_apart(page: &Page, server: &TestServer) -> &'static str {
    let hour = page.browser.run("return new Date().getUTCHours()", &[]).await.as_u64().unwrap();
    let (workspace, browser) =
        if hour >= 10 { ("Pacific/Kiritimati", "America/Los_Angeles") } else { ("Etc/GMT+12", "Asia/Tokyo") };
    page.browser.devtools("Emulation.setTimezoneOverride", json!({"timezoneId": browser})).await;
    let authorization = format!("Bearer {}", filled::member(server, Role::Owner).await);
    let headers = [("authorization", &*authorization), ("content-type", "application/json")];
    let (path, body) = (format!("/v1/workspaces/{}", server.workspace), json!({"timezone": workspace}).to_string());
    assert_eq!(server.request("PATCH", &path, &headers, Some(&body)).await.code(), "ok");
    workspace
}

/// JavaScript: writes a time in a zone, and the day some days ago.
const WRITTEN: &str = "
    const [zone] = arguments;
    const written = (time, options) => new Intl.DateTimeFormat(undefined, { timeZone: zone, ...options }).format(new Date(time));
    const label = (days) => written(Date.now() - days * 86400000, { month: 'short', day: 'numeric' });";

#[tokio::test]
async fn days_of_charts_are_those_of_the_workspace() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let mut filling = Filling::of(&server).await;
    let zone = move_apart(&page, &server).await;
    filling.email("one", &format!("one@{PEOPLE}"), Value::Null).await;
    filling.work().await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    let rows = format!(
        "{WRITTEN}
        const rows = [...document.querySelectorAll('figure.chart tbody tr')].map((row) => [row.cells[0].textContent, row.cells[1].textContent]);
        const wanted = [6, 5, 4, 3, 2, 1, 0].map((days) => [label(days), days ? '0' : '1']);
        return JSON.stringify(rows) === JSON.stringify(wanted) ? null : JSON.stringify({{ rows, wanted }});"
    );
    for route in ["#/", "#/analytics?days=7"] {
        page.load(route).await;
        page.until("document.querySelector('figure.chart tbody tr')").await;
        assert_eq!(page.browser.run(&rows, &[json!(zone)]).await, Value::Null, "{route}");
    }
}

/// Lists with times in their rows.
const LISTS: &[&str] = &[
    "#/messages",
    "#/sandbox",
    "#/lists",
    "#/segments",
    "#/suppressions",
    "#/templates",
    "#/campaigns",
    "#/automations",
    "#/webhooks/{webhook}",
    "#/messages/{message}",
    "#/keys",
    "#/account",
];

/// Script that returns the number of times in lists, and the times that are not written in the zone.
fn times() -> String {
    format!(
        "{WRITTEN}
        const times = [...document.querySelectorAll('main :is(table, ol) time')];
        const forms = [{{ dateStyle: 'medium', timeStyle: 'short' }}, {{ dateStyle: 'short', timeStyle: 'medium' }}];
        const wrong = times.filter((time) => !forms.some((form) => written(time.dateTime, form) === time.textContent));
        return [times.length, wrong.map((time) => `${{time.dateTime}} as ${{time.textContent}}`).join('; ')];"
    )
}

#[tokio::test]
async fn every_list_shows_date_and_time_of_the_workspace() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    let zone = move_apart(&page, &server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    for route in LISTS {
        server.clock.advance(std::time::Duration::from_secs(10));
        let route = ids.iter().fold((*route).to_owned(), |route, (name, id)| route.replace(&format!("{{{name}}}"), id));
        page.load(&route).await;
        let found = page.browser.run(&times(), &[json!(zone)]).await;
        assert!(found[0].as_u64() > Some(0), "{route} shows no time: {}", page.text().await);
        assert_eq!(found[1], "", "{route}");
    }
    // Days that are chosen begin there too.
    let day = |days: u32| {
        format!(
            "{WRITTEN} return new Intl.DateTimeFormat('sv', {{ timeZone: zone }}).format(Date.now() - {days} * 86400000)"
        )
    };
    let today = page.browser.run(&day(0), &[json!(zone)]).await;
    let yesterday = page.browser.run(&day(1), &[json!(zone)]).await;
    for (route, is_there) in [
        (format!("#/messages?since={}", today.as_str().unwrap()), true),
        (format!("#/messages?until={}", today.as_str().unwrap()), true),
        (format!("#/messages?until={}", yesterday.as_str().unwrap()), false),
    ] {
        page.load(&route).await;
        let text = page.text().await;
        assert_eq!(text.contains("Nothing matches"), !is_there, "{route}: {text}");
    }
}

#[tokio::test]
async fn live_begins_with_what_happened_however_much_it_is() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let mut filling = Filling::of(&server).await;
    let zone = move_apart(&page, &server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    // Events are stored from the first request for them on.
    page.load("#/live").await;
    page.until_it_says("Listening").await;
    page.load("#/account").await;
    for number in 0..130 {
        filling.email("one", &format!("person{number}@{PEOPLE}"), Value::Null).await;
    }
    filling.work().await;
    page.set_clock(&server).await;
    page.load("#/live").await;
    page.until_it_says(&format!("person129@{PEOPLE}")).await;
    let shown = page.browser.run(&times(), &[json!(zone)]).await;
    assert!(shown[0].as_u64() > Some(200) && shown[1] == "", "{shown}");
    let text = page.text().await;
    assert!(!text.contains("Nothing happened") && text.contains("all since"), "{text}");
}

/// Lets every request wait for an answer that never comes, as on a broken connection.
const CUT: &str = "window.uncut = window.fetch;
    window.fetch = (_, { signal } = {}) => new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));";

#[tokio::test]
async fn a_connection_that_is_lost_is_shown_on_every_screen_until_it_is_back() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    for route in ["#/live", "#/", "#/messages/{message}", "#/workspace", "#/account"] {
        server.clock.advance(std::time::Duration::from_secs(10));
        page.load(&route.replace("{message}", &ids["message"])).await;
        assert!(!page.text().await.contains("connection to the server is lost"), "{route}");
        page.browser.run(CUT, &[]).await;
        page.until_it_says("The connection to the server is lost.").await;
        if route == "#/live" {
            page.until_it_says("Not listening").await;
        }
        page.browser.run("window.fetch = window.uncut", &[]).await;
        page.until("!document.body.innerText.includes('connection to the server is lost')").await;
        if route == "#/live" {
            page.until_it_says("Listening").await;
        }
    }
    assert_eq!(page.faults().await, [""; 0]);
}

/// Makes previews look as if they were estimated from some of the contacts.
const ESTIMATED: &str = "const ask = window.fetch;
    window.fetch = async (resource, options) => {
        const response = await ask(resource, options);
        if (!/preview/.test(String(resource.url ?? resource)) || !response.ok) return response;
        const body = { ...await response.json(), exact: false };
        return new Response(JSON.stringify(body), { status: response.status, headers: response.headers });
    };";

#[tokio::test]
async fn what_is_estimated_says_about() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    for (route, about) in [("#/segments/{segment}", "about 1 contact"), ("#/campaigns/{draft_campaign}", "about 7")] {
        let route = ids.iter().fold(route.to_owned(), |route, (name, id)| route.replace(&format!("{{{name}}}"), id));
        page.load(&route).await;
        let exact = page.text().await;
        assert!(!exact.contains("about "), "{exact}");
        page.load("#/").await;
        page.browser.run(ESTIMATED, &[]).await;
        page.browser.run("location.hash = arguments[0]", &[json!(route)]).await;
        page.until_it_says(about).await;
    }
}

#[tokio::test]
async fn what_webhooks_were_told_of_a_message_is_one_question() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    let asked = "return performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname).filter((path) => /^.v1.*webhooks/.test(path) && !/events$/.test(path))";
    page.load(&format!("#/messages/{}", ids["message"])).await;
    page.until_it_says("https://shop.example/hooks").await;
    let asked_for = page.browser.run(asked, &[]).await;
    let deliveries = format!("/v1/workspaces/{}/webhooks/deliveries", server.workspace);
    let of =
        |path: &str| asked_for.as_array().unwrap().iter().filter(|one| one.as_str().unwrap().ends_with(path)).count();
    assert_eq!((of(&deliveries), asked_for.as_array().unwrap().len()), (1, 2), "{asked_for}");
    // An error code that the console does not know.
    let mut filling = Filling::of(&server).await;
    filling.call("DELETE", &format!("webhooks/{}", ids["webhook"]), &Value::Null).await;
    let quiet = filling.email("quiet", &format!("quiet@{PEOPLE}"), Value::Null).await;
    filling.work().await;
    page.load(&format!("#/messages/{quiet}")).await;
    page.until_it_says("No webhook was told of this message.").await;
}

#[tokio::test]
async fn a_workspace_whose_email_is_captured_says_so() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Viewer).await).await;
    for route in
        ["#/", "#/messages", "#/messages/{message}", "#/campaigns", "#/campaigns/{sent_campaign}", "#/analytics"]
    {
        server.clock.advance(std::time::Duration::from_secs(10));
        let route = ids.iter().fold(route.to_owned(), |route, (name, id)| route.replace(&format!("{{{name}}}"), id));
        page.load(&route).await;
        assert!(page.text().await.contains(CAPTURED), "{route}: {}", page.text().await);
    }
    // A text message is not captured by the sandbox of email.
    page.load(&format!("#/messages/{}", ids["sms"])).await;
    assert!(!page.text().await.contains(CAPTURED));
    page.sign_in(&filled::newcomer(&server).await).await;
    assert!(!page.text().await.contains(CAPTURED), "{}", page.text().await);
}

#[tokio::test]
async fn dialogs_close_on_back_and_leave_the_screen() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.show("#/lists", "Lists").await;
    let list = format!("#/lists/{}", ids["list"]);
    page.show(&list, "Newsletter").await;
    let is_open = "document.querySelector('dialog[open]')";
    for closing in ["history.back()", "document.querySelector('dialog[open] header button').click()"] {
        page.press("button", "Show as .").await;
        page.until(is_open).await;
        page.browser.run(closing, &[]).await;
        page.until(&format!("!{is_open}")).await;
        page.until("!history.state?.dialog").await;
        assert_eq!(page.browser.run("return location.hash", &[]).await, list.as_str(), "{closing}");
    }
    // The history is unchanged: Back leads to the screen before.
    page.browser.run("history.back()", &[]).await;
    page.settle(Some("Lists")).await;
    // A dialog that leads to another screen goes there.
    page.press("button", "Go to Ctrl K").await;
    page.until(is_open).await;
    page.browser.type_keys("segments").await;
    page.browser.type_keys(&super::webdriver::keys::ENTER.to_string()).await;
    page.settle(Some("Segments")).await;
    page.until(&format!("!{is_open}")).await;
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn all_other_sessions_end_also_those_of_other_pages() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ann = Person::join(&server, "ann@example.com", Role::Owner).await;
    let others = [ann.token(&server).await, ann.token(&server).await, ann.token(&server).await];
    page.sign_in(&ann.token(&server).await).await;
    page.load("#/account").await;
    page.press("button", "End all others").await;
    page.press("button", "End them").await;
    page.until("!document.body.innerText.includes('End all others')").await;
    for token in others {
        let authorization = format!("Bearer {token}");
        let answer = server.request("GET", "/v1/auth/me", &[("authorization", &*authorization)], None).await;
        assert_eq!(answer.status, 401);
    }
    page.load("#/account").await;
    assert!(page.text().await.contains("this one"), "{}", page.text().await);
}
