//! The console in other languages: the choice of language for a browser, and room for longer words.

use std::fs;
use std::path::Path;

use messaging_core::scope::Role;
use messaging_http::{Console, ServerOptions};
use serde_json::json;

use super::filled;
use super::page::Page;
use super::screens;
use crate::harness::any_port;

/// Available languages with long words.
const LONG: [&str; 3] = ["de", "pt", "ru"];

/// Widths of a window in CSS pixels.
const WIDTHS: [u32; 2] = [360, 1440];

/// Script that finds elements wider than their place, and a page that scrolls sideways. Tables scroll within their own
/// frame.
const TOO_WIDE: &str = r#"
    const faults = [];
    const { scrollWidth } = document.documentElement;
    if (scrollWidth > innerWidth) faults.push(`the page is ${scrollWidth} pixels wide`);
    for (const element of document.querySelectorAll("button, .button, nav a, label, legend, summary, th, .badge, h1, h2, h3")) {
        const isSeen = !element.closest(".sr") && element.checkVisibility() && getComputedStyle(element).display !== "inline";
        if (isSeen && element.scrollWidth > element.clientWidth + 1) {
            faults.push(`${element.scrollWidth} > ${element.clientWidth}: ${element.outerHTML.slice(0, 120)}`);
        }
    }
    return faults;"#;

/// The language codes in the account's control.
const OFFERED: &str = "return [...document.querySelectorAll('.language option')].map(({ value }) => value)";

async fn keep(page: &Page, language: &str) {
    page.browser.run("localStorage.setItem('messaging.language', arguments[0])", &[json!(language)]).await;
}

async fn spoken(page: &Page) -> String {
    let spoken = page.browser.run("return document.documentElement.lang", &[]).await;
    spoken.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn words_of_other_languages_fit() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    page.load("#/account").await;
    let offered = page.browser.run(OFFERED, &[]).await;
    let mut faults = Vec::new();
    for language in LONG.iter().filter(|code| offered.as_array().unwrap().contains(&json!(code))) {
        keep(&page, language).await;
        for width in WIDTHS {
            page.narrow(width, 900).await;
            page.load("#/").await;
            assert_eq!(spoken(&page).await, *language);
            for route in screens::routes(&ids) {
                server.clock.advance(std::time::Duration::from_secs(10));
                page.leave_for(&route).await;
                let found = page.browser.run(TOO_WIDE, &[]).await;
                let found = found.as_array().unwrap().iter();
                faults.extend(found.map(|fault| format!("{language}, {width}, {route}: {fault}")));
            }
        }
    }
    faults.extend(page.faults().await);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn a_language_is_chosen_in_the_account_and_kept() {
    let server = filled::server().await;
    let Some(page) = Page::start(&server).await else { return };
    page.sign_in(&filled::newcomer(&server).await).await;
    assert_eq!(spoken(&page).await, "en");
    page.load("#/account").await;
    let choose = "const choice = document.querySelector('.language select');
        choice.value = 'de';
        choice.dispatchEvent(new Event('change', { bubbles: true }))";
    page.browser.run(choose, &[]).await;
    page.until_there(
        "document.documentElement.lang === 'de' && document.querySelector('main h1')?.textContent === 'Konto'",
    )
    .await;
    page.show("#/contacts", "Kontakte").await;
    // Another document begins in that language, and requests one file of it before the first screen is drawn.
    page.load("#/").await;
    let files = "return performance.getEntriesByType('resource').map(({ name }) => name.split('/').pop()).filter((name) => name.endsWith('.json'))";
    assert_eq!(page.browser.run(files, &[]).await, json!(["de-first.json"]));
    page.until_it_says("Nachricht senden").await;
    assert_eq!(page.faults().await, [""; 0]);
}

#[tokio::test]
async fn what_is_no_language_leaves_english() {
    let folder = tempfile::tempdir().unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("console"), folder.path());
    let options =
        ServerOptions { console: Console::Directory(folder.path().to_owned()), ..ServerOptions::new(any_port()) };
    let server = filled::server_with(options).await;
    let Some(page) = Page::start(&server).await else { return };
    page.sign_in(&filled::newcomer(&server).await).await;
    keep(&page, "tlh").await;
    page.load("#/").await;
    assert_eq!(spoken(&page).await, "en");
    keep(&page, "de").await;
    for broken in ["", "[1, 2]", "{\"Home\": 1}", "{\"Home\": \"Start\""] {
        fs::write(folder.path().join("languages/de-first.json"), broken).unwrap();
        page.load("#/").await;
        page.show("#/contacts", "Contacts").await;
        assert_eq!(spoken(&page).await, "en", "{broken}");
    }
    // One file lacks most texts, and the other is missing: existing translations are shown, the rest stays English.
    fs::write(folder.path().join("languages/de-first.json"), "{\"Home\": \"Start\"}").unwrap();
    fs::write(folder.path().join("languages/de.json"), "no JSON").unwrap();
    page.load("#/").await;
    page.settle(Some("Start")).await;
    page.show("#/contacts", "Contacts").await;
    assert_eq!(spoken(&page).await, "de");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
