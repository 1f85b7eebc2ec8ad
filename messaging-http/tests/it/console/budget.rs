//! Size and speed of the console: bytes are bounded; times depend on the machine and are printed, as medians of five.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use messaging_core::scope::Role;
use messaging_http::{Console, ServerOptions, console};
use serde_json::json;

use super::filled;
use super::page::Page;
use crate::harness::any_port;

/// Compressed bytes of all files below `/console` that are loaded until Home is drawn.
const FIRST_SCREEN: u64 = 60 << 10;
/// Requests for the files of the first screen. The aim is 12.
const FIRST_REQUESTS: usize = 13;
/// Compressed bytes that a further screen adds, without the files of [`APART`]. The aim is 8 KB.
const FURTHER_SCREEN: u64 = 32 << 10;
/// Bytes of all files as they are served, without comments; the program has them only compressed. The aim is 450 KB.
const ALL: usize = 904 << 10;
/// Compressed bytes of all files. The aim is 140 KB.
const ALL_COMPRESSED: usize = 330 << 10;

/// Compressed bytes of the editor of templates in blocks, with its library and the gallery. They are loaded when it is
/// opened.
const BLOCKS: usize = 150 << 10;
/// Beginnings of the paths of its files.
const OF_BLOCKS: [&str; 3] = ["blocks/", "gallery/", "vendor/prosemirror."];

/// Bytes of the two files of a language; a browser loads those of one. The aim is 160 KB; the 2,700 texts stand beside
/// the English ones, and Cyrillic letters take two bytes each.
const LANGUAGE: usize = 320 << 10;
/// Compressed bytes of the files of a language. The aim is 45 KB.
const LANGUAGE_COMPRESSED: usize = 80 << 10;
/// Folder of the languages.
const LANGUAGES: &str = "languages/";
/// Additional requests of the first screen in a language other than English.
const LANGUAGE_REQUESTS: usize = 1;

/// Files that are loaded once, by the first screen that needs them: the library for graphs, and the schemas of forms.
const APART: [&str; 2] = ["/vendor/dagre.js", "/schemas.js"];

