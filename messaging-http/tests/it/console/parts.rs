//! Parts that open on a screen: tabs, forms, and dialogs.

use std::time::Duration;

use messaging_core::scope::Role;
use serde_json::json;

use super::audit::{audit, audit_narrow_and_wide};
use super::filled;
use super::page::Page;
use super::webdriver::keys;

/// Tabs and forms of screens; `{name}` is the id of the resource created under this name.
const PARTS: &[&str] = &[
    "#/messages?status=complained&tag=none",
    "#/messages/{message}?show=text",
    "#/messages/{message}?show=source",
    "#/messages/{message}?show=headers",
    "#/messages/{message}?show=request",
    "#/messages/{sms}",
    "#/messages/{scheduled}",
    "#/send?like={message}",
    "#/sandbox/{message}?show=links",
    "#/sandbox/{message}?show=files",
    "#/contacts?new=1",
    "#/contacts?tag=vip&email=ann%40people.example&updated_since=2026-01-31",
    "#/lists?new=1",
    "#/lists/{list}",
    "#/segments?new=1",
    "#/segments/{segment}?tab=contacts",
    "#/suppressions?new=1",
    "#/templates?new=1",
    "#/templates?new=gallery",
    "#/templates/{block_template}",
    "#/templates/{template}?tab=versions",
    "#/campaigns?new=1",
    "#/campaigns?view=calendar",
    "#/campaigns/{sent_campaign}?tab=recipients",
    "#/automations?new=1",
    "#/automations/{automation}?tab=runs",
    "#/automations/{automation}?tab=try",
    "#/analytics?tab=campaigns",
    "#/analytics?tab=events",
    "#/deliverability?days=7",
    "#/domains?new=1",
    "#/webhooks?new=1",
    "#/webhooks/{webhook}?tab=settings",
    "#/keys?new=1",
    "#/members?new=1",
    "#/fields?new=1",
    "#/workspace?new=1",
    "#/no-such-page",
    "#/messages/msg_01JB3Q8Z5N6W7X8Y9ZABCDEFGH",
];

/// Screens with a button that deletes, erases, merges, revokes or cancels.
const SCREENS_OF_ONE: &[&str] = &[
    "#/messages/{scheduled}",
    "#/contacts/{contact}",
    "#/lists/{list}",
    "#/segments/{segment}",
    "#/suppressions",
    "#/templates/{template}",
    "#/campaigns/{draft_campaign}",
    "#/campaigns/{running_campaign}",
    "#/automations/{draft_automation}",
    "#/domains/{domain}",
    "#/webhooks/{webhook}?tab=settings",
    "#/keys",
    "#/fields",
    "#/channels/sms",
];

/// The buttons of actions that cannot be undone, in the order of the document.
const FINAL: &str = "[...document.querySelectorAll('main button')].filter((button) => !button.disabled && /^(Delete|Erase|Merge|Revoke|Cancel)\\b/.test(button.textContent.trim()))";

fn filled_in(route: &str, ids: &filled::Ids) -> String {
    ids.iter().fold(route.to_owned(), |route, (name, id)| route.replace(&format!("{{{name}}}"), id))
}

#[tokio::test]
async fn every_tab_and_every_form_is_for_everybody() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    let mut found = Vec::new();
    for route in PARTS {
        server.clock.advance(Duration::from_secs(10));
        page.leave_for(&filled_in(route, &ids)).await;
        found.extend(audit(&page, true).await.into_iter().map(|fault| format!("{route}: {fault}")));
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[tokio::test]
async fn dialogs_are_for_everybody_and_give_the_focus_back() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.load("#/messages").await;
    let mut found = Vec::new();
    for (name, key) in [("Go to Ctrl K", 'k'), ("Show as .", '.'), ("Show as .", '?')] {
        page.focus("button", name).await;
        if key == 'k' {
            page.browser.chord(keys::CONTROL, key).await;
        } else {
            page.browser.type_keys(&key.to_string()).await;
        }
        page.until("document.querySelector('dialog[open]')?.contains(document.activeElement)").await;
        found.extend(audit_narrow_and_wide(&page).await.into_iter().map(|fault| format!("{key}: {fault}")));
        page.browser.type_keys(&keys::ESCAPE.to_string()).await;
        page.until("!document.querySelector('dialog[open]')").await;
        let (_, focused) = page.browser.focused().await;
        if focused != name {
            found.push(format!("{key}: the focus goes to {focused:?} instead of {name:?}"));
        }
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

#[tokio::test]
async fn what_cannot_be_undone_is_asked_about_first() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    let (mut found, mut asked) = (Vec::new(), 0);
    for route in SCREENS_OF_ONE {
        server.clock.advance(Duration::from_secs(10));
        page.load(&filled_in(route, &ids)).await;
        let names = page.browser.run(&format!("return {FINAL}.map((button) => button.textContent.trim())"), &[]).await;
        let names = names.as_array().unwrap();
        if names.is_empty() {
            found.push(format!("{route}: nothing of the kind"));
        }
        // If rows repeat a button, one is enough.
        for (number, name) in names.iter().enumerate().take(2) {
            let writes = page.browser.run("return seen.writes", &[]).await;
            let press = format!(
                "const button = {FINAL}[arguments[0]]; button.focus(); button.click(); return seen.until(() => document.querySelector('dialog[open]'), 3000)"
            );
            if page.browser.run(&press, &[json!(number)]).await != true {
                found.push(format!("{route}: {name} does not ask"));
                break;
            }
            asked += 1;
            page.settle(None).await;
            let place = format!("{route} {name}");
            found.extend(audit_narrow_and_wide(&page).await.into_iter().map(|fault| format!("{place}: {fault}")));
            page.browser.type_keys(&keys::ESCAPE.to_string()).await;
            page.until("!document.querySelector('dialog[open]')").await;
            page.settle(None).await;
            if page.browser.run("return seen.writes", &[]).await != writes {
                found.push(format!("{place}: Escape does not keep it from being done"));
            }
            let has_focus = format!("return document.activeElement === {FINAL}[arguments[0]]");
            if page.browser.run(&has_focus, &[json!(number)]).await != true {
                found.push(format!("{place}: the focus does not come back"));
            }
        }
    }
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
    assert!(asked >= SCREENS_OF_ONE.len(), "{asked}");
}
