//! Many rows at once: choosing them by the keyboard, actions on them and refusals of the server; filters that are
//! links; lists as files; campaigns by days.

use messaging_core::scope::Role;
use serde_json::{Value, json};

use super::audit::audit;
use super::filled::{self, Filling, PEOPLE};
use super::page::Page;
use super::webdriver::keys;

/// Gives the focus to a check box and presses Space.
async fn choose(page: &Page, name: &str) {
    page.focus("checkbox", name).await;
    page.browser.type_keys(" ").await;
}

/// Number of contacts with a tag.
async fn tagged(filling: &Filling<'_>, tag: &str) -> usize {
    let page = filling.call("GET", &format!("contacts?limit=200&tag={tag}"), &Value::Null).await;
    page["data"].as_array().unwrap().len()
}

#[tokio::test]
async fn chosen_contacts_are_tagged_and_erased_without_a_mouse() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    filled::fill(&server).await;
    let filling = Filling::of(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.load("#/contacts?tag=vip").await;
    for name in ["bob", "carol"] {
        choose(&page, &format!("Choose {name}@{PEOPLE}")).await;
    }
    page.until_it_says("2 contacts chosen").await;
    page.settle(None).await;
    assert_eq!(audit(&page, true).await, [""; 0]);

    page.press("button", "Tags").await;
    page.fill("Tags", "asked, known").await;
    page.press("button", "Change the tags of 2 contacts").await;
    page.until_it_says("Tags: 2 contacts done").await;
    assert_eq!((tagged(&filling, "asked").await, tagged(&filling, "known").await), (2, 2));
    // Those that they had are kept, and the list shows the new ones.
    assert_eq!(tagged(&filling, "vip").await, 7);
    page.until("[...document.querySelectorAll('main tbody tr')].filter((row) => row.textContent.includes('asked')).length === 2")
        .await;
    page.until("document.activeElement.matches('.many input')").await;

    // All of the page except one; an action that cannot be undone asks for the number.
    page.load("#/contacts?tag=asked").await;
    choose(&page, "All on this page").await;
    page.until_it_says("2 contacts chosen").await;
    page.press("button", "Erase").await;
    page.fill("Type 2 to go on", "3").await;
    page.until("document.querySelector('dialog button.danger').disabled").await;
    page.fill("Type 2 to go on", "2").await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.until_it_says("Nothing matches").await;
    assert_eq!((tagged(&filling, "asked").await, tagged(&filling, "vip").await), (0, 5));
    page.settle(None).await;
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn all_that_match_are_put_on_a_list_by_one_call() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let mut filling = Filling::of(&server).await;
    let list = filling.make("list", "lists", json!({"name": "Newsletter"})).await;
    let contacts: Vec<_> = (0..120).map(|number| json!({"email": format!("person{number}@{PEOPLE}")})).collect();
    filling.call("POST", "contacts/bulk", &json!({"contacts": contacts})).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.load("#/contacts").await;
    choose(&page, "All on this page").await;
    page.until_it_says("50 contacts chosen").await;
    page.press("button", "Choose all that match").await;
    page.until_it_says("120 contacts chosen").await;
    page.press("button", "Add to list").await;
    let writes = page.browser.run("return seen.writes", &[]).await.as_u64().unwrap();
    let pick = "const list = document.querySelector('dialog select'); list.value = arguments[0];
        list.dispatchEvent(new Event('change', { bubbles: true }))";
    page.browser.run(pick, &[json!(list)]).await;
    page.press("button", "Add 120 contacts to a list").await;
    page.until_it_says("Add to list: 120 contacts done").await;
    let found = filling.call("GET", &format!("lists/{list}"), &Value::Null).await;
    assert_eq!(found["contact_count"], 120);
    assert_eq!(page.browser.run("return seen.writes", &[]).await, writes + 1);
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn what_is_refused_is_told_with_its_reason_and_stays_chosen() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    let filling = Filling::of(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    let to = format!("bob@{PEOPLE}");
    let listed = filling.call("GET", &format!("/messages?to={to}"), &Value::Null).await;
    let rows = listed["data"].as_array().unwrap();
    let waiting = rows.iter().filter(|row| row["status"] == "queued" || row["status"] == "deferred").count();
    let others = rows.len() - waiting;
    assert!(waiting > 0 && others > 0, "{listed}");
    page.load(&format!("#/messages?to={to}")).await;
    choose(&page, "All on this page").await;
    page.press("button", "Cancel sending").await;
    page.fill(&format!("Type {} to go on", rows.len()), &rows.len().to_string()).await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.until("document.activeElement.matches('.many .notice')").await;
    let told = page.text().await;
    let one = if waiting == 1 { "message" } else { "messages" };
    assert!(told.contains(&format!("Cancel sending: {waiting} {one} done, {others} failed")), "{told}");
    page.settle(None).await;
    let still = "return document.querySelectorAll('td.pick :checked').length";
    assert_eq!(page.browser.run(still, &[]).await, others);
    assert_eq!(audit(&page, true).await, [""; 0]);
    let message = filling.call("GET", &format!("/messages/{}", ids["scheduled"]), &Value::Null).await;
    assert_eq!(message["status"], "cancelled");
}

/// Keeps changes of contacts back until `release` is called.
const HOLD: &str = "
    const ask = window.fetch;
    window.held = [];
    window.fetch = (resource, options) => (options?.method === 'PATCH'
        ? new Promise((resolve) => { held.push(() => resolve(ask(resource, options))); })
        : ask(resource, options));
    window.release = () => { for (const go of held) go(); };";

#[tokio::test]
async fn leaving_the_page_stops_it_after_the_calls_that_are_under_way() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    filled::fill(&server).await;
    let filling = Filling::of(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.load("#/contacts?tag=vip").await;
    choose(&page, "All on this page").await;
    page.until_it_says("7 contacts chosen").await;
    page.press("button", "Tags").await;
    page.fill("Tags", "asked").await;
    page.browser.run(HOLD, &[]).await;
    page.browser.type_keys(&keys::ENTER.to_string()).await;
    page.until("held.length === 4").await;
    page.until("document.activeElement.textContent === 'Stop'").await;
    page.show("#/lists", "Lists").await;
    page.browser.run("release()", &[]).await;
    page.until_it_says("Tags: 4 contacts done, 3 not begun").await;
    assert_eq!(page.browser.run("return held.length", &[]).await, 4);
    assert_eq!(tagged(&filling, "asked").await, 4);
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn filters_that_are_set_are_links_and_back_brings_them_again() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.load("#/messages?status=bounced&channel=email").await;
    assert_eq!(audit(&page, true).await, [""; 0]);
    page.press("link", "Take away Status: bounced").await;
    page.until("location.hash === '#/messages?channel=email'").await;
    page.until("document.activeElement.name === 'status'").await;
    page.browser.run("history.back()", &[]).await;
    page.until("document.querySelector('[name=status]').value === 'bounced'").await;
    page.press("link", "Clear filters").await;
    page.until("location.hash === '#/messages' && !document.querySelector('.chips')").await;
    // A change is an entry of the history, too.
    let change = "const status = document.querySelector('[name=status]'); status.value = 'cancelled';
        status.dispatchEvent(new Event('change', { bubbles: true }))";
    page.browser.run(change, &[]).await;
    page.until("document.querySelector('.chips')?.textContent.includes('cancelled')").await;
    page.settle(None).await;
    page.browser.run("history.back()", &[]).await;
    page.until("location.hash === '#/messages' && !document.querySelector('.chips')").await;
    assert_eq!(page.faults().await, [""; 0]);
}

/// Keeps the texts of files that are offered, and offers none.
const KEEP_FILES: &str = "
    window.files = [];
    const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => { blob.text().then((text) => files.push(text)); return make.call(URL, blob); };
    const click = HTMLAnchorElement.prototype.click;
    HTMLAnchorElement.prototype.click = function () { if (!this.download) click.call(this); };";

#[tokio::test]
async fn a_list_is_a_file_as_it_is_filtered() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    filled::fill(&server).await;
    let filling = Filling::of(&server).await;
    let contacts: Vec<_> = (0..250)
        .map(|number| json!({"email": format!("person{number}@{PEOPLE}"), "tags": ["many"], "attributes": {"note": "=1+1"}}))
        .collect();
    filling.call("POST", "contacts/bulk", &json!({"contacts": contacts})).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.load("#/contacts?tag=many").await;
    page.browser.run(KEEP_FILES, &[]).await;
    page.press("button", "As CSV").await;
    page.until("files.length === 1").await;
    let file = page.browser.run("return files[0]", &[]).await;
    let lines: Vec<_> = file.as_str().unwrap().trim_end().split("\r\n").collect();
    assert_eq!(lines.len(), 251, "{}", lines[0]);
    assert!(lines[0].contains(",email,") && lines[0].contains(",attributes.note,"), "{}", lines[0]);
    assert!(lines[1..].iter().all(|line| line.contains(",'=1+1,") && line.contains(",many,")), "{}", lines[1]);
    // Of chosen rows only these.
    choose(&page, &format!("Choose person249@{PEOPLE}")).await;
    page.until_it_says("1 contact chosen").await;
    page.press("button", "As CSV").await;
    page.until("files.length === 2").await;
    let file = page.browser.run("return files[1]", &[]).await;
    assert_eq!(file.as_str().unwrap().matches(PEOPLE).count(), 1, "{file}");
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn a_viewer_chooses_rows_for_a_file_and_nothing_else() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Viewer).await).await;
    page.load("#/contacts").await;
    choose(&page, "All on this page").await;
    page.until("document.querySelector('.many .actions')").await;
    let buttons = "return [...document.querySelectorAll('.many .actions button')].map((button) => button.textContent)";
    assert_eq!(page.browser.run(buttons, &[]).await, json!(["As CSV"]));
}