/// The files that were loaded so far: name and compressed bytes.
const LOADED: &str = "return performance.getEntries().filter((entry) => entry.encodedBodySize !== undefined && entry.name.includes('/console/'))
    .map((entry) => [entry.name.replace(/#.*/, ''), entry.encodedBodySize])";

fn report(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

async fn loaded(page: &Page) -> Vec<(String, u64)> {
    let entries = page.browser.run(LOADED, &[]).await;
    let entries = entries.as_array().unwrap().iter();
    entries.map(|entry| (entry[0].as_str().unwrap().to_owned(), entry[1].as_u64().unwrap())).collect()
}

/// Names and bytes of files on a line.
fn listed(files: &[(String, u64)]) -> String {
    let name =
        |url: &str| url.rsplitn(3, '/').take(2).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("/");
    files.iter().map(|(url, bytes)| format!("{} {bytes}", name(url))).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_files_are_few_and_small() {
    let is_of_blocks = |path: &str| OF_BLOCKS.iter().any(|start| path.starts_with(start));
    let (languages, rest): (Vec<_>, Vec<_>) = console::files().partition(|(path, _)| path.starts_with(LANGUAGES));
    let (of_blocks, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(|(path, _)| is_of_blocks(path));
    let sum = |files: Vec<(&str, Vec<u8>)>| {
        let sizes = files.into_iter().map(|(_, bytes)| {
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(&bytes).unwrap();
            (bytes.len(), packed.finish().unwrap().len())
        });
        sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1))
    };
    let ((all, packed), (_, blocks)) = (sum(rest), sum(of_blocks));
    report(&format!("console: {blocks} bytes compressed for the editor in blocks"));
    assert!((1..=BLOCKS).contains(&blocks), "{blocks} bytes compressed for the editor in blocks");
    report(&format!("console: {all} bytes in all files, {packed} compressed"));
    assert!(all <= ALL, "{all} bytes");
    assert!(packed <= ALL_COMPRESSED, "{packed} bytes compressed");
    for code in codes(&languages) {
        let is_of_it = |(path, _): &&(&str, Vec<u8>)| path[LANGUAGES.len()..].starts_with(&code);
        let (plain, packed) = sum(languages.iter().filter(is_of_it).cloned().collect());
        report(&format!("console: {plain} bytes in {code}, {packed} compressed"));
        assert!(plain <= LANGUAGE, "{plain} bytes in {code}");
        assert!(packed <= LANGUAGE_COMPRESSED, "{packed} bytes compressed in {code}");
    }
}

/// The codes of the languages that have files.
fn codes(files: &[(&str, Vec<u8>)]) -> Vec<String> {
    let names = files.iter().map(|(path, _)| &path[LANGUAGES.len()..]);
    let found: Vec<_> = names.filter_map(|name| name.strip_suffix("-first.json")).map(str::to_owned).collect();
    assert!(!found.is_empty(), "no language has files");
    found
}

#[tokio::test]
async fn the_first_screen_is_small_in_every_language() {
    let options = ServerOptions { console: Console::BuiltIn, ..ServerOptions::new(any_port()) };
    let server = filled::server_with(options).await;
    let Some(page) = Page::start(&server).await else { return };
    filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    let languages: Vec<_> = console::files().filter(|(path, _)| path.starts_with(LANGUAGES)).collect();
    for code in codes(&languages) {
        page.browser.run("localStorage.setItem('messaging.language', arguments[0])", &[json!(code)]).await;
        server.clock.advance(std::time::Duration::from_secs(30));
        page.load("#/").await;
        assert_eq!(page.browser.run("return document.documentElement.lang", &[]).await, json!(code));
        let first = loaded(&page).await;
        let bytes: u64 = first.iter().map(|(_, bytes)| bytes).sum();
        report(&format!("console: the first screen has {bytes} bytes in {} requests in {code}", first.len()));
        let is_small = bytes <= FIRST_SCREEN && first.len() <= FIRST_REQUESTS + LANGUAGE_REQUESTS;
        assert!(is_small, "{bytes} bytes in {code}: {}", listed(&first));
    }
}

#[tokio::test]
async fn screens_cost_what_they_may() {
    // The built-in console: compressed, and cached by the browser.
    let options = ServerOptions { console: Console::BuiltIn, ..ServerOptions::new(any_port()) };
    let server = filled::server_with(options).await;
    let Some(page) = Page::start(&server).await else { return };
    let ids = filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    let first = loaded(&page).await;
    let bytes: u64 = first.iter().map(|(_, bytes)| bytes).sum();
    report(&format!("console: the first screen has {bytes} bytes in {} requests", first.len()));
    let mut wrong = Vec::new();
    if bytes > FIRST_SCREEN || first.len() > FIRST_REQUESTS {
        wrong.push(format!("{bytes} bytes in {} requests for the first screen: {}", first.len(), listed(&first)));
    }

    let mut known = first;
    let mut routes: Vec<_> = super::screens::routes(&ids).collect();
    routes.retain(|route| route != "#/");
    for route in routes {
        server.clock.advance(std::time::Duration::from_secs(10));
        page.leave_for(&route).await;
        let now = loaded(&page).await;
        let is_new = |(name, _): &&(String, u64)| known.iter().all(|(other, _)| other != name);
        let added: Vec<_> = now.iter().filter(is_new).cloned().collect();
        let counted = added.iter().filter(|(name, _)| APART.iter().all(|apart| !name.ends_with(apart)));
        let bytes: u64 = counted.map(|(_, bytes)| bytes).sum();
        if bytes > FURTHER_SCREEN {
            wrong.push(format!("{route} adds {bytes} bytes: {}", listed(&added)));
        }
        known = now;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn times_are_printed() {
    let options = ServerOptions { console: Console::BuiltIn, ..ServerOptions::new(any_port()) };
    let server = filled::server_with(options).await;
    let Some(page) = Page::start(&server).await else { return };
    filled::fill(&server).await;
    page.sign_in(&filled::member(&server, Role::Owner).await).await;
    let (mut paints, mut changes, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        server.clock.advance(std::time::Duration::from_secs(30));
        page.load("#/").await;
        let paint = "const [page] = performance.getEntriesByType('navigation');
            return performance.getEntriesByName('first-contentful-paint')[0].startTime - page.responseStart";
        paints.push(page.browser.run(paint, &[]).await.as_f64().unwrap());
        page.show("#/contacts", "Contacts").await;
        page.show("#/messages", "Messages").await;
        // A screen whose module is loaded: from the change of the address until it is drawn, without the call.
        let change = "const began = performance.now(); location.hash = '#/contacts';
            return new Promise((resolve) => { const look = () => document.querySelector('main tbody')?.textContent.includes('@')
                ? resolve(performance.now() - began - Math.max(...performance.getEntriesByType('resource').filter((entry) => entry.startTime >= began).map((entry) => entry.duration), 0))
                : requestAnimationFrame(look); look(); })";
        changes.push(page.browser.run(change, &[]).await.as_f64().unwrap());
        rows.push(page.browser.run(ROWS, &[json!(200)]).await.as_f64().unwrap());
    }
    let times = [("first paint", paints), ("change of screen", changes), ("200 rows", rows)];
    for (what, times) in times {
        report(&format!("console: {what}: {:.0} ms", median(times)));
    }
}

/// Draws this many rows; returns the milliseconds until they are laid out.
const ROWS: &str = "const set = document.querySelector('script[src]').src.replace(/app.js$/, '');
    return Promise.all([import(`${set}lib/ui.js`), import(`${set}lib/table.js`)]).then(([{ html, render }, { Table }]) => {
        const rows = Array.from({ length: arguments[0] }, (_, at) => ({ id: at, to: `person${at}@people.example`, subject: `Order ${at}`, status: 'delivered' }));
        const columns = ['to', 'subject', 'status', 'id'].map((name) => ({ label: name, cell: (row) => row[name] }));
        const place = document.createElement('div');
        document.querySelector('main').append(place);
        const began = performance.now();
        render(html`<${Table} columns=${columns} rows=${rows} rowHref=${(row) => `#/messages/${row.id}`} />`, place);
        const height = place.offsetHeight;
        const took = performance.now() - began;
        const drawn = place.querySelectorAll('tbody tr').length;
        render(null, place);
        place.remove();
        if (drawn !== rows.length || !height) throw new Error(`${drawn} rows`);
        return took;
    })";