#[tokio::test]
async fn campaigns_stand_in_a_calendar_whose_empty_months_can_be_passed() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.load("#/campaigns").await;
    page.press("link", "Calendar").await;
    page.until("document.querySelector('.calendar')").await;
    let text = page.text().await;
    // A campaign scheduled for tomorrow may be in the next month, whose first days may or may not be shown at the end
    // of this one.
    assert!(text.contains("Spring sale") && !text.contains("Summer"), "{text}");
    let today = "document.querySelector('.calendar [aria-current=date]').textContent.includes('Spring sale')";
    page.until(today).await;
    assert_eq!(audit(&page, true).await, [""; 0]);
    let month = "return document.getElementById('month').textContent";
    let first = page.browser.run(month, &[]).await;
    for name in ["Earlier month", "Earlier month", "Later month", "Later month"] {
        page.press("link", name).await;
    }
    assert_eq!(page.browser.run(month, &[]).await, first);
    page.press("link", "Earlier month").await;
    page.press("link", "Earlier month").await;
    page.until_it_says("No campaign in this month.").await;
    assert_eq!(audit(&page, true).await, [""; 0]);
    page.browser.run("history.back()", &[]).await;
    page.press("link", "Today").await;
    page.press("link", "Spring sale").await;
    page.settle(Some("Spring sale")).await;
}
